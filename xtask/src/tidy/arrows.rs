//! Which room may know which. The table is that of docs/decisions/0001; an arrow that is not in it may not exist.
//!
//! Never here: tolerance. A new arrow needs a decision record.

use crate::workspace::{Dependency, Package};

/// What a package may depend on.
struct Room {
    /// Package name, or the beginning of it for many of a sort.
    name: &'static str,
    /// Packages of ours, `*` at the end for many of a sort.
    may_use: &'static [&'static str],
    /// Packages of ours that its tests may use beside those.
    tests_may_use: &'static [&'static str],
    /// Packages of others that it must never use.
    never: &'static [&'static str],
}

const fn room(name: &'static str, may_use: &'static [&'static str], never: &'static [&'static str]) -> Room {
    Room { name, may_use, tests_may_use: &[], never }
}

/// What would let a decision see anything but its facts.
const IMPURE: &[&str] = &[
    "tokio",
    "tokio-util",
    "futures",
    "kube",
    "async-trait",
    "tracing",
    "log",
    "prometheus",
    "rand",
    "getrandom",
    "fastrand",
    "uuid",
    "http",
    "hyper",
    "tower",
];
/// What speaks to a cluster.
const KUBERNETES: &[&str] = &["kube", "kube-client", "kube-runtime", "k8s-openapi"];
const ANYTHING: &[&str] = &["*"];

const ROOMS: &[Room] = &[
    room("mapi-api", &[], &["tokio", "tracing"]),
    room("mapi-cloud", &["mapi-api"], &["kube", "kube-client", "kube-runtime"]),
    room("mapi-core", &["mapi-cloud", "mapi-api"], IMPURE),
    room("mapi-runtime", &["mapi-api"], &[]),
    Room {
        tests_may_use: &["mapi-simcloud", "mapi-runtime"],
        ..room("mapi-cloud-*", &["mapi-cloud", "mapi-api"], KUBERNETES)
    },
    room("mapi-controllers", &["mapi-core", "mapi-cloud", "mapi-runtime", "mapi-api"], &[]),
    room("mapi-webhook", &["mapi-core", "mapi-cloud", "mapi-api"], &[]),
    room("mapi-termination", &["mapi-cloud", "mapi-runtime", "mapi-api"], &[]),
    room("mapi-devplane", &["mapi-api"], &[]),
    room("mapi-simcloud", &["mapi-runtime", "mapi-api"], &[]),
    room(
        "mapi-sim",
        &[
            "mapi-api",
            "mapi-cloud",
            "mapi-cloud-*",
            "mapi-core",
            "mapi-runtime",
            "mapi-controllers",
            "mapi-webhook",
            "mapi-devplane",
            "mapi-simcloud",
        ],
        &[],
    ),
    room("machine-api-operator", ANYTHING, &["schemars"]),
    // What examines the product may use all of it.
    room("controlplane", &[], &[]),
    room("conformance", ANYTHING, &[]),
    room("e2e", ANYTHING, &[]),
    room("benches", ANYTHING, &[]),
    room("fuzz", ANYTHING, &[]),
    room("xtask", ANYTHING, &[]),
];

/// Every arrow that is not in the table, a line each.
pub fn complaints(packages: &[Package]) -> Vec<String> {
    let ours: Vec<_> = packages.iter().map(|package| package.name.as_str()).collect();
    packages.iter().flat_map(|package| package_complaints(package, &ours)).collect()
}

fn package_complaints(package: &Package, ours: &[&str]) -> Vec<String> {
    let Package { name, dependencies, .. } = package;
    let Some(room) = ROOMS.iter().find(|room| is_match(room.name, name)) else {
        return vec![format!("{}: package `{name}` is in no room of the table of arrows", package.folder())];
    };
    let complaint = |dependency: &Dependency| {
        let Dependency { name: target, kind, path } = dependency;
        let is_for_tests = kind.as_deref() == Some("dev");
        let is_ours = path.is_some() || ours.contains(&target.as_str());
        let allowed = |list: &[&str]| list.iter().any(|pattern| is_match(pattern, target));
        if is_ours && !(allowed(room.may_use) || is_for_tests && allowed(room.tests_may_use)) {
            Some(format!("{}: `{name}` may not depend on `{target}`", package.folder()))
        } else if !is_ours && !is_for_tests && allowed(room.never) {
            Some(format!("{}: `{name}` must never depend on `{target}`", package.folder()))
        } else {
            None
        }
    };
    dependencies.iter().filter_map(complaint).collect()
}

fn is_match(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        Package {
            name: name.into(),
            manifest_path: crate::workspace::root().join(name).join("Cargo.toml"),
            dependencies: dependencies
                .iter()
                .map(|&(name, kind)| Dependency {
                    name: name.into(),
                    kind: kind.map(str::to_owned),
                    path: name.starts_with("mapi").then(|| name.into()),
                })
                .collect(),
        }
    }

    #[test]
    fn an_arrow_outside_the_table_is_complained_about() {
        for (name, dependency, kind, is_allowed) in [
            ("mapi-core", "mapi-api", None, true),
            ("mapi-core", "mapi-runtime", None, false),
            ("mapi-core", "mapi-runtime", Some("dev"), false),
            ("mapi-core", "tokio", None, false),
            ("mapi-core", "serde", None, true),
            ("mapi-api", "mapi-cloud", None, false),
            ("mapi-cloud-kubemark", "mapi-cloud-aws", None, false),
            ("mapi-cloud-kubemark", "kube", None, false),
            ("mapi-cloud-kubemark", "mapi-simcloud", None, false),
            ("mapi-cloud-kubemark", "mapi-simcloud", Some("dev"), true),
            ("mapi-controllers", "mapi-cloud-kubemark", None, false),
            ("mapi-simcloud", "mapi-core", None, false),
            ("machine-api-operator", "mapi-cloud-kubemark", None, true),
            ("machine-api-operator", "schemars", None, false),
            ("mapi-unheard-of", "mapi-api", None, false),
        ] {
            let found = complaints(&[package(name, &[(dependency, kind)])]);
            assert_eq!(found.is_empty(), is_allowed, "{name} → {dependency}: {found:?}");
        }
    }
}
