//! What is said of applied objects that make no sense.

use serde_json::{Value, json};

use super::Story;

fn refusal(spec: Value) -> String {
    let refusal = Story::new().step("apply a", &json!({ "metadata": { "namespace": "n" }, "spec": spec }));
    let refusal = refusal.expect_err("it makes no sense");
    let known = "500 failed to create typed patch object (n/x; t.io/v1, Kind=Thing): ";
    refusal.strip_prefix(known).expect("all of them begin so").to_owned()
}

#[test]
fn shapes_must_fit() {
    for (spec, expected) in [
        (json!("x"), ".spec: expected map, got &{x}"),
        (json!({ "text": 1 }), ".spec.text: expected string, got &value.valueUnstructured{Value:1}"),
        (
            json!({ "text": { "b": [1, "x", true, 1.5], "a": "q" } }),
            ".spec.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":\"q\", \
             \"b\":[]interface {}{1, \"x\", true, 1.5}}}",
        ),
        (json!({ "replicas": "x" }), ".spec.replicas: expected numeric (int or float), got string"),
        (
            json!({ "replicas": {} }),
            ".spec.replicas: expected numeric (int or float), got map[string]interface {}",
        ),
        (json!({ "flag": 1e30 }), ".spec.flag: expected boolean, got &{1e+30}"),
        (json!({ "flag": { "a": "q", "b": [1] } }), ".spec.flag: expected boolean, got &{map[a:q b:[1]]}"),
        (json!({ "labels": [1] }), ".spec.labels: expected map, got &{[1]}"),
        (
            json!({ "labels": { "a": 1 } }),
            ".spec.labels.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (json!({ "items": { "a": 1 } }), ".spec.items: expected list, got &{map[a:1]}"),
        (
            json!({ "plain": ["a", 1] }),
            ".spec.plain[1]: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (json!({ "atomicMap": { "q": 1 } }), ".spec.atomicMap.q: field not declared in schema"),
        (json!({ "bar": 1, "foo": 1 }), ".spec.bar: field not declared in schema"),
        (
            json!({ "items": [{ "name": "a", "q": 1 }] }),
            r#".spec.items[name="a"].q: field not declared in schema"#,
        ),
    ] {
        assert_eq!(refusal(spec.clone()), expected, "{spec}");
    }
}

#[test]
fn items_must_be_told_apart() {
    for (spec, expected) in [
        (
            json!({ "items": [{ "name": "a" }, { "name": "a" }] }),
            r#".spec.items: duplicate entries for key [name="a"]"#,
        ),
        (
            json!({ "ports": [{ "port": 1, "protocol": "TCP" }, { "port": 1 }] }),
            r#".spec.ports: duplicate entries for key [port=1,protocol="TCP"]"#,
        ),
        (
            json!({ "set": ["a", "a"], "numbers": [1.0, 1] }),
            "errors:\n  .spec.numbers: duplicate entries for key [=1]\n  .spec.set: duplicate entries for key [=\"a\"]",
        ),
        (
            json!({ "items": [{ "v": "a" }] }),
            ".spec.items: element 0: associative list with keys has an element that omits all key fields [\"name\"] \
             (and doesn't have default values for any key fields)",
        ),
        (
            json!({ "items": ["x"] }),
            ".spec.items: element 0: associative list with keys may not have non-map elements",
        ),
        (
            json!({ "set": ["a", {}] }),
            ".spec.set: element 1: associative list without keys has an element that's a map type",
        ),
        (
            json!({ "set": [null] }),
            ".spec.set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({ "set": [["a"]] }),
            ".spec.set: element 0: not supported: associative list with lists as elements",
        ),
    ] {
        assert_eq!(refusal(spec.clone()), expected, "{spec}");
    }
}

#[test]
fn owners_may_not_be_applied() {
    for managed in [json!([]), json!([{}])] {
        let refusal = Story::new().step("apply a", &json!({ "metadata": { "managedFields": managed } }));
        assert_eq!(refusal, Err("400 metadata.managedFields must be nil".into()));
    }
}
