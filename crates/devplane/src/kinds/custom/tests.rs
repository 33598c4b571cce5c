//! CRDs and what comes of them. What is said of wrong ones was asked of a real API server.

use serde_json::{Value, json};

use super::{kinds_of_crd, warnings_of_crd};
use crate::kinds::Origin;

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "boxes.t.io" },
        "spec": {
            "group": "t.io",
            "scope": "Namespaced",
            "names": { "plural": "boxes", "kind": "Box" },
            "versions": [version("v1", true)],
        },
    })
}

fn version(name: &str, storage: bool) -> Value {
    let spec = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    json!({ "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema } })
}

/// Lays values over a CRD at JSON pointers and compares what is said about it.
fn check(changes: &[(&str, Value)], expected: &[&str]) {
    let mut crd = crd();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        match crd.pointer_mut(parent).unwrap_or_else(|| panic!("{parent} is there")) {
            Value::Array(items) if key == "-" => items.push(value.clone()),
            parent if value.is_null() => {
                parent.as_object_mut().expect("an object").remove(key);
            }
            parent => parent[key] = value.clone(),
        }
    }
    let errors = kinds_of_crd(&crd).err().unwrap_or_default();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected, "{changes:?}");
}

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
    character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
    '[a-z]([-a-z0-9]*[a-z0-9])?')";

#[test]
fn a_crd_with_wrong_names_is_refused() {
    check(&[], &[]);
    let name = "metadata.name: Invalid value: \"boxes.t.io\": must be spec.names.plural+\".\"+spec.group";
    check(&[("/metadata/name", json!("x"))], &[&name.replace("boxes.t.io", "x")]);
    check(&[("/spec/group", Value::Null)], &[name, "spec.group: Required value"]);
    check(&[("/spec/names/plural", Value::Null)], &[name, "spec.names.plural: Required value"]);
    check(
        &[("/spec/names/plural", json!("Boxes"))],
        &[name, &format!("spec.names.plural: Invalid value: \"Boxes\": {LABEL}")],
    );
    check(&[("/spec/names/kind", Value::Null)], &["spec.names.kind: Required value"]);
    check(
        &[("/spec/names/kind", json!("B_x"))],
        &[&format!(
            "spec.names.kind: Invalid value: \"B_x\": may have mixed case, but should otherwise match: {LABEL}"
        )],
    );
    check(
        &[("/spec/names/listKind", json!("Box"))],
        &["spec.names.listKind: Invalid value: \"Box\": kind and listKind may not be the same"],
    );
    check(
        &[("/spec/names/shortNames", json!(["A b"]))],
        &[&format!("spec.names.shortNames[0]: Invalid value: \"A b\": {LABEL}")],
    );
    check(
        &[("/spec/group", json!("x")), ("/metadata/name", json!("boxes.x"))],
        &["spec.group: Invalid value: \"x\": should be a domain with at least one dot"],
    );
    check(
        &[("/spec/group", json!("a.k8s.io")), ("/metadata/name", json!("boxes.a.k8s.io"))],
        &[
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval \
           annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ],
    );
    check(&[("/spec/scope", Value::Null)], &["spec.scope: Required value"]);
    check(
        &[("/spec/scope", json!("Foo"))],
        &["spec.scope: Unsupported value: \"Foo\": supported values: \"Cluster\", \"Namespaced\""],
    );
}

/// Versions as messages show them.
fn shown(versions: &[(&str, bool)]) -> String {
    let one = |(name, storage): &(&str, bool)| {
        format!(
            "{{\"Name\":\"{name}\",\"Served\":true,\"Storage\":{storage},\"Deprecated\":false,\
             \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
             \"SelectableFields\":null}}"
        )
    };
    let versions: Vec<String> = versions.iter().map(one).collect();
    format!("spec.versions: Invalid value: [{}]", versions.join(","))
}

#[test]
fn exactly_one_version_stores() {
    let one = "must have exactly one version marked as storage version";
    check(
        &[("/spec/versions/0/storage", json!(false))],
        &[
            &format!("{}: {one}", shown(&[("v1", false)])),
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    check(
        &[("/spec/versions/-", version("v2", true))],
        &[
            &format!("{}: {one}", shown(&[("v1", true), ("v2", true)])),
            "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2",
        ],
    );
    check(
        &[("/spec/versions/-", version("v1", false))],
        &[&format!("{}: must contain unique version names", shown(&[("v1", true), ("v1", false)]))],
    );
    check(&[("/spec/versions/-", version("v2", false))], &[]);
    check(
        &[("/status", json!({ "storedVersions": ["v0", "v1"] }))],
        &[
            "status.storedVersions[0]: Invalid value: \"v0\": missing from spec.versions; v0 was previously a storage \
           version, and must remain in spec.versions until a storage migration ensures no data remains persisted in \
           v0 and removes v0 from status.storedVersions",
        ],
    );
    check(
        &[("/spec/versions/0/name", json!("V_1"))],
        &[
            &format!("spec.versions[0].name: Invalid value: \"V_1\": {LABEL}"),
            &format!("spec.version: Invalid value: \"V_1\": {LABEL}"),
        ],
    );
    check(
        &[("/spec/versions/0/deprecationWarning", json!("x"))],
        &[
            "spec.versions[0].deprecationWarning: Invalid value: \"x\": can only be set for deprecated versions",
        ],
    );
}

#[test]
fn what_all_versions_share_is_complained_about_once() {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "a": {} } } });
    let detail = "properties[a].type: Required value: must not be empty for specified object fields";
    let mut second = version("v2", false);
    second["schema"] = schema.clone();
    check(
        &[("/spec/versions/0/schema", schema.clone()), ("/spec/versions/-", second.clone())],
        &[&format!("spec.validation.openAPIV3Schema.{detail}")],
    );
    second["additionalPrinterColumns"] = json!([{ "name": "x", "type": "foo", "jsonPath": ".a" }]);
    second["subresources"] = json!({ "scale": {} });
    check(
        &[("/spec/versions/-", second)],
        &[
            &format!("spec.versions[1].schema.openAPIV3Schema.{detail}"),
            "spec.versions[1].subresources.scale.specReplicasPath: Required value",
            "spec.versions[1].subresources.scale.statusReplicasPath: Required value",
            "spec.versions[1].additionalPrinterColumns[0].type: Invalid value: \"foo\": must be one of \
             boolean,date,integer,number,string",
        ],
    );
    check(
        &[("/spec/versions/0/schema", Value::Null)],
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
}

#[test]
fn columns_and_scale_have_simple_paths() {
    let columns = json!([
        { "name": "", "type": "foo", "jsonPath": ".spec.a[" },
        { "name": "a", "type": "string", "jsonPath": "spec.a" },
        { "name": "x", "type": "integer", "jsonPath": ".spec.a", "format": "zz" },
        { "name": "b", "type": "string" },
    ]);
    check(
        &[("/spec/versions/0/additionalPrinterColumns", columns)],
        &[
            "spec.additionalPrinterColumns[0].name: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"foo\": must be one of \
             boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[1].JSONPath: Invalid value: \"spec.a\": must be a simple json path starting \
             with .",
            "spec.additionalPrinterColumns[2].format: Invalid value: \"zz\": must be one of \
             byte,date,date-time,double,float,int32,int64,password",
            "spec.additionalPrinterColumns[3].JSONPath: Required value",
        ],
    );
    let scale = json!({
        "scale": { "specReplicasPath": "spec.n", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".foo" },
    });
    check(
        &[("/spec/versions/0/subresources", scale)],
        &[
            "spec.subresources.scale.specReplicasPath: Invalid value: \"spec.n\": must be a simple json path starting \
             with .",
            "spec.subresources.scale.statusReplicasPath: Invalid value: \".spec.x\": should be a json path under .status",
            "spec.subresources.scale.labelSelectorPath: Invalid value: \".foo\": should be a json path under either \
             .spec or .status",
        ],
    );
}

#[test]
fn metadata_may_only_be_limited_in_its_names() {
    let refused = "spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than \
                   name and generateName, but metadata is implicitly specified";
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/metadata";
    let name = json!({ "type": "string", "pattern": "^a" });
    check(&[(at, json!({ "type": "object", "properties": { "name": name } }))], &[]);
    check(&[(at, json!({ "type": "object", "properties": { "labels": { "type": "object" } } }))], &[refused]);
    check(&[(at, json!({ "type": "object", "required": ["name"] }))], &[refused]);
    check(
        &[(at, json!({ "type": "object", "default": {} }))],
        &[
            "spec.validation.openAPIV3Schema.properties[metadata].default: Forbidden: must not be set in top-level metadata",
        ],
    );
    check(
        &[(at, json!({ "type": "string" }))],
        &[
            "spec.validation.openAPIV3Schema.properties[metadata].type: Invalid value: \"string\": must be object",
        ],
    );
}

#[test]
fn a_crd_brings_a_kind_for_each_version_that_is_served() {
    let mut crd = crd();
    let mut second = version("v2", false);
    second["subresources"] = json!({ "status": {}, "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" } });
    second["additionalPrinterColumns"] =
        json!([{ "name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 1 }]);
    let mut third = version("v3", false);
    third["served"] = json!(false);
    crd["spec"]["versions"].as_array_mut().expect("a list").extend([second, third]);
    let kinds = kinds_of_crd(&crd).expect("the CRD is right");
    let names: Vec<String> = kinds.iter().map(|kind| kind.api_version()).collect();
    assert_eq!(names, ["t.io/v1", "t.io/v2"]);
    let (first, second) = (&kinds[0], &kinds[1]);
    assert_eq!((&*first.list_kind, &*first.singular, &*first.bucket), ("BoxList", "box", "t.io/boxes"));
    assert_eq!(first.origin, Origin::Custom("boxes.t.io".to_owned()));
    assert!(first.namespaced && !first.has_status && first.scale.is_none() && first.columns.is_empty());
    assert!(second.has_status && second.scale.as_ref().is_some_and(|scale| scale.spec_replicas == ".spec.n"));
    assert_eq!((&*second.columns[0].path, second.columns[0].priority), (".spec.a", 1));
    assert!(std::sync::Arc::ptr_eq(&first.schema, &second.schema), "one schema is kept once");
}

#[test]
fn formats_that_mean_nothing_are_warned_of() {
    let mut crd = crd();
    let fields = json!({
        "a": { "type": "string", "format": "foo" },
        "b": { "type": "array", "items": { "type": "string", "format": "foo" } },
        "c": { "type": "string", "format": "int64" },
        "d": { "type": "integer", "format": "int64" },
        "e": { "type": "string", "format": "date-time" },
    });
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = fields;
    assert_eq!(warnings_of_crd(&crd), ["unrecognized format \"foo\"", "unrecognized format \"int64\""]);
}

/// The CRDs that the product installs.
const INSTALLED: [&str; 6] = [
    include_str!("../../../../../install/crds/Default/machines.yaml"),
    include_str!("../../../../../install/crds/Default/machinesets.yaml"),
    include_str!("../../../../../install/crds/CustomNoUpgrade/machines.yaml"),
    include_str!("../../../../../install/crds/CustomNoUpgrade/machinesets.yaml"),
    include_str!("../../../../../install/crds/machinehealthchecks.yaml"),
    include_str!("../../../../../install/crds/simulatedinstances.yaml"),
];

#[test]
fn the_crds_that_we_install_are_right() {
    for text in INSTALLED {
        let crd: Value = serde_saphyr::from_str(text).expect("it is YAML");
        let kinds =
            kinds_of_crd(&crd).unwrap_or_else(|errors| panic!("{}: {errors:?}", crd["metadata"]["name"]));
        assert_eq!(kinds.len(), 1, "{}", crd["metadata"]["name"]);
        assert_eq!(warnings_of_crd(&crd), [""; 0], "{}", crd["metadata"]["name"]);
    }
}

#[test]
fn the_rules_of_machines_hold() {
    let crd: Value = serde_saphyr::from_str(INSTALLED[2]).expect("it is YAML");
    let machine = &kinds_of_crd(&crd).expect("the CRD is right")[0];
    let check = |old: Value, new: Value, expected: &[&str]| {
        let [old, new] =
            [old, new].map(|status| json!({ "metadata": { "name": "m" }, "spec": {}, "status": status }));
        let errors = machine.schema.check(&new, Some(&old));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{old} {new}");
    };
    let direct = "The authoritativeAPI field must not transition directly from MachineAPI to ClusterAPI or vice versa. It \
                  must transition through Migrating.";
    check(json!({}), json!({ "authoritativeAPI": "MachineAPI" }), &[]);
    check(json!({ "authoritativeAPI": "MachineAPI" }), json!({ "authoritativeAPI": "Migrating" }), &[]);
    check(
        json!({ "authoritativeAPI": "MachineAPI" }),
        json!({ "authoritativeAPI": "ClusterAPI" }),
        &[&format!("status.authoritativeAPI: Invalid value: \"ClusterAPI\": {direct}")],
    );
    check(
        json!({ "authoritativeAPI": "MachineAPI" }),
        json!({ "phase": "Running" }),
        &["status: Invalid value: authoritativeAPI may not be removed once set"],
    );
    check(
        json!({ "authoritativeAPI": "MachineAPI", "synchronizedGeneration": 3 }),
        json!({ "authoritativeAPI": "MachineAPI", "synchronizedGeneration": 2 }),
        &["status.synchronizedGeneration: Invalid value: synchronizedGeneration must not decrease unless \
           authoritativeAPI is transitioning from Migrating to another value"],
    );
    check(
        json!({ "authoritativeAPI": "Migrating", "synchronizedGeneration": 3 }),
        json!({ "authoritativeAPI": "MachineAPI", "synchronizedGeneration": 2 }),
        &[],
    );
}

#[test]
fn a_crd_in_a_group_of_the_kubernetes_project_needs_approval() {
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let path = "metadata.annotations[api-approved.kubernetes.io]";
    let rule = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
    let missing = format!("{path}: Required value: {rule}, {see}");
    let bad = format!(
        "{path}: Invalid value: \"bad\": {rule} with either a URL or a reason starting with \"unapproved\", {see}"
    );
    let group = |group: &str, approval: Value, expected: &[&str]| {
        let name = format!("boxes.{group}");
        let annotations = json!({ "api-approved.kubernetes.io": approval });
        check(
            &[
                ("/spec/group", json!(group)),
                ("/metadata/name", json!(name)),
                ("/metadata/annotations", annotations),
            ],
            expected,
        );
    };
    group("k8s.io", Value::Null, &[&missing]);
    group("a.kubernetes.io", Value::Null, &[&missing]);
    group("a.k8s.io", json!("bad"), &[&bad]);
    group("a.k8s.io", json!("unapproved, it is a test"), &[]);
    group("a.k8s.io", json!("https://a/b"), &[]);
    group("xk8s.io", Value::Null, &[]);
}
