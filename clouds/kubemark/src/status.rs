//! The provider status: what is known of the instance in the words of the simulated cloud, and whether trouble was asked
//! for, so that injected trouble is never taken for a defect.

use mapi_api::condition::{Condition, ConditionStatus, Conditions, remove, set};
use mapi_api::fault::{Fault, FaultKind};
use mapi_api::simulated_instance::InstanceState;
use mapi_api::{RawJson, SimulatedInstance};
use mapi_cloud::{Activity, CloudError, Identity};
use serde::{Deserialize, Serialize};

use crate::error::Injected;
use crate::faults;
use crate::observe::Sight;

/// `status.providerStatus`. Fields in the order in which the API server gives them back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProviderStatus {
    api_version: String,
    conditions: Vec<Condition>,
    /// Injected errors of creates, for faults that end after a number of them. Kept here and not in memory, so that
    /// a restart does not begin anew.
    #[serde(skip_serializing_if = "is_zero")]
    create_failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_state: Option<InstanceState>,
    kind: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

mod types {
    pub const MACHINE_CREATED: &str = "MachineCreated";
    pub const INSTANCE_RUNNING: &str = "InstanceRunning";
    pub const NODE_REGISTERED: &str = "NodeRegistered";
    pub const FAULT_INJECTED: &str = "FaultInjected";
}

/// How many creates failed because a fault said so.
pub fn failures(who: &Identity) -> u32 {
    recorded(who).create_failures
}

/// The provider status after a question; `None` if nothing changed.
pub fn after(
    who: &Identity,
    sight: Option<&Sight>,
    failed: Option<(Activity, &CloudError)>,
) -> Option<RawJson> {
    let old = recorded(who);
    let mut new = old.clone();
    if let Some(sight) = sight {
        match &sight.instance {
            Some(instance) => seen(&mut new, who, instance),
            None => not_seen(&mut new, who),
        }
    }
    if let Some((activity, error)) = failed {
        trouble(&mut new, who, activity, error);
    }
    let instance = sight.and_then(|sight| sight.instance.as_deref());
    injected(&mut new, who, instance, failed.and_then(|(_, error)| Injected::of(error)));
    if new == old {
        return None;
    }
    new.api_version = format!("{}/v1beta1", crate::spec::KIND.group);
    new.kind = "KubemarkMachineProviderStatus".into();
    RawJson::new(&new).ok()
}

fn recorded(who: &Identity) -> ProviderStatus {
    who.provider_status.as_ref().and_then(|raw| raw.parse().ok()).unwrap_or_default()
}

fn seen(status: &mut ProviderStatus, who: &Identity, instance: &SimulatedInstance) {
    let state = instance.state();
    status.instance_id = instance.metadata.name.clone();
    status.instance_state = Some(state);
    put(status, who, yes(types::MACHINE_CREATED, "MachineCreationSucceeded", "the machine was created"));
    put(
        status,
        who,
        match state {
            InstanceState::Running => yes(types::INSTANCE_RUNNING, state.name(), ""),
            InstanceState::Pending
            | InstanceState::Starting
            | InstanceState::Stopping
            | InstanceState::Stopped
            | InstanceState::Terminating => no(types::INSTANCE_RUNNING, state.name(), ""),
        },
    );
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    if let Some(condition) = conditions.find(types::NODE_REGISTERED) {
        put(status, who, condition.clone());
    }
}

fn not_seen(status: &mut ProviderStatus, who: &Identity) {
    status.instance_state = None;
    if status.conditions.find(types::INSTANCE_RUNNING).is_some() {
        put(status, who, no(types::INSTANCE_RUNNING, "NoInstance", "there is no instance"));
    }
}

fn trouble(status: &mut ProviderStatus, who: &Identity, activity: Activity, error: &CloudError) {
    if activity != Activity::Create {
        return;
    }
    put(status, who, no(types::MACHINE_CREATED, "MachineCreationFailed", &error.to_string()));
    if Injected::of(error).is_some_and(|injected| injected.is_counted) {
        status.create_failures = status.create_failures.saturating_add(1);
    }
}

fn injected(
    status: &mut ProviderStatus,
    who: &Identity,
    instance: Option<&SimulatedInstance>,
    error: Option<&Injected>,
) {
    if let Err(findings) = faults::of_annotation(who) {
        return put(status, who, no(types::FAULT_INJECTED, "InvalidFaults", &findings.errors()));
    }
    let present = instance.map_or(&[][..], |instance| &instance.spec.faults);
    let mut kinds: Vec<FaultKind> = match instance {
        Some(instance) => present.iter().filter(|f| is_left_on(f, who, instance)).map(|f| f.kind).collect(),
        None => faults::wanted(&[], who).iter().map(|fault| fault.kind).collect(),
    };
    kinds.extend(error.map(|injected| injected.kind));
    let mut distinct: Vec<FaultKind> = vec![];
    for kind in kinds {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    match distinct.first() {
        Some(first) => {
            let names: Vec<&str> = distinct.iter().map(|kind| kind.name()).collect();
            let message = format!("trouble was asked for: {}", names.join(", "));
            put(status, who, yes(types::FAULT_INJECTED, first.name(), &message));
        }
        None => _ = remove(&mut status.conditions, types::FAULT_INJECTED),
    }
}

/// Whether a fault of a live instance can still do something.
fn is_left_on(fault: &Fault, who: &Identity, instance: &SimulatedInstance) -> bool {
    let start = match fault.kind {
        FaultKind::CreateError
        | FaultKind::CreateErrorButCreated
        | FaultKind::CreateDuplicateVisible
        | FaultKind::Quota => return false,
        FaultKind::ApiThrottle
        | FaultKind::ApiOutage
        | FaultKind::ZoneOutage
        | FaultKind::StuckProvisioning => who.created,
        FaultKind::NeverJoin
        | FaultKind::NodeNotReady
        | FaultKind::NodeUnknown
        | FaultKind::NodeFlap
        | FaultKind::NodeDeleted
        | FaultKind::InstanceTerminated
        | FaultKind::InstanceStopped => {
            instance.status.as_ref().and_then(|status| status.running_since.as_ref()).map(|time| time.0)
        }
        FaultKind::DeleteStuck => who.deleted,
    };
    fault.ends(start.unwrap_or(who.now)).is_none_or(|end| who.now < end)
}

fn put(status: &mut ProviderStatus, who: &Identity, condition: Condition) {
    set(&mut status.conditions, condition, who.now);
}

fn yes(type_: &str, reason: &str, message: &str) -> Condition {
    Condition { status: ConditionStatus::TRUE, ..no(type_, reason, message) }
}

fn no(type_: &str, reason: &str, message: &str) -> Condition {
    Condition::no(type_, "", reason, message)
}
