//! The CRDs against those that are published, facts only: `xtask/reference` holds them without descriptions.

use std::fs;

use serde_json::{Value, json};

use super::compare::differences;
use super::{FeatureSet, KINDS, Kind, definition, files, yaml};
use crate::workspace::root;

fn kind(plural: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.plural == plural).expect("a kind of ours")
}

/// What the committed form says, as the API server would read it.
fn ours(plural: &str, set: FeatureSet) -> Value {
    let text = yaml(&definition(kind(plural), set).unwrap()).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn published(name: &str) -> Value {
    let path = root().join("xtask/reference").join(format!("machine.openshift.io_{name}.yaml"));
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_definition_is_structurally_equal_to_the_published_one() {
    for (plural, set, reference) in [
        ("machines", FeatureSet::Default, "machines.Default"),
        ("machines", FeatureSet::CustomNoUpgrade, "machines.CustomNoUpgrade"),
        ("machinesets", FeatureSet::Default, "machinesets.Default"),
        ("machinesets", FeatureSet::CustomNoUpgrade, "machinesets.CustomNoUpgrade"),
        ("machinehealthchecks", FeatureSet::Default, "machinehealthchecks"),
    ] {
        let found = differences(&ours(plural, set), &published(reference));
        assert!(found.is_empty(), "{reference} differs (ours, published):\n{}", found.join("\n"));
    }
}

#[test]
fn the_comparison_sees_every_sort_of_difference() {
    let same = published("machinesets.CustomNoUpgrade");
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
    for (path, value) in [
        ("spec/properties/replicas/default", json!(2)),
        ("spec/properties/replicas/format", json!("int64")),
        ("spec/properties/replicas/nullable", json!(true)),
        ("spec/properties/deletePolicy/enum", json!(["Random", "Newest"])),
        ("spec/properties/template/properties/spec/properties/taints/x-kubernetes-list-type", json!("set")),
        (
            "spec/properties/template/properties/spec/properties/lifecycleHooks/properties/preDrain/items/required",
            json!(["name"]),
        ),
        ("spec/properties/selector/x-kubernetes-map-type", json!(null)),
        ("status/properties/labelSelector/maxLength", json!(4095)),
        ("status/properties/description", json!({"type": "string"})),
        ("status/x-kubernetes-validations/0/reason", json!("FieldValueRequired")),
    ] {
        let mut changed = same.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        changed.pointer_mut(&format!("{schema}/{parent}")).expect(path)[key] = value;
        assert_eq!(differences(&changed, &same).len(), 1, "{path}");
    }
    for path in ["additionalPrinterColumns/0/type", "subresources/scale/specReplicasPath"] {
        let mut changed = same.clone();
        *changed.pointer_mut(&format!("/spec/versions/0/{path}")).expect(path) = json!("other");
        assert_eq!(differences(&changed, &same).len(), 1, "{path}");
    }
}

#[test]
fn every_field_is_explained() {
    fn unexplained(schema: &Value, path: &str, found: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if property["description"].as_str().is_none_or(|text| text.len() < 8) && path != ".metadata" {
                found.push(path.clone());
            }
            unexplained(property, &path, found);
            unexplained(&property["items"], &format!("{path}[]"), found);
        }
    }
    for kind in KINDS {
        let definition = definition(kind, FeatureSet::CustomNoUpgrade).unwrap();
        let mut found = Vec::new();
        unexplained(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut found);
        assert!(found.is_empty(), "{} does not explain {}", kind.kind, found.join(", "));
    }
}

#[test]
fn the_written_form_reads_back_as_what_was_meant() {
    for kind in KINDS {
        for set in [FeatureSet::Default, FeatureSet::CustomNoUpgrade] {
            assert_eq!(ours(kind.plural, set), definition(kind, set).unwrap());
        }
    }
}

#[test]
fn only_gated_kinds_have_a_file_for_each_feature_set() {
    let paths: Vec<_> = files().unwrap().into_iter().map(|file| file.path).collect();
    assert_eq!(
        paths,
        [
            "install/crds/Default/machines.yaml",
            "install/crds/CustomNoUpgrade/machines.yaml",
            "install/crds/Default/machinesets.yaml",
            "install/crds/CustomNoUpgrade/machinesets.yaml",
            "install/crds/machinehealthchecks.yaml",
            "install/crds/simulatedinstances.yaml",
        ]
    );
}
