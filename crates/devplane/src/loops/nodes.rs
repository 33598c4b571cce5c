//! Nodes: who is silent for too long is Unknown, and what is wrong with a node becomes taints. Never here: the pods of a
//! node, but for saying that they are not ready.
//!
//! A sign of life is a renewed lease or a new heartbeat in the status; it counts from when it was seen, as clocks of
//! nodes may be wrong. Evicting taints are held back while all nodes are down, or most of a small zone: then it is
//! more likely the network than the nodes. They are not rationed, other than in Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::environment::seconds;
use crate::kinds::Kind;
use crate::storage::{Change, Key, Object};

use super::catalogue::Class;
use super::pods::Pods;
use super::taints::{Difference, NOT_READY, UNREACHABLE, evicting};
use super::views::{LeaseView, NodeView, view};
use super::{Options, World};

/// Where nodes keep their leases.
const LEASES: &str = "kube-node-lease";

/// Up to so many nodes a zone that is mostly down evicts nothing. Source: the defaults of Kubernetes.
const SMALL_ZONE: usize = 50;

/// Conditions that a silent node does not know any more.
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Region and zone.
type Place = (String, String);

/// What is known about the nodes there are.
#[derive(Default)]
pub(super) struct Nodes {
    records: BTreeMap<String, Record>,
    zones: BTreeMap<Place, Zone>,
    /// All zones together.
    all: Zone,
    /// When to ask who is silent. A sign of life does not move this: it is looked up when the time has come.
    due: BTreeSet<(Timestamp, String)>,
    /// Nodes whose taints are to be compared.
    dirty: BTreeSet<String>,
    /// Zones that may have become ill or well.
    changed: BTreeSet<Place>,
}

struct Record {
    ready: Option<Ready>,
    heartbeat: Option<String>,
    renewed: Option<String>,
    /// When it was last known to live.
    seen: Timestamp,
    due: Option<Timestamp>,
    place: Place,
}

/// The condition `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    True,
    False,
    Unknown,
}

/// How many nodes of a zone are up and down.
#[derive(Clone, Copy, Debug, Default)]
struct Zone {
    up: usize,
    down: usize,
    /// Whether evicting taints were held back when it was last weighed.
    was_held: bool,
}

impl Record {
    fn new(now: Timestamp) -> Self {
        Record { ready: None, heartbeat: None, renewed: None, seen: now, due: None, place: Place::default() }
    }
}

impl Nodes {
    pub(super) fn see_node(&mut self, change: &Change, now: Timestamp, options: &Options) {
        let name = &change.now.key.name;
        if change.is_deletion {
            let Some(mut record) = self.records.remove(name) else { return };
            reschedule(&mut self.due, name, &mut record, None);
            self.count(&record.place, record.ready, None);
            return;
        }
        let node: NodeView<'_> = view(&change.now);
        let condition = node.status.condition("Ready");
        let ready = condition.map(|condition| match &*condition.status {
            "True" => Ready::True,
            "False" => Ready::False,
            _ => Ready::Unknown,
        });
        let heartbeat = condition.and_then(|condition| condition.last_heartbeat_time.as_deref());
        let place = place(&change.now);
        let is_new = !self.records.contains_key(name);
        let record = self.records.entry(name.clone()).or_insert_with(|| Record::new(now));
        let (was_ready, was_at) = (record.ready, std::mem::replace(&mut record.place, place.clone()));
        let is_sign = record.heartbeat.as_deref() != heartbeat || was_ready != ready;
        if is_new || (is_sign && matches!(ready, Some(Ready::True | Ready::False))) {
            record.seen = now;
        }
        record.heartbeat = heartbeat.map(str::to_owned);
        record.ready = ready;
        if is_new || was_ready != ready {
            let due = (ready != Some(Ready::Unknown)).then(|| record.seen + grace(ready, options));
            reschedule(&mut self.due, name, record, due);
        }
        if was_ready != ready || was_at != place {
            self.count(&was_at, was_ready, None);
            self.count(&place, None, ready);
        }
        self.dirty.insert(name.clone());
    }

    /// Counts a node of a zone that was so and is so.
    fn count(&mut self, place: &Place, was: Option<Ready>, is: Option<Ready>) {
        let zone = self.zones.entry(place.clone()).or_default();
        for zone in [zone, &mut self.all] {
            match was {
                Some(Ready::True) => zone.up -= 1,
                Some(Ready::False | Ready::Unknown) => zone.down -= 1,
                None => {}
            }
            match is {
                Some(Ready::True) => zone.up += 1,
                Some(Ready::False | Ready::Unknown) => zone.down += 1,
                None => {}
            }
        }
        self.changed.insert(place.clone());
    }

    pub(super) fn see_lease(&mut self, change: &Change, now: Timestamp) {
        let key = &change.now.key;
        if key.namespace != LEASES || change.is_deletion {
            return;
        }
        let Some(record) = self.records.get_mut(&key.name) else { return };
        let lease: LeaseView<'_> = view(&change.now);
        let renewed = lease.spec.renew_time.as_deref();
        if renewed.is_some() && record.renewed.as_deref() != renewed {
            record.renewed = renewed.map(str::to_owned);
            record.seen = now;
        }
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn step(&mut self, world: &mut World<'_>, pods: &Pods) {
        let Some(kind) = world.catalogue.of(Class::Node).cloned() else { return };
        while let Some((due, name)) = self.due.first().cloned()
            && due <= world.now
        {
            self.ask(world, &kind, &name, pods);
        }
        self.weigh(world.now);
        while let Some(name) = self.dirty.pop_first() {
            self.taint(world, &kind, &name);
        }
    }

    /// Looks whether a node is silent. If so, what it said is not known any more.
    fn ask(&mut self, world: &mut World<'_>, kind: &Kind, name: &str, pods: &Pods) {
        let record = self.records.get_mut(name).expect("what is due has a record");
        let due = record.seen + grace(record.ready, world.options);
        if due > world.now {
            return reschedule(&mut self.due, name, record, Some(due));
        }
        reschedule(&mut self.due, name, record, None);
        let key = Key { namespace: String::new(), name: name.to_owned() };
        let Some(node) = world.state.storage.get(&kind.bucket, &key).cloned() else { return };
        let was_ready = record.ready.replace(Ready::Unknown);
        let place = record.place.clone();
        self.count(&place, was_ready, Some(Ready::Unknown));
        let mut value = node.value();
        forget(&mut value, &seconds(world.now));
        world.state.update(kind, &node, value);
        self.dirty.insert(name.to_owned());
        if was_ready == Some(Ready::True) {
            pods.lose_readiness(world, name);
        }
    }

    /// Sees which zones have become ill or well, and whose taints that may change.
    fn weigh(&mut self, now: Timestamp) {
        if self.changed.is_empty() {
            return;
        }
        let was_down = self.all.was_held;
        let is_down = self.all.is_down();
        self.all.was_held = is_down;
        if was_down && !is_down {
            // Nobody could have told of being alive.
            for record in self.records.values_mut() {
                record.seen = now;
            }
        }
        let mut places = std::mem::take(&mut self.changed);
        places.retain(|place| {
            let Some(zone) = self.zones.get_mut(place) else { return false };
            let is_held = zone.is_ill();
            std::mem::replace(&mut zone.was_held, is_held) != is_held
        });
        if was_down == is_down && places.is_empty() {
            return;
        }
        let is_touched = |record: &Record| was_down != is_down || places.contains(&record.place);
        let touched = self.records.iter().filter(|(_, record)| is_touched(record));
        self.dirty.extend(touched.map(|(name, _)| name.clone()));
    }

    /// Gives a node the taints for how it is.
    fn taint(&mut self, world: &mut World<'_>, kind: &Kind, name: &str) {
        let Some(record) = self.records.get(name) else { return };
        let key = Key { namespace: String::new(), name: name.to_owned() };
        let Some(object) = world.state.storage.get(&kind.bucket, &key).cloned() else { return };
        let node: NodeView<'_> = view(&object);
        let wanted = match record.ready {
            Some(Ready::False) => Some(NOT_READY),
            Some(Ready::Unknown) => Some(UNREACHABLE),
            Some(Ready::True) | None => None,
        };
        // While a zone is ill nodes are not tainted anew; while all are down taints go.
        let is_ill = self.zones.get(&record.place).is_some_and(|zone| zone.was_held);
        let has_one = evicting(&node).iter().any(|taint| [NOT_READY, UNREACHABLE].contains(&&*taint.key));
        let wanted = wanted.filter(|_| !self.all.was_held && (!is_ill || has_one));
        let difference = Difference::of(&node, wanted);
        if difference.is_empty() {
            return;
        }
        let mut value = object.value();
        difference.apply(&mut value, &seconds(world.now));
        world.state.update(kind, &object, value);
    }
}

impl Zone {
    fn is_down(self) -> bool {
        self.up == 0 && self.down > 0
    }

    /// Whether it is more likely the zone that is ill than its nodes: more than two nodes, and 55 of 100, are down.
    /// Source: the defaults of Kubernetes.
    fn is_ill(self) -> bool {
        let all = self.up + self.down;
        self.up > 0 && self.down > 2 && self.down * 100 >= all * 55 && all <= SMALL_ZONE
    }
}

/// How long a node may be silent.
fn grace(ready: Option<Ready>, options: &Options) -> SignedDuration {
    if ready.is_none() { options.node_startup_grace } else { options.node_grace }
}

fn reschedule(
    all: &mut BTreeSet<(Timestamp, String)>,
    name: &str,
    record: &mut Record,
    due: Option<Timestamp>,
) {
    if let Some(old) = record.due.take() {
        all.remove(&(old, name.to_owned()));
    }
    if let Some(due) = due {
        all.insert((due, name.to_owned()));
    }
    record.due = due;
}

fn place(node: &Object) -> Place {
    let label = |name: &str| {
        let value = node.labels.iter().find(|(label, _)| label == name);
        value.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    (label("topology.kubernetes.io/region"), label("topology.kubernetes.io/zone"))
}

/// Writes into a node that nothing is known about it.
fn forget(node: &mut Value, time: &str) {
    let created = node["metadata"]["creationTimestamp"].clone();
    let status = &mut node["status"];
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let conditions = status["conditions"].as_array_mut().expect("it was made an array");
    for kind in CONDITIONS {
        let Some(condition) = conditions.iter_mut().find(|condition| condition["type"] == kind) else {
            conditions.push(json!({
                "type": kind, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": created, "lastTransitionTime": time,
            }));
            continue;
        };
        if condition["status"] != "Unknown" {
            condition["status"] = "Unknown".into();
            condition["reason"] = "NodeStatusUnknown".into();
            condition["message"] = "Kubelet stopped posting node status.".into();
            condition["lastTransitionTime"] = time.into();
        }
    }
}
