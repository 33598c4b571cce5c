//! The near side before its double: what is asked of the cloud, what faults of calls do, what is told.

#![expect(clippy::unwrap_used, reason = "a test ends where its world is not what it says")]

mod double;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use double::{Double, Examination};
use expect_test::{Expect, expect};
use futures::StreamExt as _;
use futures::executor::block_on;
use mapi_api::{Key, Object, RawJson, SimulatedInstance, names};
use mapi_cloud::laws::Bench;
use mapi_cloud::{Answer, Cloud, Erased, Identity, Instance, Kind, Objects as _, Sighting, Want};
use mapi_cloud_kubemark::Kubemark;
use serde_json::{Value, json};

/// A machine, its cloud, and the world.
struct Case {
    bench: Examination<Kubemark>,
    cloud: Erased<Kubemark>,
    who: Identity,
    spec: Value,
}

impl Case {
    fn new(more: Value) -> Self {
        let mut spec = json!({
            "apiVersion": "kubemarkproviderconfig.machine.openshift.io/v1beta1",
            "kind": "KubemarkMachineProviderSpec",
            "timing": { "profile": "instant" },
        });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let provider: fn(Double) -> Kubemark = |double| Kubemark::new(Arc::new(double));
        let bench = Examination { double: Double::new(spec.clone()), provider };
        let cloud = Erased(bench.provider());
        let who = who(&bench, "m");
        Self { bench, cloud, who, spec }
    }

    fn ask(&mut self, want: Want) -> Answer {
        self.who.now = self.bench.now();
        let spec = RawJson::from(self.spec.clone());
        let answer = block_on(self.cloud.ask(&self.who, Some(&spec), want));
        if let Some(status) = &answer.provider_status {
            self.who.provider_status = Some(status.clone());
        }
        if let Sighting::Present(instance) = &answer.sighting {
            self.who.provider_id.clone_from(&instance.provider_id);
        }
        answer
    }

    fn pass(&self, seconds: u64) {
        self.bench.pass(Duration::from_secs(seconds));
    }

    fn instance(&self) -> SimulatedInstance {
        self.bench.double.instance(&self.who.uid).expect("an instance")
    }

    fn annotate(&mut self, faults: &str) {
        self.who.annotations.insert(names::annotation::FAULTS.into(), faults.into());
    }

    /// Type, status and reason of the conditions of the provider status.
    fn conditions(&self) -> BTreeMap<String, (String, String, String)> {
        let status = self.who.provider_status.as_ref().map(RawJson::value).unwrap_or_default();
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.iter()
            .map(|c| (text(&c["type"]), (text(&c["status"]), text(&c["reason"]), text(&c["message"]))))
            .collect()
    }

    fn condition(&self, type_: &str) -> Option<String> {
        self.conditions().get(type_).map(|(status, reason, _)| format!("{status}/{reason}"))
    }
}

fn who(bench: &impl Bench, name: &str) -> Identity {
    Identity {
        key: Key::new("ns", name),
        uid: format!("5f0c8e5e-0000-4000-8000-{name:0>12}"),
        cluster: "c".into(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        provider_id: None,
        provider_status: None,
        created: Some(bench.now()),
        deleted: None,
        now: bench.now(),
    }
}

fn failure(answer: &Answer) -> Option<(Kind, String)> {
    answer.failure.as_ref().map(|failure| (failure.error.kind, failure.error.to_string()))
}

fn present(answer: &Answer) -> &Instance {
    match &answer.sighting {
        Sighting::Present(instance) => instance,
        Sighting::Unknown | Sighting::Absent => panic!("{:?} {:?}", answer.sighting, answer.failure),
    }
}

#[track_caller]
fn check(value: &impl serde::Serialize, expected: Expect) {
    expected.assert_eq(&(serde_json::to_string_pretty(value).unwrap() + "\n"));
}

#[test]
fn a_spec_becomes_one_request_to_the_cloud() {
    let mut case = Case::new(json!({
        "nodeLabels": { "example.com/rack": "7" },
        "network": { "ipFamilies": ["IPv4", "IPv6"] },
        "interruptible": true,
    }));
    let answer = case.ask(Want::Present);
    let instance = present(&answer);
    assert_eq!(instance.provider_id.as_deref(), Some("kubemark:///sim-region-a/i-sim-15655c1268277ce4c"));
    assert_eq!((instance.state.as_str(), instance.is_interruptible), ("Pending", true));
    let made = case.instance();
    assert!(made.has_finalizer(names::finalizer::SIMULATED_INSTANCE));
    check(
        &made.spec,
        expect![[r#"
        {
          "machineRef": {
            "namespace": "ns",
            "name": "m",
            "uid": "5f0c8e5e-0000-4000-8000-00000000000m"
          },
          "token": "5f0c8e5e-0000-4000-8000-00000000000m",
          "instanceType": "sim.medium",
          "region": "sim-region",
          "zone": "sim-region-a",
          "interruptible": true,
          "capacity": {
            "cpu": "4",
            "ephemeral-storage": "100Gi",
            "memory": "16Gi",
            "pods": "110"
          },
          "pods": "fast",
          "node": {
            "name": "m",
            "providerID": "kubemark:///sim-region-a/i-sim-15655c1268277ce4c",
            "labels": {
              "example.com/rack": "7",
              "kubernetes.io/arch": "amd64",
              "kubernetes.io/hostname": "m",
              "kubernetes.io/os": "linux",
              "machine.openshift.io/simulated": "true",
              "node.kubernetes.io/instance-type": "sim.medium",
              "topology.kubernetes.io/region": "sim-region",
              "topology.kubernetes.io/zone": "sim-region-a"
            },
            "taints": [
              {
                "key": "kubemark",
                "value": "true",
                "effect": "NoSchedule"
              }
            ],
            "allocatable": {
              "cpu": "3900m",
              "ephemeral-storage": "100Gi",
              "memory": "16911433728",
              "pods": "110"
            },
            "architecture": "amd64",
            "operatingSystem": "linux"
          },
          "addresses": [
            {
              "type": "InternalIP",
              "address": "10.200.48.95"
            },
            {
              "type": "InternalIP",
              "address": "fd00:200::ef26:10c8:87b5:82b4"
            },
            {
              "type": "Hostname",
              "address": "m"
            },
            {
              "type": "InternalDNS",
              "address": "m"
            }
          ]
        }
    "#]],
    );
}

// B12.12
#[test]
fn an_instant_machine_is_pending_then_running_with_addresses() {
    let mut case = Case::new(json!({}));
    assert_eq!(present(&case.ask(Want::Present)).addresses, []);
    case.pass(1);
    let answer = case.ask(Want::Look);
    let instance = present(&answer);
    let types: Vec<&str> = instance.addresses.iter().map(|address| address.type_.as_str()).collect();
    assert_eq!((instance.state.as_str(), types), ("Running", vec!["InternalIP", "Hostname", "InternalDNS"]));
    assert_eq!(case.condition("InstanceRunning").as_deref(), Some("True/Running"));
    assert_eq!(case.condition("MachineCreated").as_deref(), Some("True/MachineCreationSucceeded"));
    assert_eq!(case.condition("FaultInjected"), None);
}

// B12.30
#[test]
fn both_families_are_shown_with_ipv4_first() {
    let mut case = Case::new(json!({ "network": { "ipFamilies": ["IPv4", "IPv6"] } }));
    case.ask(Want::Present);
    case.pass(1);
    let answer = case.ask(Want::Look);
    let ips: Vec<bool> = present(&answer)
        .addresses
        .iter()
        .filter(|address| address.type_ == "InternalIP")
        .map(|address| address.address.contains(':'))
        .collect();
    assert_eq!(ips, [false, true]);
}

// B12.15
#[test]
fn counted_errors_end_and_a_restart_does_not_begin_anew() {
    let fault = json!({ "kind": "CreateError", "count": 3, "args": { "class": "Quota" } });
    let mut case = Case::new(json!({ "faults": [fault] }));
    for attempt in 0..3 {
        let answer = case.ask(Want::Present);
        let expected = "cannot launch simulated instance: the quota is used up".to_owned();
        assert_eq!(failure(&answer), Some((Kind::Exhausted, expected)), "{attempt}");
        assert_eq!(case.condition("MachineCreated").as_deref(), Some("False/MachineCreationFailed"));
        assert_eq!(case.condition("FaultInjected").as_deref(), Some("True/CreateError"));
        case.cloud = Erased(case.bench.provider());
        case.pass(1);
    }
    present(&case.ask(Want::Present));
    case.pass(1);
    case.ask(Want::Look);
    assert_eq!(case.condition("FaultInjected"), None);
}

// B12.16
#[test]
fn each_class_of_error_has_its_kind() {
    for (class, kind, is_uncertain, has_delay) in [
        ("InvalidConfiguration", Kind::Invalid, false, false),
        ("Quota", Kind::Exhausted, false, false),
        ("Throttle", Kind::Throttled, false, true),
        ("Internal", Kind::Transient, false, false),
        ("Timeout", Kind::Transient, true, false),
        ("Unauthorized", Kind::Denied, false, false),
    ] {
        let mut case =
            Case::new(json!({ "faults": [{ "kind": "CreateError", "args": { "class": class } }] }));
        let error = case.ask(Want::Present).failure.expect(class).error;
        let seen = (error.kind, error.is_uncertain, error.retry_after.is_some());
        assert_eq!(seen, (kind, is_uncertain, has_delay), "{class}");
        assert_eq!(case.bench.made(&case.who.uid), 0, "{class}");
    }
}

// B12.14
#[test]
fn a_create_that_failed_after_it_took_effect_is_adopted() {
    let mut case = Case::new(json!({ "faults": [{ "kind": "CreateErrorButCreated" }] }));
    let error = case.ask(Want::Present).failure.expect("an error").error;
    assert!(error.is_uncertain && error.kind == Kind::Transient);
    case.pass(1);
    assert_eq!(present(&case.ask(Want::Present)).state, "Running");
    assert_eq!(case.bench.made(&case.who.uid), 1);
}

#[test]
fn an_instance_that_hides_is_not_made_twice() {
    let mut case = Case::new(json!({ "faults": [{ "kind": "CreateDuplicateVisible", "duration": "20s" }] }));
    let first = present(&case.ask(Want::Present)).provider_id.clone();
    case.who.provider_id = None;
    case.pass(2);
    let answer = case.ask(Want::Look);
    assert_eq!((answer.sighting, answer.gate.expect("a wait").reason), (Sighting::Absent, "NotVisible"));
    assert_eq!(present(&case.ask(Want::Present)).provider_id, first);
    assert_eq!(case.bench.made(&case.who.uid), 1);
    assert_eq!(case.cloud.settle_of(Some(&case.spec.clone().into())), Duration::from_secs(25));
}

// B12.23
#[test]
fn an_outage_ends_and_blames_nobody() {
    let mut case = Case::new(json!({ "faults": [{ "kind": "ApiOutage", "duration": "120s" }] }));
    let error = case.ask(Want::Present).failure.expect("an error").error;
    assert_eq!((error.kind, error.is_uncertain), (Kind::Transient, false));
    assert_eq!(case.condition("FaultInjected").as_deref(), Some("True/ApiOutage"));
    case.pass(120);
    present(&case.ask(Want::Present));
}

// B12.24
#[test]
fn a_limit_of_calls_lets_everybody_through_in_turn() {
    let case = Case::new(json!({ "faults": [{ "kind": "ApiThrottle", "args": { "rps": 5, "burst": 2 } }] }));
    let spec = RawJson::from(case.spec.clone());
    let mut waiting: Vec<(Identity, u64)> = (0..50).map(|n| (who(&case.bench, &n.to_string()), 0)).collect();
    let (mut passed, mut attempts, mut millis) = (vec![], 0, 0);
    while !waiting.is_empty() {
        waiting.retain_mut(|(who, due)| {
            if *due > millis {
                return true;
            }
            who.now = case.bench.now();
            attempts += 1;
            match block_on(case.cloud.ask(who, Some(&spec), Want::Present)).failure {
                None => passed.push(millis),
                Some(failure) => {
                    assert_eq!(failure.error.kind, Kind::Throttled);
                    let wait = failure.error.retry_after.expect("a delay").as_millis();
                    *due = millis + u64::try_from(wait).unwrap();
                    return true;
                }
            }
            false
        });
        case.bench.pass(Duration::from_millis(100));
        millis += 100;
    }
    for start in &passed {
        let within = passed.iter().filter(|at| (*start..start + 1000).contains(*at)).count();
        assert!(within <= 5 + 2, "{within} calls in a second");
    }
    // I26: nobody is refused more than once.
    assert!(attempts <= 100, "{attempts} attempts for 50 machines");
}

#[test]
fn a_quota_counts_the_instances_of_the_namespace() {
    let fault = json!({ "kind": "Quota", "args": { "instances": 2 } });
    let mut case = Case::new(json!({ "faults": [fault] }));
    let spec = RawJson::from(case.spec.clone());
    // What this process has just made counts, whether or not the cache shows it.
    case.bench.begin(mapi_cloud::laws::Trouble::CacheStands);
    for name in ["a", "b"] {
        let who = who(&case.bench, name);
        present(&block_on(case.cloud.ask(&who, Some(&spec), Want::Present)));
    }
    let expected = "cannot launch simulated instance: the quota of instances is used up".to_owned();
    assert_eq!(failure(&case.ask(Want::Present)), Some((Kind::Exhausted, expected)));
    case.bench.calm();
    let first = who(&case.bench, "a");
    block_on(case.cloud.ask(&first, Some(&spec), Want::Absent));
    case.pass(1);
    present(&case.ask(Want::Present));
}

#[test]
fn quotas_of_cpus_and_zones_count_too() {
    for (args, allowed) in [
        (json!({ "cpu": 4 }), true),
        (json!({ "cpu": 3 }), false),
        (json!({ "perZone": 1 }), true),
        (json!({ "perZone": 0 }), false),
    ] {
        let mut case = Case::new(json!({ "faults": [{ "kind": "Quota", "args": args }] }));
        assert_eq!(case.ask(Want::Present).failure.is_none(), allowed, "{args}");
    }
}

#[test]
fn a_zone_that_is_out_takes_no_creates() {
    for (zone, is_out) in [("sim-region-a", true), ("other", false)] {
        let fault = json!({ "kind": "ZoneOutage", "duration": "60s", "args": { "zone": zone } });
        let mut case = Case::new(json!({ "faults": [fault] }));
        assert_eq!(case.ask(Want::Present).failure.is_some(), is_out, "{zone}");
        case.pass(60);
        present(&case.ask(Want::Present));
    }
}

#[test]
fn two_machines_never_share_an_address_however_small_the_range() {
    let case = Case::new(json!({ "network": { "cidr": "192.168.0.0/24" } }));
    let spec = RawJson::from(case.spec.clone());
    for n in 0..200 {
        let who = who(&case.bench, &n.to_string());
        present(&block_on(case.cloud.ask(&who, Some(&spec), Want::Present)));
    }
    let world = case.bench.double.world();
    let addresses: std::collections::BTreeSet<&str> =
        world.objects.values().map(|object| object.spec.addresses[0].address.as_str()).collect();
    assert_eq!(addresses.len(), 200);
}

// B12.34
#[test]
fn live_faults_come_from_the_annotation_and_go_with_it() {
    let mut case = Case::new(json!({}));
    case.ask(Want::Present);
    case.pass(10);
    case.spec["capacity"] = json!({ "cpu": "64" });
    case.annotate(r#"[{"kind":"NodeNotReady","after":"5s"}]"#);
    let answer = case.ask(Want::Look);
    assert_eq!(answer.taken, [mapi_cloud::Activity::Update]);
    assert_eq!(case.condition("FaultInjected").as_deref(), Some("True/NodeNotReady"));
    let since = case.instance().spec.faults[0].since.clone();
    assert_eq!(since, Some(mapi_api::meta::micro(case.who.now)));
    assert_eq!(case.instance().spec.capacity["cpu"], "4");
    case.pass(60);
    assert!(!case.bench.double.world().nodes["m"].is_ready());
    // The same wish keeps its time.
    assert_eq!(case.ask(Want::Look).taken, []);
    assert_eq!(case.instance().spec.faults[0].since, since);
    case.who.annotations.clear();
    case.ask(Want::Look);
    case.pass(1);
    assert!(case.bench.double.world().nodes["m"].is_ready());
    assert_eq!(case.condition("FaultInjected"), None);
}

#[test]
fn an_annotation_that_cannot_be_read_is_told_and_harms_nobody() {
    for text in [
        "{",
        "{}",
        r#"[{"kind":"NodeExplodes"}]"#,
        r#"[{"kind":"NodeFlap"}]"#,
        r#"[{"kind":"NodeUnknown","after":"-1s"}]"#,
    ] {
        let mut case = Case::new(json!({}));
        case.annotate(text);
        present(&case.ask(Want::Present));
        assert_eq!(case.condition("FaultInjected").as_deref(), Some("False/InvalidFaults"), "{text}");
    }
}

#[test]
fn a_live_outage_lasts_as_long_as_it_says_or_as_its_annotation() {
    let mut case = Case::new(json!({}));
    case.ask(Want::Present);
    case.pass(600);
    case.annotate(r#"[{"kind":"ApiOutage","duration":"30s"}]"#);
    case.ask(Want::Look);
    case.pass(1);
    assert_eq!(case.ask(Want::Look).sighting, Sighting::Unknown);
    case.pass(30);
    present(&case.ask(Want::Look));
    case.annotate(r#"[{"kind":"ApiOutage"}]"#);
    assert_eq!(case.ask(Want::Look).sighting, Sighting::Unknown);
    case.who.annotations.clear();
    present(&case.ask(Want::Look));
}

// B12.8, B12.9
#[test]
fn static_machines_are_refused_and_can_be_deleted() {
    let mut case = Case::new(json!({}));
    case.who.annotations.insert(names::annotation::STATIC_MACHINE.into(), "some-node".into());
    let (kind, message) = failure(&case.ask(Want::Present)).expect("a refusal");
    assert_eq!(kind, Kind::Invalid);
    assert!(message.contains("machine.openshift.io/static-machine"), "{message}");
    assert_eq!(case.condition("MachineCreated").as_deref(), Some("False/MachineCreationFailed"));
    let answer = case.ask(Want::Absent);
    assert_eq!((answer.sighting, answer.gate), (Sighting::Absent, None));
}

// B12.7
#[test]
fn a_start_of_deletion_that_the_historic_provider_wrote_is_waited_for() {
    let mut case = Case::new(json!({}));
    case.ask(Want::Present);
    let start = case.bench.now().as_second() + 30;
    case.who.annotations.insert(names::annotation::DELETION_TIMEOUT.into(), start.to_string());
    assert_eq!(case.ask(Want::Absent).gate.expect("a wait").reason, "DeletionTimeout");
    assert_eq!(case.bench.live(&case.who.uid), 1);
    case.pass(30);
    assert_eq!(case.ask(Want::Absent).taken, [mapi_cloud::Activity::Delete]);
}

#[test]
fn an_instance_that_is_being_terminated_is_present_until_it_is_gone() {
    let mut case = Case::new(json!({ "timing": { "profile": "instant", "delete": "10s" } }));
    case.ask(Want::Present);
    case.pass(1);
    let answer = case.ask(Want::Absent);
    assert_eq!(
        (present(&answer).state.as_str(), answer.gate.as_ref().expect("a wait").reason),
        ("Terminating", "Terminating")
    );
    case.pass(5);
    present(&case.ask(Want::Absent));
    case.pass(10);
    assert_eq!(case.ask(Want::Absent).sighting, Sighting::Absent);
}

#[test]
fn the_instance_of_another_machine_is_never_taken_for_ours() {
    let mut case = Case::new(json!({}));
    case.ask(Want::Present);
    let mut foreign = case.instance();
    foreign.spec.machine_ref.uid = "other".into();
    let key = foreign.key();
    case.bench.double.world().objects.insert(key.clone(), foreign);
    block_on(case.bench.double.patch(&key, &json!({ "spec": {} }))).unwrap();
    for want in [Want::Look, Want::Present, Want::Absent] {
        let (kind, message) = failure(&case.ask(want)).expect("a refusal");
        assert_eq!(kind, Kind::Transient);
        assert!(message.ends_with("belongs to another machine"), "{message}");
    }
}

#[test]
fn a_foreign_node_of_the_name_is_told_in_the_provider_status() {
    let mut case = Case::new(json!({}));
    let foreign = serde_json::from_value(json!({ "metadata": { "name": "m", "uid": "f" } })).unwrap();
    case.bench.double.world().nodes.insert("m".into(), foreign);
    case.ask(Want::Present);
    case.pass(1);
    case.ask(Want::Look);
    assert_eq!(case.condition("NodeRegistered").as_deref(), Some("False/NodeNameTaken"));
}

// B12.6
#[test]
fn capacity_is_told_in_the_units_of_the_autoscaler() {
    let case = Case::new(json!({}));
    let capacity = |spec: Value| block_on(case.cloud.capacity(&spec.into())).unwrap().unwrap();
    let legacy = capacity(json!({
        "apiVersion": "kubemarkproviderconfig.k8s.io/v1alpha1",
        "kind": "KubemarkMachineProviderConfig",
        "numCores": 8,
        "memoryCapacity": 17_179_869_184_u64,
    }));
    assert_eq!((legacy.cpus, legacy.memory_mib, legacy.gpus), (8, 16384, 0));
    let mut spec = case.spec.clone();
    spec["capacity"] = json!({ "nvidia.com/gpu": "2", "pods": 250 });
    spec["architecture"] = "arm64".into();
    let new = capacity(spec);
    assert_eq!((new.cpus, new.memory_mib, new.gpus, new.max_pods), (4, 16384, 2, Some(250)));
    assert_eq!(new.labels["kubernetes.io/arch"], "arm64");
}

// B12.28
#[test]
fn variation_is_the_same_every_time_and_between_its_bounds() {
    let timings = || {
        let mut case = Case::new(json!({ "timing": { "profile": "cloud" } }));
        case.ask(Want::Present);
        case.instance().spec.timing
    };
    let timing = timings();
    assert_eq!(timing, timings());
    for (span, least_s, most_s) in
        [(timing.provision, 20.0, 25.0), (timing.boot, 15.0, 18.75), (timing.delete, 10.0, 12.5)]
    {
        let seconds = span.0.as_secs_f64();
        assert!(seconds >= least_s && seconds <= most_s, "{seconds}");
    }
}

#[test]
fn changes_of_instances_wake_their_machines() {
    let mut case = Case::new(json!({}));
    case.ask(Want::Present);
    let woken: Vec<Key> = block_on(case.cloud.changes().collect());
    assert_eq!(woken, [Key::new("ns", "m")]);
}

#[test]
fn a_machine_whose_name_is_no_node_name_is_refused_with_the_name() {
    let mut case = Case::new(json!({ "nodeNameTemplate": format!("{}{{machine}}", "a".repeat(252)) }));
    case.who.key = Key::new("ns", "longer");
    let (kind, message) = failure(&case.ask(Want::Present)).expect("a refusal");
    assert_eq!(kind, Kind::Invalid);
    assert!(message.contains("nodeNameTemplate"), "{message}");
}
