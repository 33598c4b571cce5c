//! What is filled in where pods, and templates of pods, leave something out. Source: the API reference of Kubernetes.
//! Never here: what only a new pod is given.

use serde_json::{Value, json};

use super::defaults::{each, missing, unset};

/// `0644`, as every volume of files has it.
const FILE_MODE: i64 = 0o644;
/// Validity of the token of a volume that asks for none.
const TOKEN_S: i64 = 3600;

/// Fills in a pod, whose containers on the network of their node take its ports.
pub(super) fn pod(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    fill(spec);
    missing(spec, "enableServiceLinks", true);
    for list in ["containers", "initContainers"] {
        each(&mut spec[list], |container| {
            if container.is_object() {
                ask_for_limits(&mut container["resources"]);
            }
        });
    }
    if spec["hostNetwork"] == true {
        for list in ["containers", "initContainers"] {
            each(&mut spec[list], |container| {
                each(&mut container["ports"], |port| {
                    let number = port["containerPort"].clone();
                    unset(port, "hostPort", number);
                });
            });
        }
    }
}

/// Fills in the specification of a pod.
pub(super) fn fill(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    unset(spec, "restartPolicy", "Always");
    missing(spec, "terminationGracePeriodSeconds", 30);
    unset(spec, "dnsPolicy", "ClusterFirst");
    unset(spec, "schedulerName", "default-scheduler");
    missing(spec, "securityContext", json!({}));
    // Either name may be given; the older one is kept for who reads it.
    let account = ["serviceAccountName", "serviceAccount"].map(|field| spec[field].clone());
    if let Some(account) = account.into_iter().find(|name| name.as_str().is_some_and(|name| !name.is_empty()))
    {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
    each(&mut spec["containers"], container);
    each(&mut spec["initContainers"], container);
    each(&mut spec["volumes"], volume);
}

fn container(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    missing(container, "resources", json!({}));
    unset(container, "terminationMessagePath", "/dev/termination-log");
    unset(container, "terminationMessagePolicy", "File");
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit('/').next().unwrap_or_default();
    let is_latest = !tag.contains('@') && tag.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    unset(container, "imagePullPolicy", if is_latest { "Always" } else { "IfNotPresent" });
    each(&mut container["ports"], |port| unset(port, "protocol", "TCP"));
    each(&mut container["env"], |variable| {
        field_of(&mut variable["valueFrom"]);
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &mut container[probe];
        if probe.is_object() {
            unset(probe, "timeoutSeconds", 1);
            unset(probe, "periodSeconds", 10);
            unset(probe, "successThreshold", 1);
            unset(probe, "failureThreshold", 3);
            get(probe);
        }
    }
    for hook in ["preStop", "postStart"] {
        if container["lifecycle"][hook].is_object() {
            get(&mut container["lifecycle"][hook]);
        }
    }
}

/// Who says how much he may have at most, and not how much he needs, needs as much.
fn ask_for_limits(resources: &mut Value) {
    for (name, limit) in resources["limits"].as_object().cloned().unwrap_or_default() {
        if resources["requests"][&name].is_null() {
            resources["requests"][&name] = limit;
        }
    }
}

/// A request for a page.
fn get(handler: &mut Value) {
    if handler["httpGet"].is_object() {
        unset(&mut handler["httpGet"], "scheme", "HTTP");
        unset(&mut handler["httpGet"], "path", "/");
    }
}

/// Where a value is taken from the pod itself.
fn field_of(source: &mut Value) {
    if source["fieldRef"].is_object() {
        unset(&mut source["fieldRef"], "apiVersion", "v1");
    }
    if source["resourceFieldRef"].is_object() {
        missing(&mut source["resourceFieldRef"], "divisor", "0");
    }
}

/// Files that are taken from the pod itself.
fn fields_of(source: &mut Value) {
    if source["downwardAPI"].is_object() {
        each(&mut source["downwardAPI"]["items"], field_of);
    }
}

fn volume(volume: &mut Value) {
    let Some(fields) = volume.as_object() else { return };
    if fields.iter().all(|(name, value)| name == "name" || value.is_null()) {
        volume["emptyDir"] = json!({});
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if volume[source].is_object() {
            missing(&mut volume[source], "defaultMode", FILE_MODE);
        }
    }
    if volume["hostPath"].is_object() {
        missing(&mut volume["hostPath"], "type", "");
    }
    fields_of(volume);
    if !volume["projected"].is_object() {
        return;
    }
    each(&mut volume["projected"]["sources"], |source| {
        fields_of(source);
        if source["serviceAccountToken"].is_object() {
            missing(&mut source["serviceAccountToken"], "expirationSeconds", TOKEN_S);
        }
    });
}
