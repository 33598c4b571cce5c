//! Does one write, as often as one likes: the name of the object is the identity of the instance, so that a create that is
//! repeated meets itself, and a delete names the UID.

use std::sync::{Arc, PoisonError};

use mapi_api::duration::Span;
use mapi_api::fault::{Fault, FaultKind};
use mapi_api::simulated_instance::Heartbeat;
use mapi_api::{Key, Object, SimulatedInstance, Timestamp, quantity};
use mapi_cloud::{CloudError, Identity, StoreError};
use serde_json::json;

use crate::network::Cidr;
use crate::observe::{Sight, is_ours, key};
use crate::plan::Step;
use crate::{Kubemark, compile, error, faults, status};

/// An instance that this process asked for, until the cache shows it.
pub type Recent = (Timestamp, Arc<SimulatedInstance>);

/// A minute: twice what a watch of a busy server lags at worst.
const RECENT: Span = Span::seconds(60);

/// Does one write and tells what is known after it.
pub async fn step(cloud: &Kubemark, who: &Identity, step: Step, before: Sight) -> Result<Sight, CloudError> {
    match step {
        Step::Create { instance, ranges } => create(cloud, who, *instance, &ranges).await,
        Step::Adjust { faults, heartbeat } => adjust(cloud, who, faults, &heartbeat, before).await,
        Step::Terminate => terminate(cloud, who, before).await,
    }
}

async fn create(
    cloud: &Kubemark,
    who: &Identity,
    instance: SimulatedInstance,
    ranges: &[Cidr],
) -> Result<Sight, CloudError> {
    cloud.call(error::LAUNCH, who, Some(&instance))?;
    faults::on_create(&instance, who, status::failures(who))?;
    let instance = reserve(cloud, who, instance, ranges)?;
    let made = match cloud.objects.create(&instance).await {
        Ok(made) => made,
        Err(StoreError::AlreadyExists) => return meet(cloud, who).await,
        Err(e @ StoreError::NoAnswer(_)) => return Err(error::of_store(error::LAUNCH, e)),
        Err(e) => {
            forget(cloud, &instance.key());
            return Err(error::of_store(error::LAUNCH, e));
        }
    };
    if faults::find(&made.spec.faults, FaultKind::CreateErrorButCreated, who).is_some() {
        return Err(error::made_but_failed());
    }
    Ok(Sight::of(made))
}

/// An earlier create took effect.
async fn meet(cloud: &Kubemark, who: &Identity) -> Result<Sight, CloudError> {
    let answer = cloud.objects.get(&key(who)).await.map_err(|e| error::of_store(error::LAUNCH, e))?;
    let instance = answer.ok_or_else(|| error::of_store(error::LAUNCH, StoreError::NotFound))?;
    is_ours(error::LAUNCH, who, &instance)?;
    Ok(Sight::of(instance))
}

async fn adjust(
    cloud: &Kubemark,
    who: &Identity,
    faults: Vec<Fault>,
    heartbeat: &Heartbeat,
    before: Sight,
) -> Result<Sight, CloudError> {
    cloud.call(error::ADJUST, who, before.instance.as_deref())?;
    let patch = json!({ "spec": { "faults": faults, "heartbeat": heartbeat } });
    let made = cloud.objects.patch(&key(who), &patch).await;
    made.map(Sight::of).map_err(|e| error::of_store(error::ADJUST, e))
}

async fn terminate(cloud: &Kubemark, who: &Identity, before: Sight) -> Result<Sight, CloudError> {
    let Some(instance) = &before.instance else { return Ok(before) };
    cloud.call(error::TERMINATE, who, Some(instance))?;
    let answer = match cloud.objects.delete(&key(who), instance.uid()).await {
        Ok(marked) => marked,
        Err(StoreError::NotFound) => None,
        Err(e) => return Err(error::of_store(error::TERMINATE, e)),
    };
    forget(cloud, &key(who));
    Ok(answer.map_or_else(Sight::absent, Sight::of))
}

/// Counts the instance in before it is there, so that creates at the same time see each other: against quotas, and for
/// addresses. Two far-apart processes could still choose one address; there is one leader, and Nodes are found by
/// provider id first. Instances of other namespaces are not looked at: two of them meet with a probability of about
/// n·m/65,536 in the default range, and then only the lookup of a Node by address is ambiguous, which it refuses.
fn reserve(
    cloud: &Kubemark,
    who: &Identity,
    mut instance: SimulatedInstance,
    ranges: &[Cidr],
) -> Result<SimulatedInstance, CloudError> {
    let mut recent = cloud.recent.lock().unwrap_or_else(PoisonError::into_inner);
    recent.retain(|(at, other)| RECENT.after(*at) > who.now && cloud.objects.cached(&other.key()).is_none());
    let mine = instance.key();
    let mut others = cloud.objects.cached_in(&who.key.namespace);
    others.extend(recent.iter().map(|(_, other)| Arc::clone(other)));
    others.retain(|other| other.key() != mine && other.metadata.namespace == instance.metadata.namespace);
    if let Some(fault) = faults::find(&instance.spec.faults, FaultKind::Quota, who) {
        within_quota(fault, &instance, &others)?;
    }
    spread(&mut instance, ranges, &others);
    recent.retain(|(_, other)| other.key() != mine);
    recent.push((who.now, Arc::new(instance.clone())));
    Ok(instance)
}

fn forget(cloud: &Kubemark, key: &Key) {
    let mut recent = cloud.recent.lock().unwrap_or_else(PoisonError::into_inner);
    recent.retain(|(_, other)| other.key() != *key);
}

fn within_quota(
    fault: &Fault,
    mine: &SimulatedInstance,
    others: &[Arc<SimulatedInstance>],
) -> Result<(), CloudError> {
    let cpu_millis = |one: &SimulatedInstance| {
        one.spec.capacity.get("cpu").and_then(|cpu| quantity::millis(cpu)).unwrap_or(0)
    };
    let in_zone = others.iter().filter(|other| other.spec.zone == mine.spec.zone).count();
    let is_over = |limit: Option<u32>, count: usize| limit.is_some_and(|limit| count >= limit as usize);
    if is_over(fault.args.instances, others.len()) {
        return Err(error::over_quota("instances"));
    }
    if is_over(fault.args.per_zone, in_zone) {
        return Err(error::over_quota("instances in the zone"));
    }
    let cpus: u128 = others.iter().map(|other| cpu_millis(other)).sum::<u128>() + cpu_millis(mine);
    if fault.args.cpu.is_some_and(|limit| cpus > u128::from(limit) * 1000) {
        return Err(error::over_quota("cpus"));
    }
    Ok(())
}

/// Moves addresses that another instance has on to the next free place of their range.
fn spread(instance: &mut SimulatedInstance, ranges: &[Cidr], others: &[Arc<SimulatedInstance>]) {
    let taken = |address: &str| {
        let mut addresses = others.iter().flat_map(|other| &other.spec.addresses);
        addresses.any(|other| other.type_ == "InternalIP" && other.address == address)
    };
    let id = instance.name().to_owned();
    for (address, range) in instance.spec.addresses.iter_mut().zip(ranges) {
        // In a full range the first candidate stays: the address is there twice, as in a real cloud with a broken pool.
        let free = range.candidates(&id).find(|candidate| !taken(&candidate.to_string()));
        if let Some(free) = free {
            *address = compile::internal(free);
        }
    }
}
