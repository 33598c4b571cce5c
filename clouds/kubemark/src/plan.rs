//! The next write about one machine, from what was seen. Pure.

use std::time::Duration;

use mapi_api::duration::Span;
use mapi_api::fault::Fault;
use mapi_api::simulated_instance::Heartbeat;
use mapi_api::{SimulatedInstance, Timestamp, names};
use mapi_cloud::{Activity, Gate, Goal, Identity, Next};

use crate::network::Cidr;
use crate::observe::Sight;
use crate::spec::KubemarkSpec;
use crate::{compile, error, faults};

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create the object.
    Create {
        /// The object.
        instance: Box<SimulatedInstance>,
        /// Where its first addresses come from, one each, so that those that are taken can be changed.
        ranges: Vec<Cidr>,
    },
    /// Change what may change on a live instance.
    Adjust {
        /// All faults.
        faults: Vec<Fault>,
        /// How the Node says that it lives.
        heartbeat: Heartbeat,
    },
    /// Delete the object.
    Terminate,
}

/// Twenty seconds: the deletion of the object announces itself, this is for a lost announcement.
const LOOK_AGAIN: Duration = Duration::from_secs(20);

/// The next write, if any.
pub fn next(who: &Identity, goal: &Goal<'_, KubemarkSpec>, sight: &Sight) -> Next<Step> {
    match (goal, &sight.instance) {
        (Goal::Absent, None) => Next::Done,
        (Goal::Absent, Some(instance)) => remove(who, instance),
        (Goal::Look(spec) | Goal::Present(spec), Some(instance)) => adjust(who, spec, instance),
        (Goal::Look(_), None) => wait_for_sight(who, sight),
        (Goal::Present(spec), None) => create(who, spec),
    }
}

fn remove(who: &Identity, instance: &SimulatedInstance) -> Next<Step> {
    if instance.metadata.deletion_timestamp.is_some() {
        let message = "the simulated instance is being terminated".to_owned();
        return Next::Wait(Gate { reason: "Terminating", message, again: LOOK_AGAIN });
    }
    match historic_start(who).filter(|start| *start > who.now) {
        Some(start) => {
            let wait = start.duration_since(who.now).unsigned_abs();
            let message = format!("annotation `{}` lies in the future", names::annotation::DELETION_TIMEOUT);
            Next::Wait(Gate { reason: "DeletionTimeout", message, again: wait.min(MOST_WAIT) })
        }
        None => Next::Take(Activity::Delete, Step::Terminate),
    }
}

/// An hour: whatever a Machine carries from the historic provider, somebody looks at it once in a while.
const MOST_WAIT: Duration = Duration::from_secs(3600);

/// Kept for compatibility: when the historic provider let a deletion go on.
fn historic_start(who: &Identity) -> Option<Timestamp> {
    let text = who.annotations.get(names::annotation::DELETION_TIMEOUT)?;
    Timestamp::from_second(text.trim().parse().ok()?).ok()
}

fn adjust(who: &Identity, spec: &KubemarkSpec, instance: &SimulatedInstance) -> Next<Step> {
    let present = &instance.spec;
    let wanted = faults::wanted(&spec.faults, who);
    let same = wanted.len() == present.faults.len()
        && wanted.iter().zip(&present.faults).all(|(wanted, present)| wanted.same_wish(present));
    if instance.metadata.deletion_timestamp.is_some() || same && spec.heartbeat == present.heartbeat {
        return Next::Done;
    }
    let faults = faults::merged(&present.faults, wanted, who.now);
    Next::Take(Activity::Update, Step::Adjust { faults, heartbeat: spec.heartbeat.clone() })
}

fn create(who: &Identity, spec: &KubemarkSpec) -> Next<Step> {
    // I4: a machine that is being deleted never gets an instance, whatever the caller wants.
    if who.deleted.is_some() {
        return Next::Done;
    }
    if who.annotations.contains_key(names::annotation::STATIC_MACHINE) {
        return Next::Refuse(error::static_machine());
    }
    match compile::instance(spec, who) {
        Ok(instance) => {
            let ranges = compile::ranges(&spec.network).collect();
            Next::Take(Activity::Create, Step::Create { instance: Box::new(instance), ranges })
        }
        Err(error) => Next::Refuse(error),
    }
}

/// An instance that cannot be seen yet announces nothing when it can be.
fn wait_for_sight(who: &Identity, sight: &Sight) -> Next<Step> {
    match sight.visible_at {
        Some(at) => {
            let again = Span(at.duration_since(who.now).unsigned_abs()).0 + Duration::from_millis(10);
            let message = "the simulated instance cannot be seen yet".to_owned();
            Next::Wait(Gate { reason: "NotVisible", message, again })
        }
        None => Next::Done,
    }
}
