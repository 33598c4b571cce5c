//! The simulated cloud's near side: the cloud `kubemark` as the machine controller sees it.
//!
//! It turns a provider spec into a `SimulatedInstance` object, finds it again by the Machine's UID, deletes it, and plays the
//! faults of calls. Never here: Nodes, Leases and Pods, and an instance's life, which are the far side's; Kubernetes
//! clients, tasks and clocks.

mod act;
mod check;
mod compile;
mod error;
mod faults;
mod hash;
mod legacy;
mod network;
mod observe;
mod plan;
mod reader;
mod spec;
mod status;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use mapi_api::duration::Span;
use mapi_api::fault::FaultKind;
use mapi_api::{Key, RawJson, SimulatedInstance, quantity};
use mapi_cloud::{
    Activity, Capacity, CloudError, Goal, Identity, Instance, Next, Objects, Provider, ProviderKind,
    Sighting, Want,
};

pub use hash::instance_id;
pub use observe::Sight;
pub use plan::Step;
pub use spec::{
    AddressSource, Delay, KIND, KubemarkSpec, LEGACY_KIND, Network, Profile, ProviderIdFormat, TimingSpec,
};

/// Drops of a cached instance what the near side never reads of it: what its Node shall look like. That is half of it,
/// and there is one of these for each machine.
pub fn trim(instance: &mut SimulatedInstance) {
    instance.metadata.labels = None;
    let node = &mut instance.spec.node;
    node.labels.clear();
    node.annotations.clear();
    node.allocatable.clear();
    node.taints = vec![];
}

/// The cloud.
pub struct Kubemark {
    objects: Arc<dyn Objects<SimulatedInstance>>,
    throttle: faults::Throttle,
    recent: Mutex<Vec<act::Recent>>,
}

/// Five seconds on top of the time that an instance is hidden on purpose: a create that the API server committed is
/// told to every reader at once, so this is for a request that is still on its way.
const IN_FLIGHT: Duration = Duration::from_secs(5);

impl Kubemark {
    /// The cloud whose instances are these objects.
    pub fn new(objects: Arc<dyn Objects<SimulatedInstance>>) -> Self {
        Self { objects, throttle: faults::Throttle::default(), recent: Mutex::default() }
    }

    /// What every call to the cloud goes through first: limits and outages that were asked for.
    fn call(
        &self,
        operation: &'static str,
        who: &Identity,
        instance: Option<&SimulatedInstance>,
    ) -> Result<(), CloudError> {
        let faults = faults::of_calls(who, instance);
        if let Some(fault) = faults::find(&faults, FaultKind::ApiThrottle, who) {
            self.throttle.call(fault, who).map_err(|wait| error::throttled(operation, wait))?;
        }
        match faults::find(&faults, FaultKind::ApiOutage, who) {
            Some(_) => Err(error::cloud_is_out(operation)),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Provider for Kubemark {
    type Spec = KubemarkSpec;
    type Sight = Sight;
    type Step = Step;

    const NAME: &'static str = "kubemark";
    const KINDS: &'static [ProviderKind] = &[KIND, LEGACY_KIND];

    fn settle(&self) -> Duration {
        check::VISIBILITY_LIMIT.0 + IN_FLIGHT
    }

    fn settle_of(&self, spec: &KubemarkSpec) -> Duration {
        compile::visibility(spec).0 + IN_FLIGHT
    }

    async fn observe(&self, who: &Identity, want: Want) -> Result<Sight, CloudError> {
        observe::look(self, who, want).await
    }

    fn plan(who: &Identity, goal: &Goal<'_, KubemarkSpec>, sight: &Sight) -> Next<Step> {
        plan::next(who, goal, sight)
    }

    async fn act(&self, who: &Identity, step: Step, before: Sight) -> Result<Sight, CloudError> {
        act::step(self, who, step, before).await
    }

    fn report(_: &Identity, _: Option<&KubemarkSpec>, sight: &Sight) -> Sighting {
        let Some(instance) = &sight.instance else { return Sighting::Absent };
        let spec = &instance.spec;
        Sighting::Present(Box::new(Instance {
            provider_id: Some(spec.node.provider_id.clone()),
            addresses: instance.status.as_ref().map(|status| status.addresses.clone()).unwrap_or_default(),
            state: instance.state().name().into(),
            region: spec.region.clone(),
            zone: spec.zone.clone(),
            instance_type: spec.instance_type.clone(),
            is_interruptible: spec.interruptible,
            fatal: None,
            // Every change of an instance is announced.
            look_again: None,
        }))
    }

    fn status(
        who: &Identity,
        sight: Option<&Sight>,
        failed: Option<(Activity, &CloudError)>,
    ) -> Option<RawJson> {
        status::after(who, sight, failed)
    }

    async fn capacity(&self, spec: &KubemarkSpec) -> Result<Option<Capacity>, CloudError> {
        let whole = |name: &str, unit: u128| {
            let millis = spec.capacity.get(name).and_then(|text| quantity::millis(text)).unwrap_or(0);
            u64::try_from(millis / 1000 / unit).unwrap_or(u64::MAX)
        };
        Ok(Some(Capacity {
            cpus: whole("cpu", 1),
            memory_mib: whole("memory", 1 << 20),
            gpus: whole("nvidia.com/gpu", 1),
            max_pods: spec.capacity.contains_key("pods").then(|| whole("pods", 1)),
            labels: BTreeMap::from([("kubernetes.io/arch".into(), spec.architecture.clone())]),
        }))
    }

    fn changes(&self) -> BoxStream<'static, Key> {
        let keys = self.objects.changes().map(|instance| {
            let machine = &instance.spec.machine_ref;
            Key::new(&machine.namespace, &machine.name)
        });
        keys.boxed()
    }
}

/// The longest time that an instance can be asked to hide.
pub const VISIBILITY_LIMIT: Span = check::VISIBILITY_LIMIT;
