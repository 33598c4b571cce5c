//! What the documents say that clients look for.

use super::*;
use crate::kinds::{CUSTOM_VERBS, Origin, Scale};
use crate::schema::{Checks, Schema, Type};

fn widgets() -> Kind {
    let field = Schema { kind: Some(Type::String), description: Some("A name.".into()), ..Schema::default() };
    let count = Schema {
        kind: Some(Type::Integer),
        checks: Checks { minimum: Some(1.0), format: Some("int32".into()), ..Checks::default() },
        ..Schema::default()
    };
    let fields = [("name".to_owned(), Arc::new(field)), ("count".to_owned(), Arc::new(count))];
    let spec = Schema {
        kind: Some(Type::Object),
        properties: fields.into(),
        required: vec!["name".into()],
        ..Schema::default()
    };
    let schema = Schema {
        kind: Some(Type::Object),
        properties: [("spec".to_owned(), Arc::new(spec))].into(),
        ..Schema::default()
    };
    Kind {
        group: "example.org".into(),
        version: "v1".into(),
        kind: "Widget".into(),
        list_kind: "WidgetList".into(),
        plural: "widgets".into(),
        singular: "widget".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: false,
        verbs: CUSTOM_VERBS,
        has_status: true,
        scale: Some(Scale {
            spec_replicas: ".spec.a".into(),
            status_replicas: ".status.a".into(),
            selector: None,
        }),
        subresources: &[],
        schema: Arc::new(schema),
        columns: Vec::new(),
        selectable: &[],
        bucket: "widgets.example.org".into(),
        origin: Origin::Custom("widgets.example.org".into()),
        deprecation: None,
    }
}

fn read(documents: &mut Documents, kinds: &Kinds, path: &str) -> Option<Value> {
    answer(documents, kinds, path).map(|text| serde_json::from_slice(&text).unwrap())
}

#[test]
fn the_index_leads_to_every_document_and_changes_with_what_is_served() {
    let (mut documents, mut kinds) = (Documents::default(), Kinds::new());
    let before = read(&mut documents, &kinds, "/openapi/v3").unwrap();
    kinds.set_custom("widgets.example.org", vec![Arc::new(widgets())]);
    let after = read(&mut documents, &kinds, "/openapi/v3").unwrap();
    assert_eq!(before["paths"]["apis/example.org/v1"], Value::Null);
    assert_eq!(before["paths"]["api/v1"], after["paths"]["api/v1"]);
    let paths = after["paths"].as_object().unwrap();
    for (name, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let (path, hash) = url.split_once("?hash=").unwrap();
        assert_eq!(path, format!("/openapi/v3/{name}"));
        assert_eq!(hash.len(), 32);
        assert!(answer(&mut documents, &kinds, path).is_some(), "{path}");
    }
    let names: Vec<&str> = paths.keys().map(String::as_str).collect();
    assert!(names.contains(&"apis/example.org/v1") && names.contains(&"apis/apps/v1"), "{names:?}");
    assert_eq!(answer(&mut documents, &kinds, "/openapi/v3/apis/nope/v1"), None);
    assert_eq!(answer(&mut documents, &kinds, "/openapi/v2"), None);
}

#[test]
fn a_patch_can_be_tried_and_its_fields_checked() {
    let (mut documents, mut kinds) = (Documents::default(), Kinds::new());
    kinds.set_custom("widgets.example.org", vec![Arc::new(widgets())]);
    let rows = [
        ("api/v1", "/api/v1/namespaces/{namespace}/pods/{name}", "Pod", true),
        ("api/v1", "/api/v1/nodes/{name}/status", "Node", true),
        ("apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "Scale", true),
        ("apis/example.org/v1", "/apis/example.org/v1/widgets/{name}", "Widget", false),
    ];
    for (document, path, kind, is_strategic) in rows {
        let document = read(&mut documents, &kinds, &format!("/openapi/v3/{document}")).unwrap();
        let patch = &document["paths"][path]["patch"];
        let parameters = patch["parameters"].as_array().unwrap();
        let names: Vec<&str> =
            parameters.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"], "{path}");
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], kind, "{path}");
        let content = &patch["requestBody"]["content"];
        assert_eq!(content["application/strategic-merge-patch+json"].is_object(), is_strategic, "{path}");
        assert!(content["application/merge-patch+json"].is_object(), "{path}");
    }
}

#[test]
fn a_kind_that_can_only_be_created_is_never_read() {
    let document =
        read(&mut Documents::default(), &Kinds::new(), "/openapi/v3/apis/authentication.k8s.io/v1").unwrap();
    let path = &document["paths"]["/apis/authentication.k8s.io/v1/tokenreviews"];
    assert!(path["post"].is_object());
    assert_eq!(path["get"], Value::Null);
    assert_eq!(document["paths"].as_object().unwrap().len(), 2);
}

#[test]
fn a_document_describes_all_that_it_refers_to() {
    let (mut documents, mut kinds) = (Documents::default(), Kinds::new());
    kinds.set_custom("widgets.example.org", vec![Arc::new(widgets())]);
    let index = read(&mut documents, &kinds, "/openapi/v3").unwrap();
    for name in index["paths"].as_object().unwrap().keys() {
        let document = read(&mut documents, &kinds, &format!("/openapi/v3/{name}")).unwrap();
        let mut names = Vec::new();
        references(&document, &mut names);
        let missing = |name: &&String| document["components"]["schemas"].get(name.as_str()).is_none();
        assert_eq!(names.iter().find(missing), None, "{name}");
    }
}

#[test]
fn the_kind_of_a_crd_is_published_with_what_is_said_about_its_fields() {
    let (mut documents, mut kinds) = (Documents::default(), Kinds::new());
    kinds.set_custom("widgets.example.org", vec![Arc::new(widgets())]);
    let document = read(&mut documents, &kinds, "/openapi/v3/apis/example.org/v1").unwrap();
    let component = &document["components"]["schemas"]["org.example.v1.Widget"];
    assert_eq!(
        component["properties"]["spec"],
        json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": "A name."},
                "count": {"type": "integer", "format": "int32", "minimum": 1},
            },
        })
    );
    let names = json!([{"group": "example.org", "version": "v1", "kind": "Widget"}]);
    assert_eq!(component["x-kubernetes-group-version-kind"], names);
    let items = &document["components"]["schemas"]["org.example.v1.WidgetList"]["properties"]["items"];
    assert_eq!(items["items"]["$ref"], "#/components/schemas/org.example.v1.Widget");
}
