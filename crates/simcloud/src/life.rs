//! The life of an instance: which state it is in at a time, and until when. Pure.
//!
//! Every time is absolute and follows from what the object says, so that it makes no difference who looks, how often, and
//! whether it was another process before.

use mapi_api::fault::{Fault, FaultKind, StuckState};
use mapi_api::meta::micro;
use mapi_api::simulated_instance::{InstanceState, SimulatedInstanceStatus};
use mapi_api::{SimulatedInstance, Timestamp};

/// The earliest of some moments that lie ahead.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    now: Timestamp,
    at: Option<Timestamp>,
}

impl Wake {
    /// None yet.
    pub fn after(now: Timestamp) -> Self {
        Self { now, at: None }
    }

    /// Counts a moment in if it lies ahead.
    pub fn at(&mut self, moment: Timestamp) {
        if moment > self.now {
            self.at = Some(self.at.map_or(moment, |at| at.min(moment)));
        }
    }

    /// Counts in when a fault begins and ends.
    pub fn around(&mut self, fault: &Fault, start: Timestamp) {
        self.at(fault.begins(start));
        if let Some(end) = fault.ends(start) {
            self.at(end);
        }
    }

    /// The earliest.
    pub fn earliest(self) -> Option<Timestamp> {
        self.at
    }
}

/// Faults of a kind.
pub fn faults(instance: &SimulatedInstance, kind: FaultKind) -> impl Iterator<Item = &Fault> {
    instance.spec.faults.iter().filter(move |fault| fault.kind == kind)
}

/// The fault of a kind that is on.
pub fn active(
    instance: &SimulatedInstance,
    kind: FaultKind,
    start: Timestamp,
    now: Timestamp,
) -> Option<&Fault> {
    faults(instance, kind).find(|fault| fault.is_on(start, now))
}

/// When the instance was asked for.
pub fn created(instance: &SimulatedInstance, now: Timestamp) -> Timestamp {
    instance.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0)
}

/// The status of an instance that nobody wants to terminate, at a time. Counts into `wake` when it changes by itself.
pub fn at(instance: &SimulatedInstance, now: Timestamp, wake: &mut Wake) -> SimulatedInstanceStatus {
    let mut status = instance.status.clone().unwrap_or_default();
    let mut since = status.state_since.as_ref().map_or_else(|| created(instance, now), |time| time.0);
    let next = loop {
        match step(instance, &mut status, since, now) {
            Step::To(state, at) => {
                status.state = state;
                since = at;
                if state == InstanceState::Running && status.running_since.is_none() {
                    status.running_since = Some(micro(at));
                }
            }
            Step::Stay(next) => break next,
        }
    };
    if let Some(next) = next {
        wake.at(next);
    }
    for fault in faults(instance, FaultKind::StuckProvisioning) {
        wake.around(fault, created(instance, now));
    }
    if let Some(start) = &status.running_since {
        for kind in [FaultKind::InstanceStopped, FaultKind::InstanceTerminated] {
            faults(instance, kind).for_each(|fault| wake.around(fault, start.0));
        }
    }
    status.state_since = Some(micro(since));
    status.next_transition_at = next.map(micro);
    if status.running_since.is_some() {
        status.addresses.clone_from(&instance.spec.addresses);
    }
    status
}

/// What happens next to an instance.
enum Step {
    /// It went on to a state at a time that is past.
    To(InstanceState, Timestamp),
    /// It stays, by itself until this time.
    Stay(Option<Timestamp>),
}

fn step(
    instance: &SimulatedInstance,
    status: &mut SimulatedInstanceStatus,
    since: Timestamp,
    now: Timestamp,
) -> Step {
    let timing = &instance.spec.timing;
    let pass = |state, at| if at <= now { Step::To(state, at) } else { Step::Stay(Some(at)) };
    let running = status.running_since.as_ref().map_or(since, |time| time.0);
    let stop = active(instance, FaultKind::InstanceStopped, running, now);
    match status.state {
        InstanceState::Pending => match held_until(instance, StuckState::Pending, now) {
            Held::ForGood => Step::Stay(None),
            Held::Until(free) => pass(InstanceState::Starting, timing.provision.after(since).max(free)),
        },
        InstanceState::Starting => match held_until(instance, StuckState::Starting, now) {
            Held::ForGood => Step::Stay(None),
            Held::Until(free) => pass(InstanceState::Running, timing.boot.after(since).max(free)),
        },
        InstanceState::Running => match stop {
            Some(fault) => Step::To(InstanceState::Stopping, fault.begins(running).max(since)),
            None => Step::Stay(None),
        },
        InstanceState::Stopping => pass(InstanceState::Stopped, timing.stop.after(since)),
        InstanceState::Stopped => match stop {
            Some(fault) => Step::Stay(fault.ends(running)),
            None => {
                let ends =
                    faults(instance, FaultKind::InstanceStopped).filter_map(|fault| fault.ends(running));
                let end = ends.filter(|end| *end <= now).max().unwrap_or(now);
                Step::To(InstanceState::Starting, end.max(since))
            }
        },
        // Only the deletion mark makes an instance terminate, and then it is not asked about here.
        InstanceState::Terminating => Step::Stay(None),
    }
}

enum Held {
    ForGood,
    Until(Timestamp),
}

/// Until when the instance is kept in a state by a fault, or was.
fn held_until(instance: &SimulatedInstance, state: StuckState, now: Timestamp) -> Held {
    let start = created(instance, now);
    let mut until = Timestamp::MIN;
    for fault in faults(instance, FaultKind::StuckProvisioning) {
        if fault.args.state.unwrap_or_default() != state || fault.begins(start) > now {
            continue;
        }
        match fault.ends(start) {
            Some(end) => until = until.max(end),
            None => return Held::ForGood,
        }
    }
    Held::Until(until)
}
