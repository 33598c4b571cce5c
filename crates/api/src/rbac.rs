//! The form of a rule of what a process of ours may do at the API server. Tables of rules are the source of the
//! generated roles.
//!
//! Never here: rules; each process keeps its own beside its code.

/// Namespace in which our processes run and keep their leases.
pub const NAMESPACE: &str = "openshift-machine-api";

/// One thing that a process may do, and why.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Where it may.
    pub scope: Scope,
    /// API group of the resources, empty for the core group.
    pub group: &'static str,
    /// Resources and subresources.
    pub resources: &'static [&'static str],
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// What it is needed for, as a sentence. It becomes a comment in the role.
    pub why: &'static str,
}

/// A row of a table of rules.
pub const fn rule(
    scope: Scope,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    why: &'static str,
) -> Rule {
    Rule { scope, group, resources, verbs, why }
}

/// Where a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In the whole cluster.
    Cluster,
    /// In the namespaces that the process watches: all of them unless it runs with `--namespace`.
    Watched,
    /// In one namespace.
    Namespace(&'static str),
}
