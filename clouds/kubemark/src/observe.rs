//! Looks for the instance of a machine.

use std::sync::Arc;

use mapi_api::fault::FaultKind;
use mapi_api::{Key, SimulatedInstance, Timestamp};
use mapi_cloud::{CloudError, Identity, Want};

use crate::hash::instance_id;
use crate::{Kubemark, error, faults};

/// What was seen of one machine.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The instance. None if there is none, or if it cannot be seen yet.
    pub instance: Option<Arc<SimulatedInstance>>,
    /// When an instance that cannot be seen yet will be.
    pub visible_at: Option<Timestamp>,
}

impl Sight {
    /// Nothing.
    pub fn absent() -> Self {
        Self::default()
    }

    /// This instance.
    pub fn of(instance: SimulatedInstance) -> Self {
        Self { instance: Some(Arc::new(instance)), visible_at: None }
    }
}

/// Key of the object of a Machine's instance.
pub fn key(who: &Identity) -> Key {
    Key::new(&who.key.namespace, &instance_id(&who.uid))
}

/// Looks into the cache, and asks the server where an absence would have consequences: before a finalizer goes (I3)
/// and before a machine fails because its instance is gone.
pub async fn look(cloud: &Kubemark, who: &Identity, want: Want) -> Result<Sight, CloudError> {
    let seen = sight(who, cloud.objects.cached(&key(who)))?;
    if seen.instance.is_some() || !(want == Want::Absent || who.is_recorded()) {
        return Ok(seen);
    }
    cloud.call(error::FIND, who, None)?;
    let answer = cloud.objects.get(&key(who)).await;
    sight(who, answer.map_err(|e| error::of_store(error::FIND, e))?.map(Arc::new))
}

/// What an instance, cached or read, looks like to a caller. One that hides is not there for anybody.
fn sight(who: &Identity, instance: Option<Arc<SimulatedInstance>>) -> Result<Sight, CloudError> {
    let Some(instance) = instance else { return Ok(Sight::absent()) };
    is_ours(error::FIND, who, &instance)?;
    if faults::find(&faults::of_calls(who, Some(&instance)), FaultKind::ApiOutage, who).is_some() {
        return Err(error::cloud_is_out(error::FIND));
    }
    let created = instance.metadata.creation_timestamp.as_ref().map_or(who.now, |time| time.0);
    let visible_at = instance.spec.timing.create_visible.after(created);
    if visible_at > who.now {
        return Ok(Sight { instance: None, visible_at: Some(visible_at) });
    }
    Ok(Sight { instance: Some(instance), visible_at: None })
}

/// Refuses an instance that was made for another Machine.
pub fn is_ours(
    operation: &'static str,
    who: &Identity,
    instance: &SimulatedInstance,
) -> Result<(), CloudError> {
    if instance.spec.machine_ref.uid == who.uid {
        return Ok(());
    }
    Err(error::not_ours(operation, instance.metadata.name.as_deref().unwrap_or_default()))
}
