//! Patches. What is expected here was first seen on a real API server, version 1.36.

mod json;
mod strategic;

use serde_json::{Value, json as value};

use crate::patch::{decode_merge, decode_strategic, merge};

#[test]
fn merge_patches_leave_no_nulls() {
    for (before, patch, after) in [
        (value!({ "a": 1 }), value!({ "a": null, "b": 2 }), value!({ "b": 2 })),
        (value!({}), value!({ "a": { "b": null, "c": 1 } }), value!({ "a": { "c": 1 } })),
        (value!({ "a": { "b": 1 } }), value!({ "a": { "b": { "c": null } } }), value!({ "a": { "b": {} } })),
        (value!({ "a": [1, 2] }), value!({ "a": [3] }), value!({ "a": [3] })),
        // Where no object was, objects in lists lose their nulls; items that are null stay.
        (value!({}), value!({ "a": [null, { "x": null }] }), value!({ "a": [null, {}] })),
        (value!({ "a": [1] }), value!({ "a": [null, { "x": null }] }), value!({ "a": [null, {}] })),
        (value!({ "a": {} }), value!({ "a": [null, { "x": null }] }), value!({ "a": [null, { "x": null }] })),
        (value!({ "a": [1] }), value!({ "a": { "x": null } }), value!({ "a": {} })),
    ] {
        let mut object = before.clone();
        merge(&mut object, &patch);
        assert_eq!(object, after, "{before} and {patch}");
    }
}

#[test]
fn bodies_that_are_no_patch_are_refused() {
    let object = "json: cannot unmarshal";
    let target = "into Go value of type map[string]interface {}";
    for (body, expected) in [
        ("", "unexpected end of JSON input"),
        (r#"{"a":"#, "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("'x'", r"invalid character '\'' looking for beginning of value"),
        ("{}}", "invalid character '}' after top-level value"),
        ("{x", "invalid character 'x' looking for beginning of object key string"),
        (r#"{"a"x"#, "invalid character 'x' after object key"),
        (r#"{"a":1x"#, "invalid character 'x' after object key:value pair"),
        ("[1x", "invalid character 'x' after array element"),
        ("[]", &format!("{object} array {target}")),
        ("1", &format!("{object} number {target}")),
        ("\"a\"", &format!("{object} string {target}")),
        ("true", &format!("{object} bool {target}")),
    ] {
        let refusal = |decoded: Result<Value, crate::status::ApiError>| {
            let error = decoded.expect_err("it is no patch");
            assert_eq!((error.code, &*error.reason), (400, "BadRequest"));
            error.message
        };
        assert_eq!(refusal(decode_merge(body.as_bytes())), format!("error decoding patch: {expected}"));
        assert_eq!(refusal(decode_strategic(body.as_bytes())), expected);
    }
    assert_eq!(decode_merge(b"null").expect_err("it is no patch").message, "Invalid JSON Patch");
    assert_eq!(decode_strategic(b"null"), Ok(value!({})));
}
