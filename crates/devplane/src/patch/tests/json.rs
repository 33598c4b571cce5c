//! JSON patch.

use serde_json::{Value, json};

use crate::patch;

const REFUSED: &str = "422 Invalid the server rejected our request due to an error in our request";

fn object() -> Value {
    json!({ "data": { "k": "v", "x/y~z": "1" }, "list": ["a", "b"], "none": null })
}

fn patched(patch: &str) -> Result<Value, String> {
    let mut object = object();
    patch::json(&mut object, patch.as_bytes())
        .map_err(|error| format!("{} {} {}", error.code, error.reason, error.message))?;
    Ok(object)
}

#[test]
fn operations_change_what_they_name() {
    for (patch, path, expected) in [
        (r#"{"op":"add","path":"/data/n","value":1}"#, "/data/n", json!(1)),
        (r#"{"op":"add","path":"/data/n"}"#, "/data/n", json!(null)),
        (r#"{"op":"add","path":"/data","value":{"n":1}}"#, "/data", json!({ "n": 1 })),
        (r#"{"op":"add","path":"/list/-","value":"c"}"#, "/list", json!(["a", "b", "c"])),
        (r#"{"op":"add","path":"/list/0","value":"c"}"#, "/list", json!(["c", "a", "b"])),
        (r#"{"op":"add","path":"/list/2","value":"c"}"#, "/list", json!(["a", "b", "c"])),
        (r#"{"op":"add","path":"/list/-1","value":"c"}"#, "/list", json!(["a", "b", "c"])),
        (r#"{"op":"add","path":"/list/-3","value":"c"}"#, "/list", json!(["c", "a", "b"])),
        (r#"{"op":"replace","path":"/data/k","value":"w"}"#, "/data/k", json!("w")),
        (r#"{"op":"replace","path":"/data/new","value":"w"}"#, "/data/new", json!("w")),
        (r#"{"op":"replace","path":"/data/x~1y~0z","value":"w"}"#, "/data/x~1y~0z", json!("w")),
        (r#"{"op":"replace","path":"/list/00","value":"c"}"#, "/list", json!(["c", "b"])),
        (r#"{"op":"replace","path":"/list/-1","value":"c"}"#, "/list", json!(["a", "c"])),
        (r#"{"op":"replace","path":"","value":{}}"#, "", json!({})),
        (r#"{"op":"remove","path":"/data/x~1y~0z"}"#, "/data", json!({ "k": "v" })),
        (r#"{"op":"remove","path":"/list/-1"}"#, "/list", json!(["a"])),
        (r#"{"op":"copy","from":"/data/k","path":"/data/z"}"#, "/data/z", json!("v")),
        (r#"{"op":"copy","from":"/data/no","path":"/data/z"}"#, "/data/z", json!(null)),
        (r#"{"op":"move","from":"/list/0","path":"/list/1"}"#, "/list", json!(["b", "a"])),
        (r#"{"op":"test","path":"/data/k","value":"v"}"#, "", object()),
        (r#"{"op":"test","path":"/data/no","value":null}"#, "", object()),
        (r#"{"op":"test","path":"/data/no"}"#, "", object()),
        (r#"{"op":"test","path":"/none"}"#, "", object()),
        (r#"{"op":"test","path":"/list/-1","value":"b"}"#, "", object()),
        (r#"{"op":"test","path":"/list","value":["a","b"]}"#, "", object()),
    ] {
        let after = patched(&format!("[{patch}]")).expect(patch);
        assert_eq!(after.pointer(path), Some(&expected), "{patch}");
    }
    assert_eq!(patched("[]"), Ok(object()));
    assert_eq!(patched("null"), Ok(object()));
}

#[test]
fn operations_that_do_not_fit_are_refused() {
    for patch in [
        r#"{}"#,
        "null",
        r#"{"op":"foo","path":"/data/k"}"#,
        r#"{"op":"remove"}"#,
        r#"{"op":"test","path":"/data/k","value":"w"}"#,
        r#"{"op":"test","path":"/no/no","value":null}"#,
        r#"{"op":"test","path":"/list/7","value":"b"}"#,
        r#"{"op":"test","path":"","value":1}"#,
        r#"{"op":"remove","path":"/data/no"}"#,
        r#"{"op":"remove","path":"data"}"#,
        r#"{"op":"remove","path":""}"#,
        r#"{"op":"remove","path":"/list/-"}"#,
        r#"{"op":"remove","path":"/list/2"}"#,
        r#"{"op":"remove","path":"/list/-3"}"#,
        r#"{"op":"replace","path":"/no/no","value":"q"}"#,
        r#"{"op":"replace","path":"/list/-","value":"q"}"#,
        r#"{"op":"replace","path":"/list/2","value":"q"}"#,
        r#"{"op":"add","path":"/list/3","value":"q"}"#,
        r#"{"op":"add","path":"/list/-4","value":"q"}"#,
        r#"{"op":"add","path":"/list/x","value":"q"}"#,
        r#"{"op":"add","path":"/data/k/z","value":"q"}"#,
        r#"{"op":"add","path":"","value":{}}"#,
        r#"{"op":"copy","path":"/data/z"}"#,
        r#"{"op":"copy","from":"/no/no","path":"/data/z"}"#,
        r#"{"op":"copy","from":"/data/k","path":"/no/no"}"#,
        r#"{"op":"move","from":"/data/no","path":"/data/z"}"#,
        r#"{"op":"move","from":"/data","path":"/data/k"}"#,
    ] {
        assert_eq!(patched(&format!("[{patch}]")), Err(REFUSED.into()), "{patch}");
    }
}

#[test]
fn bodies_that_are_no_patch_are_refused() {
    let number = "json: cannot unmarshal number into Go";
    for (body, expected) in [
        ("", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("{}", "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ("[1]", &format!("{number} value of type handlers.jsonPatchOp")),
        (r#"[{"op":"remove","path":1}]"#, &format!("{number} struct field jsonPatchOp.path of type string")),
    ] {
        assert_eq!(patched(body), Err(format!("400 BadRequest error decoding patch: {expected}")), "{body}");
    }
}

#[test]
fn there_is_a_limit_to_operations() {
    let operations = vec![r#"{"op":"test","path":"/data/k","value":"v"}"#; 10_001];
    let limit = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(
        patched(&format!("[{}]", operations.join(","))),
        Err(format!("413 RequestEntityTooLarge Request entity too large: {limit}"))
    );
    assert_eq!(patched(&format!("[{}]", operations[1..].join(","))), Ok(object()));
}
