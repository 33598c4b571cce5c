//! What is filled in where a built-in kind leaves something out. Source: the API reference of Kubernetes. Never here:
//! what only a create fills in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::kinds::Kind;

/// Fills in an object of a built-in kind.
pub(super) fn fill(kind: &Kind, value: &mut Value) {
    match super::name(kind) {
        ("", "pods") => pod_spec(&mut value["spec"]),
        ("", "secrets") => secret(value),
        ("", "services") => service(&mut value["spec"]),
        ("apps", plural) => workload(plural, &mut value["spec"]),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crd(&mut value["spec"]),
        ("admissionregistration.k8s.io", plural) => {
            each(&mut value["webhooks"], |webhook| self::webhook(plural, webhook));
            policy(plural, &mut value["spec"]);
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(value),
        ("scheduling.k8s.io", "priorityclasses") => {
            missing(value, "preemptionPolicy", "PreemptLowerPriority")
        }
        _ => {}
    }
}

/// Sets a field that is missing.
fn missing(object: &mut Value, field: &str, value: impl Into<Value>) {
    if object[field].is_null() {
        object[field] = value.into();
    }
}

fn each(list: &mut Value, change: impl FnMut(&mut Value)) {
    list.as_array_mut().into_iter().flatten().for_each(change);
}

fn pod_spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    missing(spec, "restartPolicy", "Always");
    missing(spec, "terminationGracePeriodSeconds", 30);
    missing(spec, "dnsPolicy", "ClusterFirst");
    missing(spec, "schedulerName", "default-scheduler");
    missing(spec, "securityContext", json!({}));
    for list in ["containers", "initContainers"] {
        each(&mut spec[list], container);
        if spec[list].is_null() {
            spec.as_object_mut().expect("it was checked").remove(list);
        }
    }
    each(&mut spec["tolerations"], |_| {});
    each(&mut spec["volumes"], volume);
    for list in ["tolerations", "volumes"] {
        if spec[list].is_null() {
            spec.as_object_mut().expect("it was checked").remove(list);
        }
    }
}

fn container(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    missing(container, "resources", json!({}));
    missing(container, "terminationMessagePath", "/dev/termination-log");
    missing(container, "terminationMessagePolicy", "File");
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit('/').next().unwrap_or_default();
    let is_latest = !tag.contains('@') && tag.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    missing(container, "imagePullPolicy", if is_latest { "Always" } else { "IfNotPresent" });
    if container["ports"].is_array() {
        each(&mut container["ports"], |port| missing(port, "protocol", "TCP"));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            let probe = &mut container[probe];
            missing(probe, "timeoutSeconds", 1);
            missing(probe, "periodSeconds", 10);
            missing(probe, "successThreshold", 1);
            missing(probe, "failureThreshold", 3);
            if probe["httpGet"].is_object() {
                missing(&mut probe["httpGet"], "scheme", "HTTP");
                missing(&mut probe["httpGet"], "path", "/");
            }
        } else if let Some(container) = container.as_object_mut() {
            container.remove(probe);
        }
    }
}

/// `0644`, as every volume of files has it.
const FILE_MODE: i64 = 0o644;

fn volume(volume: &mut Value) {
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if volume[source].is_object() {
            missing(&mut volume[source], "defaultMode", FILE_MODE);
        } else if let Some(volume) = volume.as_object_mut() {
            volume.remove(source);
        }
    }
}

fn secret(value: &mut Value) {
    missing(value, "type", "Opaque");
    let Some(Value::Object(plain)) = value.as_object_mut().and_then(|secret| secret.remove("stringData"))
    else {
        return;
    };
    for (key, text) in plain {
        value["data"][key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

fn service(spec: &mut Value) {
    if spec.is_null() {
        *spec = json!({});
    }
    missing(spec, "type", "ClusterIP");
    missing(spec, "sessionAffinity", "None");
    if spec["type"] != "ExternalName" {
        missing(spec, "internalTrafficPolicy", "Cluster");
        missing(spec, "ipFamilies", json!(["IPv4"]));
        missing(spec, "ipFamilyPolicy", "SingleStack");
    }
    each(&mut spec["ports"], |port| {
        missing(port, "protocol", "TCP");
        let number = port["port"].clone();
        missing(port, "targetPort", number);
    });
    if spec["ports"].is_null() {
        spec.as_object_mut().expect("it is an object").remove("ports");
    }
}

fn workload(plural: &str, spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    if spec["template"].is_object() {
        missing(&mut spec["template"], "metadata", json!({}));
        if spec["template"]["spec"].is_object() {
            pod_spec(&mut spec["template"]["spec"]);
        }
    }
    match plural {
        "deployments" => {
            missing(spec, "replicas", 1);
            missing(spec, "revisionHistoryLimit", 10);
            missing(spec, "progressDeadlineSeconds", 600);
            strategy(spec, "strategy", json!({ "maxUnavailable": "25%", "maxSurge": "25%" }));
        }
        "daemonsets" => {
            missing(spec, "revisionHistoryLimit", 10);
            strategy(spec, "updateStrategy", json!({ "maxUnavailable": 1, "maxSurge": 0 }));
        }
        "replicasets" => missing(spec, "replicas", 1),
        _ => {}
    }
}

fn strategy(spec: &mut Value, field: &str, rolling: Value) {
    missing(spec, field, json!({}));
    missing(&mut spec[field], "type", "RollingUpdate");
    if spec[field]["type"] == "RollingUpdate" {
        missing(&mut spec[field], "rollingUpdate", json!({}));
        for (name, value) in rolling.as_object().into_iter().flatten() {
            missing(&mut spec[field]["rollingUpdate"], name, value.clone());
        }
    }
}

fn crd(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    if let Some(kind) = spec["names"]["kind"].as_str().map(str::to_owned) {
        missing(&mut spec["names"], "singular", kind.to_lowercase());
        missing(&mut spec["names"], "listKind", format!("{kind}List"));
    }
    missing(spec, "conversion", json!({ "strategy": "None" }));
}

fn webhook(plural: &str, webhook: &mut Value) {
    missing(webhook, "failurePolicy", "Fail");
    missing(webhook, "matchPolicy", "Equivalent");
    missing(webhook, "namespaceSelector", json!({}));
    missing(webhook, "objectSelector", json!({}));
    missing(webhook, "timeoutSeconds", 10);
    if plural == "mutatingwebhookconfigurations" {
        missing(webhook, "reinvocationPolicy", "Never");
    }
    each(&mut webhook["rules"], |rule| missing(rule, "scope", "*"));
    if webhook["clientConfig"]["service"].is_object() {
        missing(&mut webhook["clientConfig"]["service"], "port", 443);
    }
}

/// Policies and their bindings.
fn policy(plural: &str, spec: &mut Value) {
    let resources = match plural {
        "validatingadmissionpolicies" => {
            missing(spec, "failurePolicy", "Fail");
            &mut spec["matchConstraints"]
        }
        "validatingadmissionpolicybindings" => &mut spec["matchResources"],
        _ => return,
    };
    if resources.is_object() {
        missing(resources, "matchPolicy", "Equivalent");
        missing(resources, "namespaceSelector", json!({}));
        missing(resources, "objectSelector", json!({}));
        for rules in ["resourceRules", "excludeResourceRules"] {
            each(&mut resources[rules], |rule| missing(rule, "scope", "*"));
        }
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn binding(value: &mut Value) {
    if value["roleRef"].is_object() {
        missing(&mut value["roleRef"], "apiGroup", RBAC);
    }
    each(&mut value["subjects"], |subject| {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            missing(subject, "apiGroup", RBAC);
        }
    });
}
