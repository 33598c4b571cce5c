//! One object of each kind as a run left it, and like objects made from it.
//!
//! Never here: sending.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use kube::Client;
use mapi_api::Timestamp;
use mapi_api::rbac::NAMESPACE;
use serde_json::{Map, Value, json};

/// Kinds that the product writes on the way up, in the order in which the objects of one machine come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    MachineSet,
    HealthCheck,
    Machine,
    Instance,
    Node,
    Lease,
    Event,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::MachineSet,
        Self::HealthCheck,
        Self::Machine,
        Self::Instance,
        Self::Node,
        Self::Lease,
        Self::Event,
    ];

    /// The kind of a resource.
    pub fn of(resource: &str) -> anyhow::Result<Self> {
        match Self::ALL.into_iter().find(|kind| kind.place().0 == resource) {
            Some(kind) => Ok(kind),
            None => bail!("the bare loop knows no resource `{resource}`"),
        }
    }

    /// Namespace of its objects, empty for Nodes.
    pub fn namespace(self) -> &'static str {
        match self {
            Self::MachineSet | Self::HealthCheck | Self::Machine | Self::Instance | Self::Event => NAMESPACE,
            Self::Node => "",
            Self::Lease => "kube-node-lease",
        }
    }

    /// Whether the kind is defined by a CRD: then its patches are merge patches and a create has no status.
    pub fn is_custom(self) -> bool {
        match self {
            Self::MachineSet | Self::HealthCheck | Self::Machine | Self::Instance => true,
            Self::Node | Self::Lease | Self::Event => false,
        }
    }

    /// Resource, group with version, and kind.
    fn place(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::MachineSet => ("machinesets", "machine.openshift.io/v1beta1", "MachineSet"),
            Self::HealthCheck => {
                ("machinehealthchecks", "machine.openshift.io/v1beta1", "MachineHealthCheck")
            }
            Self::Machine => ("machines", "machine.openshift.io/v1beta1", "Machine"),
            Self::Instance => {
                ("simulatedinstances", "simulation.machine.openshift.io/v1alpha1", "SimulatedInstance")
            }
            Self::Node => ("nodes", "v1", "Node"),
            Self::Lease => ("leases", "coordination.k8s.io/v1", "Lease"),
            Self::Event => ("events", "events.k8s.io/v1", "Event"),
        }
    }

    fn list_path(self) -> String {
        let (resource, version, _) = self.place();
        let root = if version.contains('/') { "apis" } else { "api" };
        match self.namespace() {
            "" => format!("/{root}/{version}/{resource}?limit=1"),
            namespace => format!("/{root}/{version}/namespaces/{namespace}/{resource}?limit=1"),
        }
    }
}

/// An object of each kind that there was.
pub struct Samples {
    objects: BTreeMap<Kind, Value>,
    machine: String,
}

impl Samples {
    /// Reads an object of each kind.
    pub async fn take(client: &Client) -> anyhow::Result<Self> {
        let mut objects = BTreeMap::new();
        for kind in Kind::ALL {
            let request = http::Request::get(kind.list_path()).body(Vec::new())?;
            let mut list: Value =
                client.request(request).await.with_context(|| format!("cannot list {kind:?}"))?;
            let items = list["items"].as_array_mut().context("a list without items")?;
            if let Some(object) = items.pop() {
                objects.insert(kind, object);
            }
        }
        Self::new(objects)
    }

    pub(super) fn new(objects: BTreeMap<Kind, Value>) -> anyhow::Result<Self> {
        let machine = objects.get(&Kind::Machine).and_then(|machine| machine["metadata"]["name"].as_str());
        let machine = machine.context("there is no machine to take as a sample")?.to_owned();
        Ok(Self { objects, machine })
    }

    /// Name of the object of a kind that belongs to a machine; of the sample itself where none is created.
    pub fn name(&self, kind: Kind, index: Option<u64>) -> anyhow::Result<String> {
        let sample = self.of(kind)?["metadata"]["name"].as_str().context("a sample without a name")?;
        Ok(index.map_or_else(|| sample.to_owned(), |index| renamed(sample, index)))
    }

    /// The body of a create. `owners` are the UIDs of objects that are there already, by kind.
    pub fn create(&self, kind: Kind, index: u64, owners: &BTreeMap<Kind, String>) -> anyhow::Result<Value> {
        let (_, api_version, kind_name) = kind.place();
        let mut object = self.like(kind, index)?;
        let name = self.name(kind, Some(index))?;
        let fields = object.as_object_mut().context("a sample is no object")?;
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), kind_name.into());
        fields.remove("series");
        if kind.is_custom() {
            fields.remove("status");
        }
        let metadata = fields.get_mut("metadata").and_then(Value::as_object_mut).context("no metadata")?;
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            metadata.remove(field);
        }
        metadata.insert("name".into(), name.into());
        if let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") {
            references.retain_mut(|reference| adopt(reference, owners));
        }
        Ok(object)
    }

    /// A patch of labels and annotations, other in each round.
    pub fn main_patch(&self, kind: Kind, index: u64, round: u64) -> anyhow::Result<Value> {
        let object = self.like(kind, index)?;
        let map = |field: &str| object["metadata"][field].as_object().cloned().unwrap_or_default();
        let mut annotations: Map<String, Value> = map("annotations");
        annotations.insert("machine.openshift.io/bench-round".into(), round.to_string().into());
        Ok(json!({"metadata": {"labels": map("labels"), "annotations": annotations}}))
    }

    /// A patch of the whole status, other in each round.
    pub fn status_patch(&self, kind: Kind, index: u64, round: u64) -> anyhow::Result<Value> {
        let object = self.like(kind, index)?;
        let mut status = object["status"].clone();
        if !move_times(&mut status, round) {
            bail!("the status of {kind:?} holds no time, so that a patch of it would change nothing");
        }
        Ok(json!({"status": status}))
    }

    fn of(&self, kind: Kind) -> anyhow::Result<&Value> {
        self.objects.get(&kind).with_context(|| format!("the run left no {kind:?} to take as a sample"))
    }

    /// The sample with the name of the machine replaced wherever it stands.
    fn like(&self, kind: Kind, index: u64) -> anyhow::Result<Value> {
        let text = self.of(kind)?.to_string().replace(&self.machine, &renamed(&self.machine, index));
        Ok(serde_json::from_str(&text)?)
    }
}

/// A name of the same length that no other index has.
fn renamed(name: &str, index: u64) -> String {
    /// More than there are machines.
    const DIGITS: usize = 6;
    format!("{}{index:0DIGITS$}", &name[..name.len().saturating_sub(DIGITS)])
}

/// Points an owner reference to the owner of that kind, or tells that there is none. The garbage collector would delete
/// an object whose owner it cannot find.
fn adopt(reference: &mut Value, owners: &BTreeMap<Kind, String>) -> bool {
    let owner = owners.iter().find(|(kind, _)| reference["kind"] == kind.place().2);
    if let Some((_, uid)) = owner {
        reference["uid"] = uid.clone().into();
    }
    owner.is_some()
}

/// Moves every time in a value by the number of the round; tells whether there was one.
fn move_times(value: &mut Value, round: u64) -> bool {
    /// Some second of the past that no run of ours can have written.
    const BASE: i64 = 1_600_000_000;
    match value {
        Value::String(text) if text.ends_with('Z') && text.parse::<Timestamp>().is_ok() => {
            let round = i64::try_from(round).expect("a round is a small number");
            let time = Timestamp::from_second(BASE + round).expect("a time of our days is in range");
            *text = time.to_string();
            true
        }
        // Each is visited: `any` would stop at the first.
        Value::Array(items) => items.iter_mut().fold(false, |found, item| move_times(item, round) | found),
        Value::Object(fields) => {
            fields.values_mut().fold(false, |found, field| move_times(field, round) | found)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Samples {
        let machine = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {"name": "bench-x7k2p", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
                "ownerReferences": [{"kind": "MachineSet", "uid": "old"}, {"kind": "Other", "uid": "o"}]},
            "spec": {"providerID": "kubemark:///z/bench-x7k2p"},
            "status": {"phase": "Running", "lastUpdated": "2026-01-01T00:00:00Z",
                "conditions": [{"type": "A", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        Samples::new(BTreeMap::from([(Kind::Machine, machine)])).unwrap()
    }

    #[test]
    fn a_created_object_is_like_the_sample_under_a_name_and_owner_of_its_own() {
        let owners = BTreeMap::from([(Kind::MachineSet, "new".to_owned())]);
        let body = samples().create(Kind::Machine, 12, &owners).unwrap();
        assert_eq!(body["metadata"]["name"], "bench000012");
        assert_eq!(body["spec"]["providerID"], "kubemark:///z/bench000012");
        assert_eq!(body["metadata"]["ownerReferences"], json!([{"kind": "MachineSet", "uid": "new"}]));
        assert_eq!(body["metadata"].get("uid"), None);
        assert_eq!(body.get("status"), None);
    }

    #[test]
    fn no_patch_repeats_the_one_before() {
        let samples = samples();
        let status = |round| samples.status_patch(Kind::Machine, 1, round).unwrap();
        let main = |round| samples.main_patch(Kind::Machine, 1, round).unwrap();
        assert_ne!(status(1), status(2));
        assert_ne!(main(1), main(2));
        assert_ne!(status(1)["status"]["conditions"], status(2)["status"]["conditions"]);
    }

    #[test]
    fn a_resource_that_the_loop_does_not_know_is_an_error() {
        assert_eq!(Kind::of("leases").unwrap(), Kind::Lease);
        assert!(Kind::of("pods").unwrap_err().to_string().contains("`pods`"));
    }
}
