//! The near side before its double: what is asked of the cloud, and what is told of the answer.

#![expect(clippy::unwrap_used, reason = "a test ends where its world is not what it says")]

mod case;
mod double;

use case::{Case, failure, present, who};
use expect_test::{Expect, expect};
use futures::StreamExt as _;
use futures::executor::block_on;
use mapi_api::{Key, Object, RawJson, names};
use mapi_cloud::laws::Bench as _;
use mapi_cloud::{Cloud, Kind, Objects as _, Sighting, Want};
use serde_json::{Value, json};

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
