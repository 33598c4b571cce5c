//! From client-side to server-side apply: what the server does for `kubectl`. Never here: what clients do themselves.
//!
//! `kubectl apply` without a server side notes what it applied in an annotation. When its server side is used later on
//! such an object, fields that are as the annotation says are no conflict, whoever owns them, and the annotation is kept
//! up to date, so that the way back is open. Handing over the fields of the old manager is done by the client.

use serde_json::{Map, Value};

use crate::managed::applied::fields_of;
use crate::managed::compare::compare;
use crate::managed::fields::{Fields, subtract};
use crate::managed::form::Form;

/// The manager for whom all this is done.
const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

type Object = Map<String, Value>;

/// Fields that are no conflict.
pub(super) fn forgiven(form: Form<'_>, live: &Object, manager: &str) -> Fields {
    let last =
        annotation(live).filter(|_| manager == KUBECTL).and_then(|text| serde_json::from_str(text).ok());
    let Some(Value::Object(last)) =
        last.filter(|last: &Value| last.get("apiVersion") == live.get("apiVersion"))
    else {
        return Fields::new();
    };
    let mut fields = fields_of(form, &last);
    let changes = compare(form, &last, live);
    subtract(&mut fields, &changes.set);
    subtract(&mut fields, &changes.gone);
    fields
}

/// Writes what was applied into the annotation, if there is one.
pub(super) fn renew(object: &mut Object, applied: &Value, manager: &str) {
    if manager != KUBECTL || annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    if let Some(Value::Object(annotations)) =
        object.get_mut("metadata").and_then(|meta| meta.get_mut("annotations"))
    {
        annotations.insert(ANNOTATION.into(), format!("{applied}\n").into());
    }
}

fn annotation(object: &Object) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()
}
