//! What the usual admission of a cluster does to a new object, before webhooks see it: a pod is given its account, its
//! priority and its tolerations, a node the taint of one that is not ready. Never here: webhooks.

use std::sync::Arc;

use serde_json::{Value, json};

use super::name;
use crate::environment::suffix;
use crate::kinds::Kind;
use crate::state::State;
use crate::status::{ApiError, Named};
use crate::storage::{Key, Object};

/// Where containers find the token of their account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Validity of that token in seconds. Source: the defaults of Kubernetes.
const TOKEN_S: i64 = 3607;

/// What is done to a new object, or to the next state of one.
pub(crate) fn admit(
    kind: &Kind,
    state: &State,
    old: Option<&Value>,
    value: &mut Value,
) -> Result<(), ApiError> {
    match (name(kind), old) {
        (("", "pods"), None) => {
            account(state, value)?;
            priority(state, value)?;
            tolerations(state.pod_toleration_s, &mut value["spec"]);
        }
        (("", "pods"), Some(_)) => tolerations(state.pod_toleration_s, &mut value["spec"]),
        (("", "nodes"), None) => not_ready(&mut value["spec"]),
        _ => {}
    }
    Ok(())
}

fn refuse(pod: &Value, why: &str) -> ApiError {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    ApiError::forbidden(Named { kind: "pods", group: "", name }, why)
}

fn find<'a>(state: &'a State, plural: &str, group: &str, key: Key) -> Option<&'a Arc<Object>> {
    let kind = state.kinds.resource(group, "v1", plural)?;
    state.storage.get(&kind.bucket, &key)
}

/// The account of a pod: its name, its secrets for images and, unless one of them minds, its token.
fn account(state: &State, pod: &mut Value) -> Result<(), ApiError> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let spec = &mut pod["spec"];
    if !spec.is_object() {
        return Ok(());
    }
    let name = spec["serviceAccountName"].as_str().unwrap_or("default").to_owned();
    spec["serviceAccountName"] = name.as_str().into();
    spec["serviceAccount"] = name.as_str().into();
    let key = Key { namespace: namespace.clone(), name: name.clone() };
    let account = match find(state, "serviceaccounts", "", key) {
        Some(account) => account.value(),
        // The one that every namespace has may be on its way.
        None if name == "default" => Value::Null,
        None => {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
            );
            return Err(refuse(pod, &why));
        }
    };
    if spec["imagePullSecrets"].is_null() && !account["imagePullSecrets"].is_null() {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    let wants = |object: &Value| object["automountServiceAccountToken"].as_bool();
    if wants(spec).or(wants(&account)).unwrap_or(true) {
        mount_token(spec, &format!("kube-api-access-{}", suffix(&*state.environment)));
    }
    Ok(())
}

fn mount_token(spec: &mut Value, volume: &str) {
    let mut is_used = false;
    for list in ["initContainers", "containers"] {
        for container in
            spec[list].as_array_mut().into_iter().flatten().filter(|container| container.is_object())
        {
            let mounts = &mut container["volumeMounts"];
            let is_at = |mount: &Value| mount["mountPath"] == TOKEN_PATH;
            if mounts.as_array().is_some_and(|mounts| mounts.iter().any(is_at)) {
                continue;
            }
            is_used = true;
            push(mounts, json!({ "name": volume, "mountPath": TOKEN_PATH, "readOnly": true }));
        }
    }
    if is_used {
        let token = json!({ "serviceAccountToken": { "expirationSeconds": TOKEN_S, "path": "token" } });
        let item = json!({ "key": "ca.crt", "path": "ca.crt" });
        let authority = json!({ "configMap": { "name": "kube-root-ca.crt", "items": [item] } });
        let field = json!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
        let namespace = json!({ "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": field }] } });
        let sources = json!([token, authority, namespace]);
        push(
            &mut spec["volumes"],
            json!({ "name": volume, "projected": { "defaultMode": 0o644, "sources": sources } }),
        );
    }
}

fn push(list: &mut Value, item: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    list.as_array_mut().expect("it was made a list").push(item);
}

/// The priority of a pod is that of its class.
fn priority(state: &State, pod: &mut Value) -> Result<(), ApiError> {
    let spec = &mut pod["spec"];
    if !spec.is_object() {
        return Ok(());
    }
    let wanted = spec["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = if wanted.is_empty() {
        let kind = state.kinds.resource("scheduling.k8s.io", "v1", "priorityclasses");
        let all = kind.into_iter().flat_map(|kind| state.storage.iter(&kind.bucket, None));
        all.map(|class| class.value()).find(|class| class["globalDefault"] == true)
    } else {
        let key = Key { namespace: String::new(), name: wanted.clone() };
        let found = find(state, "priorityclasses", "scheduling.k8s.io", key).map(|class| class.value());
        if found.is_none() {
            return Err(refuse(pod, &format!("no PriorityClass with name {wanted} was found")));
        }
        found
    };
    let class = class.unwrap_or_default();
    let value = class["value"].as_i64().unwrap_or_default();
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        );
        return Err(refuse(pod, &why));
    }
    spec["priority"] = value.into();
    if class.is_object() {
        spec["priorityClassName"] = class["metadata"]["name"].clone();
    }
    let policy = class["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority");
    super::defaults::missing(spec, "preemptionPolicy", policy);
    Ok(())
}

/// Pods stay for a while on a node that is silent or not ready, unless they say otherwise.
fn tolerations(toleration_s: i64, spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = spec["tolerations"].as_array().into_iter().flatten().any(|toleration| {
            let is_of_key =
                toleration["key"] == taint || toleration["key"].as_str().is_none_or(str::is_empty);
            let is_of_effect =
                toleration["effect"].as_str().is_none_or(|effect| matches!(effect, "" | "NoExecute"));
            is_of_key && is_of_effect
        });
        if !is_tolerated {
            let toleration = json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": toleration_s,
            });
            push(&mut spec["tolerations"], toleration);
        }
    }
}

/// A new node is not ready, whatever it says.
fn not_ready(spec: &mut Value) {
    const TAINT: &str = "node.kubernetes.io/not-ready";
    let mut taints = spec["taints"].as_array().into_iter().flatten();
    if !taints.any(|taint| taint["key"] == TAINT && taint["effect"] == "NoSchedule") {
        push(&mut spec["taints"], json!({ "key": TAINT, "effect": "NoSchedule" }));
    }
}
