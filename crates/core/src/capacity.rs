//! Annotates MachineSets with the size of their machines, so that an autoscaler can grow a set from zero.
//! Never here: sizes themselves. They are values of a cloud.

use std::collections::BTreeMap;

use mapi_api::event::{Event, EventType, Regarding};
use mapi_api::names::{self, annotation, authority, condition};
use mapi_api::{Conditions, MachineSet, Object};
use mapi_cloud::{Capacity, CloudError, Kind as ErrorKind};
use serde_json::{Map, Value, json};

use crate::machine_set::Template;
use crate::{Action, Kind, Plan, Sub, Target};

/// What is known when a set is looked at.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The set.
    pub set: &'a MachineSet,
    /// What the clouds say about its template.
    pub template: &'a Template,
    /// What was complained about this set last, so that it is told once.
    pub told: Option<&'a str>,
    /// Whether the feature gate `MachineAPIMigration` is on.
    pub is_gate_on: bool,
}

/// What to do about a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Ask the cloud that serves the template for the size, then [`settle`].
    Ask,
    /// This.
    Done(Outcome),
}

/// What to do and what to remember.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outcome {
    /// What to do.
    pub plan: Plan,
    /// What stands to be complained about, to be handed in again as [`Facts::told`].
    pub told: Option<String>,
}

impl From<Plan> for Outcome {
    fn from(plan: Plan) -> Self {
        Self { plan, told: None }
    }
}

/// Whether the cloud is to be asked.
pub fn decide(facts: &Facts<'_>) -> Decision {
    let set = facts.set;
    let is_paused = facts.is_gate_on
        && (set.status.conditions.is_true(condition::PAUSED)
            || set.status.authoritative_api.as_deref() != Some(authority::MACHINE_API));
    if set.is_deleting() || is_paused {
        return Decision::Done(Outcome::default());
    }
    match facts.template {
        Template::Served(findings) if findings.has_error() => Decision::Done(complain(
            facts,
            "ReconcileError",
            format!("cannot read the provider spec of the template: {}", findings.errors()),
        )),
        Template::Served(_) => Decision::Ask,
        // The set's condition SpecValid tells about these.
        Template::Unjudged | Template::Missing | Template::Unknown { .. } | Template::Unreadable(_) => {
            Decision::Done(Outcome::default())
        }
    }
}

/// What to do once the cloud has answered.
pub fn settle(facts: &Facts<'_>, answer: Result<Option<Capacity>, CloudError>) -> Outcome {
    match answer {
        Ok(None) => Outcome::default(),
        Ok(Some(capacity)) => annotate(facts.set, &capacity).into(),
        // The spec could be read, so what the cloud does not accept is the type. Asking again would not change it.
        Err(CloudError { kind: ErrorKind::Invalid, message, .. }) => complain(
            facts,
            "FailedUpdate",
            format!("Failed to set autoscaling from zero annotations, instance type unknown: {message}"),
        ),
        Err(error) => match error.retry_after {
            Some(delay) => Plan::nothing().after(delay).into(),
            None => Plan::nothing().backoff(error.to_string()).into(),
        },
    }
}

/// Whether a change of a set can change what is annotated. Its counts cannot, and they change all the time.
pub fn is_relevant(old: &MachineSet, new: &MachineSet) -> bool {
    let paused = |set: &MachineSet| set.status.conditions.is_true(condition::PAUSED);
    old.metadata.generation != new.metadata.generation
        || old.metadata.annotations != new.metadata.annotations
        || old.status.authoritative_api != new.status.authoritative_api
        || paused(old) != paused(new)
}

/// Whether a set carries what an autoscaler needs to grow it from zero by its own, preferred keys.
pub fn is_scale_from_zero_enabled(annotations: &BTreeMap<String, String>) -> bool {
    [annotation::CAPACITY_CPU, annotation::CAPACITY_MEMORY]
        .into_iter()
        .all(|key| lookup(annotations, key).is_ok_and(|value| !value.is_empty()))
}

/// An annotation is missing. One that is there and empty is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotation `{0}` is missing")]
pub struct MissingAnnotation(pub String);

/// The value of an annotation.
pub fn lookup<'a>(
    annotations: &'a BTreeMap<String, String>,
    key: &str,
) -> Result<&'a str, MissingAnnotation> {
    annotations.get(key).map(String::as_str).ok_or_else(|| MissingAnnotation(key.into()))
}

fn annotate(set: &MachineSet, capacity: &Capacity) -> Plan {
    let Capacity { cpus, memory_mib, gpus, max_pods, labels } = capacity;
    let has = set.metadata.annotations.clone().unwrap_or_default();
    let numbers = [
        (annotation::CPU, Some(*cpus)),
        (annotation::MEMORY, Some(*memory_mib)),
        (annotation::GPU, Some(*gpus)),
        (annotation::MAX_PODS, *max_pods),
    ];
    let numbers = numbers.into_iter().filter_map(|(key, number)| Some((key, number?.to_string())));
    let merged = merge(has.get(annotation::CAPACITY_LABELS).map_or("", String::as_str), labels);
    let wanted = numbers.chain(merged.map(|text| (annotation::CAPACITY_LABELS, text)));
    let changes: Map<String, Value> = wanted
        .filter(|(key, value)| lookup(&has, key) != Ok(value.as_str()))
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    if changes.is_empty() {
        return Plan::nothing();
    }
    let patch = json!({"metadata": {"annotations": changes}});
    Plan::actions(vec![Action::Patch { target: Target::of(Kind::MachineSet, set), sub: Sub::Main, patch }])
}

/// The labels of the Nodes to come: the cloud's, and those of the user, which win. Sorted, so that the same labels are
/// always the same text (weakness 25). `None` if the user's text says it all already.
fn merge(user: &str, cloud: &BTreeMap<String, String>) -> Option<String> {
    let user: BTreeMap<&str, &str> = user.split(',').filter_map(|pair| pair.trim().split_once('=')).collect();
    if cloud.keys().all(|key| user.contains_key(key.as_str())) {
        return None;
    }
    let mut all: BTreeMap<&str, &str> =
        cloud.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    all.extend(user);
    Some(all.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","))
}

fn complain(facts: &Facts<'_>, reason: &'static str, note: String) -> Outcome {
    let plan = if facts.told == Some(note.as_str()) {
        Plan::nothing()
    } else {
        let set = facts.set;
        let regarding = Regarding {
            api_version: names::API_VERSION,
            kind: names::KIND_MACHINE_SET,
            key: set.key(),
            uid: set.uid().into(),
        };
        let event =
            Event { type_: EventType::Warning, reason, action: "Reconcile", note: note.clone(), regarding };
        Plan::actions(vec![Action::Emit { reporter: names::reporter::CAPACITY, event }])
    };
    Outcome { plan, told: Some(note) }
}

#[cfg(test)]
mod tests {
    use mapi_cloud::{Finding, Findings};

    use super::*;

    fn set(metadata: Value) -> MachineSet {
        let mut object =
            json!({"metadata": {"name": "s", "namespace": "ns", "uid": "u", "resourceVersion": "1"}});
        for (field, value) in metadata.as_object().expect("fields") {
            object["metadata"][field] = value.clone();
        }
        serde_json::from_value(object).expect("a set")
    }

    fn facts<'a>(set: &'a MachineSet, template: &'a Template) -> Facts<'a> {
        Facts { set, template, told: None, is_gate_on: false }
    }

    static SERVED: Template = Template::Served(Findings(vec![]));

    fn medium() -> Capacity {
        let labels = [("kubernetes.io/arch".into(), "amd64".into())].into();
        Capacity { cpus: 4, memory_mib: 16384, gpus: 0, max_pods: Some(110), labels }
    }

    fn changes(set: &MachineSet, capacity: Capacity) -> Value {
        match settle(&facts(set, &SERVED), Ok(Some(capacity))).plan.actions.as_slice() {
            [] => Value::Null,
            [Action::Patch { sub: Sub::Main, patch, .. }] => patch["metadata"]["annotations"].clone(),
            other => panic!("one patch of the annotations at most: {other:?}"),
        }
    }

    fn error(kind: ErrorKind) -> CloudError {
        CloudError::new(kind, "look up instance type", "no type `huge`")
    }

    // S39
    #[test]
    fn the_size_is_annotated_once_and_the_users_labels_win() {
        let arm = set(json!({"annotations": {annotation::CAPACITY_LABELS: "kubernetes.io/arch=arm64"}}));
        assert_eq!(changes(&arm, medium()).get(annotation::CAPACITY_LABELS), None);
        let mut set = set(json!({"annotations": {annotation::CAPACITY_LABELS: "foo=bar"}}));
        let first = changes(&set, medium());
        assert_eq!(
            first,
            json!({
                "machine.openshift.io/vCPU": "4",
                "machine.openshift.io/memoryMb": "16384",
                "machine.openshift.io/GPU": "0",
                "machine.openshift.io/maxPods": "110",
                "capacity.cluster-autoscaler.kubernetes.io/labels": "foo=bar,kubernetes.io/arch=amd64",
            })
        );
        set.metadata.annotations = Some(serde_json::from_value(first).expect("texts"));
        assert_eq!(changes(&set, medium()), Value::Null);
    }

    // S39
    #[test]
    fn label_texts_are_sorted_split_at_the_first_equals_sign_and_rid_of_what_is_no_pair() {
        let cloud = [("m".into(), "1".into())].into();
        assert_eq!(merge("z=1,a=b=c,junk,e=", &cloud).as_deref(), Some("a=b=c,e=,m=1,z=1"));
        assert_eq!(merge("z=1,a=2", &BTreeMap::new()), None);
        assert_eq!(merge("z=1,m=user", &cloud), None);
    }

    #[test]
    fn unknown_pods_leave_the_users_number_alone() {
        let has = set(json!({"annotations": {annotation::MAX_PODS: "50"}}));
        let capacity = Capacity { max_pods: None, ..medium() };
        assert_eq!(changes(&has, capacity).get(annotation::MAX_PODS), None);
    }

    // S40
    #[test]
    fn growing_from_zero_needs_both_of_the_autoscalers_own_keys() {
        let of = |cpu: &str, memory: &str| {
            [
                (annotation::CAPACITY_CPU.into(), cpu.into()),
                (annotation::CAPACITY_MEMORY.into(), memory.into()),
            ]
            .into()
        };
        assert!(is_scale_from_zero_enabled(&of("4", "4Gi")));
        assert!(!is_scale_from_zero_enabled(&of("", "4Gi")));
        assert!(!is_scale_from_zero_enabled(&of("4", "")));
        assert!(!is_scale_from_zero_enabled(&BTreeMap::new()));
        assert_eq!(lookup(&of("", ""), annotation::CAPACITY_CPU), Ok(""));
        assert_eq!(lookup(&BTreeMap::new(), "k"), Err(MissingAnnotation("k".into())));
    }

    /// Reason and note of the only event.
    fn event(outcome: &Outcome) -> (&'static str, &str) {
        match outcome.plan.actions.as_slice() {
            [Action::Emit { event, .. }] => (event.reason, &event.note),
            other => panic!("one event: {other:?}"),
        }
    }

    #[test]
    fn a_type_that_the_cloud_does_not_know_is_told_once_and_not_tried_again() {
        let set = set(json!({}));
        let mut facts = facts(&set, &SERVED);
        let first = settle(&facts, Err(error(ErrorKind::Invalid)));
        let text = "Failed to set autoscaling from zero annotations, instance type unknown: no type `huge`";
        assert_eq!(event(&first), ("FailedUpdate", text));
        assert_eq!(first.plan.requeue, crate::Requeue::Never);
        facts.told = first.told.as_deref();
        let second = settle(&facts, Err(error(ErrorKind::Invalid)));
        assert_eq!(second, Outcome { plan: Plan::nothing(), told: Some(text.into()) });
        assert_eq!(settle(&facts, Ok(Some(medium()))).told, None);
    }

    #[test]
    fn a_provider_spec_that_cannot_be_read_is_told_once_and_the_cloud_is_not_asked() {
        let set = set(json!({}));
        let template = Template::Served(Findings::from(Finding::error("zone", "", "is missing")));
        let mut facts = facts(&set, &template);
        let Decision::Done(first) = decide(&facts) else { panic!("nobody is asked") };
        let text = "cannot read the provider spec of the template: zone: is missing";
        assert_eq!(event(&first), ("ReconcileError", text));
        facts.told = first.told.as_deref();
        assert_eq!(
            decide(&facts),
            Decision::Done(Outcome { plan: Plan::nothing(), told: Some(text.into()) })
        );
    }

    #[test]
    fn other_errors_are_tried_again() {
        let set = set(json!({}));
        let denied = settle(&facts(&set, &SERVED), Err(error(ErrorKind::Denied)));
        assert_eq!(denied.plan, Plan::nothing().backoff("cannot look up instance type: no type `huge`"));
        let delay = std::time::Duration::from_secs(7);
        let throttled = settle(&facts(&set, &SERVED), Err(error(ErrorKind::Throttled).retry_after(delay)));
        assert_eq!(throttled.plan, Plan::nothing().after(delay));
    }

    #[test]
    fn moving_counts_do_not_ask_the_cloud_again() {
        let old = set(json!({}));
        let mut new = old.clone();
        new.status.ready_replicas = Some(5);
        new.status.conditions = vec![mapi_api::Condition::yes("SpecValid")];
        assert!(!is_relevant(&old, &new));
        new.metadata.generation = Some(2);
        assert!(is_relevant(&old, &new));
    }

    #[test]
    fn a_set_that_is_going_or_belongs_to_another_api_is_left_alone() {
        let going = set(json!({"deletionTimestamp": "2025-06-15T00:00:00Z"}));
        assert_eq!(decide(&facts(&going, &SERVED)), Decision::Done(Outcome::default()));
        let mut set = set(json!({}));
        let gated = |set: &MachineSet| decide(&Facts { is_gate_on: true, ..facts(set, &SERVED) });
        assert_eq!(gated(&set), Decision::Done(Outcome::default()));
        set.status.authoritative_api = Some("MachineAPI".into());
        assert_eq!(gated(&set), Decision::Ask);
        set.status.conditions = vec![mapi_api::Condition::yes("Paused")];
        assert_eq!(gated(&set), Decision::Done(Outcome::default()));
        for template in [Template::Missing, Template::Unknown { kind: "K".into(), served: vec![] }] {
            assert_eq!(decide(&facts(&set, &template)), Decision::Done(Outcome::default()));
        }
    }
}
