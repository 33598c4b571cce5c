//! A namespace, or the cluster: what can be done with objects there.

use std::{fmt::Debug, ops::Deref, time::Duration};

use anyhow::Context as _;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace, events::v1::Event};
use kube::{
    Api, Resource,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use mapi_api::{Machine, MachineHealthCheck, MachineSet, Node, SimulatedInstance};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    Draft, Recording, World, or_panic,
    watch::{Target, decode, until},
};

/// Far longer than anything takes on a machine that others use. What usually takes a second fails after this.
const PATIENCE: Duration = Duration::from_secs(60);

/// Label of the Nodes that a namespace's machines become, with the namespace as its value.
pub(crate) const NODE_LABEL: &str = "e2e.test/namespace";

/// A type that objects can be read as.
pub trait Kind:
    Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

impl<K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static> Kind for K {}

/// Objects of one namespace, or of the cluster.
#[derive(Debug, Clone)]
pub struct Scope {
    world: World,
    namespace: Option<String>,
    patience: Duration,
}

impl Scope {
    pub(crate) fn cluster(world: World) -> Scope {
        Scope { world, namespace: None, patience: PATIENCE }
    }

    /// The world that this is in.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The untyped interface to a kind, for what has no method here. Refusals are asserted with it.
    pub fn api<K: Kind>(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<K>(&());
        let client = self.world.client().clone();
        match &self.namespace {
            Some(name) => Api::namespaced_with(client, name, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    /// Reads an object.
    #[track_caller]
    pub fn get<K: Kind>(&self, name: &str) -> impl Future<Output = K> {
        or_panic(async move { decode(&self.api::<K>().get(name).await?) })
    }

    /// Reads all objects of a kind.
    #[track_caller]
    pub fn list<K: Kind>(&self) -> impl Future<Output = Vec<K>> {
        or_panic(async move {
            let list = self.api::<K>().list(&ListParams::default()).await?;
            list.items.iter().map(decode).collect()
        })
    }

    /// Applies an object of whatever kind, given as JSON, into the namespace.
    #[track_caller]
    pub fn apply(&self, mut object: Value) -> impl Future<Output = ()> {
        if let Some(namespace) = &self.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        or_panic(async move { controlplane::apply_yaml(self.world.client(), &object.to_string()).await })
    }

    /// Merges a patch into an object, as a user or another controller does.
    #[track_caller]
    pub fn patch<K: Kind>(&self, name: &str, patch: Value) -> impl Future<Output = K> {
        or_panic(async move {
            let patched = self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            decode(&patched)
        })
    }

    /// Merges `status` into the status of an object, as another controller does.
    #[track_caller]
    pub fn patch_status<K: Kind>(&self, name: &str, status: Value) -> impl Future<Output = K> {
        or_panic(async move {
            let patch = Patch::Merge(json!({ "status": status }));
            decode(&self.api::<K>().patch_status(name, &PatchParams::default(), &patch).await?)
        })
    }

    /// Asks for the deletion of an object. One that is gone already is fine.
    #[track_caller]
    pub fn delete<K: Kind>(&self, name: &str) -> impl Future<Output = ()> {
        self.delete_with::<K>(name, DeleteParams::default())
    }

    /// Asks for the deletion of an object with options.
    #[track_caller]
    pub fn delete_with<K: Kind>(&self, name: &str, params: DeleteParams) -> impl Future<Output = ()> {
        or_panic(async move {
            match self.api::<K>().delete(name, &params).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
                result => {
                    result.map(drop).with_context(|| format!("cannot delete {} `{name}`", K::kind(&())))
                }
            }
        })
    }

    /// Waits until an object is there and as it should be.
    #[track_caller]
    pub fn wait<K: Kind>(&self, name: &str, is_reached: impl Fn(&K) -> bool) -> impl Future<Output = K> {
        or_panic(self.reach_one(name, is_reached))
    }

    /// Waits until all objects of a kind together are as they should be.
    #[track_caller]
    pub fn wait_all<K: Kind>(&self, is_reached: impl FnMut(&[&K]) -> bool) -> impl Future<Output = Vec<K>> {
        or_panic(self.reach(self.target::<K>(), is_reached))
    }

    /// The same for those with labels.
    #[track_caller]
    pub fn wait_labelled<K: Kind>(
        &self,
        selector: &str,
        is_reached: impl FnMut(&[&K]) -> bool,
    ) -> impl Future<Output = Vec<K>> {
        or_panic(self.reach(self.target::<K>().labelled(selector), is_reached))
    }

    /// Waits until there is no object of a name, whatever is in it.
    #[track_caller]
    pub fn wait_gone<K: Kind>(&self, name: &str) -> impl Future<Output = ()> {
        let target = self.target::<K>().named(name);
        let read = |_: &DynamicObject| Ok(());
        or_panic(async move {
            until(&self.world, &target, self.patience, read, |seen| seen.is_empty()).await.map(drop)
        })
    }

    /// Records all changes of a kind from now on. The state at the beginning is recorded when this returns.
    #[track_caller]
    pub fn record<K: Kind>(&self) -> impl Future<Output = Recording<K>> {
        or_panic(Recording::start(self.world.clone(), self.target::<K>(), self.patience))
    }

    pub(crate) fn target<K: Kind>(&self) -> Target {
        Target::new::<K>(&self.world, self.namespace.as_deref())
    }

    pub(crate) async fn reach<K: Kind>(
        &self,
        target: Target,
        is_reached: impl FnMut(&[&K]) -> bool,
    ) -> anyhow::Result<Vec<K>> {
        until(&self.world, &target, self.patience, decode, is_reached).await
    }

    async fn reach_one<K: Kind>(&self, name: &str, is_reached: impl Fn(&K) -> bool) -> anyhow::Result<K> {
        let is_there = |seen: &[&K]| seen.first().is_some_and(|object| is_reached(object));
        let mut found = self.reach(self.target::<K>().named(name), is_there).await?;
        found.pop().context("what was reached is there")
    }
}

/// A namespace of one test. What it makes is named after it, because Nodes are named after Machines and have no
/// namespace.
#[derive(Debug, Clone)]
pub struct Ns {
    scope: Scope,
    name: String,
}

impl Deref for Ns {
    type Target = Scope;

    fn deref(&self) -> &Scope {
        &self.scope
    }
}

impl Ns {
    pub(crate) async fn create(world: World, name: String) -> anyhow::Result<Ns> {
        let namespaces: Api<Namespace> = Api::all(world.client().clone());
        let object = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &object).await?;
        Ok(Ns::existing(world, name))
    }

    pub(crate) fn existing(world: World, name: String) -> Ns {
        Ns { scope: Scope { world, namespace: Some(name.clone()), patience: PATIENCE }, name }
    }

    /// The same namespace with waits of another length.
    pub fn patient(mut self, patience: Duration) -> Ns {
        self.scope.patience = patience;
        self
    }

    /// Name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The full name of what is called `short` in the test.
    pub fn full(&self, short: &str) -> String {
        format!("{}-{short}", self.name)
    }

    /// A set to be made, called [`Ns::full`]`(short)`: kubemark, profile `instant`, no Machines unless asked for.
    pub fn machine_set(&self, short: &str) -> Draft<MachineSet> {
        Draft::set(self.clone(), &self.full(short))
    }

    /// A Machine without a set to be made, called [`Ns::full`]`(short)`: kubemark, profile `instant`.
    pub fn machine(&self, short: &str) -> Draft<Machine> {
        Draft::machine(self.clone(), &self.full(short))
    }

    /// A health check to be made, called [`Ns::full`]`(short)`: of all Machines, no unhealthy condition yet.
    pub fn health_check(&self, short: &str) -> Draft<MachineHealthCheck> {
        Draft::check(self.clone(), &self.full(short))
    }

    /// Waits until a Machine is as it should be.
    #[track_caller]
    pub fn wait_machine(
        &self,
        name: &str,
        is_reached: impl Fn(&Machine) -> bool,
    ) -> impl Future<Output = Machine> {
        self.wait(name, is_reached)
    }

    /// Waits until all Machines of the namespace together are as they should be.
    #[track_caller]
    pub fn wait_machines(
        &self,
        is_reached: impl FnMut(&[&Machine]) -> bool,
    ) -> impl Future<Output = Vec<Machine>> {
        self.wait_all(is_reached)
    }

    /// Waits until the namespace has `count` Machines, all Running, and returns them.
    #[track_caller]
    pub fn wait_running(&self, count: usize) -> impl Future<Output = Vec<Machine>> {
        self.wait_machines(move |machines| {
            machines.len() == count && machines.iter().all(|machine| machine.phase() == "Running")
        })
    }

    /// Waits until a set is as it should be.
    #[track_caller]
    pub fn wait_set(
        &self,
        name: &str,
        is_reached: impl Fn(&MachineSet) -> bool,
    ) -> impl Future<Output = MachineSet> {
        self.wait(name, is_reached)
    }

    /// Waits until a health check is as it should be.
    #[track_caller]
    pub fn wait_check(
        &self,
        name: &str,
        is_reached: impl Fn(&MachineHealthCheck) -> bool,
    ) -> impl Future<Output = MachineHealthCheck> {
        self.wait(name, is_reached)
    }

    /// Waits until the Nodes of the namespace's machines together are as they should be.
    #[track_caller]
    pub fn wait_nodes(&self, is_reached: impl FnMut(&[&Node]) -> bool) -> impl Future<Output = Vec<Node>> {
        let nodes = self.cluster();
        let selector = format!("{NODE_LABEL}={}", self.name);
        or_panic(async move { nodes.reach(nodes.target::<Node>().labelled(&selector), is_reached).await })
    }

    /// Waits until a Node is there and as it should be.
    #[track_caller]
    pub fn wait_node(&self, name: &str, is_reached: impl Fn(&Node) -> bool) -> impl Future<Output = Node> {
        let nodes = self.cluster();
        or_panic(async move { nodes.reach_one(name, is_reached).await })
    }

    /// Waits until an event of a reason about an object is there, and returns all events of that reason about it.
    #[track_caller]
    pub fn wait_event(&self, name: &str, reason: &str) -> impl Future<Output = Vec<Event>> {
        let fields = format!("regarding.name={name},reason={reason}");
        or_panic(async move {
            let mut target = self.target::<Event>();
            target.what = format!("{} with {fields}", target.what);
            target.config = target.config.fields(&fields);
            self.reach(target, |seen: &[&Event]| !seen.is_empty()).await
        })
    }

    /// The events about an object so far, oldest first. For one that must come, use [`Ns::wait_event`].
    #[track_caller]
    pub fn events(&self, name: &str) -> impl Future<Output = Vec<Event>> {
        let fields = format!("regarding.name={name}");
        or_panic(async move {
            let list = self.api::<Event>().list(&ListParams::default().fields(&fields)).await?;
            let mut events: Vec<Event> = list.items.iter().map(decode).collect::<Result<_, _>>()?;
            events.sort_by(|a, b| a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp));
            Ok(events)
        })
    }

    /// Waits until no Machine, instance, Node or Lease of this namespace is left.
    #[track_caller]
    pub fn wait_nothing_left(&self) -> impl Future<Output = ()> {
        let cluster = self.cluster();
        let leases = Target::new::<Lease>(&self.world, Some("kube-node-lease"));
        or_panic(async move {
            self.reach(self.target::<Machine>(), |seen: &[&Machine]| seen.is_empty()).await?;
            let instances = self.target::<SimulatedInstance>();
            self.reach(instances, |seen: &[&SimulatedInstance]| seen.is_empty()).await?;
            cluster.reach(cluster.target::<Node>(), |seen: &[&Node]| self.has_none(seen)).await?;
            cluster.reach(leases, |seen: &[&Lease]| self.has_none(seen)).await?;
            Ok(())
        })
    }

    /// Whether none of these is named as what this namespace makes.
    fn has_none<K: Kind>(&self, seen: &[&K]) -> bool {
        let prefix = self.full("");
        !seen.iter().any(|object| object.meta().name.as_ref().is_some_and(|name| name.starts_with(&prefix)))
    }

    /// What the namespace's machines become has no namespace.
    fn cluster(&self) -> Scope {
        Scope { world: self.world.clone(), namespace: None, patience: self.patience }
    }
}
