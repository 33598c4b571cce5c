//! What is left when owners go.

use serde_json::json;

use crate::kinds::Origin;
use crate::loops::testing::{Bench, kind, map};
use crate::state::Propagation;

/// Puts maps (`name: owners`), lets the loops work, deletes `a`, lets them work again.
fn check(maps: &[&str], propagation: Propagation, expected: &[&str]) {
    let mut bench = Bench::new();
    for line in maps {
        let (name, owners) = line.split_once(':').unwrap();
        bench.put(map(name, owners));
    }
    bench.work();
    bench.delete("configmaps", "default/a", Some(propagation));
    bench.work();
    let left: Vec<String> =
        bench.objects().iter().map(|line| line.replace("configmaps default/", "")).collect();
    assert_eq!(left, expected, "{maps:?} {propagation:?}");
}

#[test]
fn dependents_go_after_their_last_owner() {
    let chain = &["a:", "b: a", "c: b", "d:"];
    check(chain, Propagation::Background, &["d"]);
    check(chain, Propagation::Foreground, &["d"]);
    check(chain, Propagation::Orphan, &["b", "c of b", "d"]);
    let shared = &["a:", "b: a x", "x:"];
    check(shared, Propagation::Background, &["b of x", "x"]);
    check(shared, Propagation::Foreground, &["b of x", "x"]);
    check(shared, Propagation::Orphan, &["b of x", "x"]);
}

#[test]
fn a_circle_of_owners_can_be_deleted() {
    for propagation in [Propagation::Background, Propagation::Foreground] {
        check(&["a: !b", "b: !a"], propagation, &[]);
    }
}

#[test]
fn an_object_whose_owner_never_was_goes() {
    let mut bench = Bench::new();
    bench.put(map("a", ""));
    bench.put(map("b", "nobody"));
    bench.put(map("c", "nobody a"));
    // Of that name there is another.
    let mut other = map("d", "a");
    other["metadata"]["ownerReferences"][0]["uid"] = "earlier".into();
    bench.put(other);
    bench.work();
    assert_eq!(bench.objects(), ["configmaps default/a", "configmaps default/c of a"]);
}

#[test]
fn an_owner_in_the_foreground_waits_for_what_blocks_it_only() {
    let mut bench = Bench::new();
    bench.put(map("a", ""));
    for (name, owners) in [("b", "!a"), ("c", "a")] {
        let mut dependent = map(name, owners);
        dependent["metadata"]["finalizers"] = json!(["x.y/z"]);
        bench.put(dependent);
    }
    bench.work();
    bench.delete("configmaps", "default/a", Some(Propagation::Foreground));
    bench.work();
    let waiting = [
        "configmaps default/a deleting +foregroundDeletion",
        "configmaps default/b deleting +x.y/z of a",
        "configmaps default/c deleting +x.y/z of a",
    ];
    assert_eq!(bench.objects(), waiting);
    bench.change("configmaps", "default/b", |b| b["metadata"]["finalizers"] = json!([]));
    bench.work();
    assert_eq!(bench.objects(), ["configmaps default/c deleting +x.y/z of a"]);
}

#[test]
fn dependents_of_dependents_go_first_in_the_foreground() {
    let mut bench = Bench::new();
    bench.put(map("a", ""));
    bench.put(map("b", "!a"));
    let mut last = map("c", "!b");
    last["metadata"]["finalizers"] = json!(["x.y/z"]);
    bench.put(last);
    bench.work();
    bench.delete("configmaps", "default/a", Some(Propagation::Foreground));
    bench.work();
    let waiting = [
        "configmaps default/a deleting +foregroundDeletion",
        "configmaps default/b deleting +foregroundDeletion of a",
        "configmaps default/c deleting +x.y/z of b",
    ];
    assert_eq!(bench.objects(), waiting);
    bench.change("configmaps", "default/c", |c| c["metadata"]["finalizers"] = json!([]));
    bench.work();
    assert_eq!(bench.objects(), [""; 0]);
}

#[test]
fn an_owner_of_a_kind_that_is_not_served_is_not_thought_gone() {
    let mut bench = Bench::new();
    let mut dependent = map("a", "f");
    dependent["metadata"]["ownerReferences"][0]["apiVersion"] = "e.x/v1".into();
    dependent["metadata"]["ownerReferences"][0]["kind"] = "Foo".into();
    bench.put(dependent);
    bench.work();
    assert_eq!(bench.objects(), ["configmaps default/a of f"]);
    let foo = kind("e.x", "v1", "foos", "Foo", Origin::Custom("foos.e.x".into()));
    bench.state.kinds.set_custom("foos.e.x", vec![foo]);
    bench.work();
    assert_eq!(bench.objects(), [""; 0]);
}

#[test]
fn owners_are_looked_for_where_they_can_be() {
    let mut bench = Bench::new();
    bench.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    let of = |name: &str, namespace: &str, owner: &str, uid: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": name, "namespace": namespace,
                "ownerReferences": [{"apiVersion": "v1", "kind": owner, "name": uid, "uid": uid}],
            },
        })
    };
    bench.put(of("by-node", "one", "Node", "n"));
    bench.put(map("m", ""));
    bench.put(of("elsewhere", "one", "ConfigMap", "m"));
    // A namespace is missing, so that nothing can be said about the owner.
    bench.put(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "o",
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": "m"}],
        },
    }));
    bench.work();
    let left = ["configmaps default/m", "configmaps one/by-node of n", "nodes /n", "nodes /o of m"];
    assert_eq!(bench.objects(), left);
    bench.delete("nodes", "n", None);
    bench.work();
    assert_eq!(bench.objects(), ["configmaps default/m", "nodes /o of m"]);
}

#[test]
fn a_new_owner_that_is_gone_already_takes_the_object_with_it() {
    let mut bench = Bench::new();
    bench.put(map("a", ""));
    bench.put(map("b", ""));
    bench.work();
    bench.change("configmaps", "default/b", |b| {
        b["metadata"]["ownerReferences"] = map("b", "nobody")["metadata"]["ownerReferences"].clone();
    });
    bench.work();
    assert_eq!(bench.objects(), ["configmaps default/a"]);
}
