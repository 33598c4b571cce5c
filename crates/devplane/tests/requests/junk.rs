//! Whatever is sent, the plane answers, and goes on.

use crate::support::World;
use http::StatusCode;
use serde_json::{Map, Value, json};

/// Requests of one run. A run takes seconds; another seed makes others.
const REQUESTS: u64 = 6000;

/// Numbers that repeat (xorshift, 64 bits).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("it is below the limit")
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn seeds() -> Vec<(&'static str, Value)> {
    let template = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}}, "resources": {"limits": {"cpu": "1"}}}],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}], "nodeName": "n"},
    });
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/x"]});
    let namespaced = "/api/v1/namespaces/default";
    let apps = "/apis/apps/v1/namespaces/default";
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "n": {"type": "integer", "minimum": 1, "x-kubernetes-validations": [{"rule": "self > 0"}]}}}}});
    let crd = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n",
                    "statusReplicasPath": ".status.n"}},
                "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}]}]},
    });
    let webhook = json!({"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule],
        "failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:1/x"}});
    let policy = json!({"matchConstraints": {"resourceRules": [rule]}, "variables": [{"name": "v", "expression": "1"}],
        "validations": [{"expression": "variables.v == 1", "message": "m"}]});
    vec![
        (
            "/api/v1/nodes",
            json!({"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        ("/api/v1/namespaces/default/pods", json!({"metadata": {"name": "p"}, "spec": template["spec"]})),
        (concat_path(namespaced, "configmaps"), json!({"metadata": {"name": "c"}, "data": {"k": "v"}})),
        (concat_path(namespaced, "secrets"), json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}})),
        (
            concat_path(namespaced, "services"),
            json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}),
        ),
        (
            concat_path(namespaced, "events"),
            json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}),
        ),
        (
            concat_path(apps, "deployments"),
            json!({"metadata": {"name": "d"}, "spec": {"replicas": 1,
            "selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        ),
        (
            concat_path(apps, "daemonsets"),
            json!({"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            json!({"metadata": {"name": "l"},
            "spec": {"holderIdentity": "x", "leaseDurationSeconds": 5}}),
        ),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd),
        (
            concat_path(admission, "validatingwebhookconfigurations"),
            json!({"metadata": {"name": "w"}, "webhooks": [webhook]}),
        ),
        (
            concat_path(admission, "validatingadmissionpolicies"),
            json!({"metadata": {"name": "v"}, "spec": policy}),
        ),
        (
            "/apis/example.com/v1/namespaces/default/things",
            json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "t", "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]},
            "spec": {"n": 1}, "status": {"n": 1}}),
        ),
    ]
}

fn concat_path(folder: &str, plural: &str) -> &'static str {
    Box::leak(format!("{folder}/{plural}").into_boxed_str())
}

/// Something that is seldom wanted.
fn junk(chance: &mut Chance) -> Value {
    let words = [
        "",
        "a",
        "-",
        "..",
        "100%",
        "2026-01-01T00:00:00Z",
        "9e999999999",
        "$patch",
        "\u{0}",
        "a/b/c",
        "self.x",
    ];
    match chance.below(9) {
        0 => Value::Null,
        1 => true.into(),
        2 => i64::MIN.into(),
        3 => (chance.below(5)).into(),
        4 => 1.5.into(),
        5 => json!([]),
        6 => json!({}),
        7 => json!([null, {"a": [{}]}, "x"]),
        _ => (*chance.of(&words)).into(),
    }
}

/// Puts junk somewhere, or takes something away.
fn spoil(value: &mut Value, chance: &mut Chance) {
    let goes_deeper = chance.below(5) > 0;
    match value {
        Value::Object(fields) if goes_deeper && !fields.is_empty() => spoil_field(fields, chance),
        Value::Array(items) if goes_deeper && !items.is_empty() => {
            let at = chance.below(items.len());
            spoil(&mut items[at], chance);
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => *value = junk(chance),
    }
}

fn spoil_field(fields: &mut Map<String, Value>, chance: &mut Chance) {
    let names: Vec<String> = fields.keys().cloned().collect();
    let name = chance.of(&names).clone();
    match chance.below(8) {
        0 => drop(fields.remove(&name)),
        1 => {
            let words = [
                "$patch",
                "$retainKeys",
                "$setElementOrder/containers",
                "finalizers",
                "deletionTimestamp",
                "x",
            ];
            let name = (*chance.of(&words)).to_owned();
            let value = junk(chance);
            fields.insert(name, value);
        }
        _ => spoil(fields.get_mut(&name).expect("it is one of them"), chance),
    }
}

/// Content types of patches, and those of other bodies.
const PATCHES: [&str; 4] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json-patch+json",
];
const BODIES: [&str; 4] =
    ["application/json", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

#[test]
fn every_request_has_an_answer_and_the_plane_goes_on() {
    let world = World::new();
    let seeds = seeds();
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut accepted = 0;
    for _ in 0..REQUESTS {
        let (path, seed) = chance.of(&seeds).clone();
        let name = seed["metadata"]["name"].as_str().expect("each has a name").to_owned();
        // Whatever became of it before: from time to time it is there as it should be.
        world.ask("POST", path, seed.clone());
        let mut body = seed;
        for _ in 0..chance.below(4) {
            spoil(&mut body, &mut chance);
        }
        let subresource = *chance.of(&["", "", "", "", "", "/status", "/scale", "/eviction", "/finalize"]);
        let query = *chance.of(&["", "?dryRun=All", "?fieldManager=a&force=true", "?fieldValidation=Strict"]);
        let object = format!("{path}/{name}{subresource}{query}");
        let (method, target) = match chance.below(10) {
            0 => ("POST", format!("{path}{query}")),
            1 => ("POST", object),
            2..=4 => ("PUT", object),
            5..=8 => ("PATCH", object),
            _ => ("DELETE", object),
        };
        let content = *chance.of(if method == "PATCH" { &PATCHES } else { &BODIES });
        let (code, _) = world.ask_as(method, &target, content, body.clone());
        accepted += u64::from(code.is_success());
        world.pass(1);
        let (code, _) = world.ask("GET", "/api/v1/namespaces", Value::Null);
        assert_eq!(code, StatusCode::OK, "after {method} {target} {content} {body}");
    }
    assert!(accepted > REQUESTS / 10, "no more than {accepted} of {REQUESTS} made sense");
}
