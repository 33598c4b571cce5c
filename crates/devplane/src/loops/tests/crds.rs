//! The life of CRDs.

use serde_json::{Value, json};

use crate::kinds::Origin;
use crate::loops::crds::is_ending;
use crate::loops::testing::{Bench, kind};

fn crd(plural: &str, kind: &str, more: &Value) -> Value {
    let mut names = json!({
        "plural": plural, "kind": kind, "listKind": format!("{kind}List"), "singular": kind.to_lowercase(),
    });
    names.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.e.x"), "generation": 1},
        "spec": {
            "group": "e.x", "scope": "Namespaced", "names": names,
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Conditions of a CRD: `type=status reason: message`.
fn conditions(bench: &Bench, name: &str) -> Vec<String> {
    let crd = bench.get("customresourcedefinitions", name).unwrap();
    let line = |condition: &Value| {
        let text = |name: &str| condition[name].as_str().unwrap().to_owned();
        format!("{}={} {}: {}", text("type"), text("status"), text("reason"), text("message"))
    };
    crd["status"]["conditions"].as_array().unwrap().iter().map(line).collect()
}

const ESTABLISHED: [&str; 2] = [
    "NamesAccepted=True NoConflicts: no conflicts found",
    "Established=True InitialNamesAccepted: the initial names have been accepted",
];

#[test]
fn a_new_crd_is_established_at_once() {
    let mut bench = Bench::new();
    bench.put(crd("foos", "Foo", &json!({"shortNames": ["fo"], "categories": ["all"]})));
    bench.work();
    assert_eq!(conditions(&bench, "foos.e.x"), ESTABLISHED);
    let status = bench.get("customresourcedefinitions", "foos.e.x").unwrap()["status"].clone();
    assert_eq!(status["storedVersions"], json!(["v1"]));
    let names = json!({
        "plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList",
        "shortNames": ["fo"], "categories": ["all"],
    });
    assert_eq!(status["acceptedNames"], names);
    assert_eq!(bench.next, None);
}

#[test]
fn a_new_storage_version_is_remembered_beside_the_old() {
    let mut bench = Bench::new();
    bench.put(crd("foos", "Foo", &json!({})));
    bench.work();
    bench.change("customresourcedefinitions", "foos.e.x", |crd| {
        crd["spec"]["versions"] = json!([
            {"name": "v1", "served": true, "storage": false}, {"name": "v2", "served": true, "storage": true},
        ]);
    });
    bench.work();
    let status = bench.get("customresourcedefinitions", "foos.e.x").unwrap()["status"].clone();
    assert_eq!(status["storedVersions"], json!(["v1", "v2"]));
}

#[test]
fn a_name_belongs_to_the_first_that_asks_and_is_free_when_it_goes() {
    let rows = [
        (crd("bars", "Foo", &json!({})), "ListKindConflict: \"FooList\" is already in use"),
        (
            crd("bars", "Bar", &json!({"shortNames": ["foos"]})),
            "ShortNamesConflict: \"foos\" is already in use",
        ),
        (
            crd("bars", "Bar", &json!({"shortNames": ["foos", "foo", "b"]})),
            "ShortNamesConflict: [\"foos\" is already in use, \"foo\" is already in use]",
        ),
        (crd("bars", "Bar", &json!({"singular": "foo"})), "SingularConflict: \"foo\" is already in use"),
        (crd("bars", "Bar", &json!({"kind": "Foo"})), "KindConflict: \"Foo\" is already in use"),
    ];
    for (second, conflict) in rows {
        let mut bench = Bench::new();
        bench.put(crd("foos", "Foo", &json!({})));
        bench.work();
        bench.put(second);
        bench.work();
        let expected = [
            format!("NamesAccepted=False {conflict}"),
            "Established=False NotAccepted: not all names are accepted".to_owned(),
        ];
        assert_eq!(conditions(&bench, "bars.e.x"), expected);
        bench.delete("customresourcedefinitions", "foos.e.x", None);
        bench.work();
        assert_eq!(bench.get("customresourcedefinitions", "foos.e.x"), None);
        assert_eq!(conditions(&bench, "bars.e.x"), ESTABLISHED, "{conflict}");
    }
}

#[test]
fn objects_of_a_crd_go_before_it() {
    let mut bench = Bench::new();
    bench.put(crd("foos", "Foo", &json!({})));
    bench.work();
    let foo = kind("e.x", "v1", "foos", "Foo", Origin::Custom("foos.e.x".into()));
    bench.state.kinds.set_custom("foos.e.x", vec![foo.clone()]);
    for (name, finalizers) in [("a", json!(["x.y/z"])), ("b", json!([]))] {
        bench.put(json!({
            "apiVersion": "e.x/v1", "kind": "Foo",
            "metadata": {"name": name, "namespace": "default", "finalizers": finalizers},
        }));
    }
    // What belongs to an object of the CRD goes too, although the kind is not known any more then.
    bench.put(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "s", "namespace": "default",
            "ownerReferences": [{"apiVersion": "e.x/v1", "kind": "Foo", "name": "a", "uid": "a"}],
        },
    }));
    bench.work();
    assert!(!is_ending(&bench.state, &foo));
    bench.delete("customresourcedefinitions", "foos.e.x", None);
    bench.work();
    assert!(is_ending(&bench.state, &foo));
    let waiting = [
        "customresourcedefinitions /foos.e.x deleting +customresourcecleanup.apiextensions.k8s.io",
        "foos default/a deleting +x.y/z",
        "secrets default/s of a",
    ];
    assert_eq!(bench.objects(), waiting);
    let ends = "Terminating=True InstanceDeletionInProgress: CustomResource deletion is in progress";
    assert_eq!(conditions(&bench, "foos.e.x"), [&ESTABLISHED[..], &[ends]].concat());
    let crd = bench.get("customresourcedefinitions", "foos.e.x").unwrap();
    assert_eq!(crd["metadata"]["generation"], 1);
    assert!(crd["metadata"]["deletionGracePeriodSeconds"].is_null());
    bench.change("foos", "default/a", |foo| foo["metadata"]["finalizers"] = json!([]));
    bench.work();
    assert_eq!(bench.objects(), [""; 0]);
    assert!(bench.state.kinds.resource("e.x", "v1", "foos").is_none());
}

#[test]
fn a_crd_of_the_kubernetes_project_says_whether_it_is_approved() {
    let rows = [
        (
            "https://a/b",
            "KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation: approved in https://a/b",
        ),
        (
            "unapproved, x",
            "KubernetesAPIApprovalPolicyConformant=False UnapprovedAnnotation: not approved: \"unapproved, x\"",
        ),
    ];
    for (approval, expected) in rows {
        let mut bench = Bench::new();
        let mut foos = crd("foos", "Foo", &json!({}));
        foos["spec"]["group"] = "x.k8s.io".into();
        foos["metadata"]["name"] = "foos.x.k8s.io".into();
        foos["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": approval});
        bench.put(foos);
        bench.work();
        assert_eq!(conditions(&bench, "foos.x.k8s.io"), [&[expected], &ESTABLISHED[..]].concat());
    }
}
