//! What policies do to the requests of a plane. Never here: what is wrong with a policy.

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::loops::testing::Bench;
use crate::options::Options;
use crate::plane::{Body, Plane, User};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A plane that is asked.
struct World(Plane);

impl World {
    fn new() -> World {
        World(Plane::new(Bench::new().clock, Options::default()))
    }

    /// A plane with a policy `p` and its binding `b`: what they say beside what every one says.
    fn with(policy: Value, binding: Value) -> World {
        let world = World::new();
        world.add(policy, binding);
        world
    }

    fn add(&self, policy: Value, binding: Value) {
        let mut spec = json!({ "matchConstraints": { "resourceRules": [rule("*")] } });
        json_patch::merge(&mut spec, &policy);
        assert_eq!(
            self.ask("POST", &policies("ies"), json!({ "metadata": { "name": "p" }, "spec": spec })),
            "201"
        );
        let mut spec = json!({ "policyName": "p", "validationActions": ["Deny"] });
        json_patch::merge(&mut spec, &binding);
        let object = json!({ "metadata": { "name": "b" }, "spec": spec });
        assert_eq!(self.ask("POST", &policies("ybindings"), object), "201");
    }

    /// A request, its status code, and what was refused or warned of.
    fn ask(&self, method: &str, path: &str, body: Value) -> String {
        let (response, value) = self.send(method, path, body);
        let warnings = response.headers().get_all(header::WARNING).iter();
        let warnings: Vec<&str> = warnings.map(|warning| warning.to_str().unwrap()).collect();
        let code = response.status().as_u16();
        if code >= 400 {
            let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
            return format!("{code} {}: {}", text("reason"), text("message"));
        }
        [vec![code.to_string()], warnings.into_iter().map(str::to_owned).collect()].concat().join(" ")
    }

    fn send(&self, method: &str, path: &str, body: Value) -> (Response<Body>, Value) {
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("content-type", content).body(body);
        let user = User::admin();
        let answer = self.0.call(request.unwrap(), &user).now_or_never().expect("nothing is waited for");
        let (head, body) = answer.into_parts();
        let bytes = body.collect().now_or_never().unwrap().unwrap().to_bytes();
        let value = serde_json::from_slice(&bytes).unwrap_or_default();
        (Response::from_parts(head, http_body_util::Empty::new().boxed_unsync()), value)
    }

    fn create(&self, name: &str) -> String {
        self.ask("POST", MAPS, map(name))
    }
}

fn policies(ending: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic{ending}")
}

fn rule(operation: &str) -> Value {
    json!({
        "apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": [operation],
        "resources": ["configmaps", "namespaces", "deployments/scale", "pods/eviction"],
    })
}

fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "l": "1" } }, "data": { "a": "b" } })
}

/// How the refusal of a new ConfigMap `m` begins and goes on.
fn denied(answer: &str, why: &str) -> String {
    format!(
        "{answer}: configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {why}"
    )
}

#[test]
fn what_a_policy_wants_to_be_true_is_or_the_write_is_refused() {
    let failed = |text: &str| denied("422 Invalid", &format!("failed expression: {text}"));
    let error = |text: &str, why: &str| {
        denied("422 Invalid", &format!("expression '{text}' resulted in error: {why}"))
    };
    let rows = [
        (json!({ "expression": "object.data.a == 'b'" }), "201".to_owned()),
        (json!({ "expression": " object.data.a == 'c' " }), failed("object.data.a == 'c'")),
        (json!({ "expression": "false", "message": " no " }), denied("422 Invalid", "no")),
        (
            json!({ "expression": "false", "messageExpression": "'a is ' + string(object.data.a)" }),
            denied("422 Invalid", "a is b"),
        ),
        (
            json!({ "expression": "false", "message": "m", "messageExpression": "string(object.nope)" }),
            denied("422 Invalid", "m"),
        ),
        (
            json!({ "expression": "false", "message": "m", "messageExpression": "'a\\nb'" }),
            denied("422 Invalid", "m"),
        ),
        (
            json!({ "expression": "false", "message": "m", "messageExpression": "' '" }),
            denied("422 Invalid", "m"),
        ),
        (
            json!({ "expression": "false", "message": "m", "reason": "Forbidden" }),
            denied("403 Forbidden", "m"),
        ),
        (json!({ "expression": "false", "message": "m", "reason": "Invalid" }), denied("422 Invalid", "m")),
        (
            json!({ "expression": "false", "message": "m", "reason": "RequestEntityTooLarge" }),
            denied("413 RequestEntityTooLarge", "m"),
        ),
        (
            json!({ "expression": "object.data.x == 'b'", "reason": "Forbidden" }),
            error("object.data.x == 'b'", "no such key: x"),
        ),
        (json!({ "expression": "object.data.a > 1" }), error("object.data.a > 1", "no such overload")),
        (json!({ "expression": "object.data.x == 'b' || true" }), "201".to_owned()),
    ];
    for (validation, expected) in rows {
        let world = World::with(json!({ "validations": [validation] }), json!({}));
        assert_eq!(world.create("m"), expected, "{validation}");
    }
}

#[test]
fn a_refusal_names_its_cause() {
    let world = World::with(json!({ "validations": [{ "expression": "false", "message": "m" }] }), json!({}));
    let (_, status) = world.send("POST", MAPS, map("m"));
    let why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: m";
    let details = json!({ "name": "m", "kind": "configmaps", "causes": [{ "message": why }] });
    assert_eq!(status["details"], details);
}

#[test]
fn variables_are_computed_when_they_are_named() {
    let variables = json!([
        { "name": "a", "expression": "object.data.a" },
        { "name": "twice", "expression": "string(variables.a) + string(variables.a)" },
        { "name": "bad", "expression": "object.data.nope" },
        { "name": "worse", "expression": "variables.bad" },
        { "name": "a", "expression": "variables.a == 'b'" },
    ]);
    let rows = [
        ("variables.twice == 'bb' && variables.a", ""),
        ("true || variables.bad == 'x'", ""),
        ("variables.bad == 'x' || true", ""),
        ("has(variables.twice)", ""),
        (
            "variables.worse == 'x'",
            "composited variable \"worse\" fails to evaluate: composited variable \"bad\" fails to evaluate: \
             no such key: nope",
        ),
        ("has(variables.bad)", "composited variable \"bad\" fails to evaluate: no such key: nope"),
    ];
    for (text, error) in rows {
        let world = World::with(
            json!({ "variables": variables, "validations": [{ "expression": text }] }),
            json!({}),
        );
        let expected = match error {
            "" => "201".to_owned(),
            why => denied("422 Invalid", &format!("expression '{text}' resulted in error: {why}")),
        };
        assert_eq!(world.create("m"), expected, "{text}");
    }
}

#[test]
fn a_condition_that_is_false_lets_a_policy_be_and_one_that_fails_is_a_failure() {
    let failing = "object.data.x == 'b'";
    let failed = denied("422 Invalid", &format!("expression '{failing}' resulted in error: no such key: x"));
    let rows = [
        (&["false"][..], "Fail", "201".to_owned()),
        (&["true"], "Fail", denied("422 Invalid", "failed expression: false")),
        (&[failing], "Fail", failed.clone()),
        (&[failing, "false"], "Fail", "201".to_owned()),
        (&[failing], "Ignore", "201".to_owned()),
        (&["true"], "Ignore", denied("422 Invalid", "failed expression: false")),
    ];
    for (conditions, failure, expected) in rows {
        let conditions: Vec<Value> = conditions
            .iter()
            .enumerate()
            .map(|(at, text)| json!({ "name": format!("c{at}"), "expression": text }))
            .collect();
        let policy = json!({
            "failurePolicy": failure, "matchConditions": conditions, "validations": [{ "expression": "false" }],
        });
        assert_eq!(World::with(policy.clone(), json!({})).create("m"), expected, "{policy}");
    }
    let ignoring = json!({ "failurePolicy": "Ignore", "validations": [{ "expression": failing }] });
    assert_eq!(World::with(ignoring, json!({})).create("m"), "201");
}

#[test]
fn a_binding_says_what_follows() {
    let policy = json!({
        "validations": [{ "expression": "false", "message": "one" }, { "expression": "false", "message": "two" }],
    });
    let warning = |why: &str| {
        format!("299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': {why}\"")
    };
    let warned = format!("201 {} {}", warning("one"), warning("two"));
    for (actions, expected) in [
        (json!(["Deny"]), denied("422 Invalid", "one")),
        (json!(["Warn"]), warned),
        (json!(["Audit"]), "201".to_owned()),
    ] {
        let world = World::with(policy.clone(), json!({ "validationActions": actions }));
        assert_eq!(world.create("m"), expected);
    }
    // A note for an audit log that cannot be made is a failure whatever the binding says.
    let text = "object.data.x + ''";
    let policy = json!({ "auditAnnotations": [{ "key": "k", "valueExpression": text }] });
    let world = World::with(policy, json!({ "validationActions": ["Audit"] }));
    let why = format!("expression '{text}' resulted in error: no such key: x");
    assert_eq!(world.create("m"), denied("422 Invalid", &why));
}

#[test]
fn a_policy_is_for_the_writes_that_it_and_its_binding_select() {
    let selector = |value: &str| json!({ "matchLabels": { "l": value } });
    let rules = |rule: Value| json!({ "resourceRules": [rule] });
    let mut named = rule("CREATE");
    named["resourceNames"] = json!(["other"]);
    let refused = denied("422 Invalid", "failed expression: false");
    let rows = [
        (json!({}), json!({}), true),
        (rules(rule("UPDATE")), json!({}), false),
        (rules(named.clone()), json!({}), false),
        (json!({ "objectSelector": selector("1") }), json!({}), true),
        (json!({ "objectSelector": selector("2") }), json!({}), false),
        (json!({ "namespaceSelector": selector("1") }), json!({}), false),
        (json!({ "excludeResourceRules": [rule("CREATE")] }), json!({}), false),
        (json!({ "excludeResourceRules": [named.clone()] }), json!({}), true),
        (json!({}), json!({ "objectSelector": selector("1") }), true),
        (json!({}), json!({ "objectSelector": selector("2") }), false),
        (json!({}), rules(rule("CREATE")), true),
        (json!({}), rules(named), false),
    ];
    for (constraints, resources, is_refused) in rows {
        let policy = json!({ "matchConstraints": constraints, "validations": [{ "expression": "false" }] });
        let binding = if resources == json!({}) { json!({}) } else { json!({ "matchResources": resources }) };
        let expected = if is_refused { refused.as_str() } else { "201" };
        assert_eq!(World::with(policy, binding).create("m"), expected, "{constraints} {resources}");
    }
}

#[test]
fn expressions_see_the_request() {
    let seen = "request.operation + ' ' + request.resource.resource + ' ' + request.kind.kind + ' ' + request.name + \
                (has(request.subResource) ? '/' + request.subResource : '') + \
                (namespaceObject == null ? '' : ' in ' + namespaceObject.metadata.name) + \
                (object == null ? ' gone' : ' ' + string(object.kind)) + (oldObject == null ? ' new' : '')";
    let world = World::new();
    assert_eq!(world.create("m"), "201");
    assert_eq!(world.create("n"), "201");
    let containers = json!([{ "name": "c", "image": "i" }]);
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": containers } });
    let spec = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": template });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({ "metadata": { "name": "d" }, "spec": spec });
    assert_eq!(world.ask("POST", deployments, deployment), "201");
    world.add(json!({ "validations": [{ "expression": "false", "messageExpression": seen }] }), json!({}));
    let path = |name: &str| format!("{MAPS}/{name}");
    for (method, path, body, expected) in [
        ("POST", MAPS.to_owned(), map("x"), "CREATE configmaps ConfigMap x in default ConfigMap new"),
        (
            "PATCH",
            path("m"),
            json!({ "data": { "a": "c" } }),
            "UPDATE configmaps ConfigMap m in default ConfigMap",
        ),
        ("DELETE", path("m"), json!(null), "DELETE configmaps ConfigMap m in default gone"),
        (
            "PATCH",
            format!("{deployments}/d/scale"),
            json!({ "spec": { "replicas": 3 } }),
            "UPDATE deployments Scale d/scale in default Scale",
        ),
        (
            "POST",
            "/api/v1/namespaces".to_owned(),
            json!({ "metadata": { "name": "x" } }),
            "CREATE namespaces Namespace x Namespace new",
        ),
    ] {
        let answer = world.ask(method, &path, body);
        assert_eq!(answer.split_once("denied request: ").unwrap().1, expected);
    }
    // The objects of a collection are not named.
    let answer = world.ask("DELETE", MAPS, json!(null));
    assert!(answer.starts_with("422 Invalid: configmaps \"Unknown\" is forbidden"), "{answer}");
}

#[test]
fn a_policy_can_be_changed_and_taken_away() {
    let world = World::with(json!({ "validations": [{ "expression": "false" }] }), json!({}));
    let refused = denied("422 Invalid", "failed expression: false");
    assert_eq!(world.create("m"), refused);
    let path = format!("{}/p", policies("ies"));
    let names = json!({ "spec": { "validations": [{ "expression": "object.metadata.name != 'm'" }] } });
    assert_eq!(world.ask("PATCH", &path, names), "200");
    assert_eq!(world.create("n"), "201");
    assert_eq!(world.create("m"), denied("422 Invalid", "failed expression: object.metadata.name != 'm'"));
    assert_eq!(world.ask("DELETE", &format!("{}/b", policies("ybindings")), json!(null)), "200");
    assert_eq!(world.create("m"), "201");
}

#[test]
fn policies_are_never_asked_about_policies() {
    let world = World::new();
    let all = json!({ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"] });
    let constraints = json!({ "resourceRules": [all] });
    world.add(
        json!({ "matchConstraints": constraints, "validations": [{ "expression": "false" }] }),
        json!({}),
    );
    assert_eq!(world.ask("DELETE", &format!("{}/b", policies("ybindings")), json!(null)), "200");
}
