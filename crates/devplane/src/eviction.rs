//! The subresource `eviction` of pods: a deletion that asks the budgets first. Never here: how budgets are counted.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::environment::seconds;
use crate::kinds::Kind;
use crate::loops::work;
use crate::loops::writes::{SERVER, condition, get, set_disruption, write_status};
use crate::loops::{set_allowed, sync_failure};
use crate::query::delete_options;
use crate::selector::Labels;
use crate::state::{DeleteOptions, State};
use crate::status::{ApiError, Named};
use crate::storage::Object;

/// Evicted pods of one budget that are waited for. Source: the defaults of Kubernetes.
const DISRUPTED: usize = 2000;

/// How long to wait for a budget that has not been counted yet, in seconds. Source: the defaults of Kubernetes.
const RETRY_S: i64 = 10;

/// Evicts a pod. `body` is the `Eviction`; `dry_run` is what the query of the request says. Returns the answer, a Status
/// that is sent with code 201.
pub(crate) fn evict(
    state: &mut State,
    namespace: &str,
    name: &str,
    body: &Value,
    dry_run: bool,
) -> Result<Value, ApiError> {
    let mut options = read(namespace, name, body)?;
    options.dry_run |= dry_run;
    // The budgets are to know of everything that has happened.
    work(state, state.environment.now());
    let kind = state.kinds.resource("", "v1", "pods").cloned().ok_or_else(ApiError::no_path)?;
    let pod = get(state, &kind, namespace, name);
    let pod = pod.ok_or_else(|| ApiError::not_found(Named { kind: "pods", group: "", name }))?;
    let permit = permit(state, &pod)?;
    // Nothing is written if the deletion would be refused.
    state.delete(&kind, &pod, &DeleteOptions { dry_run: true, ..options.clone() })?;
    if !options.dry_run {
        if let Permit::Counted(budgets, budget) = permit {
            count(state, &budgets, &budget, name);
        }
        remove(state, &kind, &pod, &options)?;
    }
    Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
}

/// Why a pod may be evicted.
enum Permit {
    /// No budget is concerned.
    Free,
    /// A budget has room; the eviction counts in it.
    Counted(Arc<Kind>, Arc<Object>),
}

/// Checks the body.
fn read(namespace: &str, name: &str, body: &Value) -> Result<DeleteOptions, ApiError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&body["kind"]);
    if !kind.is_empty() && kind != "Eviction" {
        let (api_version, version) = (text(&body["apiVersion"]), "v1");
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a Eviction: no kind \"{kind}\" is registered for \
             version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    let metadata = &body["metadata"];
    let given = text(&metadata["namespace"]);
    if !given.is_empty() && given != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(message));
    }
    if text(&metadata["name"]) != name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    delete_options(&body["deleteOptions"])
}

/// Asks the budget of a pod.
fn permit(state: &State, pod: &Object) -> Result<Permit, ApiError> {
    let value = pod.value();
    let has_ended = matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"));
    let Some(kind) = state.kinds.resource("policy", "v1", "poddisruptionbudgets") else {
        return Ok(Permit::Free);
    };
    if has_ended || pod.is_deleting {
        return Ok(Permit::Free);
    }
    let budgets =
        state.storage.iter(&kind.bucket, Some(&pod.key.namespace)).map(|budget| (budget, budget.value()));
    let selects = |budget: &Value| {
        Labels::of_object(&budget["spec"]["selector"]).is_some_and(|one| one.matches(&pod.labels))
    };
    let mut budgets = budgets.filter(|(_, budget)| selects(budget));
    let (Some((object, budget)), second) = (budgets.next(), budgets.next()) else { return Ok(Permit::Free) };
    if second.is_some() {
        let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(ApiError::new(500, "", message));
    }
    let is_ready = condition(&value, "Ready").is_some_and(|ready| ready["status"] == "True");
    let number = |name: &str| budget["status"][name].as_i64().unwrap_or_default();
    let is_well = number("desiredHealthy") > 0 && number("currentHealthy") >= number("desiredHealthy");
    if !is_ready && (is_well || budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow") {
        return Ok(Permit::Free);
    }
    check(&object.key.name, &budget)?;
    Ok(Permit::Counted(kind.clone(), object.clone()))
}

/// Checks whether a budget allows one more eviction.
fn check(name: &str, budget: &Value) -> Result<(), ApiError> {
    let status = &budget["status"];
    let number = |name: &str| status[name].as_i64().unwrap_or_default();
    if number("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or_default() {
        let mut error =
            refusal(format!("The disruption budget {name} is still being processed by the server."));
        error.details.insert("retryAfterSeconds".into(), RETRY_S.into());
        return Err(error);
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > DISRUPTED) {
        let named = Named { kind: "poddisruptionbudget", group: "policy", name };
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(named, why));
    }
    let (current, desired) = (number("currentHealthy"), number("desiredHealthy"));
    if number("disruptionsAllowed") > 0 {
        return Ok(());
    }
    Err(refusal(if let Some(failure) = sync_failure(budget) {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {failure}"
        )
    } else if current <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }))
}

fn refusal(cause: String) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut error = ApiError::new(429, "TooManyRequests", message);
    error.details.insert("causes".into(), json!([{"reason": "DisruptionBudget", "message": cause}]));
    error
}

/// Notes an eviction in its budget, until the pod is seen being deleted.
fn count(state: &mut State, kind: &Kind, budget: &Object, pod: &str) {
    let time = seconds(state.environment.now());
    let mut value = budget.value();
    let left = value["status"]["disruptionsAllowed"].as_i64().unwrap_or_default() - 1;
    value["status"]["disruptionsAllowed"] = left.into();
    value["status"]["disruptedPods"][pod] = time.clone().into();
    if left == 0 {
        set_allowed(&mut value, false, &time);
    }
    write_status(state, kind, budget, value, SERVER);
}

fn remove(
    state: &mut State,
    kind: &Kind,
    pod: &Arc<Object>,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let mut options = options.clone();
    let mut pod = pod.clone();
    if !pod.is_deleting {
        let time = seconds(state.environment.now());
        let mut value = pod.value();
        set_disruption(&mut value, "EvictionByEvictionAPI", "Eviction API: evicting", &time, false);
        write_status(state, kind, &pod, value, SERVER);
        pod = get(state, kind, &pod.key.namespace, &pod.key.name).expect("it was written just now");
        // The revision was asked about before this write.
        options.revision = None;
    }
    state.delete(kind, &pod, &options).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::testing::Bench;

    /// Pods `a`, `b` and `c` with the label `app=x`; `more` changes `a`.
    fn bench(budgets: &[Value], more: &Value) -> Bench {
        let mut bench = Bench::new();
        bench.put(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }));
        for name in ["a", "b", "c"] {
            let mut pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": {"app": "x"}, "generation": 1},
                "spec": {"nodeName": "n"},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            });
            if name == "a" {
                json_patch::merge(&mut pod, more);
            }
            bench.put(pod);
        }
        for (spec, name) in budgets.iter().zip(["web", "other"]) {
            let mut spec = spec.clone();
            spec["selector"] = json!({"matchLabels": {"app": "x"}});
            bench.put(json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": "default", "generation": 1}, "spec": spec,
            }));
        }
        bench
    }

    fn eviction(name: &str, options: &Value) -> Value {
        json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options,
        })
    }

    /// Evicts the pod `a`: `201`, or code, reason, message and causes.
    fn outcome(bench: &mut Bench, body: &Value, dry_run: bool) -> String {
        match evict(&mut bench.state, "default", "a", body, dry_run) {
            Ok(status) => status["code"].to_string(),
            Err(error) => {
                let causes = error.details.get("causes").and_then(Value::as_array).into_iter().flatten();
                let causes: Vec<&str> = causes.filter_map(|cause| cause["message"].as_str()).collect();
                format!("{} {} {} {}", error.code, error.reason, error.message, causes.join("; "))
            }
        }
    }

    const REFUSED: &str =
        "429 TooManyRequests Cannot evict pod as it would violate the pod's disruption budget. ";

    #[test]
    fn a_budget_decides_whether_a_pod_may_go() {
        let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let pending = json!({"status": {"phase": "Pending"}});
        let failed = json!({"status": {"phase": "Failed"}});
        let stranger = json!({"metadata": {"labels": {"app": "y"}}});
        let foreign = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "e.x/v1", "kind": "Foo", "name": "f", "uid": "f", "controller": true},
        ]}});
        let none = json!({});
        let at_least = |count: i64| json!({"minAvailable": count});
        let always = json!({"minAvailable": 3, "unhealthyPodEvictionPolicy": "AlwaysAllow"});
        let needs = |needed: i64, has: i64| {
            format!("{REFUSED}The disruption budget web needs {needed} healthy pods and has {has} currently")
        };
        let many = "500  This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                    support. ";
        let failure = format!("{REFUSED}The disruption budget web is still being processed by the server.");
        let rows: Vec<(Vec<Value>, &Value, String)> = vec![
            (vec![], &none, "201".into()),
            (vec![at_least(2)], &none, "201".into()),
            (vec![at_least(3)], &none, needs(3, 3)),
            (vec![at_least(3)], &not_ready, needs(3, 2)),
            (vec![at_least(2)], &not_ready, "201".into()),
            (vec![always], &not_ready, "201".into()),
            (vec![at_least(3)], &pending, "201".into()),
            (vec![at_least(3)], &failed, "201".into()),
            (vec![at_least(3)], &stranger, "201".into()),
            (vec![at_least(0), at_least(0)], &none, many.into()),
            (
                vec![json!({"maxUnavailable": 1})],
                &none,
                format!("{REFUSED}The disruption budget web does not allow evicting pods currently"),
            ),
            (vec![json!({"maxUnavailable": 1})], &foreign, failure),
        ];
        for (budgets, more, expected) in rows {
            let mut bench = bench(&budgets, more);
            for dry_run in [true, false] {
                assert_eq!(
                    outcome(&mut bench, &eviction("a", &json!({})), dry_run),
                    expected,
                    "{budgets:?} {more}"
                );
            }
        }
    }

    #[test]
    fn an_eviction_counts_in_the_budget_and_says_why_the_pod_goes() {
        let mut bench = bench(&[json!({"minAvailable": 2})], &json!({}));
        assert_eq!(outcome(&mut bench, &eviction("a", &json!({"gracePeriodSeconds": 7})), false), "201");
        let status = bench.get("poddisruptionbudgets", "default/web").unwrap()["status"].clone();
        assert_eq!(status["disruptedPods"], json!({"a": "2030-01-01T00:00:00Z"}));
        assert_eq!(status["conditions"][0]["reason"], "InsufficientPods");
        let pod = bench.get("pods", "default/a").unwrap();
        let expected = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        });
        assert_eq!(pod["status"]["conditions"][1], expected);
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 7);
        bench.work();
        let status = bench.get("poddisruptionbudgets", "default/web").unwrap()["status"].clone();
        assert!(status["disruptedPods"].is_null());
        assert_eq!(status["disruptionsAllowed"], 0);
        // One that is on its way may be hurried.
        assert_eq!(outcome(&mut bench, &eviction("a", &json!({"gracePeriodSeconds": 0})), false), "201");
        assert_eq!(bench.get("pods", "default/a"), None);
    }

    #[test]
    fn what_is_wrong_with_an_eviction_is_said_and_changes_nothing() {
        let unsupported = "422 Invalid DeleteOptions.meta.k8s.io \"\" is invalid: ";
        let rows = [
            (eviction("b", &json!({})), "400 BadRequest name in URL does not match name in Eviction object ".to_owned()),
            (
                json!({"metadata": {"name": "a", "namespace": "other"}}),
                "400 BadRequest the namespace of the provided object does not match the namespace sent on the \
                 request "
                    .to_owned(),
            ),
            (
                json!({"apiVersion": "policy/v1", "kind": "Pod", "metadata": {"name": "a"}}),
                "400 BadRequest Pod in version \"v1\" cannot be handled as a Eviction: no kind \"Pod\" is \
                 registered for version \"policy/v1\" in scheme \"pkg/runtime/scheme.go:111\" "
                    .to_owned(),
            ),
            (
                eviction("a", &json!({"dryRun": ["Bad"]})),
                format!(
                    "{unsupported}dryRun: Unsupported value: [\"Bad\"]: supported values: \"All\" \
                     Unsupported value: [\"Bad\"]: supported values: \"All\""
                ),
            ),
            (
                eviction("a", &json!({"preconditions": {"uid": "z"}})),
                "409 Conflict Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (z) does not \
                 match the UID in record (a). The object might have been deleted and then recreated "
                    .to_owned(),
            ),
        ];
        for (body, expected) in rows {
            let mut bench = bench(&[json!({"minAvailable": 1})], &json!({}));
            assert_eq!(outcome(&mut bench, &body, false), expected);
            bench.work();
            let before = bench.state.storage.revision();
            assert_eq!(outcome(&mut bench, &body, false), expected);
            assert_eq!(bench.state.storage.revision(), before);
        }
        let mut bench = bench(&[], &json!({}));
        let error = evict(&mut bench.state, "default", "d", &eviction("d", &json!({})), false).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (404, "pods \"d\" not found"));
    }
}
