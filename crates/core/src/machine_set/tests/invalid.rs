//! Bad specs, and sets that another API owns.

use mapi_cloud::{Finding, Findings};
use serde_json::{Value, json};

use super::{World, machine, orphan, running};
use crate::machine_set::Template;
use crate::{Plan, Requeue};

/// Nothing is made or removed, the condition says why, an event says it once, and it is not tried again.
fn check_stopped(spec: Value, told: &str) {
    let mut world =
        World::new(spec, vec![running("a"), machine("b", json!({"metadata": {"labels": {"set": "x"}}}))]);
    world.orphans = vec![orphan("c", json!({"set": "s"}))];
    assert_eq!(world.told("SpecValid"), told);
    assert!(world.work().is_empty(), "{:?}", world.work());
    let note = told.split_once(": ").expect("a message").1;
    let event = format!("Warning ReconcileError \"s\" machineset validation failed: {note}");
    assert!(world.plan().contains(&event), "{:?}", world.plan());
    world.apply_status(&world.report());
    let Plan { actions, requeue, gates } = world.decide();
    assert_eq!((actions, requeue), (vec![], Requeue::Never));
    assert_eq!(gates[0].message, note);
}

// S02
#[test]
fn an_invalid_selector_stops_everything_and_is_told_once() {
    check_stopped(
        json!({"selector": {"matchLabels": {"-x": "y"}}}),
        "False InvalidSelector: spec.selector.matchLabels[-x]: invalid value \"-x\": an optional DNS subdomain and a \
         slash, then 1 to 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit",
    );
}

// S03
#[test]
fn an_empty_selector_matches_nothing_and_is_refused() {
    check_stopped(
        json!({"selector": {}}),
        "False InvalidSelector: spec.selector: empty selector is not valid for MachineSet.",
    );
}

// S04
#[test]
fn a_template_that_the_selector_does_not_match_is_refused() {
    check_stopped(
        json!({"selector": {"matchLabels": {"set": "other"}}}),
        "False InvalidSelector: spec.template.metadata.labels: `selector` does not match template `labels`; labels \
         that match `set=other` are needed",
    );
}

#[test]
fn a_selector_too_long_to_report_is_refused() {
    let values: Vec<_> = (0..200).map(|i| format!("{i:060}")).collect();
    let selector = json!({"matchExpressions": [{"key": "set", "operator": "NotIn", "values": values}]});
    check_stopped(
        json!({"selector": selector}),
        "False InvalidSelector: spec.selector: its text has 12211 characters, at most 4096 are allowed",
    );
}

// S05
#[test]
fn without_a_number_of_replicas_the_status_is_told_and_the_number_left_alone() {
    let world = World::new(json!({"replicas": null}), vec![running("a")]);
    assert!(world.work().is_empty());
    assert_eq!(world.report()["status"]["replicas"], 1);
    assert_eq!(
        world.told("SpecValid"),
        "False InvalidReplicas: spec.replicas: missing, a number from 0 to 2147483647 is needed: the Replicas field in \
         Spec for machineset s is nil, this should not be allowed"
    );
}

#[test]
fn a_number_of_replicas_out_of_range_is_refused() {
    for count in [-1, i64::from(i32::MAX) + 1] {
        let world = World::new(json!({"replicas": count}), vec![running("a")]);
        assert!(world.work().is_empty());
        assert_eq!(
            world.told("SpecValid"),
            format!(
                "False InvalidReplicas: spec.replicas: `{count}`: a number from 0 to 2147483647 is needed"
            )
        );
    }
}

#[test]
fn an_edited_selector_stops_everything_until_it_is_set_back() {
    let mut world = World::settled(json!({"replicas": 2}), vec![running("a")]);
    let spec = |value: Value| serde_json::from_value(value).expect("a selector");
    world.set.spec.selector = spec(json!({"matchLabels": {"set": "t"}}));
    world.set.spec.template.metadata.labels = super::labels(&[("set", "t")]);
    world.orphans = vec![orphan("c", json!({"set": "t"}))];
    assert!(world.work().is_empty());
    assert_eq!(
        world.told("SpecValid"),
        "False SelectorChanged: spec.selector: `set=t`: a selector cannot be changed; set it back to `set=s`, or make \
         a new MachineSet"
    );
    assert_eq!(world.report()["status"].get("labelSelector"), None, "the evidence stays");
    world.apply_status(&world.report());
    assert_eq!(world.set.status.replicas, Some(1));
    world.set.spec.selector = spec(json!({"matchLabels": {"set": "s"}}));
    world.set.spec.template.metadata.labels = super::labels(&[("set", "s")]);
    assert_eq!(world.told("SpecValid"), "True : ");
    assert_eq!(world.work(), ["[create s-]"]);
}

#[test]
fn a_template_that_no_machine_could_use_makes_none_but_surplus_goes() {
    let findings = Findings::from(Finding::error("zone", "mars", "one of a, b"));
    for (template, told) in [
        (
            Template::Served(findings),
            "False InvalidProviderSpec: spec.template.spec.providerSpec.value: zone: `mars`: one of a, b",
        ),
        (
            Template::Missing,
            "False MissingProviderSpec: spec.template.spec.providerSpec.value: missing, an object with `apiVersion` \
             and `kind` of a cloud is needed",
        ),
        (
            Template::Unreadable("invalid type".into()),
            "False InvalidProviderSpec: spec.template.spec: cannot be read as the spec of a Machine: invalid type",
        ),
    ] {
        let mut world = World::new(json!({"replicas": 3}), vec![running("a"), running("b")]);
        world.template = template;
        assert_eq!(world.told("SpecValid"), told);
        assert!(world.work().is_empty());
        world.set.spec.replicas = Some(1);
        assert_eq!(world.work(), ["[delete a uid-a]"]);
    }
}

#[test]
fn a_kind_that_another_process_may_serve_is_told_and_machines_are_made() {
    let mut world = World::new(json!({"replicas": 1}), vec![]);
    world.template =
        Template::Unknown { kind: "Foo.x.io".into(), served: vec!["A.a.io".into(), "B.b.io".into()] };
    assert_eq!(
        world.told("SpecValid"),
        "False UnknownProviderKind: spec.template.spec.providerSpec.value.kind: `Foo.x.io`: no cloud serves this kind \
         here, allowed: `A.a.io`, `B.b.io`"
    );
    assert_eq!(world.work(), ["[create s-]"]);
    world.template = Template::Unjudged;
    assert_eq!(world.told("SpecValid"), "True : ");
}

/// A set under the migration gate, with what spec and status say about the owner.
fn migrating(spec: Option<&str>, status: Option<&str>) -> World {
    let mut world = World::new(json!({"replicas": 1, "authoritativeAPI": spec}), vec![]);
    world.is_gate_on = true;
    world.set.status.authoritative_api = status.map(Into::into);
    world
}

// S38
#[test]
fn a_set_of_another_api_makes_no_machines_and_says_so() {
    assert_eq!(migrating(None, None).plan(), Vec::<String>::new());
    assert_eq!(
        migrating(Some("ClusterAPI"), None).report(),
        json!({"status": {"authoritativeAPI": "ClusterAPI"}})
    );
    assert_eq!(migrating(None, Some("Another")).plan(), Vec::<String>::new());
    for owner in ["ClusterAPI", "Migrating"] {
        let mut world = migrating(None, Some(owner));
        assert_eq!(world.plan(), ["status conditions observedGeneration"]);
        assert_eq!(
            world.told("Paused"),
            format!("True AuthoritativeAPINotMachineAPI: The AuthoritativeAPI status is set to '{owner}'")
        );
        world.apply_status(&world.report());
        assert_eq!(world.plan(), Vec::<String>::new());
    }
}

// S38
#[test]
fn a_set_that_comes_back_goes_on_in_the_same_round() {
    let mut world = migrating(None, Some("Migrating"));
    world.apply_status(&world.report());
    world.set.status.authoritative_api = Some("MachineAPI".into());
    // Written at once, whenever the last write was.
    world.last_status_write = Some(world.now);
    assert_eq!(
        world.told("Paused"),
        "False AuthoritativeAPIMachineAPI: The AuthoritativeAPI status is set to 'MachineAPI'"
    );
    assert_eq!(world.told("SpecValid"), "True : ");
    assert_eq!(world.work(), ["[create s-]"]);
}
