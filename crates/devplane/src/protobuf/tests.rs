//! Bodies that clients have sent, and bodies that nobody should send. Never here: what follows from them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Expected, decode, has_form};

const ANY: Expected<'static> = Expected { api_version: "v1", kind: "ConfigMap" };

/// What clients have sent, and the same objects as they print them in JSON.
fn cases() -> Vec<(String, Vec<u8>, Value)> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let body = |case: &Value| STANDARD.decode(text(&case["body"])).unwrap();
    cases.iter().map(|case| (text(&case["about"]), body(case), case["json"].clone())).collect()
}

/// A field of a message with bytes in it.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let names = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &names), field(2, raw)].concat()
}

#[test]
fn an_object_is_what_the_client_prints_in_json() {
    for (about, body, json) in cases() {
        assert_eq!(decode(&body, ANY), Ok(json), "{about}");
    }
}

#[test]
fn a_body_that_is_cut_or_damaged_is_refused_or_read_as_something() {
    for (about, body, json) in cases() {
        // The last four bytes are two fields of the envelope that are empty.
        for length in 0..body.len() - 4 {
            assert_ne!(decode(&body[..length], ANY), Ok(json.clone()), "{about}, cut after {length}");
        }
        for at in 0..body.len() {
            for flipped in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut damaged = body.clone();
                damaged[at] ^= flipped;
                // Whatever it is, it is an answer.
                decode(&damaged, ANY).ok();
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_as_a_real_server_does() {
    let unrecognized =
        |why: &str| format!("the object provided is unrecognized (must be of type ConfigMap): {why}");
    let unhandled = |what: &str, why: &str| format!("{what} cannot be handled as a ConfigMap: {why}");
    let of_map = "ConfigMap in version \"v1\"";
    for (body, why) in [
        (Vec::new(), unrecognized("empty data (<empty>)")),
        (
            b"garbage".to_vec(),
            unrecognized(
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] \
                 (67617262616765)",
            ),
        ),
        (b"k8s\0".to_vec(), unrecognized("empty body (6b387300)")),
        (b"k8s\0\x0a\xff".to_vec(), unrecognized("unexpected EOF (6b3873000aff)")),
        (envelope("v1", "ConfigMap", b"\x0a\xff"), unhandled(of_map, "unexpected EOF")),
        (
            envelope("v1", "ConfigMap", b"\x08\x05"),
            unhandled(of_map, "proto: wrong wireType = 0 for field metadata"),
        ),
        (
            envelope("v1", "Foo", b""),
            unhandled("Foo in version \"v1\"", "no kind \"Foo\" is registered for version \"v1\""),
        ),
    ] {
        assert_eq!(decode(&body, ANY), Err(why));
    }
}

#[test]
fn what_a_message_leaves_out_is_empty() {
    // An entry of `data` without a value, text that is no UTF-8, a field that nobody knows, no name of the kind.
    let raw =
        [field(2, &field(1, b"a")), field(2, &[field(1, b"b"), field(2, b"\xff")].concat()), field(9, b"?")];
    let wanted =
        serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "", "b": "\u{fffd}" } });
    assert_eq!(decode(&envelope("", "", &raw.concat()), ANY), Ok(wanted));
}

#[test]
fn messages_in_messages_without_end_are_refused() {
    let mut schema = Vec::new();
    for _ in 0..2000 {
        // The schema that must not hold is field 28 of a schema.
        let mut outer = vec![0xe2, 0x01];
        let mut length = schema.len();
        while length > 0x7f {
            outer.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        outer.push(u8::try_from(length).unwrap());
        outer.extend(&schema);
        schema = outer;
    }
    let index = super::message_of("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    assert!(super::message::object(index, &schema).is_ok(), "a CRD has no field of that number");
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let index = super::table::table().find(name).unwrap();
    assert_eq!(super::message::object(index, &schema), Err("exceeded max depth".into()));
}

#[test]
fn kinds_of_crds_have_no_binary_form() {
    assert!(has_form(ANY));
    assert!(has_form(Expected::DELETE_OPTIONS) && has_form(Expected::EVICTION) && has_form(Expected::SCALE));
    assert!(!has_form(Expected { api_version: "x.io/v1", kind: "Thing" }));
}
