//! What is in the columns of the kinds of Kubernetes that take more than a line to say. Never here: which columns there
//! are.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::selector::{NONE, labels, or_none, selector};
use super::{age, condition, items, number, pods, text};

pub(super) fn name(object: &Value) -> Value {
    text(object, &["metadata", "name"]).into()
}

pub(super) fn phase(object: &Value) -> Value {
    text(object, &["status", "phase"]).into()
}

pub(super) fn entries(map: &Value) -> usize {
    map.as_object().map_or(0, |map| map.len())
}

pub(super) fn node(node: &Value, now: Timestamp) -> Vec<Value> {
    let mut status = match condition(node, "Ready") {
        Some(condition) if condition["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(label, value)| match label.as_str() {
            "kubernetes.io/role" => value.as_str(),
            _ => label.strip_prefix("node-role.kubernetes.io/"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    let address = |kind: &str| {
        let found = items(node, &["status", "addresses"]).iter().find(|address| address["type"] == kind);
        found.map_or(NONE, |address| text(address, &["address"]))
    };
    let info = |field: &str| match text(node, &["status", "nodeInfo", field]) {
        "" => age::UNKNOWN,
        text => text,
    };
    let kernel = match text(node, &["status", "nodeInfo", "architecture"]) {
        "" => info("kernelVersion").to_owned(),
        architecture => format!("{} ({architecture})", info("kernelVersion")),
    };
    vec![
        name(node),
        status.into(),
        or_none(Vec::from_iter(roles).join(",")).into(),
        age::of(node, now),
        text(node, &["status", "nodeInfo", "kubeletVersion"]).into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("osImage").into(),
        kernel.into(),
        info("containerRuntimeVersion").into(),
    ]
}

pub(super) fn pod(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = pods::summary(pod, now);
    let field = |path: &[&str]| or_none(text(pod, path).to_owned());
    let address = items(pod, &["status", "podIPs"]).first().map(|address| text(address, &["ip"]).to_owned());
    vec![
        name(pod),
        summary.ready.into(),
        summary.status.into(),
        summary.restarts.into(),
        age::of(pod, now),
        address.map_or_else(|| field(&["status", "podIP"]), or_none).into(),
        field(&["spec", "nodeName"]).into(),
        field(&["status", "nominatedNodeName"]).into(),
        pods::gates(pod).unwrap_or_else(|| NONE.into()).into(),
    ]
}

pub(super) fn service(service: &Value, now: Timestamp) -> Vec<Value> {
    let kind = text(service, &["spec", "type"]);
    let given = items(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str);
    let balancers = items(service, &["status", "loadBalancer", "ingress"]).iter();
    let balancers = balancers.map(|balancer| match text(balancer, &["ip"]) {
        "" => text(balancer, &["hostname"]),
        ip => ip,
    });
    let outside = match kind {
        "ExternalName" => text(service, &["spec", "externalName"]).to_owned(),
        "LoadBalancer" => match balancers.chain(given).collect::<Vec<_>>().join(",") {
            empty if empty.is_empty() => "<pending>".into(),
            addresses => addresses,
        },
        _ => or_none(given.collect::<Vec<_>>().join(",")),
    };
    let ports = items(service, &["spec", "ports"]).iter().map(|port| {
        let (inside, protocol) = (number(port, &["port"]), text(port, &["protocol"]));
        match number(port, &["nodePort"]) {
            0 => format!("{inside}/{protocol}"),
            on_node => format!("{inside}:{on_node}/{protocol}"),
        }
    });
    vec![
        name(service),
        kind.into(),
        or_none(text(service, &["spec", "clusterIP"]).to_owned()).into(),
        outside.into(),
        or_none(ports.collect::<Vec<_>>().join(",")).into(),
        age::of(service, now),
        labels(&service["spec"]["selector"]).into(),
    ]
}

pub(super) fn event(event: &Value, now: Timestamp) -> Vec<Value> {
    let first_of =
        |paths: [&[&str]; 2]| paths.map(|path| text(event, path)).into_iter().find(|text| !text.is_empty());
    let first = first_of([&["firstTimestamp"], &["eventTime"]]);
    let last = first_of([&["series", "lastObservedTime"], &["lastTimestamp"]]).or(first);
    let seen = |time: Option<&str>| age::since(&time.unwrap_or_default().into(), now);
    let object = match (text(event, &["involvedObject", "kind"]), text(event, &["involvedObject", "name"])) {
        (kind, "") => kind.to_lowercase(),
        (kind, name) => format!("{}/{name}", kind.to_lowercase()),
    };
    let component = first_of([&["source", "component"], &["reportingComponent"]]);
    let place = first_of([&["source", "host"], &["reportingInstance"]]);
    let source: Vec<&str> = [component, place].into_iter().flatten().collect();
    let count = [&["series", "count"][..], &["count"]].map(|path| number(event, path));
    let count = count.into_iter().find(|count| *count != 0).unwrap_or(1);
    vec![
        seen(last).into(),
        text(event, &["type"]).into(),
        text(event, &["reason"]).into(),
        object.into(),
        text(event, &["involvedObject", "fieldPath"]).into(),
        source.join(", ").into(),
        text(event, &["message"]).trim().into(),
        seen(first).into(),
        json!(count),
        name(event),
    ]
}

/// The parameters that a binding of a policy names.
pub(super) fn param(reference: &Value) -> String {
    let part = |name: &str| reference[name].as_str().filter(|text| !text.is_empty());
    match part("name") {
        Some(name) => format!("{}/{name}", part("namespace").unwrap_or("*")),
        None => "<unset>".into(),
    }
}

/// Containers, images and selector of what makes pods.
pub(super) fn template(object: &Value) -> Vec<Value> {
    let containers = items(object, &["spec", "template", "spec", "containers"]);
    let all = |field: &str| {
        let values = containers.iter().map(|container| text(container, &[field]));
        values.collect::<Vec<_>>().join(",").into()
    };
    vec![all("name"), all("image"), selector(&object["spec"]["selector"]).into()]
}
