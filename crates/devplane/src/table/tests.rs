//! Cells as a real API server computes them: the rows were compared with one.

use jiff::SignedDuration;

use super::*;
use crate::kinds::Kinds;

const NOW: &str = "2024-05-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Replaces `ago:5` by the time 5 seconds ago.
fn stamp(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(seconds) = text.strip_prefix("ago:") {
                *text = (now() - SignedDuration::from_secs(seconds.parse().unwrap())).to_string();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(stamp),
        Value::Object(fields) => fields.values_mut().for_each(stamp),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn options(include: Include) -> Options {
    Options { include, with_columns: true, now: now() }
}

#[test]
fn cells_are_those_of_a_real_server() {
    let kinds = Kinds::new();
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    for case in &cases {
        let (api_version, name) = case["kind"].as_str().unwrap().rsplit_once('/').unwrap();
        let kind = kinds.of_object(api_version, name).unwrap();
        let mut object = case["object"].clone();
        object["metadata"]["name"] = "NAME".into();
        object["metadata"]["creationTimestamp"] = "ago:300".into();
        stamp(&mut object);
        let table = table(kind, json!({}), &[object], options(Include::None));
        assert_eq!(table["rows"][0]["cells"], case["cells"], "{name}: {}", case["about"]);
        let columns = table["columnDefinitions"].as_array().unwrap().len();
        assert_eq!(columns, case["cells"].as_array().unwrap().len(), "{name}");
    }
}

/// Name, type, format and priority of the columns.
#[test]
fn columns_are_those_of_a_real_server() {
    let kinds = Kinds::new();
    let kind = |group: &str, plural: &str| kinds.resource(group, "v1", plural).unwrap();
    let columns = |group: &str, plural: &str| {
        let table = table(kind(group, plural), json!({}), &[], options(Include::None));
        let line = |column: &Value| {
            let field = |name: &str| column[name].as_str().unwrap().to_owned();
            format!("{}/{}/{}/{}", field("name"), field("type"), field("format"), column["priority"])
        };
        table["columnDefinitions"].as_array().unwrap().iter().map(line).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(columns("", "configmaps"), "Name/string/name/0, Data/string//0, Age/string//0");
    assert_eq!(columns("rbac.authorization.k8s.io", "roles"), "Name/string/name/0, Created At/date//0");
    assert_eq!(
        columns("policy", "poddisruptionbudgets"),
        "Name/string/name/0, Min Available/string//0, Max Unavailable/string//0, Allowed Disruptions/integer//0, \
         Age/string//0"
    );
    assert_eq!(
        columns("events.k8s.io", "events"),
        "Last Seen/string//0, Type/string//0, Reason/string//0, Object/string//0, Subobject/string//1, \
         Source/string//1, Message/string//0, First Seen/string//1, Count/string//1, Name/string/name/1"
    );
}

#[test]
fn a_row_carries_of_its_object_what_was_asked_for() {
    let kinds = Kinds::new();
    let kind = kinds.resource("", "v1", "namespaces").unwrap();
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "status": {"phase": "Active"},
    });
    let partial = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "n"},
    });
    let rows = [
        (Include::None, Value::Null),
        (Include::Metadata, partial.clone()),
        (Include::Object, object.clone()),
    ];
    for (include, expected) in rows {
        let table =
            table(kind, json!({"resourceVersion": "7"}), std::slice::from_ref(&object), options(include));
        assert_eq!(
            table["rows"],
            json!([{"cells": ["n", "Active", "<unknown>"], "object": expected}]),
            "{include:?}"
        );
        assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
    }
    assert_eq!(
        partial_list(json!({}), &[object]),
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": [partial],
        })
    );
}

#[test]
fn later_events_of_a_watch_do_without_columns() {
    let kinds = Kinds::new();
    let kind = kinds.resource("", "v1", "pods").unwrap();
    let object = json!({"metadata": {"name": "p"}, "status": {"phase": "Succeeded"}});
    let options = Options { with_columns: false, ..options(Include::None) };
    let table = table(kind, json!({}), &[object], options);
    assert_eq!(table["columnDefinitions"], Value::Null);
    assert_eq!(table["rows"][0]["conditions"][0]["reason"], "Succeeded");
}

#[test]
fn an_event_looks_the_same_in_both_of_its_groups() {
    let kinds = Kinds::new();
    let stored = json!({
        "apiVersion": "v1", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"}, "count": 2,
        "message": "m", "source": {"component": "c"}, "lastTimestamp": NOW,
    });
    let mut shown = stored.clone();
    event::from_stored(&mut shown);
    let cells = |group: &str, object: &Value| {
        let kind = kinds.resource(group, "v1", "events").unwrap();
        let table = table(kind, json!({}), std::slice::from_ref(object), options(Include::None));
        table["rows"][0]["cells"].clone()
    };
    assert_eq!(cells("", &stored), cells("events.k8s.io", &shown));
    assert_eq!(cells("", &stored), json!(["0s", "", "", "pod/p", "", "c", "m", "<unknown>", 2, "e"]));
}
