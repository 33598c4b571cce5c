//! One look at the caches of the controllers: counts, and as many machines as can be shown.
//!
//! Never here: how it is shown; requests. One pass over the machines, whatever their number.

use std::collections::BTreeMap;
use std::sync::Arc;

use mapi_api::machine::phase;
use mapi_api::{Machine, MachineSet, Node, Object as _};
use serde::Deserialize;

use super::waits::waits_for;

/// Where a machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nobody looked at it yet.
    New,
    /// No instance yet.
    Provisioning,
    /// An instance, and no Node.
    Provisioned,
    /// An instance and a Node.
    Running,
    /// On its way out.
    Deleting,
    /// It will never work.
    Failed,
}

impl Phase {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 6] =
        [Self::New, Self::Provisioning, Self::Provisioned, Self::Running, Self::Deleting, Self::Failed];

    /// The phase of a machine. One that another writer put there counts as new.
    pub fn of(machine: &Machine) -> Self {
        match machine.phase() {
            phase::PROVISIONING => Self::Provisioning,
            phase::PROVISIONED => Self::Provisioned,
            phase::RUNNING => Self::Running,
            phase::DELETING => Self::Deleting,
            phase::FAILED => Self::Failed,
            _ => Self::New,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "New",
            Self::Provisioning => phase::PROVISIONING,
            Self::Provisioned => phase::PROVISIONED,
            Self::Running => phase::RUNNING,
            Self::Deleting => phase::DELETING,
            Self::Failed => phase::FAILED,
        }
    }
}

/// How many machines are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many there shall be.
    pub wanted: usize,
    /// How many run, with a Ready Node.
    pub up: usize,
    /// How many there are, by phase; those that run and are not up among them.
    pub phases: [usize; Phase::ALL.len()],
}

impl Counts {
    /// How many there are.
    pub fn total(&self) -> usize {
        self.phases.iter().sum()
    }

    /// Whether all that there shall be run, and nothing else is there.
    pub fn is_complete(&self) -> bool {
        self.up == self.wanted && self.total() == self.wanted
    }

    /// Machines of each phase but those that are up, as far as there are any.
    pub fn others(&self) -> impl Iterator<Item = (Phase, usize)> {
        let up = self.up;
        Phase::ALL
            .into_iter()
            .zip(self.phases)
            .map(move |(phase, count)| (phase, if phase == Phase::Running { count - up } else { count }))
            .filter(|(_, count)| *count > 0)
    }
}

/// A set and its machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetView {
    /// Its name.
    pub name: String,
    /// The zone of its machines.
    pub zone: String,
    /// Its counts.
    pub counts: Counts,
}

/// A machine that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Place of its set among the sets.
    pub set: usize,
    /// Its name.
    pub name: String,
    /// Where it is in its life.
    pub phase: Phase,
    /// The Node that it became.
    pub node: String,
    /// What it waits for, unless it is up.
    pub waits_for: Option<String>,
}

/// One look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// All counts together.
    pub counts: Counts,
    /// The sets by name; machines without one are last, in a set without a name.
    pub sets: Vec<SetView>,
    /// All machines if there is room for them, else the first of those that wait.
    pub rows: Vec<Row>,
}

impl Snapshot {
    /// Whether every machine has a row.
    pub fn is_whole(&self) -> bool {
        self.rows.len() == self.counts.total()
    }
}

/// Looks at machines and sets, which are sorted by name. At most `room` rows are made.
pub fn look(
    machines: &[Arc<Machine>],
    sets: &[Arc<MachineSet>],
    node: impl Fn(&str) -> Option<Arc<Node>>,
    room: usize,
) -> Snapshot {
    let mut snapshot =
        Snapshot { sets: sets.iter().map(|set| view_of(set)).collect(), ..Snapshot::default() };
    let places: BTreeMap<&str, usize> =
        sets.iter().enumerate().map(|(place, set)| (set.uid(), place)).collect();
    let is_whole = machines.len() <= room;
    let mut created = vec![];
    for machine in machines {
        let owner = machine.set_owner().and_then(|owner| places.get(owner.uid.as_str()).copied());
        let set = owner.unwrap_or(sets.len());
        if set == snapshot.sets.len() {
            snapshot.sets.push(SetView::default());
        }
        let node = machine.node_name().and_then(&node);
        let waits_for = waits_for(machine, node.as_deref());
        let counts = &mut snapshot.sets[set].counts;
        // Nobody but who made it wants a machine without a set.
        counts.wanted += usize::from(owner.is_none() && !machine.is_deleting());
        counts.up += usize::from(waits_for.is_none());
        counts.phases[Phase::of(machine) as usize] += 1;
        if is_whole || (waits_for.is_some() && snapshot.rows.len() < room) {
            created.push(machine.metadata.creation_timestamp.as_ref().map(|time| time.0));
            snapshot.rows.push(Row {
                set,
                name: machine.name().into(),
                phase: Phase::of(machine),
                node: machine.node_name().unwrap_or_default().into(),
                waits_for: waits_for.map(Into::into),
            });
        }
    }
    if is_whole {
        // By age, so that what is new is added below and nothing jumps.
        let mut rows: Vec<_> = created.into_iter().zip(snapshot.rows).collect();
        rows.sort_by(|(a, row), (b, other)| (row.set, a, &row.name).cmp(&(other.set, b, &other.name)));
        snapshot.rows = rows.into_iter().map(|(_, row)| row).collect();
    }
    for SetView { counts, .. } in &snapshot.sets {
        snapshot.counts.wanted += counts.wanted;
        snapshot.counts.up += counts.up;
        for (sum, count) in snapshot.counts.phases.iter_mut().zip(counts.phases) {
            *sum += count;
        }
    }
    snapshot
}

fn view_of(set: &MachineSet) -> SetView {
    #[derive(Default, Deserialize)]
    struct Placed {
        #[serde(default)]
        zone: String,
    }
    // A set on its way out wants no machines.
    let replicas = if set.is_deleting() { 0 } else { set.spec.replicas.unwrap_or(1) };
    let spec = set.spec.template.machine_spec().unwrap_or_default().provider_spec;
    let placed = spec.value.and_then(|value| value.parse::<Placed>().ok()).unwrap_or_default();
    SetView {
        name: set.name().into(),
        zone: placed.zone,
        counts: Counts { wanted: usize::try_from(replicas).unwrap_or_default(), ..Counts::default() },
    }
}

/// Each machine that is not up, with its phase and what it waits for; at most `room` of them.
pub fn reasons(snapshot: &Snapshot, room: usize) -> Vec<String> {
    let waiting = snapshot.rows.iter().filter_map(|row| row.waits_for.as_ref().map(|text| (row, text)));
    let mut lines: Vec<String> = waiting
        .take(room)
        .map(|(row, text)| format!("{}  {}  waits for {text}", row.name, row.phase.name()))
        .collect();
    let Counts { wanted, up, .. } = snapshot.counts;
    let total = snapshot.counts.total();
    let unnamed = (total - up).saturating_sub(lines.len());
    if unnamed > 0 {
        lines.push(format!("and {unnamed} more"));
    }
    if total < wanted {
        lines.push(format!("{} are not there yet", wanted - total));
    }
    lines
}

#[cfg(test)]
pub mod tests {
    use mapi_api::names;
    use serde_json::{Value, json};

    use super::*;

    pub fn set(name: &str, replicas: i64) -> Arc<MachineSet> {
        let value = json!({"metadata": {"name": name, "uid": name}, "spec": {"replicas": replicas,
            "template": {"spec": {"providerSpec": {"value": {"zone": format!("zone-{name}")}}}}}});
        Arc::new(serde_json::from_value(value).expect("a set"))
    }

    pub fn machine(set: &str, name: &str, created_s: u32, phase: &str) -> Arc<Machine> {
        let owners = json!([{"apiVersion": names::API_VERSION, "kind": "MachineSet", "name": set, "uid": set,
            "controller": true}]);
        let node = if phase == "Running" { json!({ "name": name }) } else { Value::Null };
        let value = json!({
            "metadata": {"name": name, "ownerReferences": if set.is_empty() { json!([]) } else { owners },
                "creationTimestamp": format!("2026-01-01T00:00:{created_s:02}Z")},
            "status": {"phase": phase, "nodeRef": node,
                "conditions": [{"type": "InstanceExists", "status": "True"}]}});
        Arc::new(serde_json::from_value(value).expect("a machine"))
    }

    pub fn ready(name: &str) -> Option<Arc<Node>> {
        let value = json!({"metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": if name.starts_with("sick") { "False" } else { "True" }}]}});
        Some(Arc::new(serde_json::from_value(value).expect("a node")))
    }

    #[test]
    fn machines_are_counted_with_their_set_and_shown_by_age() {
        let machines = [
            machine("a", "a1", 2, "Running"),
            machine("a", "a2", 1, "Provisioned"),
            machine("", "alone", 1, "Running"),
            machine("b", "sick", 1, "Running"),
        ];
        let snapshot = look(&machines, &[set("a", 3), set("b", 1)], ready, 10);
        let names: Vec<_> = snapshot.rows.iter().map(|row| (row.set, row.name.as_str())).collect();
        assert_eq!(names, [(0, "a2"), (0, "a1"), (1, "sick"), (2, "alone")]);
        let counts: Vec<_> = snapshot.sets.iter().map(|set| (set.counts.up, set.counts.wanted)).collect();
        assert_eq!(counts, [(1, 3), (0, 1), (1, 1)]);
        assert_eq!(snapshot.sets[0].zone, "zone-a");
        assert!(snapshot.is_whole() && !snapshot.counts.is_complete());
        let others: Vec<_> = snapshot.counts.others().collect();
        assert_eq!(others, [(Phase::Provisioned, 1), (Phase::Running, 1)]);
    }

    #[test]
    fn of_more_machines_than_there_is_room_for_the_first_that_wait_are_shown() {
        let phase = |i| if i % 2 == 0 { "Running" } else { "Provisioning" };
        let machines: Vec<_> = (0..40).map(|i| machine("a", &format!("m{i:02}"), 1, phase(i))).collect();
        let snapshot = look(&machines, &[set("a", 40)], ready, 3);
        let names: Vec<_> = snapshot.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["m01", "m03", "m05"]);
        assert_eq!((snapshot.counts.up, snapshot.counts.total()), (20, 40));
        assert!(!snapshot.is_whole());
    }

    #[test]
    fn a_wait_that_was_given_up_says_who_waits_for_what_and_how_many_more() {
        let machines = [
            machine("a", "a1", 1, "Running"),
            machine("a", "a2", 1, "Provisioned"),
            machine("a", "sick", 1, "Running"),
        ];
        let snapshot = look(&machines, &[set("a", 4)], ready, 10);
        assert_eq!(
            reasons(&snapshot, 1),
            ["a2  Provisioned  waits for the instance", "and 1 more", "1 are not there yet"]
        );
    }
}
