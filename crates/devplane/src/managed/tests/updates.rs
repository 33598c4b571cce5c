//! Who owns what after updates.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::schemas::schema;
use super::{Story, check};
use crate::managed::{Manager, Reach, note_update};

#[test]
fn a_new_object_belongs_to_who_made_it() {
    check(
        &[(
            "update c",
            json!({
                "metadata": { "labels": { "a": "b" }, "finalizers": ["x.y/z"] },
                "spec": {
                    "replicas": 1, "labels": {}, "pairs": { "k": { "x": "1" } }, "atomicMap": { "a": "1" },
                    "plain": ["a"], "set": ["a", "b"], "numbers": [1], "ports": [{ "port": 80 }],
                    "items": [{ "name": "a", "pair": { "x": "1" } }], "any": { "a": { "b": [1] } },
                },
                "status": { "phase": "not through the main resource" },
            }),
        )],
        expect![[r#"
            {"metadata":{"finalizers":["x.y/z"],"labels":{"a":"b"}},"spec":{"any":{"a":{"b":[1]}},"atomicMap":{"a":"1"},"items":[{"name":"a","pair":{"x":"1"}}],"labels":{},"numbers":[1],"pairs":{"k":{"x":"1"}},"plain":["a"],"ports":[{"port":80}],"replicas":1,"set":["a","b"]},"status":{"phase":"not through the main resource"}}
            c updated at 01: .spec .metadata.finalizers .metadata.labels .metadata.finalizers[="x.y/z"] .metadata.labels.a .spec.any .spec.atomicMap .spec.items .spec.labels .spec.numbers .spec.pairs .spec.plain .spec.ports .spec.replicas .spec.set .spec.any.a .spec.any.a.b .spec.items[name="a"] .spec.items[name="a"].name .spec.items[name="a"].pair .spec.items[name="a"].pair.x .spec.numbers[=1] .spec.pairs.k .spec.pairs.k.x .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].port .spec.set[="a"] .spec.set[="b"]
        "#]],
    );
}

#[test]
fn an_update_takes_what_it_changes_from_everybody() {
    check(
        &[
            ("apply a", json!({ "spec": { "replicas": 1, "text": "x" } })),
            ("update u", json!({ "spec": { "replicas": 2 } })),
            ("update v", json!({ "spec": { "replicas": 2, "flag": true } })),
            ("update w", json!({ "spec": { "flag": false } })),
        ],
        expect![[r#"
            {"spec":{"flag":false,"replicas":2,"text":"x"}}
            a applied at 01: .spec.text
            u updated at 02: .spec.replicas
            w updated at 04: .spec.flag
        "#]],
    );
}

#[test]
fn what_is_removed_is_nobodys() {
    check(
        &[
            ("apply a", json!({ "spec": { "replicas": 1, "labels": { "a": "1", "b": "1" } } })),
            (
                "update u",
                json!({ "spec": { "labels": { "a": null }, "items": [{ "name": "a" }], "set": ["a"] } }),
            ),
            ("update v", json!({ "spec": { "replicas": null, "items": [], "set": [] } })),
        ],
        expect![[r#"
            {"spec":{"items":[],"labels":{"b":"1"},"set":[]}}
            a applied at 01: .spec.labels.b
            u updated at 02: .spec.items .spec.set
        "#]],
    );
}

#[test]
fn who_changes_nothing_is_not_noted() {
    check(
        &[
            (
                "update c",
                json!({ "spec": { "set": ["a", "b"], "items": [{ "name": "a" }, { "name": "b" }] } }),
            ),
            (
                "update u",
                json!({ "spec": { "set": ["b", "a"], "items": [{ "name": "b" }, { "name": "a" }] } }),
            ),
        ],
        expect![[r#"
            {"spec":{"items":[{"name":"b"},{"name":"a"}],"set":["b","a"]}}
            c updated at 01: .spec .spec.items .spec.set .spec.items[name="a"] .spec.items[name="b"] .spec.items[name="a"].name .spec.items[name="b"].name .spec.set[="a"] .spec.set[="b"]
        "#]],
    );
}

#[test]
fn atomic_values_have_one_owner() {
    check(
        &[
            ("update c", json!({ "spec": { "plain": ["a"], "atomicMap": { "a": "1" }, "any": { "a": 1 } } })),
            ("update u", json!({ "spec": { "plain": ["b"], "atomicMap": { "b": "1" } } })),
            ("update v", json!({ "spec": { "any": [1] } })),
        ],
        expect![[r#"
            {"spec":{"any":[1],"atomicMap":{"a":"1","b":"1"},"plain":["b"]}}
            c updated at 01: .spec
            u updated at 02: .spec.atomicMap .spec.plain
            v updated at 03: .spec.any
        "#]],
    );
}

#[test]
fn subresources_have_entries_of_their_own() {
    check(
        &[
            ("update m", json!({ "spec": { "replicas": 1 } })),
            ("status m", json!({ "status": { "phase": "on" }, "metadata": { "managedFields": [{}] } })),
            ("status n", json!({ "status": { "phase": "off" } })),
        ],
        expect![[r#"
            {"spec":{"replicas":1},"status":{"phase":"off"}}
            m updated at 01: .spec .spec.replicas
            m updated through status at 02: .status
            n updated through status at 03: .status.phase
        "#]],
    );
}

#[test]
fn items_that_are_there_twice_are_owned_whole() {
    let twice = |first: &str, second: &str| {
        json!({ "spec": { "items": [
            { "name": "a", "v": first }, { "name": "a", "v": second }, { "name": "b" },
        ]}})
    };
    check(
        &[
            ("update c", twice("1", "2")),
            ("update u", twice("1", "3")),
            ("update v", json!({ "spec": { "items": [{ "name": "a", "v": "1" }, { "name": "b" }] } })),
            ("update w", twice("1", "1")),
        ],
        expect![[r#"
            {"spec":{"items":[{"name":"a","v":"1"},{"name":"a","v":"1"},{"name":"b"}]}}
            c updated at 01: .spec .spec.items .spec.items[name="b"] .spec.items[name="b"].name
            w updated at 04: .spec.items[name="a"]
        "#]],
    );
}

#[test]
fn entries_can_be_sent_along() {
    let entry = |more: Value| {
        let mut entry = json!({
            "manager": "x", "operation": "Update", "apiVersion": "t.io/v1", "fieldsType": "FieldsV1",
            "time": "2020-01-01T00:00:00Z", "fieldsV1": { "f:spec": { "f:text": {} } },
        });
        crate::patch::merge(&mut entry, &more);
        json!({ "spec": { "flag": true }, "metadata": { "managedFields": [entry] } })
    };
    let check = |sent: Value, expected: Expect| {
        check(&[("update c", json!({ "spec": { "replicas": 1 } })), ("update p", sent)], expected);
    };
    check(
        entry(json!({})),
        expect![[r#"
        {"spec":{"flag":true,"replicas":1}}
        x updated at 00: .spec.text
        p updated at 02: .spec.flag
    "#]],
    );
    check(
        entry(json!({ "operation": "Apply" })),
        expect![[r#"
        {"spec":{"flag":true,"replicas":1}}
        x applied at 00: .spec.text
        p updated at 02: .spec.flag
    "#]],
    );
    // None of these makes sense, and the entries stay as they are.
    for nonsense in [
        json!({ "operation": "Other" }),
        json!({ "fieldsType": "FieldsV2" }),
        json!({ "apiVersion": "" }),
        json!({ "fieldsV1": { "f:spec": 1 } }),
        json!({ "fieldsV1": { "spec": {} } }),
        json!({ "fieldsV1": { "f:spec": { "k:{": {} } } }),
    ] {
        let mut story = Story::new();
        story.step("update c", &json!({ "spec": { "replicas": 1 } })).expect("updates are not refused");
        story.step("update p", &entry(nonsense)).expect("updates are not refused");
        let expected = "c updated at 01: .spec .spec.replicas\np updated at 02: .spec.flag\n";
        assert_eq!(story.owners(), expected);
    }
}

#[test]
fn owners_can_be_forgotten_until_somebody_applies() {
    let forget = json!({ "metadata": { "managedFields": [{}] } });
    let steps = [
        ("update c", json!({ "spec": { "replicas": 1 } })),
        ("update c", forget),
        ("update u", json!({ "spec": { "text": "x" } })),
        ("apply a", json!({ "spec": { "flag": true } })),
    ];
    check(
        &steps[..3],
        expect![[r#"
        {"spec":{"replicas":1,"text":"x"}}
    "#]],
    );
    check(
        &steps,
        expect![[r#"
        {"spec":{"flag":true,"replicas":1,"text":"x"}}
        a applied at 04: .spec.flag
        before-first-apply updated at 04: .spec .spec.replicas .spec.text
    "#]],
    );
}

#[test]
fn of_many_updates_the_oldest_become_one() {
    let mut story = Story::new();
    for number in 0..14 {
        let sent = json!({ "spec": { "labels": { format!("k{number}"): "v" } } });
        story.step(&format!("update m{number}"), &sent).expect("updates are not refused");
    }
    expect![[r#"
        ancient-changes updated at 05: .spec .spec.labels .spec.labels.k0 .spec.labels.k1 .spec.labels.k2 .spec.labels.k3 .spec.labels.k4
        m5 updated at 06: .spec.labels.k5
        m6 updated at 07: .spec.labels.k6
        m7 updated at 08: .spec.labels.k7
        m8 updated at 09: .spec.labels.k8
        m9 updated at 10: .spec.labels.k9
        m10 updated at 11: .spec.labels.k10
        m11 updated at 12: .spec.labels.k11
        m12 updated at 13: .spec.labels.k12
        m13 updated at 14: .spec.labels.k13
    "#]].assert_eq(&story.owners());
}

#[test]
fn what_is_always_there_belongs_to_nobody() {
    let part = json!({ "type": "object", "default": {}, "properties": { "x": { "type": "string" } } });
    let schema = schema(&json!({ "type": "object", "properties": { "spec": part, "other": part } }));
    let manager = Manager { name: "c", api_version: "v1", subresource: "", time: "now", reach: Reach::All };
    let mut new = json!({ "spec": { "x": "1" }, "other": {} });
    note_update(&schema, None, &mut new, &manager);
    assert_eq!(new["metadata"]["managedFields"][0]["fieldsV1"], json!({ "f:spec": { "f:x": {} } }));
}
