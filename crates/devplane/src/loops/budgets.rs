//! The status of PodDisruptionBudgets: how many pods may be disrupted now. Never here: what an eviction does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::environment::seconds;
use crate::kinds::{Kind, at};
use crate::selector::Labels;
use crate::storage::{Change, Key, Object, Owner};

use super::World;
use super::catalogue::Class;
use super::views::{PodView, view};
use super::writes::{CONTROLLERS, Condition, condition, get, set_condition, write_status};

/// How long a pod that was evicted counts as gone although it is not being deleted. Source: the defaults of Kubernetes.
const DISRUPTION: SignedDuration = SignedDuration::from_mins(2);

/// What is known about the budgets there are.
#[derive(Default)]
pub(super) struct Budgets {
    /// By namespace, then by name.
    all: BTreeMap<String, BTreeMap<String, Budget>>,
    dirty: BTreeSet<Key>,
    /// Budgets whose pods are to be found.
    unfilled: BTreeSet<Key>,
    /// When to look again because evicted pods are still there.
    due: BTreeSet<(Timestamp, Key)>,
}

#[derive(Default)]
struct Budget {
    selector: Option<Labels>,
    /// What counts about the pods that it selects, by name.
    pods: BTreeMap<String, Pod>,
    due: Option<Timestamp>,
}

struct Pod {
    is_ready: bool,
    is_deleting: bool,
    controller: Option<Owner>,
}

/// What a budget comes to.
struct Count {
    expected: i64,
    desired: i64,
}

impl Pod {
    fn of(object: &Object) -> Pod {
        let pod: PodView<'_> = view(object);
        Pod {
            is_ready: pod.status.is("Ready"),
            is_deleting: object.is_deleting,
            controller: object.owners.iter().find(|owner| owner.is_controller).cloned(),
        }
    }
}

impl Budgets {
    pub(super) fn see(&mut self, change: &Change, class: Class) {
        let key = &change.now.key;
        match class {
            Class::Budget => self.see_budget(change),
            Class::Pod => self.see_pod(change),
            Class::Scalable => {
                let names = self.all.get(&key.namespace).into_iter().flat_map(BTreeMap::keys);
                let keys = names.map(|name| Key { namespace: key.namespace.clone(), name: name.clone() });
                self.dirty.extend(keys);
            }
            Class::Crd
            | Class::Namespace
            | Class::Node
            | Class::Lease
            | Class::Event
            | Class::ServiceAccount
            | Class::ConfigMap
            | Class::Other => {}
        }
    }

    fn see_budget(&mut self, change: &Change) {
        let key = &change.now.key;
        if change.is_deletion {
            self.reschedule(key, None);
            if let Some(names) = self.all.get_mut(&key.namespace) {
                names.remove(&key.name);
                if names.is_empty() {
                    self.all.remove(&key.namespace);
                }
            }
            return;
        }
        let selector = Labels::of_object(&change.now.value()["spec"]["selector"]);
        let names = self.all.entry(key.namespace.clone()).or_default();
        let is_new = !names.contains_key(&key.name);
        let budget = names.entry(key.name.clone()).or_default();
        if is_new || budget.selector != selector {
            budget.selector = selector;
            self.unfilled.insert(key.clone());
        }
        self.dirty.insert(key.clone());
    }

    fn see_pod(&mut self, change: &Change) {
        let pod = &change.now;
        let namespace = &pod.key.namespace;
        let Some(budgets) = self.all.get_mut(namespace) else { return };
        for (name, budget) in budgets {
            let matches = budget.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels));
            let touched = if matches && !change.is_deletion {
                budget.pods.insert(pod.key.name.clone(), Pod::of(pod));
                true
            } else {
                budget.pods.remove(&pod.key.name).is_some()
            };
            if touched {
                self.dirty.insert(Key { namespace: namespace.clone(), name: name.clone() });
            }
        }
    }

    fn reschedule(&mut self, key: &Key, due: Option<Timestamp>) {
        let budget = self.all.get_mut(&key.namespace).and_then(|names| names.get_mut(&key.name));
        let Some(budget) = budget else { return };
        if let Some(old) = std::mem::replace(&mut budget.due, due) {
            self.due.remove(&(old, key.clone()));
        }
        if let Some(due) = due {
            self.due.insert((due, key.clone()));
        }
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn step(&mut self, world: &mut World<'_>) {
        let Some(kind) = world.catalogue.of(Class::Budget).cloned() else { return };
        while let Some((due, key)) = self.due.first().cloned()
            && due <= world.now
        {
            self.reschedule(&key, None);
            self.dirty.insert(key);
        }
        while let Some(key) = self.unfilled.pop_first() {
            self.fill(world, &key);
        }
        while let Some(key) = self.dirty.pop_first() {
            if let Some(object) = world.state.storage.get(&kind.bucket, &key).cloned() {
                self.sync(world, &kind, &object);
            }
        }
    }

    /// Finds the pods that a budget selects.
    fn fill(&mut self, world: &World<'_>, key: &Key) {
        let budget = self.all.get_mut(&key.namespace).and_then(|names| names.get_mut(&key.name));
        let (Some(budget), Some(pods)) = (budget, world.catalogue.of(Class::Pod)) else { return };
        budget.pods.clear();
        let Some(selector) = &budget.selector else { return };
        let pods = world.state.storage.iter(&pods.bucket, Some(&key.namespace));
        let pods = pods.filter(|pod| selector.matches(&pod.labels));
        budget.pods.extend(pods.map(|pod| (pod.key.name.clone(), Pod::of(pod))));
    }

    /// Writes the status of a budget.
    fn sync(&mut self, world: &mut World<'_>, kind: &Kind, object: &Object) {
        let key = &object.key;
        let Some(budget) = self.all.get(&key.namespace).and_then(|names| names.get(&key.name)) else {
            return;
        };
        let mut value = object.value();
        let before = value["status"].clone();
        let time = seconds(world.now);
        let due = match count(world, &key.namespace, &value["spec"], budget) {
            Ok(count) => {
                let (disrupted, due) = disrupted(&before, budget, world.now);
                write_count(&mut value, budget, &count, disrupted, &time);
                due
            }
            Err(message) => {
                if !value["status"].is_object() {
                    value["status"] = json!({"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
                }
                value["status"]["disruptionsAllowed"] = 0.into();
                let reason = "SyncFailed";
                let condition =
                    Condition { kind: "DisruptionAllowed", status: "False", reason, message: &message };
                set_condition(&mut value, condition, &time);
                None
            }
        };
        self.reschedule(key, due);
        if value["status"] != before {
            write_status(world.state, kind, object, value, CONTROLLERS);
        }
    }
}

/// Which evicted pods still count as gone, and when to look at them again.
fn disrupted(status: &Value, budget: &Budget, now: Timestamp) -> (Map<String, Value>, Option<Timestamp>) {
    let mut kept = Map::new();
    let mut next: Option<Timestamp> = None;
    for (name, time) in status["disruptedPods"].as_object().into_iter().flatten() {
        let until =
            time.as_str().and_then(|time| time.parse::<Timestamp>().ok()).map(|time| time + DISRUPTION);
        let is_waited_for = budget.pods.get(name).is_some_and(|pod| !pod.is_deleting);
        if let Some(until) = until
            && is_waited_for
            && until > now
        {
            kept.insert(name.clone(), time.clone());
            next = Some(next.map_or(until, |next| next.min(until)));
        }
    }
    (kept, next)
}

fn write_count(value: &mut Value, budget: &Budget, count: &Count, disrupted: Map<String, Value>, time: &str) {
    let counts =
        |(name, pod): &(&String, &Pod)| pod.is_ready && !pod.is_deleting && !disrupted.contains_key(*name);
    let healthy = i64::try_from(budget.pods.iter().filter(counts).count()).unwrap_or(i64::MAX);
    let allowed = if count.expected > 0 { (healthy - count.desired).max(0) } else { 0 };
    let generation = value["metadata"]["generation"].clone();
    if !value["status"].is_object() {
        value["status"] = json!({});
    }
    let status = value["status"].as_object_mut().expect("it was made an object");
    status.insert("currentHealthy".into(), healthy.into());
    status.insert("desiredHealthy".into(), count.desired.into());
    status.insert("expectedPods".into(), count.expected.into());
    status.insert("disruptionsAllowed".into(), allowed.into());
    if generation.is_i64() {
        status.insert("observedGeneration".into(), generation.clone());
    }
    if disrupted.is_empty() {
        status.remove("disruptedPods");
    } else {
        status.insert("disruptedPods".into(), disrupted.into());
    }
    set_allowed(value, allowed > 0, time);
}

/// Sets the condition that says whether a budget allows anything.
pub(crate) fn set_allowed(budget: &mut Value, is_allowed: bool, time: &str) {
    let (status, reason) =
        if is_allowed { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let condition = Condition { kind: "DisruptionAllowed", status, reason, message: "" };
    set_condition(budget, condition, time);
    let generation = budget["metadata"]["generation"].clone();
    let conditions = budget["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == "DisruptionAllowed") {
        if generation.is_i64() {
            condition["observedGeneration"] = generation.clone();
        }
    }
}

/// How many pods are expected, and how many of them must be healthy.
fn count(world: &World<'_>, namespace: &str, spec: &Value, budget: &Budget) -> Result<Count, String> {
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !most.is_null() {
        let expected = expected(world, namespace, budget)?;
        let unavailable = part(most, expected)?;
        return Ok(Count { expected, desired: (expected - unavailable).max(0) });
    }
    if let Some(desired) = least.as_i64() {
        return Ok(Count { expected: i64::try_from(budget.pods.len()).unwrap_or(i64::MAX), desired });
    }
    if least.is_null() {
        return Ok(Count { expected: 0, desired: 0 });
    }
    let expected = expected(world, namespace, budget)?;
    Ok(Count { expected, desired: part(least, expected)? })
}

/// A number, or the part of `all` that a percentage is, rounded up.
fn part(value: &Value, all: i64) -> Result<i64, String> {
    if let Some(number) = value.as_i64() {
        return Ok(number);
    }
    let percent =
        value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<i64>().ok());
    match percent {
        Some(percent) => Ok((all * percent + 99).div_euclid(100)),
        None => Err(format!("invalid value for IntOrString: invalid type: {value} is not a percentage")),
    }
}

/// How many pods the controllers of the pods want together. Pods without a controller count for nothing.
fn expected(world: &World<'_>, namespace: &str, budget: &Budget) -> Result<i64, String> {
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    // Most pods share their controller: it is looked up once.
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (name, pod) in &budget.pods {
        let Some(controller) = &pod.controller else { continue };
        if !known.insert(&controller.uid) {
            continue;
        }
        let (uid, replicas) = scale(world, namespace, controller)?
            .ok_or_else(|| format!("found no controllers for pod \"{name}\""))?;
        scales.insert(uid, replicas);
    }
    Ok(scales.into_values().sum())
}

/// The uid of what decides how many pods there are, and its number.
fn scale(world: &World<'_>, namespace: &str, owner: &Owner) -> Result<Option<(String, i64)>, String> {
    let Some(kind) = world.state.kinds.of_object(&owner.api_version, &owner.kind) else {
        return Err(format!("no matches for kind \"{}\" in version \"{}\"", owner.kind, owner.api_version));
    };
    if world.catalogue.class(&kind.bucket) != Class::Scalable {
        let dot = if kind.group.is_empty() { "" } else { "." };
        return Err(format!("{}{dot}{} does not implement the scale subresource", kind.plural, kind.group));
    }
    let Some(object) = find(world, kind, namespace, owner) else { return Ok(None) };
    // The replicas of a set that belongs to a deployment are the deployment's to decide.
    let above = object.owners.iter().find(|above| above.is_controller && above.kind == "Deployment");
    if owner.kind == "ReplicaSet"
        && let Some(above) = above
    {
        let kind = world.state.kinds.of_object(&above.api_version, &above.kind);
        let deployment = kind.and_then(|kind| Some((kind, find(world, kind, namespace, above)?)));
        return Ok(deployment.map(|(kind, deployment)| (deployment.uid.clone(), replicas(kind, &deployment))));
    }
    Ok(Some((object.uid.clone(), replicas(kind, &object))))
}

fn find(world: &World<'_>, kind: &Kind, namespace: &str, owner: &Owner) -> Option<Arc<Object>> {
    get(world.state, kind, namespace, &owner.name).filter(|object| object.uid == owner.uid)
}

fn replicas(kind: &Kind, object: &Object) -> i64 {
    let path = kind.scale.as_ref().map_or(".spec.replicas", |scale| &scale.spec_replicas);
    at(&object.value(), path).as_i64().unwrap_or(if kind.is_custom() { 0 } else { 1 })
}

/// Why a budget could not be counted, if it could not.
pub(crate) fn sync_failure(budget: &Value) -> Option<&str> {
    let condition = condition(budget, "DisruptionAllowed")?;
    let is_failed = condition["status"] == "False" && condition["reason"] == "SyncFailed";
    is_failed.then(|| condition["message"].as_str().unwrap_or_default())
}
