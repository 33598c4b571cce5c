//! Specs that cannot be acted upon.

use super::*;

fn missing() -> Serving {
    Serving::Missing { served: vec!["K.g".into(), "L.h".into()] }
}

// M38
#[test]
fn without_cluster_label_nothing_is_asked_and_the_machine_says_why_once() {
    for labels in [json!(null), json!({"machine.openshift.io/cluster-api-cluster": ""})] {
        let mut world = World::new(json!({"metadata": {"finalizers": null, "labels": labels}}));
        let round = world.round(absent());
        assert_eq!(
            (round.asked, round.requeue.clone(), world.has_finalizer()),
            (None, Requeue::Never, false)
        );
        assert_eq!(
            world.condition("SpecValid"),
            "False Error MissingLabel metadata.labels: missing machine.openshift.io/cluster-api-cluster label: \
             its value must be the id of the cluster"
        );
        assert_eq!((round.reasons(), world.phase().as_str()), (vec!["FailedValidate"], ""));
        let again = world.round(absent());
        assert_eq!((again.writes.clone(), again.reasons()), (vec![], vec![]), "no event each time");
    }
}

// M39
#[test]
fn without_provider_spec_the_kinds_that_would_be_served_are_named() {
    let mut world = World::new(json!({"metadata": {"finalizers": null}}));
    world.serving = missing();
    world.round(absent());
    assert_eq!(
        world.condition("SpecValid"),
        "False Error MissingProviderSpec spec.providerSpec.value: value field must be set to an object whose kind is \
         one of `K.g`, `L.h`"
    );
    assert!(!world.has_finalizer() && world.phase().is_empty());
}

#[test]
fn an_unknown_kind_is_named_with_those_that_would_be_served_and_fails_nothing() {
    let mut world = World::new(json!({}));
    world.serving = Serving::Unknown { kind: "X.g".into(), served: vec!["K.g".into()] };
    let round = world.round(absent());
    assert_eq!(
        world.condition("SpecValid"),
        "False Error UnknownProviderKind spec.providerSpec.value.kind: `X.g` is served by no cloud here: must be one \
         of `K.g`"
    );
    assert_eq!((world.phase().as_str(), round.requeue), ("", Requeue::Never));
}

#[test]
fn all_complaints_are_told_together() {
    let mut world = World::new(json!({"metadata": {"labels": null}}));
    world.serving = missing();
    world.round(absent());
    let condition = world.condition("SpecValid");
    assert!(condition.starts_with("False Error MissingLabel"), "{condition}");
    assert!(condition.contains("label") && condition.contains("value field must be set"), "{condition}");
}

#[test]
fn a_mended_spec_is_said_to_be_valid_and_one_that_never_was_bad_is_not_mentioned() {
    let mut world = World::new(json!({}));
    world.serving = missing();
    world.round(absent());
    world.serving = Serving::By { settle: Duration::ZERO };
    world.round(absent());
    assert_eq!((world.condition("SpecValid").as_str(), world.phase().as_str()), ("True", "Provisioning"));

    let mut healthy = World::new(json!({}));
    healthy.round(absent());
    assert_eq!(healthy.condition("SpecValid"), "none");
}

#[test]
fn a_running_machine_that_loses_its_label_keeps_its_phase_and_gets_its_finalizer_back() {
    let mut world = World::provisioning(linked());
    world.round(present(up()));
    world.machine["metadata"]["labels"] = json!({});
    world.machine["metadata"]["finalizers"] = json!([]);
    let round = world.round(absent());
    assert_eq!((round.asked, world.phase().as_str(), world.has_finalizer()), (None, "Running", true));
}

#[test]
fn data_in_a_message_is_never_a_format() {
    let mut world = World::new(json!({}));
    world.serving = Serving::Unknown { kind: "%s{}%d.g".into(), served: vec![] };
    let round = world.round(absent());
    assert!(round.events[0].note.contains("`%s{}%d.g`"), "item 22");
}
