//! What webhooks are asked and what their answers come to, with webhooks that are functions. Never here: how they are
//! reached.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::hooks::{Cache, Phase};
use super::{Attributes, Caller, Operation, Site, WebhookAnswer, WebhookCall, mutate, validate};
use crate::loops::testing::Bench;
use crate::plane::User;
use crate::status::ApiError;

/// A webhook that answers by its path, and remembers what it was asked.
#[derive(Default)]
struct Far {
    asked: Mutex<Vec<(WebhookCall, Value)>>,
}

impl Caller for Far {
    fn call(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, String>> {
        let review: Value = serde_json::from_slice(&call.body).unwrap();
        self.asked.lock().unwrap().push((call.clone(), review.clone()));
        let path = call.url.split(['/', '?']).nth(3).unwrap().to_owned();
        let answer = answer(&path, &review);
        Box::pin(async move { answer })
    }
}

fn answer(path: &str, review: &Value) -> Result<WebhookAnswer, String> {
    let request = &review["request"];
    let patch = |patch: Value| json!({"patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())});
    let denied = |status: Value| json!({"allowed": false, "status": status});
    let mut response = json!({"uid": request["uid"], "allowed": true});
    let mut review = json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"]});
    let mut code = 200;
    let more = match path {
        "ok" => json!({}),
        "warn" => json!({"warnings": ["w1", "w2"]}),
        "deny" => denied(json!({"message": "no way"})),
        "bare" => denied(json!({})),
        "reason" => denied(json!({"reason": "Because", "code": 200})),
        "full" => {
            denied(json!({"code": 422, "reason": "Invalid", "message": "bad", "details": {"name": "x"}}))
        }
        "label" => patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"hook": "yes"}}])),
        "count" => {
            let count = request["object"]["data"]["count"].as_i64().unwrap_or_default() + 1;
            patch(json!([{"op": "add", "path": "/data/count", "value": count}]))
        }
        "badop" => patch(json!([{"op": "replace", "path": "/nope/x", "value": 1}])),
        "badpatch" => json!({"patchType": "JSONPatch", "patch": STANDARD.encode("{")}),
        "notype" => json!({"patch": "W10="}),
        "baduid" => json!({"uid": "x"}),
        "badkind" => {
            review["kind"] = "Foo".into();
            json!({})
        }
        "badversion" => {
            review["apiVersion"] = "admission.k8s.io/v1beta1".into();
            json!({})
        }
        "500" | "404" | "418" => {
            code = path.parse().unwrap();
            json!({})
        }
        "absent" => Value::Null,
        "refused" => return Err("dial tcp a: connect: connection refused".into()),
        other => panic!("no webhook answers {other}"),
    };
    if more.is_object() {
        json_patch::merge(&mut response, &more);
        review["response"] = response;
    }
    Ok(WebhookAnswer { code, body: review.to_string().into() })
}

/// A configuration with one webhook for new ConfigMaps, `path`, and what `more` changes of it.
fn configuration(phase: Phase, name: &str, path: &str, more: &Value) -> Value {
    let kind = match phase {
        Phase::Mutating => "MutatingWebhookConfiguration",
        Phase::Validating => "ValidatingWebhookConfiguration",
    };
    let mut webhook = json!({
        "name": format!("{name}.x.y"),
        "clientConfig": {"url": format!("https://host/{path}")},
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 10,
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
        }],
    });
    json_patch::merge(&mut webhook, more);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": [webhook],
    })
}

fn map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"},
        "data": {"a": "b"},
    })
}

struct World {
    bench: Bench,
    far: Arc<Far>,
    user: User,
}

impl World {
    fn new(configurations: &[Value]) -> World {
        let mut bench = Bench::new();
        bench.put(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "default", "labels": {"kubernetes.io/metadata.name": "default"}},
        }));
        for configuration in configurations {
            bench.put(configuration.clone());
        }
        let user = User { name: "alice".into(), uid: "1".into(), groups: vec!["g".into()] };
        World { bench, far: Arc::default(), user }
    }

    fn site(&mut self, phase: Phase) -> Site<'static> {
        Site {
            hooks: Cache::hooks(&mut self.bench.state, phase),
            caller: Some(self.far.clone()),
            environment: self.bench.clock.clone(),
            schema: None,
        }
    }

    fn run(
        &mut self,
        phase: Phase,
        change: impl FnOnce(&mut Attributes<'_>),
        objects: [Option<Value>; 2],
    ) -> Result<(Value, Vec<String>), ApiError> {
        let site = self.site(phase);
        let namespace = self.bench.object("namespaces", "default");
        let mut attributes = Attributes {
            operation: Operation::Create,
            kind: ["", "v1", "ConfigMap"],
            resource: ["", "v1", "configmaps"],
            subresource: "",
            name: "c",
            namespace: "default",
            home: Some(&namespace),
            user: &self.user,
            is_dry_run: false,
            options: json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}),
        };
        change(&mut attributes);
        let [new, old] = objects;
        match phase {
            Phase::Mutating => {
                let new = new.expect("only new states are changed");
                mutate(&site, &attributes, old.as_ref(), new).now_or_never().unwrap()
            }
            Phase::Validating => {
                let warnings =
                    validate(&site, &attributes, old.as_ref(), new.as_ref()).now_or_never().unwrap();
                warnings.map(|warnings| (Value::Null, warnings))
            }
        }
    }

    /// Paths of the webhooks that were asked.
    fn asked(&self) -> Vec<String> {
        let asked = self.far.asked.lock().unwrap();
        asked.iter().map(|(call, _)| call.url.split(['/', '?']).nth(3).unwrap().to_owned()).collect()
    }
}

/// Asks one webhook about a new ConfigMap: `ok`, or code, reason and message.
fn outcome(phase: Phase, path: &str, more: &Value) -> String {
    let mut world = World::new(&[configuration(phase, "w", path, more)]);
    match world.run(phase, |_| {}, [Some(map()), None]) {
        Ok(_) => "ok".into(),
        Err(error) => format!("{} {} {}", error.code, error.reason, error.message),
    }
}

#[test]
fn a_webhook_may_refuse_a_write() {
    let rows = [
        ("ok", "ok"),
        ("warn", "ok"),
        ("deny", "400  admission webhook \"w.x.y\" denied the request: no way"),
        ("bare", "400  admission webhook \"w.x.y\" denied the request without explanation"),
        ("reason", "400 Because admission webhook \"w.x.y\" denied the request: Because"),
        ("full", "422 Invalid admission webhook \"w.x.y\" denied the request: bad"),
    ];
    for (path, expected) in rows {
        for phase in [Phase::Mutating, Phase::Validating] {
            for policy in ["Fail", "Ignore"] {
                assert_eq!(outcome(phase, path, &json!({"failurePolicy": policy})), expected);
            }
        }
    }
}

#[test]
fn a_webhook_that_fails_lets_a_write_through_only_if_its_policy_says_so() {
    const INVALID: &str = "received invalid webhook response";
    const CALL: &str = "failed to call webhook";
    let rows = [
        (
            "500",
            format!("{CALL}: an error on the server (\"unknown\") has prevented the request from succeeding"),
        ),
        ("404", format!("{CALL}: the server could not find the requested resource")),
        (
            "418",
            format!(
                "{CALL}: the server responded with the status code 418 but did not return more information"
            ),
        ),
        ("absent", format!("{INVALID}: webhook response was absent")),
        (
            "baduid",
            format!("{INVALID}: expected response.uid=\"00000000-0000-4000-8000-000000000001\", got \"x\""),
        ),
        ("label", format!("{INVALID}: validating webhook may not return response.patch")),
        (
            "badkind",
            format!(
                "{CALL}: no kind \"Foo\" is registered for version \"admission.k8s.io/v1\" in scheme \
                 \"pkg/runtime/scheme.go:111\""
            ),
        ),
        (
            "badversion",
            format!(
                "{CALL}: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
            ),
        ),
        (
            "refused",
            format!(
                "{CALL}: Post \"https://host/refused?timeout=10s\": dial tcp a: connect: connection refused"
            ),
        ),
    ];
    for (path, why) in rows {
        let expected =
            format!("500 InternalError Internal error occurred: failed calling webhook \"w.x.y\": {why}");
        assert_eq!(outcome(Phase::Validating, path, &json!({"failurePolicy": "Fail"})), expected);
        assert_eq!(outcome(Phase::Validating, path, &json!({"failurePolicy": "Ignore"})), "ok");
    }
    let prefix = "500 InternalError Internal error occurred: failed calling webhook \"w.x.y\": received";
    assert_eq!(
        outcome(Phase::Mutating, "notype", &json!({})),
        format!(
            "{prefix} invalid webhook response: webhook returned response.patch but not response.patchType"
        )
    );
    assert_eq!(
        outcome(Phase::Mutating, "badpatch", &json!({})),
        format!("{prefix} undecodable patch in webhook response: unexpected end of JSON input")
    );
    // A patch that cannot be applied is nobody's failure to be reached.
    let error = outcome(Phase::Mutating, "badop", &json!({"failurePolicy": "Ignore"}));
    assert!(error.starts_with("500 InternalError Internal error occurred: "), "{error}");
}

#[test]
fn rules_and_selectors_say_which_writes_concern_a_webhook() {
    let rule = |more: Value| {
        let mut rule = json!({
            "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"], "scope": "*",
        });
        json_patch::merge(&mut rule, &more);
        json!({"rules": [rule]})
    };
    let named = |label: &str| json!({"matchLabels": {"kubernetes.io/metadata.name": label}});
    // What the webhook wants; resource, subresource and operation; whether it is asked.
    let rows = [
        (json!({}), "configmaps", "", Operation::Create, true),
        (json!({}), "configmaps", "", Operation::Update, false),
        (json!({}), "secrets", "", Operation::Create, false),
        (rule(json!({})), "configmaps", "", Operation::Delete, true),
        (rule(json!({})), "configmaps", "status", Operation::Update, false),
        (rule(json!({"resources": ["*/*"]})), "configmaps", "status", Operation::Update, true),
        (rule(json!({"resources": ["*/*"]})), "configmaps", "", Operation::Update, true),
        (rule(json!({"resources": ["*/status"]})), "pods", "status", Operation::Update, true),
        (rule(json!({"resources": ["*/status"]})), "pods", "", Operation::Update, false),
        (rule(json!({"resources": ["pods/*"]})), "pods", "eviction", Operation::Create, true),
        (rule(json!({"resources": ["pods/status"]})), "configmaps", "status", Operation::Update, false),
        (rule(json!({"apiGroups": ["apps"]})), "configmaps", "", Operation::Create, false),
        (rule(json!({"apiVersions": ["v2"]})), "configmaps", "", Operation::Create, false),
        (rule(json!({"scope": "Cluster"})), "configmaps", "", Operation::Create, false),
        (rule(json!({"scope": "Namespaced"})), "configmaps", "", Operation::Create, true),
        (rule(json!({"scope": "Cluster"})), "namespaces", "", Operation::Create, true),
        (json!({"namespaceSelector": named("default")}), "configmaps", "", Operation::Create, true),
        (json!({"namespaceSelector": named("other")}), "configmaps", "", Operation::Create, false),
        (json!({"objectSelector": {"matchLabels": {"a": "b"}}}), "configmaps", "", Operation::Create, false),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}),
            "configmaps",
            "",
            Operation::Create,
            true,
        ),
        (
            json!({"matchConditions": [{"name": "n", "expression": "object.data.a == 'b'"}]}),
            "configmaps",
            "",
            Operation::Create,
            true,
        ),
        (
            json!({"matchConditions": [{"name": "n", "expression": "object.data.a == 'c'"}]}),
            "configmaps",
            "",
            Operation::Create,
            false,
        ),
        (
            json!({"matchConditions": [{
                "name": "n",
                "expression": "request.userInfo.username == 'alice' && oldObject == null && \
                               namespaceObject.metadata.name == 'default' && !request.dryRun",
            }]}),
            "configmaps",
            "",
            Operation::Create,
            true,
        ),
    ];
    for (more, plural, subresource, operation, expected) in rows {
        let mut world = World::new(&[configuration(Phase::Validating, "w", "ok", &more)]);
        let change = |attributes: &mut Attributes<'_>| {
            attributes.resource[2] = plural;
            attributes.subresource = subresource;
            attributes.operation = operation;
        };
        world.run(Phase::Validating, change, [Some(map()), None]).unwrap();
        assert_eq!(!world.asked().is_empty(), expected, "{more} {plural}/{subresource} {operation:?}");
    }
}

#[test]
fn a_condition_that_cannot_be_evaluated_is_a_failure() {
    let condition = |policy: &str| {
        json!({
            "failurePolicy": policy,
            "matchConditions": [{"name": "n", "expression": "object.data.nope == 'z'"}],
        })
    };
    let refused = "403 Forbidden configmaps \"c\" is forbidden: expression 'object.data.nope == 'z'' resulted in \
                   error: no such key: nope";
    assert_eq!(outcome(Phase::Validating, "deny", &condition("Fail")), refused);
    assert_eq!(outcome(Phase::Validating, "deny", &condition("Ignore")), "ok");
    let mut both = condition("Fail");
    both["matchConditions"] = json!([both["matchConditions"][0], {"name": "m", "expression": "false"}]);
    assert_eq!(outcome(Phase::Validating, "deny", &both), "ok");
}

#[test]
fn webhooks_change_an_object_in_their_order_and_again_if_they_want() {
    let hook = |name: &str, policy: &str| {
        configuration(Phase::Mutating, name, "count", &json!({"reinvocationPolicy": policy}))
    };
    let rows = [
        (vec![hook("a", "Never")], 1),
        (vec![hook("a", "IfNeeded")], 1),
        (vec![hook("a", "Never"), hook("b", "Never")], 2),
        (vec![hook("a", "IfNeeded"), hook("b", "Never")], 3),
        (vec![hook("a", "Never"), hook("b", "IfNeeded")], 2),
        (vec![hook("a", "IfNeeded"), hook("b", "IfNeeded")], 4),
        (vec![hook("a", "IfNeeded"), configuration(Phase::Mutating, "b", "ok", &json!({}))], 1),
    ];
    for (configurations, expected) in rows {
        let mut world = World::new(&configurations);
        let (object, _) = world.run(Phase::Mutating, |_| {}, [Some(map()), None]).unwrap();
        assert_eq!(object["data"]["count"], expected, "{configurations:?}");
    }
    let mut world = World::new(&[configuration(Phase::Mutating, "a", "label", &json!({}))]);
    let (object, _) = world.run(Phase::Mutating, |_| {}, [Some(map()), None]).unwrap();
    assert_eq!(object["metadata"]["labels"], json!({"hook": "yes"}));
}

#[test]
fn warnings_of_all_webhooks_are_passed_on() {
    let hooks = ["a", "b"].map(|name| configuration(Phase::Validating, name, "warn", &json!({})));
    let (_, warnings) = World::new(&hooks).run(Phase::Validating, |_| {}, [Some(map()), None]).unwrap();
    assert_eq!(warnings, ["w1", "w2", "w1", "w2"]);
}

#[test]
fn a_dry_run_asks_only_webhooks_without_side_effects() {
    let rows = [("None", true), ("NoneOnDryRun", true), ("Some", false), ("Unknown", false)];
    for (effects, is_asked) in rows {
        let more = json!({"sideEffects": effects});
        let mut world = World::new(&[configuration(Phase::Validating, "w", "ok", &more)]);
        let result =
            world.run(Phase::Validating, |attributes| attributes.is_dry_run = true, [Some(map()), None]);
        match result {
            Ok(_) => assert!(is_asked),
            Err(error) => {
                assert!(!is_asked);
                let message = "admission webhook \"w.x.y\" does not support dry run";
                assert_eq!((error.code, &*error.message), (400, message));
            }
        }
    }
}

#[test]
fn a_webhook_is_told_all_about_a_write() {
    let more = json!({
        "clientConfig": {"url": null, "service": {"name": "s", "namespace": "n", "path": "/ok"}, "caBundle": "UEVN"},
        "timeoutSeconds": 3,
    });
    let mut world = World::new(&[configuration(Phase::Validating, "w", "ok", &more)]);
    world.run(Phase::Validating, |_| {}, [Some(map()), None]).unwrap();
    let asked = world.far.asked.lock().unwrap();
    let (call, review) = &asked[0];
    let service = call.service.clone().unwrap();
    assert_eq!((&*service.namespace, &*service.name, service.port), ("n", "s", 443));
    assert_eq!(
        (&*call.url, &call.ca[..], call.timeout.as_secs()),
        ("https://s.n.svc:443/ok?timeout=3s", &b"PEM"[..], 3)
    );
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    let expected = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "00000000-0000-4000-8000-000000000001",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "c", "namespace": "default", "operation": "CREATE",
            "userInfo": {"username": "alice", "uid": "1", "groups": ["g"]},
            "object": map(), "oldObject": null, "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    });
    assert_eq!(*review, expected);
}

#[test]
fn configurations_themselves_concern_no_webhook() {
    let all = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]});
    let mut world = World::new(&[configuration(Phase::Validating, "w", "deny", &all)]);
    let change = |attributes: &mut Attributes<'_>| {
        attributes.resource = ["admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"];
        attributes.namespace = "";
    };
    world.run(Phase::Validating, change, [Some(map()), None]).unwrap();
    assert_eq!(world.asked(), [""; 0]);
}

#[test]
fn a_changed_configuration_is_read_again() {
    let mut world = World::new(&[configuration(Phase::Validating, "w", "ok", &json!({}))]);
    world.run(Phase::Validating, |_| {}, [Some(map()), None]).unwrap();
    world.bench.put(configuration(Phase::Validating, "w", "deny", &json!({})));
    assert!(world.run(Phase::Validating, |_| {}, [Some(map()), None]).is_err());
    world.bench.delete("validatingwebhookconfigurations", "w", None);
    world.run(Phase::Validating, |_| {}, [Some(map()), None]).unwrap();
    assert_eq!(world.asked(), ["ok", "deny"]);
}
