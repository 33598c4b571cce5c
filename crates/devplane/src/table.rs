//! Objects as rows: what `kubectl get` shows. Never here: what is in a list.

use serde_json::Value;

use crate::kinds::Kind;

/// The `Table` (meta.k8s.io/v1) of some objects. `metadata` is that of the list; `now` is for ages, which are times here.
/// `rows` are the objects themselves; each row carries the object's metadata (`includeObject=Metadata`), the whole object
/// (`Object`) or nothing (`None`).
pub(crate) fn table(
    kind: &Kind,
    metadata: Value,
    objects: &[Value],
    include: Include,
    with_columns: bool,
) -> Value {
    let _ = (kind, metadata, objects, include, with_columns);
    Value::Null
}

/// What a row carries of its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    #[default]
    Metadata,
    Object,
}
