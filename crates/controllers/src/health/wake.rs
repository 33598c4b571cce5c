//! What wakes a check. Never here: what it does then.

use std::sync::Arc;
use std::time::Duration;

use mapi_api::{Key, Machine, MachineHealthCheck, Node, Object};
use mapi_core::health::TemplateRef;
use mapi_core::health::settings::concerns;
use mapi_runtime::queue::Queue;
use mapi_runtime::store::{Change, Store};

use crate::requests::{RequestKind, Watches};
use crate::{Context, indexes};

/// Half a second: all that happens to a check's Machines meanwhile is one pass. So status is written at most twice a
/// second while counts move, the last value always is, and thousands of Machines becoming Nodes cost two passes a second.
/// Longer would make repairs late, and a pass over a thousand Machines takes about a millisecond.
const COALESCE: Duration = Duration::from_millis(500);

/// Adds a check to the queue, to be looked at soon.
pub(super) fn soon(queue: &Queue<Key>, key: Key) {
    queue.add_after(key, COALESCE);
}

/// The checks that a change of a Machine is about, in order. An old label counts like a new one: the check that a Machine
/// left has one target less.
pub(super) fn checks_of_machine(checks: &Store<MachineHealthCheck>, change: &Change<Machine>) -> Vec<Key> {
    match change {
        Change::Added(machine, _) | Change::Removed(machine) => checks_of(checks, &[machine]),
        Change::Updated { old, new } => checks_of(checks, &[old, new]),
    }
}

fn checks_of(checks: &Store<MachineHealthCheck>, states: &[&Arc<Machine>]) -> Vec<Key> {
    let Some(machine) = states.first() else { return vec![] };
    let near = checks.in_namespace(machine.metadata.namespace.as_deref().unwrap_or_default());
    let about = near.iter().filter(|check| states.iter().any(|machine| concerns(check, machine)));
    about.map(|check| check.key()).collect()
}

/// The checks that a change of a Node is about: those of the one Machine that names it. What no check looks at, such as a
/// heartbeat, wakes none.
pub(super) fn checks_of_node(
    checks: &Store<MachineHealthCheck>,
    machines: &Store<Machine>,
    change: &Change<Node>,
) -> Vec<Key> {
    let node = match change {
        Change::Updated { old, new } if old.status.conditions == new.status.conditions => return vec![],
        Change::Added(node, _) | Change::Updated { new: node, .. } | Change::Removed(node) => node,
    };
    match machines.by(indexes::NODE, node.name()).as_slice() {
        [machine] => checks_of(checks, &[machine]),
        [] | [..] => vec![],
    }
}

/// The watches of remediation requests, which wake the checks that make such.
pub(super) fn watches(context: &Arc<Context>, queue: &Queue<Key>) -> Watches {
    let (checks, queue) = (context.checks.clone(), queue.clone());
    let wake_users = move |kind: &RequestKind, namespace: Option<&str>| {
        let all = namespace.map_or_else(|| checks.list(), |namespace| checks.in_namespace(namespace));
        for check in all.iter().filter(|check| request_kind(check).as_ref() == Some(kind)) {
            soon(&queue, check.key());
        }
    };
    let (writer, namespace) = (context.writer.clone(), context.namespace.clone());
    Watches::new(writer, namespace, context.stop.clone(), Arc::new(wake_users))
}

/// The kind of requests that a check makes, if it has a template that can be used.
pub(super) fn request_kind(check: &MachineHealthCheck) -> Option<RequestKind> {
    let reference = check.spec.remediation_template.as_ref()?;
    let template = TemplateRef {
        api_version: reference.api_version.clone()?,
        kind: reference.kind.clone()?,
        name: reference.name.clone()?,
    };
    Some(RequestKind::of(&template))
}

impl RequestKind {
    /// The kind of the requests that are made from a template.
    pub(super) fn of(template: &TemplateRef) -> Self {
        Self { api_version: template.api_version.clone(), kind: template.request_kind().into() }
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use mapi_runtime::store::Origin;
    use serde_json::{Value, json};

    use super::*;

    fn store<T>(empty: Store<T>, all: Value) -> Store<T>
    where
        T: Object + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        empty.handle(Event::Init);
        for object in serde_json::from_value::<Vec<T>>(all).expect("objects") {
            empty.handle(Event::InitApply(object.into()));
        }
        empty.handle(Event::InitDone);
        empty
    }

    /// Checks `ns/all`, `ns/infra`, `ns/worker` and `other/all`.
    fn checks() -> Store<MachineHealthCheck> {
        let check = |namespace: &str, name: &str, labels: Value| {
            let metadata = json!({"namespace": namespace, "name": name});
            json!({"metadata": metadata, "spec": {"selector": {"matchLabels": labels}}})
        };
        store(
            Store::new(&[]),
            json!([
                check("ns", "worker", json!({"role": "worker"})),
                check("ns", "infra", json!({"role": "infra"})),
                check("ns", "all", json!({})),
                check("other", "all", json!({})),
            ]),
        )
    }

    fn machine(name: &str, role: &str) -> Value {
        json!({"metadata": {"namespace": "ns", "name": name, "labels": {"role": role}},
            "status": {"nodeRef": {"kind": "Node", "name": "n"}}})
    }

    fn shared(value: Value) -> Arc<Machine> {
        Arc::new(serde_json::from_value(value).expect("machine"))
    }

    fn names(keys: Vec<Key>) -> Vec<String> {
        keys.iter().map(Key::to_string).collect()
    }

    // H35
    #[test]
    fn a_machine_wakes_the_checks_of_its_namespace_that_match_it_even_when_it_is_gone() {
        let checks = checks();
        let worker = shared(machine("m", "worker"));
        for change in [Change::Added(worker.clone(), Origin::Watch), Change::Removed(worker)] {
            assert_eq!(names(checks_of_machine(&checks, &change)), ["ns/all", "ns/worker"]);
        }
        let far = shared(json!({"metadata": {"namespace": "nowhere", "name": "m"}}));
        assert!(checks_of_machine(&checks, &Change::Removed(far)).is_empty());
    }

    // H35
    #[test]
    fn a_machine_that_moves_wakes_the_check_that_it_leaves() {
        let change =
            Change::Updated { old: shared(machine("m", "worker")), new: shared(machine("m", "infra")) };
        assert_eq!(names(checks_of_machine(&checks(), &change)), ["ns/all", "ns/infra", "ns/worker"]);
    }

    // H36
    #[test]
    fn a_node_wakes_the_checks_of_the_one_machine_that_names_it() {
        let checks = checks();
        let machines = |all: Value| store(Store::new(indexes::MACHINE), all);
        let node = |name: &str, ready: &str| -> Arc<Node> {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            let node = json!({"metadata": {"name": name}, "status": {"conditions": conditions}});
            Arc::new(serde_json::from_value(node).expect("node"))
        };
        let one = machines(json!([machine("m", "infra")]));
        for change in [
            Change::Removed(node("n", "True")),
            Change::Updated { old: node("n", "True"), new: node("n", "Unknown") },
        ] {
            assert_eq!(names(checks_of_node(&checks, &one, &change)), ["ns/all", "ns/infra"]);
        }
        let heartbeat = Change::Updated { old: node("n", "True"), new: node("n", "True") };
        let stranger = Change::Removed(node("other", "True"));
        for change in [heartbeat, stranger] {
            assert!(checks_of_node(&checks, &one, &change).is_empty());
        }
        let two = machines(json!([machine("m", "infra"), machine("o", "infra")]));
        assert!(checks_of_node(&checks, &two, &Change::Removed(node("n", "True"))).is_empty());
    }
}
