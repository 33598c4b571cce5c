//! What to do about one instance, from what is known of it and its Node. Pure: no clock, no client.

use mapi_api::condition::{Condition, ConditionStatus, Conditions, set};
use mapi_api::duration::Span;
use mapi_api::fault::{Fault, FaultKind};
use mapi_api::meta::micro;
use mapi_api::simulated_instance::{InstanceState, SimulatedInstanceStatus};
use mapi_api::{Node, Object, SimulatedInstance, Timestamp, names};

use crate::life::{self, Wake, active, faults};
use crate::node::{self, Readiness};

/// What is known.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The instance.
    pub instance: &'a SimulatedInstance,
    /// What has the name of its Node.
    pub node: NodeSight<'a>,
    /// The time.
    pub now: Timestamp,
}

/// What has the name of an instance's Node.
#[derive(Clone, Copy, Debug)]
pub enum NodeSight<'a> {
    /// Nothing.
    Absent,
    /// The instance's own Node.
    Ours(&'a Node),
    /// A Node that is not the instance's, and not to be touched.
    Foreign,
}

impl<'a> NodeSight<'a> {
    /// What a Node is to an instance. Its own has the marker and the instance's provider id.
    pub fn of(instance: &SimulatedInstance, node: Option<&'a Node>) -> Self {
        let Some(node) = node else { return Self::Absent };
        let is_marked = node.label(names::label::SIMULATED) == Some("true");
        let is_same = node.provider_id() == Some(instance.spec.node.provider_id.as_str());
        if is_marked && is_same { Self::Ours(node) } else { Self::Foreign }
    }
}

/// What to do, in order, and when to look again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Effects. Stopping after any of them leaves a state from which the next look ends the same way.
    pub effects: Vec<Effect>,
    /// When something changes by itself.
    pub wake: Option<Timestamp>,
    /// What the Node says of itself from now on; `None` if it is silent.
    pub pulse: Option<Readiness>,
}

/// One effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write the status of the instance.
    Status(Box<SimulatedInstanceStatus>),
    /// Create the Node.
    Register(Readiness),
    /// Write condition Ready of the Node.
    Report {
        /// What it says.
        readiness: Readiness,
        /// Whether the Node was judged silent, so that its other conditions are to be said again too.
        was_silent: bool,
    },
    /// Delete the Node object while the instance runs on.
    Unregister,
    /// Ask for the end of the instance, as somebody else at the cloud would.
    Terminate,
    /// Remove the Lease and the Node, then the finalizer.
    Remove,
}

/// Half a minute between looks at a name that something else has: that something is not watched.
const NAME_TAKEN_RETRY: Span = Span::seconds(30);

/// Five seconds until a Node that was deleted registers again, about what a kubelet takes to notice. Times of objects
/// are whole seconds, so less than two would not tell the new Node from the old one.
const REGISTER_AGAIN: Span = Span::seconds(5);

/// What to do about one instance.
pub fn advance(facts: &Facts<'_>) -> Plan {
    let Facts { instance, node, now } = *facts;
    if let Some(mark) = &instance.metadata.deletion_timestamp {
        return terminate(instance, mark.0, now);
    }
    let mut wake = Wake::after(now);
    let mut status = life::at(instance, now, &mut wake);
    let mut plan = Plan::default();
    if let Some(running) = status.running_since.as_ref().map(|time| time.0) {
        if active(instance, FaultKind::InstanceTerminated, running, now).is_some() {
            return Plan { effects: vec![Effect::Terminate], ..Plan::default() };
        }
        if status.state == InstanceState::Running {
            play(instance, running, node, now, &mut wake, &mut plan);
            name_condition(&mut status, &instance.spec.node.name, node, now);
        }
    }
    if instance.status.as_ref() != Some(&status) {
        plan.effects.insert(0, Effect::Status(Box::new(status)));
    }
    plan.wake = wake.earliest();
    plan
}

fn terminate(instance: &SimulatedInstance, mark: Timestamp, now: Timestamp) -> Plan {
    let mut wake = Wake::after(now);
    let due = instance.spec.timing.delete.after(mark);
    let stuck = active(instance, FaultKind::DeleteStuck, mark, now);
    if stuck.is_none() && due <= now {
        return Plan { effects: vec![Effect::Remove], ..Plan::default() };
    }
    wake.at(due);
    for fault in faults(instance, FaultKind::DeleteStuck) {
        wake.around(fault, mark);
    }
    let mut status = instance.status.clone().unwrap_or_default();
    if status.state != InstanceState::Terminating {
        status.state = InstanceState::Terminating;
        status.state_since = Some(micro(mark));
    }
    status.next_transition_at = if stuck.is_none() { Some(micro(due)) } else { None };
    let is_new = instance.status.as_ref() != Some(&status);
    let effects = if is_new { vec![Effect::Status(Box::new(status))] } else { vec![] };
    Plan { effects, wake: wake.earliest(), pulse: None }
}

/// Plays the kubelet of an instance that runs.
fn play(
    instance: &SimulatedInstance,
    running: Timestamp,
    node: NodeSight<'_>,
    now: Timestamp,
    wake: &mut Wake,
    plan: &mut Plan,
) {
    let ready_at = instance.spec.timing.ready.after(instance.spec.timing.join.after(running));
    match node {
        NodeSight::Foreign => wake.at(NAME_TAKEN_RETRY.after(now)),
        NodeSight::Absent => {
            if may_register(instance, running, ready_at, now, wake) {
                let readiness = readiness(instance, ready_at, now, wake);
                plan.effects.push(Effect::Register(readiness.clone()));
                plan.pulse = readiness.speaks();
            }
        }
        NodeSight::Ours(node) => {
            if is_to_vanish(instance, node, ready_at, now, wake) {
                plan.effects.push(Effect::Unregister);
                wake.at(REGISTER_AGAIN.after(now));
                return;
            }
            plan.pulse = readiness(instance, ready_at, now, wake).speaks();
            let said = node.condition("Ready").map(|condition| condition.status.as_str());
            if let Some(readiness) = plan.pulse.as_ref().filter(|readiness| said != Some(readiness.status()))
            {
                let was_silent = said == Some("Unknown");
                plan.effects.push(Effect::Report { readiness: readiness.clone(), was_silent });
            }
        }
    }
}

fn may_register(
    instance: &SimulatedInstance,
    running: Timestamp,
    ready_at: Timestamp,
    now: Timestamp,
    wake: &mut Wake,
) -> bool {
    let join = instance.spec.timing.join.after(running);
    wake.at(join);
    for fault in faults(instance, FaultKind::NeverJoin) {
        wake.around(fault, running);
    }
    if join > now || active(instance, FaultKind::NeverJoin, running, now).is_some() {
        return false;
    }
    for fault in faults(instance, FaultKind::NodeDeleted).filter(|fault| fault.begins(ready_at) <= now) {
        let back = again_at(fault, ready_at);
        match back {
            Some(back) => wake.at(back),
            None => return false,
        }
        if back.is_some_and(|back| back > now) {
            return false;
        }
    }
    true
}

/// When a Node that was deleted registers again.
fn again_at(fault: &Fault, ready_at: Timestamp) -> Option<Timestamp> {
    if fault.args.re_register == Some(false) {
        return fault.ends(ready_at);
    }
    let pause = fault.duration.unwrap_or_default().max(REGISTER_AGAIN);
    Some(pause.after(fault.begins(ready_at)))
}

/// Whether the Node is older than a fault that deletes it.
fn is_to_vanish(
    instance: &SimulatedInstance,
    node: &Node,
    ready_at: Timestamp,
    now: Timestamp,
    wake: &mut Wake,
) -> bool {
    let registered = node.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let mut faults = faults(instance, FaultKind::NodeDeleted);
    faults.any(|fault| {
        let begins = fault.begins(ready_at);
        wake.at(begins);
        begins <= now && registered < begins
    })
}

/// What the Node of an instance that runs would say of itself.
fn readiness(
    instance: &SimulatedInstance,
    ready_at: Timestamp,
    now: Timestamp,
    wake: &mut Wake,
) -> Readiness {
    wake.at(ready_at);
    let mut readiness = if now < ready_at { node::starting() } else { Readiness::Ready };
    for fault in &instance.spec.faults {
        let Some(ailment) = ailment(fault, &instance.spec.zone) else { continue };
        wake.around(fault, ready_at);
        if fault.is_on(ready_at, now) {
            readiness = readiness.worse(said_under(ailment, fault, ready_at, now, wake));
        }
    }
    readiness
}

/// What a fault does to a Node.
#[derive(Clone, Copy)]
enum Ailment {
    NotReady,
    Flap,
    Silence,
}

fn ailment(fault: &Fault, zone: &str) -> Option<Ailment> {
    match fault.kind {
        FaultKind::NodeNotReady => Some(Ailment::NotReady),
        FaultKind::NodeFlap => Some(Ailment::Flap),
        FaultKind::NodeUnknown => Some(Ailment::Silence),
        FaultKind::ZoneOutage => fault.is_for_zone(zone).then_some(Ailment::Silence),
        FaultKind::CreateError
        | FaultKind::CreateErrorButCreated
        | FaultKind::CreateDuplicateVisible
        | FaultKind::StuckProvisioning
        | FaultKind::NeverJoin
        | FaultKind::NodeDeleted
        | FaultKind::InstanceTerminated
        | FaultKind::InstanceStopped
        | FaultKind::DeleteStuck
        | FaultKind::ApiThrottle
        | FaultKind::ApiOutage
        | FaultKind::Quota => None,
    }
}

fn said_under(
    ailment: Ailment,
    fault: &Fault,
    ready_at: Timestamp,
    now: Timestamp,
    wake: &mut Wake,
) -> Readiness {
    match ailment {
        Ailment::NotReady => node::not_ready(fault),
        Ailment::Silence => Readiness::Silent,
        Ailment::Flap => {
            let (ready, sick) =
                (fault.args.ready.unwrap_or_default(), fault.args.not_ready.unwrap_or_default());
            let begins = fault.begins(ready_at);
            let cycle = ready.0 + sick.0;
            if cycle.is_zero() {
                return Readiness::Ready;
            }
            let passed = now.duration_since(begins).unsigned_abs().as_nanos();
            let round = u32::try_from(passed / cycle.as_nanos()).unwrap_or(u32::MAX);
            let start = Span(cycle.saturating_mul(round)).after(begins);
            wake.at(ready.after(start));
            wake.at(Span(cycle).after(start));
            if now < ready.after(start) { Readiness::Ready } else { node::not_ready(fault) }
        }
    }
}

const NODE_REGISTERED: &str = "NodeRegistered";

/// Says when something else has the name of the Node. While nothing ever had, nothing is said: that saves the write of
/// every instance that just works.
fn name_condition(status: &mut SimulatedInstanceStatus, name: &str, node: NodeSight<'_>, now: Timestamp) {
    let condition = match node {
        NodeSight::Foreign => {
            let message = format!(
                "spec.node.name: `{name}` is the name of a node that is not of this instance and is left alone: a name \
                 that no other node has is needed"
            );
            Condition::no(NODE_REGISTERED, "", "NodeNameTaken", message)
        }
        NodeSight::Ours(_) if status.conditions.find(NODE_REGISTERED).is_some() => Condition {
            status: ConditionStatus::TRUE,
            ..Condition::no(NODE_REGISTERED, "", "NodeRegistered", "")
        },
        NodeSight::Ours(_) | NodeSight::Absent => return,
    };
    set(&mut status.conditions, condition, now);
}
