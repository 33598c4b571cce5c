//! The form in which the programs of Kubernetes give back objects of their own kinds: empty lists and maps are not there,
//! nor what means nothing; quantities are written in one way. Never here: kinds of CRDs, which are kept as they are sent.

use serde_json::Value;

use super::{Role, Schema, quantity};

/// Fields that are left out when they are empty, zero or false, by type. Of all other fields that is a value.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("v1.ObjectMeta", &["generateName", "namespace", "selfLink"]),
    (
        "v1.ObjectReference",
        &["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"],
    ),
    ("v1.EventSource", &["component", "host"]),
    (
        "v1.PodSpec",
        &[
            "hostIPC",
            "hostNetwork",
            "hostPID",
            "hostname",
            "nodeName",
            "priorityClassName",
            "schedulerName",
            "serviceAccount",
            "serviceAccountName",
            "subdomain",
        ],
    ),
    ("v1.Container", &["image", "imagePullPolicy", "stdin", "stdinOnce", "tty", "workingDir"]),
    ("v1.ContainerPort", &["hostIP", "hostPort", "name"]),
    ("v1.EnvFromSource", &["prefix"]),
    ("v1.EnvVar", &["value"]),
    ("v1.VolumeMount", &["readOnly", "subPath", "subPathExpr"]),
    ("v1.EmptyDirVolumeSource", &["medium"]),
    ("v1.SecretVolumeSource", &["secretName"]),
    ("v1.PersistentVolumeClaimVolumeSource", &["readOnly"]),
    ("v1.HTTPGetAction", &["host", "path", "scheme"]),
    (
        "v1.Probe",
        &["failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"],
    ),
    ("v1.Toleration", &["effect", "key", "operator", "value"]),
    ("v1.Taint", &["value"]),
    ("v1.NodeSpec", &["podCIDR", "providerID", "unschedulable"]),
    ("v1.NodeCondition", &["message", "reason"]),
    ("v1.PodCondition", &["message", "reason"]),
    ("v1.ServiceSpec", &["clusterIP", "externalName", "loadBalancerIP", "publishNotReadyAddresses"]),
    ("v1.ServicePort", &["name", "nodePort"]),
    ("v1.DeploymentSpec", &["minReadySeconds", "paused"]),
    ("v1.DaemonSetSpec", &["minReadySeconds"]),
    ("v1.ReplicaSetSpec", &["minReadySeconds"]),
    ("v1.PriorityClass", &["description", "globalDefault"]),
    ("v1.WebhookClientConfig", &["caBundle"]),
];

/// Times that are there, as null, where nobody has said them, by type.
const TIMES: &[(&str, &[&str])] = &[
    ("v1.DaemonSetCondition", &["lastTransitionTime"]),
    ("v1.DeploymentCondition", &["lastTransitionTime", "lastUpdateTime"]),
    ("v1.NodeCondition", &["lastHeartbeatTime", "lastTransitionTime"]),
    ("v1.PodCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("v1.ReplicaSetCondition", &["lastTransitionTime"]),
];

/// Brings a value of a kind of Kubernetes into this form.
pub(super) fn settle(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let name = schema.type_name.as_deref().unwrap_or_default();
            let left_out = of_type(LEFT_OUT, name);
            for time in of_type(TIMES, name) {
                fields.entry(*time).or_insert(Value::Null);
            }
            fields.retain(|name, value| {
                let Some(of_field) = schema.field(name) else { return true };
                settle(of_field, value);
                let is_optional = schema.properties.contains_key(name) && !schema.required.contains(name);
                let is_empty = is_optional && is_empty(of_field, value);
                !(is_empty || left_out.contains(&&**name) && is_nothing(value))
            });
        }
        Value::Array(items) => {
            if let Some(of_items) = &schema.items {
                items.iter_mut().for_each(|item| settle(of_items, item));
            }
        }
        Value::String(text) if schema.role == Role::Quantity => {
            if let Some(canonical) = quantity::canonical(text) {
                *text = canonical;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn of_type(table: &[(&str, &'static [&'static str])], name: &str) -> &'static [&'static str] {
    table.iter().find(|(kind, _)| *kind == name).map_or(&[], |(_, fields)| fields)
}

/// A list or map without anything in it. An object with fields of its own is there even if it is empty.
fn is_empty(schema: &Schema, value: &Value) -> bool {
    match value {
        Value::Array(items) => schema.items.is_some() && items.is_empty(),
        Value::Object(fields) => schema.additional.is_some() && fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(is_so) => !is_so,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}
