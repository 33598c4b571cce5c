//! What discovery says, line by line.

use expect_test::{Expect, expect};

use super::*;
use crate::kinds::{CUSTOM_VERBS, Column, Origin, Scale};

fn custom(name: &str, versions: &[&str]) -> (String, Vec<Arc<Kind>>) {
    let (plural, group) = name.split_once('.').unwrap();
    let kind = |version: &&str| Kind {
        group: group.into(),
        version: (*version).into(),
        kind: "Thing".into(),
        list_kind: "ThingList".into(),
        plural: plural.into(),
        singular: "thing".into(),
        short_names: vec!["th".into()],
        categories: Vec::new(),
        namespaced: true,
        verbs: CUSTOM_VERBS,
        has_status: true,
        scale: Some(Scale {
            spec_replicas: ".spec.a".into(),
            status_replicas: ".status.a".into(),
            selector: None,
        }),
        subresources: &[],
        schema: Arc::default(),
        columns: Vec::<Column>::new(),
        selectable: &[],
        bucket: name.into(),
        deprecation: None,
        origin: Origin::Custom(name.into()),
    };
    (name.into(), versions.iter().map(kind).map(Arc::new).collect())
}

fn served() -> Kinds {
    let mut kinds = Kinds::new();
    for (name, kind) in [
        custom("zebras.b.org", &["v1", "v2alpha1", "v1beta1", "v2", "foo10", "foo2", "v11alpha2"]),
        custom("ants.b.org", &["v1"]),
        custom("bees.a.org", &["v1"]),
    ] {
        kinds.set_custom(&name, kind);
    }
    kinds
}

fn ask(path: &str, accept: &str) -> Option<Value> {
    answer(&served(), path, accept).map(|(_, body)| body)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Null => "-".into(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Each resource of a list in one line.
fn check_resources(path: &str, expected: Expect) {
    let body = ask(path, "").unwrap();
    let fields = ["name", "kind", "group", "namespaced", "shortNames", "categories", "verbs"];
    let line = |resource: &Value| fields.map(|field| text(&resource[field])).join(" ");
    let lines: Vec<String> = body["resources"].as_array().unwrap().iter().map(line).collect();
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn resources_are_listed_as_a_real_server_does() {
    check_resources(
        "/api/v1",
        expect![[r#"
            configmaps ConfigMap - true cm - create,delete,deletecollection,get,list,patch,update,watch
            events Event - true ev - create,delete,deletecollection,get,list,patch,update,watch
            namespaces Namespace - false ns - create,delete,get,list,patch,update,watch
            namespaces/finalize Namespace - false - - update
            namespaces/status Namespace - false - - get,patch,update
            nodes Node - false no - create,delete,deletecollection,get,list,patch,update,watch
            nodes/status Node - false - - get,patch,update
            pods Pod - true po all create,delete,deletecollection,get,list,patch,update,watch
            pods/binding Binding - true - - create
            pods/eviction Eviction policy true - - create
            pods/status Pod - true - - get,patch,update
            secrets Secret - true - - create,delete,deletecollection,get,list,patch,update,watch
            serviceaccounts ServiceAccount - true sa - create,delete,deletecollection,get,list,patch,update,watch
            serviceaccounts/token TokenRequest authentication.k8s.io true - - create
            services Service - true svc all create,delete,deletecollection,get,list,patch,update,watch
            services/status Service - true - - get,patch,update
        "#]],
    );
    check_resources(
        "/apis/authorization.k8s.io/v1/",
        expect![[r#"
            localsubjectaccessreviews LocalSubjectAccessReview - true - - create
            selfsubjectaccessreviews SelfSubjectAccessReview - false - - create
            selfsubjectrulesreviews SelfSubjectRulesReview - false - - create
            subjectaccessreviews SubjectAccessReview - false - - create
        "#]],
    );
    check_resources(
        "/apis/b.org/v1",
        expect![[r#"
            ants Thing - true th - delete,deletecollection,get,list,patch,create,update,watch
            ants/status Thing - true - - get,patch,update
            ants/scale Scale autoscaling true - - get,patch,update
            zebras Thing - true th - delete,deletecollection,get,list,patch,create,update,watch
            zebras/status Thing - true - - get,patch,update
            zebras/scale Scale autoscaling true - - get,patch,update
        "#]],
    );
}

#[test]
fn groups_of_kubernetes_come_first_and_versions_by_their_maturity() {
    let groups = ask("/apis", "").unwrap();
    let line = |group: &Value| {
        let versions: Vec<String> =
            group["versions"].as_array().unwrap().iter().map(|version| text(&version["version"])).collect();
        format!("{} {}\n", text(&group["name"]), versions.join(","))
    };
    let lines: String = groups["groups"].as_array().unwrap().iter().map(line).collect();
    expect![[r#"
        apps v1
        events.k8s.io v1
        authentication.k8s.io v1
        authorization.k8s.io v1
        policy v1
        rbac.authorization.k8s.io v1
        admissionregistration.k8s.io v1
        apiextensions.k8s.io v1
        scheduling.k8s.io v1
        coordination.k8s.io v1
        a.org v1
        b.org v2,v1,v1beta1,v11alpha2,v2alpha1,foo10,foo2
    "#]]
    .assert_eq(&lines);
    let group = ask("/apis/a.org", "").unwrap();
    let version = json!({"groupVersion": "a.org/v1", "version": "v1"});
    assert_eq!(
        group,
        json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "a.org",
            "versions": [version.clone()], "preferredVersion": version,
        })
    );
}

#[test]
fn the_aggregated_form_is_for_those_who_ask() {
    let rows = [
        (AGGREGATED, true),
        ("application/json, application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", true),
        ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", false),
        ("application/json", false),
        ("", false),
    ];
    for (accept, expected) in rows {
        let (content_type, body) = answer(&served(), "/apis", accept).unwrap();
        assert_eq!(body["kind"] == "APIGroupDiscoveryList", expected, "{accept}");
        assert_eq!(content_type == AGGREGATED, expected, "{accept}");
    }
}

#[test]
fn the_aggregated_form_names_kinds_as_a_real_server_does() {
    let groups = ask("/apis", AGGREGATED).unwrap();
    let group = |name: &str| {
        let groups = groups["items"].as_array().unwrap();
        groups.iter().find(|group| group["metadata"]["name"] == name).unwrap().clone()
    };
    assert_eq!(
        group("policy")["versions"][0]["resources"][0],
        json!({
            "resource": "poddisruptionbudgets",
            "responseKind": {"group": "", "version": "", "kind": "PodDisruptionBudget"},
            "scope": "Namespaced", "singularResource": "poddisruptionbudget", "shortNames": ["pdb"],
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "subresources": [{
                "subresource": "status", "verbs": ["get", "patch", "update"],
                "responseKind": {"group": "", "version": "", "kind": "PodDisruptionBudget"},
            }],
        })
    );
    let things = &group("a.org")["versions"][0]["resources"][0];
    assert_eq!(things["responseKind"], json!({"group": "a.org", "version": "v1", "kind": "Thing"}));
    assert_eq!(
        things["subresources"][1],
        json!({
            "subresource": "scale", "verbs": ["get", "patch", "update"],
            "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        })
    );
    let core = ask("/api", AGGREGATED).unwrap();
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_not_served_has_no_answer() {
    for path in
        ["/api/v2", "/apis/nope", "/apis/apps/v2", "/apis/apps/v1/deployments", "/apiss", "/", "version"]
    {
        assert_eq!(ask(path, ""), None, "{path}");
    }
}

#[test]
fn the_version_is_that_of_the_kubernetes_that_is_spoken() {
    let version = ask("/version", "").unwrap();
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.36."));
}
