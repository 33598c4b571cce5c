//! What expressions about requests may name, and of which types it is. Source: the API of Kubernetes. Never here: values.

use std::sync::{Arc, LazyLock};

use super::expression::Expression;
use super::types::{Record, Ty};

/// Names that an expression may use.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Variables of a policy, in their order; `None` where there are none.
    own: Option<Vec<(String, Ty<'static>)>>,
}

impl Scope {
    /// The request, the objects and the namespace.
    pub(crate) fn of_requests() -> Scope {
        Scope { own: None }
    }

    /// The same and `variables`, with nothing in it yet.
    pub(crate) fn begin_variables(&mut self) {
        self.own = Some(Vec::new());
    }

    /// A variable, `variables.name`, that is what an expression comes to.
    pub(crate) fn declare(&mut self, name: &str, expression: &Expression) {
        self.own.get_or_insert_default().push((name.to_owned(), expression.ty.clone()));
    }

    pub(super) fn variables(&self) -> Vec<(String, Ty<'static>)> {
        let any = ["object", "oldObject"].map(|name| (name.to_owned(), Ty::Dyn));
        let known = [("request", &*REQUEST), ("namespaceObject", &*NAMESPACE)];
        let known = known.map(|(name, ty)| (name.to_owned(), ty.clone()));
        let own = self.own.clone().map(|fields| {
            let record = Record { name: "kubernetes.variables", fields };
            ("variables".to_owned(), Ty::Record(Arc::new(record)))
        });
        any.into_iter().chain(known).chain(own).collect()
    }
}

static REQUEST: LazyLock<Ty<'static>> = LazyLock::new(|| {
    let kind = record("kubernetes.GroupVersionKind", &[("group version kind", "string")], &[]);
    let resource = record("kubernetes.GroupVersionResource", &[("group version resource", "string")], &[]);
    let user = record(
        "kubernetes.UserInfo",
        &[("username uid", "string"), ("groups", "list(string)"), ("extra", "map(string,list(string))")],
        &[],
    );
    record(
        "kubernetes.AdmissionRequest",
        &[
            ("subResource requestSubResource name namespace operation", "string"),
            ("dryRun", "bool"),
            ("options", "dyn"),
        ],
        &[
            ("kind", &kind),
            ("requestKind", &kind),
            ("resource", &resource),
            ("requestResource", &resource),
            ("userInfo", &user),
        ],
    )
});

static NAMESPACE: LazyLock<Ty<'static>> = LazyLock::new(|| {
    let metadata = record(
        "kubernetes.NamespaceMetadata",
        &[
            ("name generateName namespace UID resourceVersion", "string"),
            ("labels annotations", "map(string,string)"),
            ("creationTimestamp deletionTimestamp", "timestamp"),
            ("deletionGracePeriodSeconds generation", "int"),
            ("finalizers", "list(string)"),
        ],
        &[],
    );
    let spec = record("kubernetes.NamespaceSpec", &[("finalizers", "list(string)")], &[]);
    let condition = record(
        "kubernetes.NamespaceCondition",
        &[("type status reason message", "string"), ("lastTransitionTime", "timestamp")],
        &[],
    );
    let conditions = Ty::List(Box::new(condition), super::super::ListType::Atomic);
    let status = record("kubernetes.NamespaceStatus", &[("phase", "string")], &[("conditions", &conditions)]);
    record("kubernetes.Namespace", &[], &[("metadata", &metadata), ("spec", &spec), ("status", &status)])
});

/// A type with fields: names with the same type as signatures spell it, and fields of other types.
fn record(
    name: &'static str,
    plain: &[(&str, &str)],
    others: &[(&'static str, &Ty<'static>)],
) -> Ty<'static> {
    let plain =
        plain.iter().flat_map(|(names, ty)| names.split(' ').map(|name| (name.to_owned(), Ty::of_text(ty))));
    let others = others.iter().map(|(name, ty)| ((*name).to_owned(), (*ty).clone()));
    Ty::Record(Arc::new(Record { name, fields: plain.chain(others).collect() }))
}
