//! The roles of our processes, from the tables of rules beside their code.
//!
//! Never here: a rule.

use std::collections::BTreeSet;

use mapi_api::rbac::{NAMESPACE, Rule, Scope};

use crate::files::File;

/// A process, its account and what it may do.
struct Process {
    name: &'static str,
    rules: &'static [Rule],
    /// Accounts that get the roles.
    accounts: &'static [&'static str],
    /// What the file is for, a line each.
    about: &'static [&'static str],
}

const WRITTEN: &str = "Written by `cargo xtask gen` from the rules in the code. Do not edit.";

const CONTROLLERS: Process = Process {
    name: "machine-api-controllers",
    rules: mapi_controllers::rules::RULES,
    accounts: &["machine-api-controllers"],
    about: &[WRITTEN, "What `machine-api-operator controllers` may do."],
};

const SIMULATED_CLOUD: Process = Process {
    name: "machine-api-simulated-cloud",
    rules: mapi_simcloud::rules::RULES,
    accounts: &["machine-api-simulated-cloud", "machine-api-controllers"],
    about: &[
        WRITTEN,
        "What `machine-api-operator simulated-cloud` may do. The controllers get it too, because the simulated cloud",
        "runs in their process unless they are started with `--simulated-cloud external`. A cluster without simulated",
        "machines does without this file.",
    ],
};

const REMEDIATION: &str = "machine-api-operator-ext-remediation";
const REMEDIATION_LABEL: &str = "rbac.ext-remediation/aggregate-to-ext-remediation: \"true\"";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The generated files.
pub fn files() -> Vec<File> {
    let file = |path: &str, about: &[&str], documents: Vec<String>| File {
        path: path.into(),
        text: format!("{}{}", comments(about), documents.join("---\n")),
    };
    let mut controllers = documents(&CONTROLLERS);
    controllers.extend(remediation());
    let namespace = format!("apiVersion: v1\nkind: Namespace\n{}", metadata(NAMESPACE, None));
    vec![
        file("install/namespace.yaml", &["Written by `cargo xtask gen`. Do not edit."], vec![namespace]),
        file("install/rbac/controllers.yaml", CONTROLLERS.about, controllers),
        file("install/rbac/simulated-cloud.yaml", SIMULATED_CLOUD.about, documents(&SIMULATED_CLOUD)),
    ]
}

fn documents(process: &Process) -> Vec<String> {
    let Process { name, rules, accounts, .. } = *process;
    let account = format!("apiVersion: v1\nkind: ServiceAccount\n{}", metadata(name, Some(NAMESPACE)));
    let mut documents = vec![account];
    for scope in rules.iter().map(|rule| rule.scope).collect::<BTreeSet<_>>() {
        let rules = rules.iter().filter(|rule| rule.scope == scope);
        let (name, namespace, about) = match scope {
            Scope::Cluster => (name.into(), None, ""),
            Scope::Watched => (format!("{name}-namespaced"), None, NARROW),
            Scope::Namespace(namespace) => (name.into(), Some(namespace), ""),
        };
        documents.push(format!(
            "{}rules:\n{}",
            head("Role", &name, namespace),
            rules.map(row).collect::<String>()
        ));
        documents.push(format!("{about}{}", binding(&name, namespace, accounts)));
    }
    documents
}

const NARROW: &str = "# Bind this role by a RoleBinding instead when the process runs with `--namespace`.\n";

/// The role that others add to, its binding, and what this project adds.
fn remediation() -> Vec<String> {
    let known = format!("{REMEDIATION}-metal3");
    vec![
        format!(
            "# Collects every ClusterRole with the label; the rules are filled in by the cluster.\n\
             {}aggregationRule:\n  clusterRoleSelectors:\n  - matchLabels:\n      {REMEDIATION_LABEL}\n",
            head("Role", REMEDIATION, None)
        ),
        binding(REMEDIATION, None, CONTROLLERS.accounts),
        format!(
            "{}  labels:\n    {REMEDIATION_LABEL}\nrules:\n{}",
            head("Role", &known, None),
            mapi_controllers::rules::REMEDIATION.iter().map(row).collect::<String>()
        ),
    ]
}

fn row(rule: &Rule) -> String {
    let Rule { scope: _, group, resources, verbs, why } = *rule;
    let group = if group.is_empty() { "\"\"" } else { group };
    format!(
        "{}- apiGroups: [{group}]\n  resources: [{}]\n  verbs: [{}]\n",
        comments(&[why]),
        resources.join(", "),
        verbs.join(", ")
    )
}

fn binding(role: &str, namespace: Option<&str>, accounts: &[&str]) -> String {
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    let mut text = head("RoleBinding", role, namespace);
    let subjects = accounts
        .iter()
        .map(|account| format!("- kind: ServiceAccount\n  name: {account}\n  namespace: {NAMESPACE}\n"))
        .collect::<String>();
    text +=
        &format!("roleRef:\n  apiGroup: {RBAC}\n  kind: {prefix}Role\n  name: {role}\nsubjects:\n{subjects}");
    text
}

/// Begin of a document of the RBAC group: the kind for a namespace, or the one for the cluster.
fn head(kind: &str, name: &str, namespace: Option<&str>) -> String {
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    format!("apiVersion: {RBAC}/v1\nkind: {prefix}{kind}\n{}", metadata(name, namespace))
}

fn metadata(name: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.map(|namespace| format!("  namespace: {namespace}\n")).unwrap_or_default();
    format!("metadata:\n  name: {name}\n{namespace}")
}

fn comments(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("# {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parsed(path: &str) -> Vec<Value> {
        let file = files().into_iter().find(|file| file.path == path).expect("a generated file");
        file.text.split("---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
    }

    /// `group/resource verb` for everything that the roles of a file allow.
    fn allowed(path: &str) -> BTreeSet<String> {
        let mut allowed = BTreeSet::new();
        for document in parsed(path) {
            for rule in document["rules"].as_array().into_iter().flatten() {
                let list = |key: &str| {
                    rule[key].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned())
                };
                for group in list("apiGroups") {
                    for resource in list("resources") {
                        allowed.extend(list("verbs").map(|verb| format!("{group}/{resource} {verb}")));
                    }
                }
            }
        }
        allowed
    }

    #[test]
    fn the_simulated_cloud_knows_no_machines() {
        let allowed = allowed("install/rbac/simulated-cloud.yaml");
        assert!(allowed.contains("simulation.machine.openshift.io/simulatedinstances watch"));
        assert!(!allowed.iter().any(|one| one.starts_with("machine.openshift.io/")));
    }

    #[test]
    fn nobody_may_do_everything_or_read_secrets() {
        for path in ["install/rbac/controllers.yaml", "install/rbac/simulated-cloud.yaml"] {
            for one in allowed(path) {
                assert!(!one.contains('*') && !one.contains("/secrets "), "{path} allows {one}");
            }
        }
    }

    #[test]
    fn every_role_is_bound_to_an_account_of_its_file_or_aggregated() {
        for path in ["install/rbac/controllers.yaml", "install/rbac/simulated-cloud.yaml"] {
            let documents = parsed(path);
            for role in documents.iter().filter(|d| d["kind"].as_str().unwrap().ends_with("Role")) {
                let is_bound = documents.iter().any(|d| {
                    d["roleRef"]["name"] == role["metadata"]["name"]
                        && d["roleRef"]["kind"] == role["kind"]
                        && d["metadata"]["namespace"] == role["metadata"]["namespace"]
                });
                assert!(is_bound || !role["metadata"]["labels"].is_null(), "{role}");
            }
        }
    }
}
