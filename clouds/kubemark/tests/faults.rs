//! Faults of calls: what they do, to whom, and when they end.

#![expect(clippy::unwrap_used, reason = "a test ends where its world is not what it says")]

mod case;
mod double;

use std::time::Duration;

use case::{Case, failure, present, who};
use futures::executor::block_on;
use mapi_api::{RawJson, names};
use mapi_cloud::laws::Bench as _;
use mapi_cloud::{Cloud, Erased, Identity, Kind, Sighting, Want};
use serde_json::json;

fn annotate(case: &mut Case, faults: &str) {
    case.who.annotations.insert(names::annotation::FAULTS.into(), faults.into());
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

// B12.34
#[test]
fn live_faults_come_from_the_annotation_and_go_with_it() {
    let mut case = Case::new(json!({}));
    case.ask(Want::Present);
    case.pass(10);
    case.spec["capacity"] = json!({ "cpu": "64" });
    annotate(&mut case, r#"[{"kind":"NodeNotReady","after":"5s"}]"#);
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
        annotate(&mut case, text);
        present(&case.ask(Want::Present));
        assert_eq!(case.condition("FaultInjected").as_deref(), Some("False/InvalidFaults"), "{text}");
    }
}

#[test]
fn a_live_outage_lasts_as_long_as_it_says_or_as_its_annotation() {
    let mut case = Case::new(json!({}));
    case.ask(Want::Present);
    case.pass(600);
    annotate(&mut case, r#"[{"kind":"ApiOutage","duration":"30s"}]"#);
    case.ask(Want::Look);
    case.pass(1);
    assert_eq!(case.ask(Want::Look).sighting, Sighting::Unknown);
    case.pass(30);
    present(&case.ask(Want::Look));
    annotate(&mut case, r#"[{"kind":"ApiOutage"}]"#);
    assert_eq!(case.ask(Want::Look).sighting, Sighting::Unknown);
    case.who.annotations.clear();
    present(&case.ask(Want::Look));
}
