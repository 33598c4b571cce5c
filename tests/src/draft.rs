//! Machines, sets and health checks that a test is about to make.

use std::marker::PhantomData;

use kube::{
    Api,
    api::{DynamicObject, PostParams},
    core::ApiResource,
};
use mapi_api::{Machine, MachineHealthCheck, MachineSet, names};
use serde_json::{Value, json};

use crate::{Kind, Ns, or_panic, scope::NODE_LABEL, watch::decode};

/// An object to be made: sensible defaults, a few words for what tests vary most, and [`Draft::with`] for the rest.
#[derive(Debug, Clone)]
pub struct Draft<K> {
    ns: Ns,
    object: Value,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Draft<K> {
    fn new(ns: Ns, name: &str, spec: Value) -> Draft<K> {
        let object = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": {"name": name, "namespace": ns.name()},
            "spec": spec,
        });
        Draft { ns, object, kind: PhantomData }
    }

    /// Merges `patch` into the whole object.
    pub fn with(mut self, patch: Value) -> Draft<K> {
        merge(&mut self.object, patch);
        self
    }

    /// Removes what a JSON pointer names, for objects that lack something.
    pub fn without(mut self, pointer: &str) -> Draft<K> {
        let (parent, key) = pointer.rsplit_once('/').expect("a JSON pointer has a slash");
        if let Some(parent) = self.object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(key);
        }
        self
    }

    /// Adds an annotation to the object.
    pub fn annotation(self, key: &str, value: &str) -> Draft<K> {
        self.with(json!({"metadata": {"annotations": {key: value}}}))
    }

    /// The object as it will be sent.
    pub fn json(&self) -> &Value {
        &self.object
    }

    /// Makes it. A refusal is a failure; for one that is expected, use [`Draft::try_create`].
    #[track_caller]
    pub fn create(self) -> impl Future<Output = K> {
        or_panic(async move { Ok(self.try_create().await?) })
    }

    /// Makes it, or returns the refusal.
    pub async fn try_create(self) -> kube::Result<K> {
        let client = self.ns.world().client().clone();
        let api: Api<DynamicObject> =
            Api::namespaced_with(client, self.ns.name(), &ApiResource::erase::<K>(&()));
        let object = serde_json::from_value(self.object).map_err(kube::Error::SerdeError)?;
        let made = api.create(&PostParams::default(), &object).await?;
        Ok(decode(&made).expect("the server returned what it was given"))
    }
}

/// A kind that is a Machine or holds the template of one.
pub trait HasMachine: Kind {
    /// JSON pointer to the part with the Machine's `metadata` and `spec`.
    const MACHINE: &str;
}

impl HasMachine for Machine {
    const MACHINE: &str = "";
}

impl HasMachine for MachineSet {
    const MACHINE: &str = "/spec/template";
}

impl<K: HasMachine> Draft<K> {
    /// Merges `patch` into the providerSpec's value.
    pub fn provider(self, patch: Value) -> Draft<K> {
        self.with_machine(json!({"spec": {"providerSpec": {"value": patch}}}))
    }

    /// Merges `patch` into the Machine's spec.
    pub fn machine_spec(self, patch: Value) -> Draft<K> {
        self.with_machine(json!({ "spec": patch }))
    }

    /// How long the life of an instance takes: `instant`, `cloud` or `baremetal`.
    pub fn profile(self, profile: &str) -> Draft<K> {
        self.provider(json!({"timing": {"profile": profile}}))
    }

    /// The zone.
    pub fn zone(self, zone: &str) -> Draft<K> {
        self.provider(json!({ "zone": zone }))
    }

    /// Faults, in place of those so far.
    pub fn faults(self, faults: Value) -> Draft<K> {
        self.provider(json!({ "faults": faults }))
    }

    /// Lets pods onto the Node that do not tolerate the taint of simulated Nodes.
    pub fn open_to_pods(self) -> Draft<K> {
        self.provider(json!({"registerWithTaints": []}))
    }

    /// Adds a label to the Machine.
    pub fn machine_label(self, key: &str, value: &str) -> Draft<K> {
        self.with_machine(json!({"metadata": {"labels": {key: value}}}))
    }

    /// Adds an annotation to the Machine.
    pub fn machine_annotation(self, key: &str, value: &str) -> Draft<K> {
        self.with_machine(json!({"metadata": {"annotations": {key: value}}}))
    }

    /// Merges `patch` into the part that is the Machine.
    fn with_machine(mut self, patch: Value) -> Draft<K> {
        let part = self.object.pointer_mut(K::MACHINE).expect("the draft has a Machine");
        merge(part, patch);
        self
    }
}

impl Draft<Machine> {
    pub(crate) fn machine(ns: Ns, name: &str) -> Draft<Machine> {
        let spec = machine_spec(&ns);
        Draft::new(ns, name, spec).machine_label(names::label::CLUSTER, "e2e")
    }
}

impl Draft<MachineSet> {
    pub(crate) fn set(ns: Ns, name: &str) -> Draft<MachineSet> {
        let labels = json!({names::label::MACHINE_SET: name});
        let spec = json!({
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": machine_spec(&ns)},
        });
        Draft::new(ns, name, spec).machine_label(names::label::CLUSTER, "e2e")
    }

    /// How many Machines.
    pub fn replicas(self, replicas: i64) -> Draft<MachineSet> {
        self.with(json!({"spec": {"replicas": replicas}}))
    }

    /// Which Machines go first: `Random`, `Newest` or `Oldest`.
    pub fn delete_policy(self, policy: &str) -> Draft<MachineSet> {
        self.with(json!({"spec": {"deletePolicy": policy}}))
    }
}

impl Draft<MachineHealthCheck> {
    pub(crate) fn check(ns: Ns, name: &str) -> Draft<MachineHealthCheck> {
        Draft::new(ns, name, json!({"selector": {}, "unhealthyConditions": []}))
    }

    /// Of the Machines of one set only.
    pub fn of_set(self, set: &str) -> Draft<MachineHealthCheck> {
        self.with(json!({"spec": {"selector": {"matchLabels": {names::label::MACHINE_SET: set}}}}))
    }

    /// Adds a state of the Node that is unhealthy after `timeout`, for example `5s`.
    pub fn unhealthy(mut self, condition: &str, status: &str, timeout: &str) -> Draft<MachineHealthCheck> {
        let entry = json!({"type": condition, "status": status, "timeout": timeout});
        let list = self.object["spec"]["unhealthyConditions"].as_array_mut().expect("the draft has a list");
        list.push(entry);
        self
    }

    /// How many may be unhealthy, as a number or a percentage.
    pub fn max_unhealthy(self, limit: impl Into<Value>) -> Draft<MachineHealthCheck> {
        let limit: Value = limit.into();
        self.with(json!({"spec": {"maxUnhealthy": limit}}))
    }

    /// How long a Machine may take to become a Node; `0` turns it off.
    pub fn startup_timeout(self, timeout: &str) -> Draft<MachineHealthCheck> {
        self.with(json!({"spec": {"nodeStartupTimeout": timeout}}))
    }
}

/// A simulated machine whose life takes no time. Its Node says which namespace it is for.
fn machine_spec(ns: &Ns) -> Value {
    json!({"providerSpec": {"value": {
        "apiVersion": "kubemarkproviderconfig.machine.openshift.io/v1beta1",
        "kind": "KubemarkMachineProviderSpec",
        "timing": {"profile": "instant"},
        "nodeLabels": {NODE_LABEL: ns.name()},
    }}})
}

/// A merge patch whose nulls stay, because an explicit null is a thing to send.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}
