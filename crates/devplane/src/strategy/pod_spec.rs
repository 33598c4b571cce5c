//! What is refused of the specification of a pod, in a pod or in a template: what users get wrong. What only a kubelet
//! would mind is let through. Never here: what may change of a pod.

use serde_json::Value;

use super::services::port_name;
use crate::metadata;
use crate::schema::quantity;
use crate::status::{Fault, FieldError};

const RESTART: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// What is wrong with a specification at a path.
pub(super) fn check(path: &str, spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let volumes = list(&spec["volumes"]);
    for (at, volume) in volumes.iter().enumerate() {
        check_volume(&format!("{path}.volumes[{at}]"), volume, &volumes[..at], &mut errors);
    }
    let containers = list(&spec["containers"]);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    for (field, containers) in [("containers", containers), ("initContainers", list(&spec["initContainers"]))]
    {
        for (at, container) in containers.iter().enumerate() {
            let path = format!("{path}.{field}[{at}]");
            check_name(&path, container, &containers[..at], &mut errors);
            check_container(&path, container, volumes, &mut errors);
        }
    }
    check_choice(&format!("{path}.restartPolicy"), &spec["restartPolicy"], &RESTART, &mut errors);
    check_choice(&format!("{path}.dnsPolicy"), &spec["dnsPolicy"], &DNS, &mut errors);
    if spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds < 1) {
        let detail = "must be between 1 and 2147483647, inclusive";
        let path = format!("{path}.activeDeadlineSeconds");
        errors.push(FieldError::invalid(path, &spec["activeDeadlineSeconds"], detail));
    }
    for (at, toleration) in list(&spec["tolerations"]).iter().enumerate() {
        check_toleration(&format!("{path}.tolerations[{at}]"), toleration, &mut errors);
    }
    errors
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

fn check_choice(path: &str, value: &Value, allowed: &[&str], errors: &mut Vec<FieldError>) {
    if !value.as_str().is_some_and(|value| allowed.contains(&value)) {
        errors.push(FieldError::unsupported(path, value, allowed));
    }
}

/// A name that is a label, and the only one of its list.
fn check_name(path: &str, named: &Value, before: &[Value], errors: &mut Vec<FieldError>) {
    let path = format!("{path}.name");
    match text(named, "name") {
        "" => errors.push(FieldError::required(path, "")),
        name if !metadata::is_label(name) => {
            errors.push(FieldError::invalid(path, &named["name"], metadata::LABEL));
        }
        name if before.iter().any(|other| other["name"] == name) => {
            errors.push(FieldError::new(Fault::Duplicate, path, &named["name"], ""));
        }
        _ => {}
    }
}

fn check_volume(path: &str, volume: &Value, before: &[Value], errors: &mut Vec<FieldError>) {
    check_name(path, volume, before, errors);
    let sources = volume.as_object().into_iter().flatten().filter(|(name, _)| *name != "name");
    for (name, _) in sources.skip(1) {
        errors
            .push(FieldError::forbidden(format!("{path}.{name}"), "may not specify more than 1 volume type"));
    }
}

fn check_container(path: &str, container: &Value, volumes: &[Value], errors: &mut Vec<FieldError>) {
    let image = text(container, "image");
    if image.is_empty() {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(format!("{path}.image"), &container["image"], detail));
    }
    let ports = list(&container["ports"]);
    for (at, port) in ports.iter().enumerate() {
        check_port(&format!("{path}.ports[{at}]"), port, &ports[..at], errors);
    }
    for (at, variable) in list(&container["env"]).iter().enumerate() {
        check_variable(&format!("{path}.env[{at}]"), variable, errors);
    }
    let mounts = list(&container["volumeMounts"]);
    for (at, mount) in mounts.iter().enumerate() {
        let path = format!("{path}.volumeMounts[{at}]");
        let name = text(mount, "name");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        if !volumes.iter().any(|volume| volume["name"] == name) {
            errors.push(FieldError::new(Fault::NotFound, format!("{path}.name"), &name.into(), ""));
        }
        let place = text(mount, "mountPath");
        if place.is_empty() {
            errors.push(FieldError::required(format!("{path}.mountPath"), ""));
        } else if mounts[..at].iter().any(|other| other["mountPath"] == place) {
            errors.push(FieldError::invalid(format!("{path}.mountPath"), &place.into(), "must be unique"));
        }
    }
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[field].is_object() {
            check_probe(path, field, &container[field], errors);
        }
    }
    check_resources(&format!("{path}.resources"), &container["resources"], errors);
}

fn check_port(path: &str, port: &Value, before: &[Value], errors: &mut Vec<FieldError>) {
    let name = text(port, "name");
    let complaints = if name.is_empty() { Vec::new() } else { port_name(&format!("{path}.name"), name) };
    if complaints.is_empty() && !name.is_empty() && before.iter().any(|other| other["name"] == name) {
        errors.push(FieldError::new(Fault::Duplicate, format!("{path}.name"), &port["name"], ""));
    }
    errors.extend(complaints);
    let number = &port["containerPort"];
    match number.as_i64() {
        None | Some(0) => errors.push(FieldError::required(format!("{path}.containerPort"), "")),
        Some(1..=65_535) => {}
        Some(_) => {
            let detail = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(format!("{path}.containerPort"), number, detail));
        }
    }
    check_choice(&format!("{path}.protocol"), &port["protocol"], &PROTOCOLS, errors);
}

fn check_variable(path: &str, variable: &Value, errors: &mut Vec<FieldError>) {
    let name = text(variable, "name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    } else if name.contains('=') {
        let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        errors.push(FieldError::invalid(format!("{path}.name"), &variable["name"], detail));
    }
    let source = &variable["valueFrom"];
    let mut bad = |detail| errors.push(FieldError::invalid(format!("{path}.valueFrom"), &"".into(), detail));
    if source.as_object().is_some_and(serde_json::Map::is_empty) {
        bad(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if source.is_object() && !text(variable, "value").is_empty() {
        bad("may not be specified when `value` is not empty");
    }
}

fn check_probe(path: &str, field: &str, probe: &Value, errors: &mut Vec<FieldError>) {
    let path = format!("{path}.{field}");
    let handlers =
        ["exec", "httpGet", "tcpSocket", "grpc"].into_iter().filter(|name| probe[*name].is_object());
    let handlers: Vec<&str> = handlers.collect();
    if handlers.is_empty() {
        errors.push(FieldError::required(&*path, "must specify a handler type"));
    }
    for name in handlers.iter().skip(1) {
        errors.push(FieldError::forbidden(
            format!("{path}.{name}"),
            "may not specify more than 1 handler type",
        ));
    }
    for number in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        if probe[number].as_i64().is_some_and(|number| number < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("{path}.{number}"), &probe[number], detail));
        }
    }
    if field != "readinessProbe" && probe["successThreshold"] != 1 {
        let path = format!("{path}.successThreshold");
        errors.push(FieldError::invalid(path, &probe["successThreshold"], "must be 1"));
    }
}

fn check_resources(path: &str, resources: &Value, errors: &mut Vec<FieldError>) {
    let amounts = |field: &str| resources[field].as_object().into_iter().flatten();
    let nanos = |value: &Value| value.as_str().and_then(quantity::nanos);
    for field in ["limits", "requests"] {
        for (name, amount) in
            amounts(field).filter(|(_, amount)| nanos(amount).is_some_and(|amount| amount < 0))
        {
            let path = format!("{path}.{field}[{name}]");
            errors.push(FieldError::invalid(path, amount, "must be greater than or equal to 0"));
        }
    }
    for (name, amount) in amounts("requests") {
        let limit = &resources["limits"][name];
        if let (Some(wanted), Some(most)) = (nanos(amount), nanos(limit))
            && wanted > most
        {
            let limit = limit.as_str().unwrap_or_default();
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(FieldError::invalid(format!("{path}.requests"), amount, detail));
        }
    }
}

fn check_toleration(path: &str, toleration: &Value, errors: &mut Vec<FieldError>) {
    let (operator, effect) = (text(toleration, "operator"), text(toleration, "effect"));
    let at = |field: &str| format!("{path}.{field}");
    if text(toleration, "key").is_empty() && operator != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(at("operator"), &operator.into(), detail));
    }
    if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(at("effect"), &effect.into(), detail));
    }
    match operator {
        "Exists" if !text(toleration, "value").is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(at("operator"), &toleration["value"], detail));
        }
        "" | "Equal" | "Exists" => {}
        _ => errors.push(FieldError::unsupported(at("operator"), &operator.into(), &["Equal", "Exists"])),
    }
    if !effect.is_empty() {
        check_choice(&at("effect"), &toleration["effect"], &EFFECTS, errors);
    }
}
