//! Provider specs, new and historic: what is read, filled in, complained about.

#![expect(clippy::unwrap_used, reason = "a test ends where its world is not what it says")]

use expect_test::{Expect, expect};
use mapi_api::RawJson;
use mapi_cloud::{Findings, ProviderSpec, Severity};
use mapi_cloud_kubemark::{KubemarkSpec, ProviderIdFormat};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use serde_json::{Value, json};

fn new(more: Value) -> RawJson {
    with("kubemarkproviderconfig.machine.openshift.io/v1beta1", "KubemarkMachineProviderSpec", more)
}

fn legacy(more: Value) -> RawJson {
    with("kubemarkproviderconfig.k8s.io/v1alpha1", "KubemarkMachineProviderConfig", more)
}

fn with(api_version: &str, kind: &str, more: Value) -> RawJson {
    let mut spec = json!({ "apiVersion": api_version, "kind": kind });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    spec.into()
}

fn filled(raw: &RawJson) -> KubemarkSpec {
    let (mut spec, _) = KubemarkSpec::decode(raw).expect("a spec that can be read");
    spec.fill();
    spec
}

fn findings(raw: &RawJson) -> Findings {
    match KubemarkSpec::decode(raw) {
        Err(findings) => findings,
        Ok((mut spec, mut findings)) => {
            spec.fill();
            findings.0.extend(spec.check().0);
            findings
        }
    }
}

#[track_caller]
fn check(raw: &RawJson, expected: Expect) {
    let lines = findings(raw).0.into_iter().map(|finding| match finding.severity {
        Severity::Error => format!("error {finding}\n"),
        Severity::Warning => format!("warning {finding}\n"),
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn an_empty_spec_is_a_medium_machine_of_a_cloud() {
    let spec = filled(&new(json!({})));
    expect![[r#"
        sim.medium {"cpu": "4", "ephemeral-storage": "100Gi", "memory": "16Gi", "pods": "110"} {"cpu": "3900m", "ephemeral-storage": "100Gi", "memory": "16911433728", "pods": "110"}
        sim-region sim-region-a amd64 linux {machine} Some([Taint { key: "kubemark", value: Some("true"), effect: "NoSchedule", time_added: None }])
        Network { source: Ranges, cidr: ["10.200.0.0/16", "fd00:200::/64"], ip_families: ["IPv4"], extra: [] }
        Some(Delay { duration: Span(20s), jitter: 0.25 }) Some(Delay { duration: Span(10s), jitter: 0.25 }) Fast
    "#]]
    .assert_eq(&format!(
        "{} {:?} {:?}\n{} {} {} {} {} {:?}\n{:?}\n{:?} {:?} {:?}\n",
        spec.instance_type,
        spec.capacity,
        spec.allocatable,
        spec.region,
        spec.zone,
        spec.architecture,
        spec.operating_system,
        spec.node_name_template,
        spec.taints,
        spec.network,
        spec.timing.provision,
        spec.timing.delete,
        spec.pods,
    ));
    check(&new(json!({})), expect![""]);
}

// B12.1
#[test]
fn a_historic_image_is_accepted_and_not_run() {
    let raw = legacy(json!({ "image": "gofed/kubemark-machine-controllers:v1.0" }));
    check(
        &raw,
        expect![[r#"
        warning image: `gofed/kubemark-machine-controllers:v1.0`: is accepted and ignored: no image is run
    "#]],
    );
    let spec = filled(&raw);
    assert_eq!(spec.node_name_template, "{uuid}");
    assert_eq!(spec.provider_id_format, ProviderIdFormat::Legacy);
}

// B12.2
#[test]
fn a_historic_spec_needs_no_image() {
    check(&legacy(json!({})), expect![""]);
}

fn faults(raw: &RawJson) -> String {
    serde_json::to_string(&filled(raw).faults).unwrap()
}

// B12.3
#[test]
fn turning_unhealthy_once_is_the_fault_node_not_ready() {
    let raw = legacy(
        json!({ "turnUnhealthyAfter": true, "healthyDuration": "40s", "turnUnhealthyPeriodically": true }),
    );
    assert_eq!(faults(&raw), r#"[{"kind":"NodeNotReady","after":"40s"}]"#);
    check(&raw, expect![""]);
}

// B12.4
#[test]
fn the_documented_mistake_is_read_as_it_was_meant() {
    let raw = legacy(json!({ "turnUnhealthyAfter": true, "unhealthyDuration": "40s" }));
    assert_eq!(faults(&raw), r#"[{"kind":"NodeNotReady","after":"40s"}]"#);
    check(
        &raw,
        expect![[r#"
        warning unhealthyDuration: `40s`: is read as healthyDuration, which is missing
    "#]],
    );
}

// B12.5
#[test]
fn turning_unhealthy_periodically_is_the_fault_node_flap() {
    let raw = legacy(
        json!({ "turnUnhealthyPeriodically": true, "healthyDuration": "5s", "unhealthyDuration": "40s" }),
    );
    assert_eq!(faults(&raw), r#"[{"kind":"NodeFlap","args":{"ready":"5s","notReady":"40s"}}]"#);
}

// B12.6
#[test]
fn historic_sizes_are_cores_and_bytes() {
    let spec = filled(&legacy(json!({ "numCores": 8, "memoryCapacity": 17_179_869_184u64 })));
    assert_eq!((spec.capacity["cpu"].as_str(), spec.capacity["memory"].as_str()), ("8", "17179869184"));
    let usual = filled(&legacy(json!({})));
    assert_eq!((usual.capacity["cpu"].as_str(), usual.capacity["memory"].as_str()), ("1", "3840Mi"));
}

// B12.7
#[test]
fn the_historic_deletion_timeout_is_how_long_a_deletion_takes() {
    let spec = filled(&legacy(json!({ "deletionTimeout": "30s" })));
    let delete = spec.timing.delete.unwrap();
    assert_eq!((delete.duration.0.as_secs(), delete.jitter), (30, 0.0));
}

// B12.10
#[test]
fn what_is_no_spec_is_refused() {
    for text in ["[]", "\"x\"", "17", "null", r#"{"capacity":[]}"#, r#"{"faults":{}}"#] {
        let raw: RawJson = serde_json::from_str(text).unwrap();
        assert!(findings(&raw).has_error(), "{text}");
    }
}

// B12.35
#[test]
fn complaints_name_path_value_and_what_is_allowed() {
    let raw = new(json!({
        "instanceType": "huge",
        "capacity": { "memory": "-1" },
        "providerIDFormat": "other",
        "timing": { "boot": "-5s", "join": { "duration": "1s", "jitter": 1.5 } },
        "faults": [{ "kind": "NodeExplodes" }],
    }));
    check(
        &raw,
        expect![[r#"
        error providerIDFormat: `other`: must be one of kubemark, legacy
        error timing.boot.duration: `-5s`: must be a duration that is not negative, for example 300s or 1h30m
        error timing.join.jitter: `1.5`: must be a number from 0 to 1
        error faults[0].kind: `NodeExplodes`: must be one of CreateError, CreateErrorButCreated, CreateDuplicateVisible, StuckProvisioning, NeverJoin, NodeNotReady, NodeUnknown, NodeFlap, NodeDeleted, InstanceTerminated, InstanceStopped, DeleteStuck, ApiThrottle, ApiOutage, Quota, ZoneOutage
    "#]],
    );
    let raw = new(json!({
        "instanceType": "huge",
        "capacity": { "memory": "-1", "example.com/gpu": "0" },
        "allocatable": { "pods": "200" },
        "nodeNameTemplate": "Node-{machine}",
        "nodeLabels": { "ok": "not ok!" },
        "network": { "cidr": ["10.244.0.0/24", "10.200.0.0/31", "x"], "ipFamilies": ["IPv5"] },
        "timing": { "createVisible": "5m" },
        "heartbeat": { "leaseRenew": "40s" },
        "faults": [
            { "kind": "NodeFlap" },
            { "kind": "ApiThrottle" },
            { "kind": "Quota" },
            { "kind": "NeverJoin", "count": 3 },
        ],
    }));
    check(
        &raw,
        expect![[r#"
        error capacity.example.com/gpu: `0`: must be a quantity above 0, for example 4 or 16Gi
        error capacity.memory: `-1`: must be a quantity above 0, for example 4 or 16Gi
        error instanceType: `huge`: must be one of sim.small, sim.medium, sim.large, or capacity.cpu and capacity.memory must be given
        error allocatable.memory: `-1`: must be a quantity, for example 3500m
        error allocatable.pods: `200`: must not be above the capacity
        error nodeNameTemplate: `Node-{machine}`: must be a DNS name in lower case, in which {machine}, {instance} and {uuid} are replaced
        error nodeLabels.ok: `not ok!`: must be a label value: up to 63 letters, digits, `-`, `_` and `.`, letter or digit at both ends
        error network.cidr[0]: `10.244.0.0/24`: must not overlap 10.240.0.0/12, where simulated pods live
        error network.cidr[1]: `10.200.0.0/31`: must leave at least 3 bits for hosts
        error network.cidr[2]: `x`: must be an address range such as 10.200.0.0/16 or fd00:200::/64
        error network.ipFamilies[0]: `IPv5`: must be IPv4 or IPv6
        error timing.createVisible: `5m0s`: must be at most 30s
        error heartbeat.leaseDuration: `40s`: must be longer than heartbeat.leaseRenew
        error faults[0].args.ready: must be at least 1s
        error faults[0].args.notReady: must be at least 1s
        error faults[1].args.rps: must be at least 1
        error faults[2].args: must hold instances, cpu or perZone
        error faults[3].count: has a meaning for CreateError only
    "#]],
    );
}

#[test]
fn unknown_fields_are_mentioned_and_do_no_harm() {
    let raw = with(
        "kubemarkproviderconfig.machine.openshift.io/v9",
        "KubemarkMachineProviderSpec",
        json!({
            "colour": "blue",
            "timing": { "boot": { "duration": "1s", "distribution": "normal" } },
            "userDataSecret": { "name": "x" },
            "metadata": { "creationTimestamp": null },
        }),
    );
    check(
        &raw,
        expect![[r#"
        warning apiVersion: `kubemarkproviderconfig.machine.openshift.io/v9`: is not a known version, read as v1beta1
        warning userDataSecret: is not looked at: the simulated cloud needs no secrets
        warning timing.boot.distribution: is not known and has no effect
        warning colour: is not known and has no effect
    "#]],
    );
}

#[test]
fn pools_of_addresses_are_refused_rather_than_ignored() {
    let pools = json!({ "network": { "addressSource": "ipam", "addressesFromPools": [{ "name": "p" }] } });
    check(
        &new(pools),
        expect![[r#"
        error network.addressesFromPools: is not served: use network.cidr
        error network.addressSource: `ipam`: must be one of auto, cidr, none
    "#]],
    );
}

/// JSON that looks like a spec in places.
fn nearly_a_spec() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        "[0-9]{1,25}(s|h|Gi|m|/8)?".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("capacity".to_owned()),
        Just("cpu".to_owned()),
        Just("timing".to_owned()),
        Just("boot".to_owned()),
        Just("duration".to_owned()),
        Just("jitter".to_owned()),
        Just("faults".to_owned()),
        Just("args".to_owned()),
        Just("network".to_owned()),
        Just("cidr".to_owned()),
        Just("heartbeat".to_owned()),
        Just("leaseRenew".to_owned()),
        Just("healthyDuration".to_owned()),
        Just("memoryCapacity".to_owned()),
        "[a-zA-Z]{0,8}",
    ];
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..6)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn reading_a_spec_never_panics(value in nearly_a_spec(), is_legacy in any::<bool>()) {
        let more = if value.is_object() { value.clone() } else { json!({ "faults": value.clone() }) };
        findings(&if is_legacy { legacy(more) } else { new(more) });
        findings(&value.into());
    }
}
