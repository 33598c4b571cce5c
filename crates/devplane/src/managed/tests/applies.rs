//! What comes of server-side apply, and who owns it then.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Story, check};
use crate::managed::{Manager, Reach, apply};

#[test]
fn what_was_applied_and_is_no_more_goes() {
    check(
        &[
            (
                "apply a",
                json!({ "spec": { "replicas": 1, "text": "x", "labels": { "a": "1", "b": "1" }, "struct": { "deep": { "z": "1" } } } }),
            ),
            ("apply a", json!({ "spec": { "text": "x", "labels": { "b": "1" } } })),
        ],
        expect![[r#"
            {"spec":{"labels":{"b":"1"},"text":"x"}}
            a applied at 02: .spec.text .spec.labels.b
        "#]],
    );
}

#[test]
fn what_others_own_stays() {
    check(
        &[
            (
                "apply a",
                json!({ "spec": { "replicas": 1, "text": "x", "struct": { "x": "1", "deep": { "z": "1" } } } }),
            ),
            ("apply b", json!({ "spec": { "replicas": 1 } })),
            ("update u", json!({ "spec": { "struct": { "deep": { "w": "1" } } } })),
            ("apply a", json!({ "spec": { "flag": true } })),
        ],
        expect![[r#"
            {"spec":{"flag":true,"replicas":1,"struct":{"deep":{"w":"1"}}}}
            b applied at never: .spec.replicas
            a applied at 04: .spec.flag
            u updated at 03: .spec.struct.deep.w
        "#]],
    );
}

#[test]
fn an_item_goes_even_if_others_own_a_part_of_it() {
    check(
        &[
            (
                "apply a",
                json!({ "spec": { "items": [{ "name": "a", "v": "1" }, { "name": "b", "v": "1" }] } }),
            ),
            (
                "update u",
                json!({ "spec": { "items": [{ "name": "a", "v": "1", "w": "1" }, { "name": "b", "v": "1" }] } }),
            ),
            ("apply a", json!({ "spec": { "items": [{ "name": "b", "v": "1" }] } })),
        ],
        expect![[r#"
            {"spec":{"items":[{"name":"b","v":"1"}]}}
            a applied at 03: .spec.items[name="b"] .spec.items[name="b"].name .spec.items[name="b"].v
        "#]],
    );
}

#[test]
fn what_is_emptied_becomes_null() {
    check(
        &[
            ("apply a", json!({ "spec": { "text": "x", "pairs": { "k": { "x": "1" } } } })),
            ("update u", json!({ "spec": { "pairs": { "k": { "y": "1" } } } })),
            ("apply a", json!({ "spec": { "text": "x" } })),
        ],
        expect![[r#"
            {"spec":{"pairs":null,"text":"x"}}
            a applied at 03: .spec.text
        "#]],
    );
}

#[test]
fn lists_are_merged_by_their_keys() {
    check(
        &[
            (
                "apply a",
                json!({ "spec": { "set": ["a", "b"], "items": [{ "name": "a", "v": "1" }, { "name": "b" }], "ports": [{ "port": 1 }] } }),
            ),
            (
                "apply b",
                json!({ "spec": { "set": ["c", "a"], "items": [{ "name": "c" }, { "name": "a", "w": "2" }], "ports": [{ "port": 1, "protocol": "UDP" }, { "port": 1, "protocol": "TCP" }] } }),
            ),
            ("apply a", json!({ "spec": { "set": ["b"], "items": [{ "name": "b" }] } })),
        ],
        expect![[r#"
            {"spec":{"items":[{"name":"c"},{"name":"a","w":"2"},{"name":"b"}],"ports":[{"port":1,"protocol":"UDP"},{"port":1,"protocol":"TCP"}],"set":["c","a","b"]}}
            b applied at 02: .spec.items[name="a"] .spec.items[name="c"] .spec.items[name="a"].name .spec.items[name="a"].w .spec.items[name="c"].name .spec.ports[port=1,protocol="TCP"] .spec.ports[port=1,protocol="UDP"] .spec.ports[port=1,protocol="TCP"].port .spec.ports[port=1,protocol="TCP"].protocol .spec.ports[port=1,protocol="UDP"].port .spec.ports[port=1,protocol="UDP"].protocol .spec.set[="a"] .spec.set[="c"]
            a applied at 03: .spec.items[name="b"] .spec.items[name="b"].name .spec.set[="b"]
        "#]],
    );
}

#[test]
fn atomic_values_are_replaced() {
    check(
        &[
            ("apply a", json!({ "spec": { "plain": ["a", "b"], "atomicMap": { "a": "1" } } })),
            ("force b", json!({ "spec": { "plain": ["b"], "atomicMap": { "b": "1" } } })),
            ("apply a", json!({ "spec": { "text": "x" } })),
        ],
        expect![[r#"
            {"spec":{"atomicMap":{"b":"1"},"plain":["b"],"text":"x"}}
            b applied at 02: .spec.atomicMap .spec.plain
            a applied at 03: .spec.text
        "#]],
    );
}

#[test]
fn items_keep_an_order_that_suits_both() {
    for (live, applied, expected) in [
        ("ched", "beadc", "hbeadc"),
        ("hegdf", "cbfgd", "hecbfgd"),
        ("bheacf", "edhgfb", "eacdhgfb"),
        ("ghfcd", "gech", "gfecdh"),
        ("bfgh", "ecafd", "becafghd"),
        ("ghafeb", "fecgb", "hafecgb"),
        ("abdc", "ebfa", "ebdcfa"),
        ("begcdf", "dchge", "bdfchge"),
        ("gecadf", "cafh", "gecadfh"),
        ("ebfa", "gaeh", "bfgaeh"),
        ("", "dab", "dab"),
        ("ba", "h", "bah"),
    ] {
        let list = |text: &str| -> Value { text.chars().map(String::from).collect() };
        let mut story = Story::new();
        story.step("update c", &json!({ "spec": { "set": list(live) } })).expect("updates are not refused");
        story.step("apply a", &json!({ "spec": { "set": list(applied) } })).expect("nobody minds an order");
        assert_eq!(story.content()["spec"]["set"], list(expected), "{live} and {applied}");
    }
}

#[test]
fn changes_of_what_others_own_are_conflicts() {
    let b = json!({ "spec": {
        "replicas": 2, "labels": { "a": "2" }, "items": [{ "name": "i", "v": "2", "pair": { "x": "2" } }],
        "ports": [{ "port": 80, "v": "2" }], "plain": ["2"],
    }});
    check(
        &[
            ("apply a", json!({ "spec": { "replicas": 1, "ports": [{ "port": 80, "v": "1" }] } })),
            (
                "update u",
                json!({ "spec": { "labels": { "a": "1" }, "plain": ["1"], "items": [{ "name": "i", "v": "1", "pair": { "x": "1" } }] } }),
            ),
            ("apply b", json!({ "spec": { "replicas": 2 } })),
            ("apply b", b.clone()),
            ("force b", b),
        ],
        expect![[r#"
            apply b: 409 Apply failed with 1 conflict: conflict with "a": .spec.replicas
            apply b: 409 Apply failed with 6 conflicts: conflicts with "a":
            - .spec.replicas
            - .spec.ports[port=80,protocol="TCP"].v
            conflicts with "u" using t.io/v1:
            - .spec.plain
            - .spec.items[name="i"].v
            - .spec.items[name="i"].pair.x
            - .spec.labels.a
            {"spec":{"items":[{"name":"i","pair":{"x":"2"},"v":"2"}],"labels":{"a":"2"},"plain":["2"],"ports":[{"port":80,"v":"2"}],"replicas":2}}
            a applied at 01: .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].port
            b applied at 05: .spec.plain .spec.replicas .spec.items[name="i"] .spec.items[name="i"].name .spec.items[name="i"].v .spec.items[name="i"].pair.x .spec.labels.a .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].port .spec.ports[port=80,protocol="TCP"].v
            u updated at 02: .spec.items .spec.labels .spec.items[name="i"] .spec.items[name="i"].name .spec.items[name="i"].pair
        "#]],
    );
}

#[test]
fn conflicts_name_their_causes() {
    let mut story = Story::new();
    story.step("status s", &json!({ "status": { "phase": "on" } })).expect("updates are not refused");
    let manager = Manager {
        name: "a",
        api_version: "t.io/v1",
        subresource: "status",
        time: "now",
        reach: Reach::Only("status"),
    };
    let applied = json!({ "apiVersion": "t.io/v1", "kind": "Thing", "status": { "phase": "off" } });
    let error = apply(&story.schema, story.object.as_ref(), &applied, &manager, false)
        .expect_err("somebody else owns it");
    assert_eq!(
        error.status(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Conflict", "code": 409,
            "message": r#"Apply failed with 1 conflict: conflict with "s" with subresource "status" using t.io/v1: .status.phase"#,
            "details": { "causes": [{
                "reason": "FieldManagerConflict", "field": ".status.phase",
                "message": r#"conflict with "s" with subresource "status" using t.io/v1"#,
            }]},
        })
    );
}

#[test]
fn nulls_keep_what_has_parts() {
    check(
        &[
            (
                "update c",
                json!({ "spec": { "labels": { "a": "1" }, "set": ["a"], "plain": ["a"], "any": { "a": 1 } } }),
            ),
            ("apply a", json!({ "spec": { "any": { "b": 2 } } })),
            (
                "apply b",
                serde_json::from_str(r#"{"spec": {"labels": null, "set": null, "any": null}}"#)
                    .expect("JSON"),
            ),
        ],
        expect![[r#"
            {"spec":{"any":{"a":1,"b":2},"labels":{"a":"1"},"plain":["a"],"set":["a"]}}
            b applied at never: .spec.any .spec.labels .spec.set
            a applied at 02: .spec.any.b
            c updated at 01: .spec .spec.any .spec.labels .spec.plain .spec.set .spec.any.a .spec.labels.a .spec.set[="a"]
        "#]],
    );
}

#[test]
fn who_changes_nothing_leaves_no_time() {
    check(
        &[
            ("apply a", json!({ "spec": { "replicas": 1 } })),
            ("apply b", json!({ "spec": { "replicas": 1 } })),
            ("apply a", json!({ "spec": { "replicas": 1 } })),
            ("apply c", json!({ "spec": { "replicas": 1, "flag": true } })),
            ("apply d", json!({})),
        ],
        expect![[r#"
            {"spec":{"flag":true,"replicas":1}}
            b applied at never: .spec.replicas
            a applied at 01: .spec.replicas
            c applied at 04: .spec.flag .spec.replicas
        "#]],
    );
}

#[test]
fn who_applies_something_forgotten_meets_its_first_owner() {
    check(
        &[
            ("update c", json!({ "spec": { "replicas": 1 } })),
            ("update c", json!({ "metadata": { "managedFields": [{}] } })),
            ("apply a", json!({ "spec": { "replicas": 2 } })),
            ("force a", json!({ "spec": { "replicas": 2 } })),
        ],
        expect![[r#"
            apply a: 409 Apply failed with 1 conflict: conflict with "before-first-apply" using t.io/v1: .spec.replicas
            {"spec":{"replicas":2}}
            a applied at 04: .spec.replicas
            before-first-apply updated at 04: .spec
        "#]],
    );
}

#[test]
fn kubectl_may_change_what_it_applied_without_the_server() {
    let last =
        r#"{"apiVersion":"t.io/v1","kind":"Thing","metadata":{"name":"x"},"spec":{"replicas":1,"text":"x"}}"#;
    let annotated = json!({
        "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": last } },
        "spec": { "replicas": 1, "text": "x" },
    });
    check(
        &[
            ("update kubectl-client-side-apply", annotated.clone()),
            ("apply other", json!({ "spec": { "replicas": 2 } })),
            ("apply kubectl", json!({ "spec": { "replicas": 2 } })),
        ],
        expect![[r#"
            apply other: 409 Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using t.io/v1: .spec.replicas
            {"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"t.io/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":2}}\n"}},"spec":{"replicas":2,"text":"x"}}
            kubectl applied at 03: .spec.replicas
            kubectl-client-side-apply updated at 01: .spec .metadata.annotations .metadata.annotations.kubectl.kubernetes.io/last-applied-configuration .spec.text
        "#]],
    );
    check(
        &[
            ("update kubectl-client-side-apply", annotated),
            ("update u", json!({ "spec": { "replicas": 7 } })),
            ("apply kubectl", json!({ "spec": { "replicas": 2, "text": "y" } })),
        ],
        expect![[r#"
            apply kubectl: 409 Apply failed with 1 conflict: conflict with "u" using t.io/v1: .spec.replicas
            {"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"t.io/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":1,\"text\":\"x\"}}"}},"spec":{"replicas":7,"text":"x"}}
            kubectl-client-side-apply updated at 01: .spec .metadata.annotations .metadata.annotations.kubectl.kubernetes.io/last-applied-configuration .spec.text
            u updated at 02: .spec.replicas
        "#]],
    );
}

#[test]
fn tools_may_leave_a_null_creation_time() {
    let sent = r#"{"metadata": {"creationTimestamp": null}, "spec": {"text": "x"}}"#;
    let sent: Value = serde_json::from_str(sent).expect("JSON");
    let mut story = Story::new();
    story
        .step("update c", &json!({ "metadata": { "creationTimestamp": "then" } }))
        .expect("updates are not refused");
    story.step("apply a", &sent).expect("nobody owns it");
    assert_eq!(
        story.content(),
        json!({ "metadata": { "creationTimestamp": "then" }, "spec": { "text": "x" } })
    );
}
