//! From a provider spec to the request that the simulated cloud gets. Pure, and the same for the same Machine every time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mapi_api::duration::Span;
use mapi_api::fault::FaultKind;
use mapi_api::machine::Address;
use mapi_api::simulated_instance::{MachineRef, NodeWish, SimulatedInstanceSpec, Timing};
use mapi_api::{ObjectMeta, SimulatedInstance, names};
use mapi_cloud::{CloudError, Identity};

use crate::hash::{fraction, instance_id};
use crate::network::Cidr;
use crate::spec::{AddressSource, Delay, KubemarkSpec, Network, ProviderIdFormat};
use crate::{check, error, faults};

/// The object that is created for a Machine.
pub fn instance(spec: &KubemarkSpec, who: &Identity) -> Result<SimulatedInstance, CloudError> {
    let id = instance_id(&who.uid);
    let node_name = node_name(spec, who, &id);
    if !check::is_subdomain(&node_name) {
        return Err(error::bad_node_name(&node_name));
    }
    let mut addresses: Vec<Address> =
        ranges(&spec.network).filter_map(|range| range.candidates(&id).next()).map(internal).collect();
    addresses.extend(spec.network.extra.iter().cloned());
    addresses.push(Address::new("Hostname", &node_name));
    addresses.push(Address::new("InternalDNS", &node_name));
    let cluster = (!who.cluster.is_empty()).then(|| (names::label::CLUSTER.to_owned(), who.cluster.clone()));
    Ok(SimulatedInstance {
        metadata: ObjectMeta {
            namespace: Some(who.key.namespace.to_string()),
            name: Some(id.clone()),
            labels: cluster.map(|label| BTreeMap::from([label])),
            finalizers: Some(vec![names::finalizer::SIMULATED_INSTANCE.into()]),
            ..ObjectMeta::default()
        },
        spec: SimulatedInstanceSpec {
            machine_ref: MachineRef {
                namespace: who.key.namespace.to_string(),
                name: who.key.name.to_string(),
                uid: who.uid.clone(),
            },
            token: who.uid.clone(),
            instance_type: spec.instance_type.clone(),
            region: spec.region.clone(),
            zone: spec.zone.clone(),
            interruptible: spec.interruptible,
            capacity: spec.capacity.clone(),
            timing: timing(spec, who),
            heartbeat: spec.heartbeat.clone(),
            faults: faults::wanted(&spec.faults, who),
            pods: spec.pods,
            node: node(spec, node_name, &id),
            addresses,
        },
        status: None,
    })
}

/// The ranges that an instance gets an address of, in the order in which addresses are shown.
pub fn ranges(network: &Network) -> impl Iterator<Item = Cidr> {
    let families: &[String] = match network.source {
        AddressSource::Ranges => &network.ip_families,
        AddressSource::None => &[],
    };
    let parsed: Vec<Cidr> = network.cidr.iter().filter_map(|text| Cidr::parse(text).ok()).collect();
    families
        .iter()
        .filter_map(move |family| parsed.iter().copied().find(|range| range.is_v6() == (family == "IPv6")))
}

/// An address within the cluster.
pub fn internal(address: IpAddr) -> Address {
    Address::new("InternalIP", address.to_string())
}

fn node_name(spec: &KubemarkSpec, who: &Identity, id: &str) -> String {
    let template = spec.node_name_template.replace("{machine}", &who.key.name);
    template.replace("{instance}", id).replace("{uuid}", &who.uid)
}

fn node(spec: &KubemarkSpec, name: String, id: &str) -> NodeWish {
    let mut labels = spec.node_labels.clone();
    // A label holds 63 characters, a name 253; kubelets cut no labels, they fail. A simulated Node goes without instead.
    let hostname = (name.len() <= 63).then_some(name.as_str());
    for (key, value) in [
        ("kubernetes.io/hostname", hostname),
        ("kubernetes.io/os", Some(spec.operating_system.as_str())),
        ("kubernetes.io/arch", Some(spec.architecture.as_str())),
        ("node.kubernetes.io/instance-type", Some(spec.instance_type.as_str())),
        ("topology.kubernetes.io/region", Some(spec.region.as_str())),
        ("topology.kubernetes.io/zone", Some(spec.zone.as_str())),
    ] {
        if let Some(value) = value {
            labels.entry(key.into()).or_insert_with(|| value.into());
        }
    }
    labels.insert(names::label::SIMULATED.into(), "true".into());
    NodeWish {
        provider_id: match spec.provider_id_format {
            ProviderIdFormat::Kubemark => format!("kubemark:///{}/{id}", spec.zone),
            ProviderIdFormat::Legacy => format!("kubemark://{name}"),
        },
        name,
        labels,
        annotations: spec.node_annotations.clone(),
        taints: spec.taints.clone().unwrap_or_default(),
        allocatable: spec.allocatable.clone(),
        architecture: spec.architecture.clone(),
        operating_system: spec.operating_system.clone(),
        kubelet_version: spec.kubelet_version.clone(),
    }
}

fn timing(spec: &KubemarkSpec, who: &Identity) -> Timing {
    let vary = |step: &str, delay: Option<Delay>| {
        let Delay { duration, jitter } = delay.unwrap_or_default();
        let share = if jitter > 0.0 { jitter * fraction(&["timing", step, &who.uid]) } else { 0.0 };
        // Whole milliseconds, which is what the text on the wire holds.
        let millis = duration.0.mul_f64(1.0 + share).as_millis();
        Span(std::time::Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)))
    };
    let timing = &spec.timing;
    let hidden = spec.faults.iter().find(|fault| fault.kind == FaultKind::CreateDuplicateVisible);
    let hidden = hidden.map(|fault| fault.duration.unwrap_or(HIDDEN)).unwrap_or_default();
    Timing {
        create_visible: vary("createVisible", timing.create_visible).max(hidden),
        provision: vary("provision", timing.provision),
        boot: vary("boot", timing.boot),
        join: vary("join", timing.join),
        ready: vary("ready", timing.ready),
        stop: vary("stop", timing.stop),
        delete: vary("delete", timing.delete),
        pod_stop: vary("podStop", timing.pod_stop),
    }
}

/// How long an instance with the fault CreateDuplicateVisible hides if the fault says nothing: five seconds, the lag
/// of a slow list.
const HIDDEN: Span = Span::seconds(5);

/// The longest that an instance made from a spec can stay unseen.
pub fn visibility(spec: &KubemarkSpec) -> Span {
    let Delay { duration, jitter } = spec.timing.create_visible.unwrap_or_default();
    let faults = spec.faults.iter().filter(|fault| fault.kind == FaultKind::CreateDuplicateVisible);
    let hidden = faults.map(|fault| fault.duration.unwrap_or(HIDDEN)).max().unwrap_or_default();
    Span(duration.0.mul_f64(1.0 + jitter)).max(hidden)
}
