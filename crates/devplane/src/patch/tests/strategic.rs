//! Strategic merge patch.

use serde_json::{Value, json};

use crate::managed::tests::schemas::{metadata, schema};
use crate::patch::strategic;

fn patched(object: &Value, patch: &Value) -> Result<Value, String> {
    let string = json!({ "type": "string" });
    let named = |more: Value| {
        let mut list = json!({
            "type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
        });
        list["items"] = json!({ "type": "object", "properties": more });
        list
    };
    let schema = schema(&json!({ "type": "object", "properties": {
        "metadata": metadata(),
        "data": { "type": "object", "additionalProperties": string },
        "containers": named(json!({
            "name": string, "image": string, "args": { "type": "array", "items": string },
            "env": named(json!({ "name": string, "value": string })),
        })),
    }}));
    let mut object = object.clone();
    strategic(&schema, &mut object, patch).map_err(|error| format!("{} {}", error.code, error.message))?;
    Ok(object)
}

/// Owners with these uids, and after a colon their names.
fn owners(text: &str) -> Value {
    let owner = |word: &str| match word.split_once(':') {
        None => json!({ "uid": word }),
        Some((uid, "delete")) => json!({ "uid": uid, "$patch": "delete" }),
        Some(("", directive)) => json!({ "$patch": directive }),
        Some((uid, name)) => json!({ "uid": uid, "name": name }),
    };
    text.split_whitespace().map(owner).collect()
}

fn words(text: &str) -> Value {
    text.split_whitespace().collect()
}

#[test]
fn lists_of_objects_are_merged_by_key() {
    for (before, patch, order, after) in [
        ("1:a 2:a", "1:b", None, "1:b 2:a"),
        ("1:a 2:a", "2:b 4:b", None, "1:a 2:b 4:b"),
        ("1:a 2:a 3:a", "4:b 1:b", None, "4:b 1:b 2:a 3:a"),
        ("1:a 2:a 3:a", "3:b 4:b 1:b", None, "2:a 3:b 4:b 1:b"),
        ("1:a 2:a", "1:delete", None, "2:a"),
        ("1:a 2:a", "9:delete", None, "1:a 2:a"),
        ("1:a 2:a", ":replace 3:b", None, "3:b"),
        ("1:a 2:a", "3:b :replace", None, "3:b"),
        ("1:a 2:a", ":replace", None, ""),
        ("1:a 2:a", "", None, "1:a 2:a"),
        ("1:a 2:a", "", Some("2 1"), "2:a 1:a"),
        ("1:a 2:a 3:a", "", Some("3 1"), "2:a 3:a 1:a"),
        ("1:a 2:a", "3:b", Some("2 3 1"), "2:a 3:b 1:a"),
        ("1:a 2:a 3:a", "1:delete 3:b", Some("3 1"), "2:a 3:b"),
        ("1:a 2:a", "3:b :replace", Some("3"), "500"),
        ("1:a 2:a", ":replace 3:b", Some("3"), "3:b"),
        ("1:a", "3:b 4:b", Some("4 3"), "500"),
        ("1:a", "3:b", Some("1"), "500"),
        ("1:a", "3:b", Some(""), "3:b 1:a"),
    ] {
        let mut sent = json!({ "metadata": { "ownerReferences": owners(patch) } });
        if let Some(order) = order {
            sent["metadata"]["$setElementOrder/ownerReferences"] = owners(order);
            if patch.is_empty() {
                sent["metadata"]["ownerReferences"].take();
                sent["metadata"].as_object_mut().expect("an object").remove("ownerReferences");
            }
        }
        let result = patched(&json!({ "metadata": { "ownerReferences": owners(before) } }), &sent);
        match result {
            Ok(result) => {
                assert_eq!(result["metadata"]["ownerReferences"], owners(after), "{before} and {sent}")
            }
            Err(refusal) => assert_eq!(refusal.get(..3), Some(after), "{before} and {sent}: {refusal}"),
        }
    }
}

#[test]
fn lists_of_words_are_merged() {
    for (before, patch, after) in [
        ("c d", json!({ "finalizers": ["e", "c"] }), "e c d"),
        ("1 2 3", json!({ "finalizers": ["9", "2"] }), "9 1 2 3"),
        ("1 2 3", json!({ "finalizers": ["2", "9"] }), "1 2 9 3"),
        ("c d", json!({ "finalizers": ["c", "c"] }), "c d"),
        ("c d", json!({ "$deleteFromPrimitiveList/finalizers": ["c", "x"] }), "d"),
        ("c d", json!({ "$deleteFromPrimitiveList/finalizers": ["c"], "finalizers": ["z"] }), "z d"),
        ("c d", json!({ "$deleteFromPrimitiveList/finalizers": "c" }), "c d"),
        ("c d", json!({ "$setElementOrder/finalizers": ["d", "c"] }), "d c"),
        ("c d", json!({ "$setElementOrder/finalizers": ["d", "q", "c"], "finalizers": ["q"] }), "d q c"),
        (
            "1 2 3",
            json!({ "$setElementOrder/finalizers": ["3", "8", "1"], "finalizers": ["8"],
            "$deleteFromPrimitiveList/finalizers": ["2"] }),
            "3 8 1",
        ),
    ] {
        let result =
            patched(&json!({ "metadata": { "finalizers": words(before) } }), &json!({ "metadata": patch }));
        assert_eq!(result.expect("it fits")["metadata"]["finalizers"], words(after), "{before} and {patch}");
    }
}

#[test]
fn maps_are_merged_replaced_or_emptied() {
    for (patch, after) in [
        (json!({ "a": null, "c": "3" }), json!({ "b": "2", "c": "3" })),
        (json!({ "n": null }), json!({ "a": "1", "b": "2" })),
        (json!({ "$patch": "replace", "x": "y" }), json!({ "x": "y" })),
        (json!({ "$patch": "delete", "x": "y" }), json!({})),
        (json!({ "$retainKeys": ["a"], "a": "z" }), json!({ "a": "z" })),
        (json!({ "$retainKeys": ["a"], "b": null }), json!({ "a": "1" })),
        (json!({ "$retainKeys": [] }), json!({})),
        (json!("x"), json!("x")),
    ] {
        let result = patched(&json!({ "data": { "a": "1", "b": "2" } }), &json!({ "data": patch }));
        assert_eq!(result, Ok(json!({ "data": after })), "{patch}");
    }
    assert_eq!(patched(&json!({ "data": {} }), &json!({ "data": null })), Ok(json!({})));
}

#[test]
fn what_is_new_comes_without_directives() {
    for (patch, after) in [
        (json!({ "data": { "a": "1", "b": null } }), json!({ "data": { "a": "1" } })),
        (json!({ "data": { "$patch": "replace", "a": "1" } }), json!({})),
        (
            json!({ "containers": [{ "name": "a", "$setElementOrder/env": [{ "name": "x" }], "image": null }] }),
            json!({ "containers": [{ "name": "a" }] }),
        ),
        (
            json!({ "containers": [{ "name": "a" }, { "name": "b", "$patch": "delete" }, { "$patch": "replace" }] }),
            json!({ "containers": [{ "name": "a" }] }),
        ),
    ] {
        assert_eq!(patched(&json!({}), &patch), Ok(after), "{patch}");
    }
}

#[test]
fn lists_inside_of_items_are_merged_too() {
    let before = json!({ "containers": [
        { "name": "a", "image": "1", "args": ["x", "y"], "env": [{ "name": "P", "value": "1" }, { "name": "Q", "value": "1" }] },
        { "name": "b", "image": "1" },
    ]});
    let patch = json!({
        "$setElementOrder/containers": [{ "name": "b" }, { "name": "a" }],
        "containers": [
            {
                "name": "a", "args": ["z"], "$setElementOrder/env": [{ "name": "Q" }, { "name": "R" }],
                "env": [{ "name": "P", "$patch": "delete" }, { "name": "Q", "value": null }, { "name": "R", "value": "2" }],
            },
        ],
    });
    let after = json!({ "containers": [
        { "name": "b", "image": "1" },
        { "name": "a", "image": "1", "args": ["z"], "env": [{ "name": "Q" }, { "name": "R", "value": "2" }] },
    ]});
    assert_eq!(patched(&before, &patch), Ok(after));
}

#[test]
fn patches_that_make_no_sense_are_refused() {
    let before = json!({ "metadata": { "ownerReferences": owners("1:a"), "finalizers": ["c"] }, "data": { "a": "1" } });
    for (patch, expected) in [
        (json!({ "$patch": "x" }), "500 unknown patch type: x in map: map[$patch:x]"),
        (
            json!({ "data": { "$patch": "merge", "x": "y" } }),
            "500 unknown patch type: merge in map: map[$patch:merge x:y]",
        ),
        (json!({ "data": { "$retainKeys": ["a"], "b": "1" } }), "400 invalid patch format of retainKeys"),
        (json!({ "data": { "$retainKeys": "a" } }), "400 invalid patch format of retainKeys"),
        (
            json!({ "metadata": { "ownerReferences": [{ "name": "x" }] } }),
            "500 map: map[name:x] does not contain declared merge key: uid",
        ),
        (
            json!({ "metadata": { "ownerReferences": [{ "$patch": "delete" }] } }),
            "500 map: map[$patch:delete] does not contain declared merge key: uid",
        ),
        (
            json!({ "metadata": { "ownerReferences": [{ "$patch": "merge" }] } }),
            "500 merging lists cannot yet be specified in the patch",
        ),
        (
            json!({ "metadata": { "ownerReferences": [{ "$patch": "foo", "uid": "1" }] } }),
            "500 unknown patch type: foo in map: map[$patch:foo uid:1]",
        ),
        (
            json!({ "metadata": { "ownerReferences": ["x"] } }),
            "500 list element types are not identical: [[map[name:a uid:1]] [x]]",
        ),
        (json!({ "metadata": { "finalizers": [1] } }), "500 list element types are not identical: [[c] [1]]"),
        (
            json!({ "metadata": { "finalizers": [null] } }),
            "500 list element types are not identical: [[c] [<nil>]]",
        ),
        (
            json!({ "metadata": { "$setElementOrder/finalizers": "x" } }),
            "500 expected a []interface {}, but received a string",
        ),
        (
            json!({ "metadata": { "$setElementOrder/finalizers": ["d"], "finalizers": ["q"] } }),
            "500 The order in patch list:\n[q]\n doesn't match $setElementOrder list:\n[d]\n",
        ),
        (
            json!({ "metadata": { "$setElementOrder/ownerReferences": [{ "name": "1" }] } }),
            "500 map: map[name:1] does not contain declared merge key: uid",
        ),
        (
            json!({ "metadata": { "$setElementOrder/ownerReferences": ["x"] } }),
            "500 value for key 0 is not a map",
        ),
        (json!([]), "400 json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ] {
        assert_eq!(patched(&before, &patch), Err(expected.into()), "{patch}");
    }
}
