//! Services: what is filled in, addresses and ports of their own, what is refused. Nobody listens anywhere. Never here:
//! endpoints.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::defaults::{each, missing, unset};
use crate::metadata;
use crate::state::State;
use crate::status::{Fault, FieldError};

/// Ports that nodes have for services. Source: the defaults of Kubernetes.
const NODE_PORTS: std::ops::Range<u64> = 30_000..32_768;
/// How long a client is sent to the same pod, in seconds. Source: the API of Kubernetes.
const AFFINITY_S: i64 = 10_800;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Fills in what a service leaves out.
pub(super) fn fill(spec: &mut Value) {
    if spec.is_null() {
        *spec = json!({});
    }
    unset(spec, "type", "ClusterIP");
    unset(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "ClientIP" {
        missing(spec, "sessionAffinityConfig", json!({}));
        missing(&mut spec["sessionAffinityConfig"], "clientIP", json!({}));
        missing(&mut spec["sessionAffinityConfig"]["clientIP"], "timeoutSeconds", AFFINITY_S);
    }
    if spec["type"] != "ExternalName" {
        missing(spec, "internalTrafficPolicy", "Cluster");
    }
    if has_node_ports(spec) {
        missing(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        missing(spec, "allocateLoadBalancerNodePorts", true);
    }
    each(&mut spec["ports"], |port| {
        unset(port, "protocol", "TCP");
        let number = port["port"].clone();
        unset(port, "targetPort", number);
    });
}

/// Gives a service what it has to itself; an older state of it keeps what it had.
pub(super) fn allocate(state: &State, old: Option<&Value>, value: &mut Value) {
    let spec = &mut value["spec"];
    if let Some(old) = old {
        release(&old["spec"], spec);
        keep(&old["spec"], spec);
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    if spec["clusterIP"].as_str().is_none_or(str::is_empty) {
        let number = state.environment.random();
        // 10.96.0.0/12, as clusters have it by default.
        let address = format!("10.{}.{}.{}", 96 + (number & 15), number >> 8 & 255, 1 + (number >> 16 & 127));
        spec["clusterIP"] = address.into();
    }
    let is_bare =
        spec["clusterIP"] == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
    missing(spec, "ipFamilies", if is_bare { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    missing(spec, "ipFamilyPolicy", if is_bare { "RequireDualStack" } else { "SingleStack" });
    let wants_ports = has_node_ports(spec) && spec["allocateLoadBalancerNodePorts"] != false;
    let port = || NODE_PORTS.start + state.environment.random() % (NODE_PORTS.end - NODE_PORTS.start);
    if wants_ports {
        each(&mut spec["ports"], |each| unset(each, "nodePort", port()));
    }
    if spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local" {
        unset(spec, "healthCheckNodePort", port());
    }
}

/// Takes away what a service of another type had, if whoever changes the type did not change that too.
fn release(old: &Value, spec: &mut Value) {
    let is_external = |spec: &Value| spec["type"] == "ExternalName";
    let mut fields: Vec<&str> = Vec::new();
    if is_external(spec) && !is_external(old) {
        fields.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    if has_node_ports(old) && !has_node_ports(spec) {
        fields.extend(["externalTrafficPolicy", "healthCheckNodePort"]);
        let known = old["ports"].as_array().cloned().unwrap_or_default();
        each(&mut spec["ports"], |port| {
            if known.iter().any(|old| old["nodePort"] == port["nodePort"]) {
                port.as_object_mut().into_iter().for_each(|port| drop(port.remove("nodePort")));
            }
        });
    }
    if old["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
        fields.push("allocateLoadBalancerNodePorts");
    }
    let Some(spec) = spec.as_object_mut() else { return };
    for field in fields {
        if spec.get(field) == Some(&old[field]) {
            spec.remove(field);
        }
    }
}

/// Takes over from an older state what a new one does not name.
fn keep(old: &Value, spec: &mut Value) {
    if spec["type"] != "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if !old[field].is_null() {
                unset(spec, field, old[field].clone());
            }
        }
    }
    if !(has_node_ports(old) && has_node_ports(spec)) {
        return;
    }
    let known = old["ports"].as_array().cloned().unwrap_or_default();
    each(&mut spec["ports"], |port| {
        let is_same = |old: &&Value| old["port"] == port["port"] && old["protocol"] == port["protocol"];
        if let Some(old) = known.iter().find(is_same).filter(|old| !old["nodePort"].is_null()) {
            unset(port, "nodePort", old["nodePort"].clone());
        }
    });
    if !old["healthCheckNodePort"].is_null() && spec["externalTrafficPolicy"] == "Local" {
        unset(spec, "healthCheckNodePort", old["healthCheckNodePort"].clone());
    }
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"))
}

/// What is wrong with a service.
pub(super) fn check(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = Vec::new();
    let is_headless = spec["clusterIP"] == "None";
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && !is_headless && spec["type"] != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    if spec["type"] == "ExternalName" && spec["externalName"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    check_ports(spec, ports, &mut errors);
    errors.extend(metadata::check_labels("spec.selector", &spec["selector"]));
    if !matches!(spec["sessionAffinity"].as_str(), Some("ClientIP" | "None")) {
        let allowed = ["ClientIP", "None"];
        errors.push(FieldError::unsupported("spec.sessionAffinity", &spec["sessionAffinity"], &allowed));
    }
    if !spec["type"].as_str().is_some_and(|kind| TYPES.contains(&kind)) {
        errors.push(FieldError::unsupported("spec.type", &spec["type"], &TYPES));
    }
    let address = spec["clusterIP"].as_str().unwrap_or_default();
    if !matches!(address, "" | "None") && address.parse::<IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(FieldError::invalid("spec.clusterIPs[0]", &spec["clusterIP"], detail));
    }
    if let Some(old) = old.map(|old| &old["spec"])
        && [old, spec].into_iter().all(|spec| spec["type"] != "ExternalName")
        && old["clusterIP"] != spec["clusterIP"]
    {
        let detail = "may not change once set";
        errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!([spec["clusterIP"]]), detail));
    }
    errors
}

fn check_ports(spec: &Value, ports: &[Value], errors: &mut Vec<FieldError>) {
    for (at, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{at}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else if !name.is_empty() && !metadata::is_label(name) {
            errors.push(FieldError::invalid(format!("{path}.name"), &port["name"], metadata::LABEL));
        } else if !name.is_empty() && ports[..at].iter().any(|other| other["name"] == name) {
            errors.push(FieldError::new(Fault::Duplicate, format!("{path}.name"), &port["name"], ""));
        }
        check_number(&format!("{path}.port"), &port["port"], errors);
        if !matches!(port["protocol"].as_str(), Some("SCTP" | "TCP" | "UDP")) {
            let allowed = ["SCTP", "TCP", "UDP"];
            errors.push(FieldError::unsupported(format!("{path}.protocol"), &port["protocol"], &allowed));
        }
        match &port["targetPort"] {
            Value::String(name) => errors.extend(port_name(&format!("{path}.targetPort"), name)),
            number => check_number(&format!("{path}.targetPort"), number, errors),
        }
        if spec["type"] == "ClusterIP" && !port["nodePort"].is_null() {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(format!("{path}.nodePort"), detail));
        }
        let is_same = |other: &Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        if ports[..at].iter().any(is_same) {
            errors.push(FieldError {
                fault: Fault::Duplicate,
                path,
                value: format!(
                    "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                    port["protocol"], port["port"]
                ),
                detail: String::new(),
            });
        }
    }
}

fn check_number(path: &str, number: &Value, errors: &mut Vec<FieldError>) {
    if !number.as_i64().is_some_and(|number| (1..=65_535).contains(&number)) {
        errors.push(FieldError::invalid(path, number, "must be between 1 and 65535, inclusive"));
    }
}

/// What is wrong with the name of a port.
pub(super) fn port_name(path: &str, name: &str) -> Vec<FieldError> {
    let mut details = Vec::new();
    if name.len() > 15 {
        details.push("must be no more than 15 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        details.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        details.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        details.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        details.push("must not begin or end with a hyphen");
    }
    let complain = |detail| FieldError::invalid(path, &name.into(), detail);
    details.into_iter().map(complain).collect()
}
