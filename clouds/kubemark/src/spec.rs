//! The provider spec of the simulated cloud: its fields, how they are read and what is filled in.
//!
//! Never here: what is wrong with a spec that can be read (`check.rs`), or what is made of it (`compile.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use mapi_api::RawJson;
use mapi_api::duration::Span;
use mapi_api::fault::Fault;
use mapi_api::machine::{Address, Taint};
use mapi_api::simulated_instance::{Heartbeat, PodMode};
use mapi_cloud::{Finding, Findings, ProviderKind, ProviderSpec};
use serde::Deserialize;
use serde_json::Value;

use crate::reader::Fields;
use crate::{check, faults, legacy};

/// The provider spec of today.
pub const KIND: ProviderKind = ProviderKind {
    group: "kubemarkproviderconfig.machine.openshift.io",
    kind: "KubemarkMachineProviderSpec",
};
/// The provider spec of the historic provider.
pub const LEGACY_KIND: ProviderKind =
    ProviderKind { group: "kubemarkproviderconfig.k8s.io", kind: "KubemarkMachineProviderConfig" };

/// A provider spec, of either kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "RawJson")]
pub struct KubemarkSpec {
    /// Size by name; gives the capacity that is not given.
    pub instance_type: String,
    /// Resources as quantities.
    pub capacity: BTreeMap<String, String>,
    /// What of them pods may use.
    pub allocatable: BTreeMap<String, String>,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Architecture in Go's words.
    pub architecture: String,
    /// Operating system in Go's words.
    pub operating_system: String,
    /// Version of the kubelet; empty for that of the API server.
    pub kubelet_version: String,
    /// Name of the Node, with `{machine}`, `{instance}` or `{uuid}` in it.
    pub node_name_template: String,
    /// Labels of the Node beside its usual ones.
    pub node_labels: BTreeMap<String, String>,
    /// Annotations of the Node.
    pub node_annotations: BTreeMap<String, String>,
    /// Taints of the Node; `None` for the usual one.
    pub taints: Option<Vec<Taint>>,
    /// Form of the provider id.
    pub provider_id_format: ProviderIdFormat,
    /// Where addresses come from.
    pub network: Network,
    /// How long things take.
    pub timing: TimingSpec,
    /// How the Node says that it lives.
    pub heartbeat: Heartbeat,
    /// Faults to inject.
    pub faults: Vec<Fault>,
    /// Whether pods are played.
    pub pods: PodMode,
    /// Whether the cloud may take the instance away.
    pub interruptible: bool,
}

/// Form of the provider id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProviderIdFormat {
    /// `kubemark:///<zone>/<instance id>`.
    #[default]
    Kubemark,
    /// `kubemark://<node name>`, as the historic provider had it.
    Legacy,
}

/// Where addresses come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// Whether the instance gets addresses from the ranges.
    pub source: AddressSource,
    /// Ranges, at most one of each family.
    pub cidr: Vec<String>,
    /// Families in the order in which addresses are shown; empty for IPv4.
    pub ip_families: Vec<String>,
    /// Addresses that are given.
    pub extra: Vec<Address>,
}

/// Whether the instance gets addresses from the ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressSource {
    /// It does.
    #[default]
    Ranges,
    /// It has none but those that are given.
    None,
}

/// How long things take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimingSpec {
    /// Gives the delays that are not given.
    pub profile: Profile,
    /// Until a new instance can be seen.
    pub create_visible: Option<Delay>,
    /// From Pending to Starting.
    pub provision: Option<Delay>,
    /// From Starting to Running.
    pub boot: Option<Delay>,
    /// From Running until there is a Node.
    pub join: Option<Delay>,
    /// From there until it is Ready.
    pub ready: Option<Delay>,
    /// From Stopping to Stopped.
    pub stop: Option<Delay>,
    /// From the request to terminate until the instance is gone.
    pub delete: Option<Delay>,
    /// Until a pod has stopped.
    pub pod_stop: Option<Delay>,
}

/// A delay with the variation between instances: uniform from `duration` to `duration` × (1 + `jitter`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// The least.
    pub duration: Span,
    /// Share of it that may come on top, from 0 to 1.
    pub jitter: f64,
}

/// Sets of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Nothing takes any time.
    Instant,
    /// As a public cloud: about a minute to a Ready Node.
    #[default]
    Cloud,
    /// As servers that have to boot firmware: about a quarter of an hour.
    Baremetal,
}

impl ProviderSpec for KubemarkSpec {
    fn decode(raw: &RawJson) -> Result<(Self, Findings), Findings> {
        let value: Value = raw.parse().map_err(|e| Finding::error("", "", format!("is not JSON: {e}")))?;
        let mut findings = Findings::default();
        let mut fields = Fields::of("", value, &mut findings);
        let api_version = fields.text("apiVersion").unwrap_or_default();
        let kind = fields.text("kind").unwrap_or_default();
        fields.value("metadata");
        let (group, version) = api_version.split_once('/').unwrap_or_default();
        let is_legacy = kind == LEGACY_KIND.kind;
        if !matches!(
            (group == LEGACY_KIND.group, version),
            (true, "v1alpha1" | "v1beta1") | (false, "v1beta1")
        ) {
            fields.mention("apiVersion", api_version.clone(), "is not a known version, read as v1beta1");
        }
        let spec = if is_legacy { legacy::read(&mut fields) } else { read(&mut fields) };
        fields.finish();
        if findings.has_error() { Err(findings) } else { Ok((spec, findings)) }
    }

    fn fill(&mut self) {
        fill_size(self);
        for (field, usual) in [
            (&mut self.region, "sim-region"),
            (&mut self.zone, "sim-region-a"),
            (&mut self.architecture, "amd64"),
            (&mut self.operating_system, "linux"),
            (&mut self.node_name_template, "{machine}"),
        ] {
            if field.is_empty() {
                *field = usual.into();
            }
        }
        self.taints.get_or_insert_with(|| vec![usual_taint()]);
        self.network.fill();
        self.timing.fill();
    }

    fn check(&self) -> Findings {
        check::spec(self)
    }
}

impl TryFrom<RawJson> for KubemarkSpec {
    type Error = String;
    fn try_from(raw: RawJson) -> Result<Self, String> {
        Self::decode(&raw).map(|(spec, _)| spec).map_err(|findings| findings.errors())
    }
}

/// Keeps pods that are not meant for simulated Nodes away from them.
fn usual_taint() -> Taint {
    Taint {
        key: "kubemark".into(),
        value: Some("true".into()),
        effect: "NoSchedule".into(),
        time_added: None,
    }
}

/// The sizes that have a name: CPUs and memory.
pub const SIZES: [(&str, &str, &str); 3] =
    [("sim.small", "2", "4Gi"), ("sim.medium", "4", "16Gi"), ("sim.large", "16", "64Gi")];

fn fill_size(spec: &mut KubemarkSpec) {
    if spec.instance_type.is_empty() {
        spec.instance_type = "sim.medium".into();
    }
    let size = SIZES.iter().find(|(name, _, _)| *name == spec.instance_type);
    let usual = size.map(|(_, cpu, memory)| [("cpu", *cpu), ("memory", *memory)]).into_iter().flatten();
    for (name, quantity) in usual.chain([("pods", "110"), ("ephemeral-storage", "100Gi")]) {
        spec.capacity.entry(name.into()).or_insert_with(|| quantity.into());
    }
    for (name, quantity) in &spec.capacity {
        let reserved = match name.as_str() {
            "cpu" => less(quantity, 100, "m", 1),
            "memory" => less(quantity, 256 << 20, "", 1000),
            _ => None,
        };
        let usual = || reserved.unwrap_or_else(|| quantity.clone());
        spec.allocatable.entry(name.clone()).or_insert_with(usual);
    }
}

/// A quantity less an amount, in a unit of so many thousandths; `None` if nothing would be left.
fn less(quantity: &str, amount: u128, unit: &str, thousandths: u128) -> Option<String> {
    let left = (mapi_api::quantity::millis(quantity)? / thousandths).checked_sub(amount)?;
    (left > 0).then(|| format!("{left}{unit}"))
}

impl Network {
    fn fill(&mut self) {
        if self.ip_families.is_empty() {
            self.ip_families = vec!["IPv4".into()];
        }
        for (is_v6, usual) in [(false, "10.200.0.0/16"), (true, "fd00:200::/64")] {
            if !self.cidr.iter().any(|range| range.contains(':') == is_v6) {
                self.cidr.push(usual.into());
            }
        }
    }
}

impl Profile {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 3] =
        [("instant", Self::Instant), ("cloud", Self::Cloud), ("baremetal", Self::Baremetal)];

    /// The longest that a machine takes until its Node is Ready, as long as nothing goes wrong.
    pub fn longest_start(self) -> Duration {
        let mut timing = TimingSpec { profile: self, ..TimingSpec::default() };
        timing.fill();
        let TimingSpec { create_visible, provision, boot, join, ready, .. } = timing;
        let delays = [create_visible, provision, boot, join, ready];
        delays.into_iter().flatten().map(|delay| delay.duration.0.mul_f64(1.0 + delay.jitter)).sum()
    }
}

impl TimingSpec {
    fn fill(&mut self) {
        // Seconds and per cent: provision, boot, join, ready, stop, delete.
        let usual = match self.profile {
            Profile::Instant => [(0, 0); 6],
            Profile::Cloud => [(20, 25), (15, 25), (10, 25), (5, 25), (2, 0), (10, 25)],
            Profile::Baremetal => [(600, 25), (240, 25), (10, 25), (5, 25), (2, 0), (360, 25)],
        };
        let fields = [
            &mut self.provision,
            &mut self.boot,
            &mut self.join,
            &mut self.ready,
            &mut self.stop,
            &mut self.delete,
        ];
        for (field, (seconds, percent)) in fields.into_iter().zip(usual) {
            field.get_or_insert(Delay {
                duration: Span::seconds(seconds),
                jitter: f64::from(percent) / 100.0,
            });
        }
        let pod_stop_s = if self.profile == Profile::Instant { 0 } else { 1 };
        self.pod_stop.get_or_insert(Delay { duration: Span::seconds(pod_stop_s), jitter: 0.0 });
        self.create_visible.get_or_insert_default();
    }
}

fn read(fields: &mut Fields<'_>) -> KubemarkSpec {
    for secret in ["userDataSecret", "credentialsSecret"] {
        if fields.value(secret).is_some() {
            fields.mention(secret, "", "is not looked at: the simulated cloud needs no secrets");
        }
    }
    let formats = [("kubemark", ProviderIdFormat::Kubemark), ("legacy", ProviderIdFormat::Legacy)];
    let pods = [("fast", PodMode::Fast), ("off", PodMode::Off)];
    KubemarkSpec {
        instance_type: fields.text("instanceType").unwrap_or_default(),
        capacity: fields.texts("capacity"),
        allocatable: fields.texts("allocatable"),
        region: fields.text("region").unwrap_or_default(),
        zone: fields.text("zone").unwrap_or_default(),
        architecture: fields.text("architecture").unwrap_or_default(),
        operating_system: fields.text("operatingSystem").unwrap_or_default(),
        kubelet_version: fields.text("kubeletVersion").unwrap_or_default(),
        node_name_template: fields.text("nodeNameTemplate").unwrap_or_default(),
        node_labels: fields.texts("nodeLabels"),
        node_annotations: fields.texts("nodeAnnotations"),
        taints: fields.each("registerWithTaints", read_taint),
        provider_id_format: fields.word("providerIDFormat", &formats).unwrap_or_default(),
        network: fields.within("network", read_network).unwrap_or_default(),
        timing: fields.within("timing", read_timing).unwrap_or_default(),
        heartbeat: fields.within("heartbeat", read_heartbeat).unwrap_or_default(),
        faults: faults::read(fields, "faults"),
        pods: fields.word("pods", &pods).unwrap_or_default(),
        interruptible: fields.flag("interruptible").unwrap_or_default(),
    }
}

fn read_taint(fields: &mut Fields<'_>) -> Option<Taint> {
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"].map(|effect| (effect, effect));
    let key = fields.text("key");
    if key.is_none() {
        fields.complain("key", "", "is missing");
    }
    let value = fields.text("value");
    let effect = fields.word("effect", &effects).unwrap_or("NoSchedule");
    Some(Taint { key: key?, value, effect: effect.into(), time_added: None })
}

fn read_network(fields: &mut Fields<'_>) -> Network {
    let sources =
        [("auto", AddressSource::Ranges), ("cidr", AddressSource::Ranges), ("none", AddressSource::None)];
    if fields.list("addressesFromPools").is_some_and(|pools| !pools.is_empty()) {
        fields.complain("addressesFromPools", "", "is not served: use network.cidr");
    }
    Network {
        source: fields.word("addressSource", &sources).unwrap_or_default(),
        cidr: fields.text_list("cidr").unwrap_or_default(),
        ip_families: fields.text_list("ipFamilies").unwrap_or_default(),
        extra: fields.each("extraAddresses", read_address).unwrap_or_default(),
    }
}

fn read_address(fields: &mut Fields<'_>) -> Option<Address> {
    let types =
        ["InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname"].map(|type_| (type_, type_));
    let address = fields.text("address");
    if address.is_none() {
        fields.complain("address", "", "is missing");
    }
    Some(Address::new(fields.word("type", &types)?, address?))
}

fn read_timing(fields: &mut Fields<'_>) -> TimingSpec {
    TimingSpec {
        profile: fields.word("profile", &Profile::ALL).unwrap_or_default(),
        create_visible: read_delay(fields, "createVisible"),
        provision: read_delay(fields, "provision"),
        boot: read_delay(fields, "boot"),
        join: read_delay(fields, "join"),
        ready: read_delay(fields, "ready"),
        stop: read_delay(fields, "stop"),
        delete: read_delay(fields, "delete"),
        pod_stop: read_delay(fields, "podStop"),
    }
}

/// `20s`, or `{"duration": "20s", "jitter": 0.25}`.
fn read_delay(fields: &mut Fields<'_>, key: &str) -> Option<Delay> {
    match fields.value(key)? {
        text @ Value::String(_) => {
            let alone = serde_json::json!({ "duration": text });
            fields
                .nested(key, alone, |fields| fields.span("duration"))
                .map(|duration| Delay { duration, jitter: 0.0 })
        }
        object => fields.nested(key, object, |fields| {
            let jitter = fields.share("jitter").unwrap_or_default();
            Some(Delay { duration: fields.span("duration").unwrap_or_default(), jitter })
        }),
    }
}

fn read_heartbeat(fields: &mut Fields<'_>) -> Heartbeat {
    let usual = Heartbeat::default();
    let mut span = |key| read_delay(fields, key).map(|delay| delay.duration);
    Heartbeat {
        lease_duration: span("leaseDuration").unwrap_or(usual.lease_duration),
        lease_renew: span("leaseRenew").unwrap_or(usual.lease_renew),
        status: span("status").unwrap_or(usual.status),
    }
}
