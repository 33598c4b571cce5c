//! The two forms of an event: the core's, in which it is kept, and that of `events.k8s.io`. Never here: when an event
//! expires.

use serde_json::{Map, Value, json};

/// Paths that field selectors may name, in the form that is kept.
pub(super) const SELECTABLE: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// The group of the other form.
pub(crate) const GROUP: &str = "events.k8s.io";

/// Fields that have another name in `events.k8s.io`: theirs, then the core's.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// An event of `events.k8s.io` as it is kept.
pub(crate) fn to_stored(event: &mut Value) {
    rename(event, "v1", |theirs, ours| (theirs, ours));
    complete(event);
}

/// A kept event as `events.k8s.io` shows it.
pub(crate) fn from_stored(event: &mut Value) {
    rename(event, "events.k8s.io/v1", |theirs, ours| (ours, theirs));
    let Some(fields) = event.as_object_mut() else { return };
    for name in ["reportingController", "reportingInstance"] {
        if fields.get(name).is_some_and(|value| value == "") {
            fields.remove(name);
        }
    }
}

/// Fills in what every event has in the form that is kept.
pub(crate) fn complete(event: &mut Value) {
    let Some(fields) = event.as_object_mut() else { return };
    for name in ["involvedObject", "source"] {
        fields.entry(name).or_insert_with(|| json!({}));
    }
    for name in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        fields.entry(name).or_insert(Value::Null);
    }
    for name in ["reportingComponent", "reportingInstance"] {
        fields.entry(name).or_insert_with(|| "".into());
    }
}

/// The kept path of what a field selector of `events.k8s.io` names.
pub(super) fn stored_path(label: &str) -> Option<&'static str> {
    let stored = match label {
        "reason" | "type" => label.to_owned(),
        "reportingController" => "reportingComponent".to_owned(),
        _ => format!("involvedObject.{}", label.strip_prefix("regarding.")?),
    };
    SELECTABLE.iter().find(|path| **path == stored).copied()
}

/// What a selector on `source` compares with.
pub(super) fn source(event: &Value) -> &str {
    let component = event["source"]["component"].as_str().filter(|component| !component.is_empty());
    component.or_else(|| event["reportingComponent"].as_str()).unwrap_or_default()
}

/// Renames fields; `direction` makes of a pair of names the old one and the new one.
fn rename(
    event: &mut Value,
    api_version: &str,
    direction: impl Fn(&'static str, &'static str) -> (&'static str, &'static str),
) {
    let Some(fields) = event.as_object_mut() else { return };
    let renamed: Map<String, Value> = NAMES
        .iter()
        .filter_map(|(theirs, ours)| {
            let (old, new) = direction(theirs, ours);
            Some((new.to_owned(), fields.remove(old)?))
        })
        .collect();
    fields.extend(renamed);
    if fields.contains_key("apiVersion") {
        fields.insert("apiVersion".into(), api_version.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_the_core_is_shown_in_the_other_form() {
        let stored = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p"}, "related": {"kind": "Node", "name": "n"},
            "reason": "R", "message": "hello", "type": "Normal", "count": 3,
            "source": {"component": "c", "host": "h"}, "reportingComponent": "", "reportingInstance": "",
            "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-02T00:00:00Z", "eventTime": null,
        });
        let shown = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "p"}, "related": {"kind": "Node", "name": "n"},
            "reason": "R", "note": "hello", "type": "Normal", "deprecatedCount": 3,
            "deprecatedSource": {"component": "c", "host": "h"},
            "deprecatedFirstTimestamp": "2024-01-01T00:00:00Z", "deprecatedLastTimestamp": "2024-01-02T00:00:00Z",
            "eventTime": null,
        });
        let mut event = stored.clone();
        from_stored(&mut event);
        assert_eq!(event, shown);
        to_stored(&mut event);
        assert_eq!(event, stored);
    }

    #[test]
    fn a_new_event_is_kept_with_all_that_the_core_form_always_has() {
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "eventTime": "2024-01-02T00:00:00.123456Z", "reason": "R", "action": "A", "note": "hello",
            "reportingController": "x.y/c", "reportingInstance": "c-1", "type": "Warning",
            "series": {"count": 2, "lastObservedTime": "2024-01-03T00:00:00.000000Z"},
        });
        to_stored(&mut event);
        assert_eq!(
            event,
            json!({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
                "eventTime": "2024-01-02T00:00:00.123456Z", "reason": "R", "action": "A", "message": "hello",
                "reportingComponent": "x.y/c", "reportingInstance": "c-1", "type": "Warning",
                "series": {"count": 2, "lastObservedTime": "2024-01-03T00:00:00.000000Z"},
                "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            })
        );
    }
}
