//! Requests as they are sent, and what becomes of their answers.

use mapi_api::lease::Lease;
use mapi_api::{Machine, Pod};

use super::*;
use crate::testing::{Seen, answering};

#[tokio::test]
async fn requests_name_the_object_and_carry_the_media_type() {
    let (writer, seen) = answering(|_| (200, json!({"metadata": {"name": "a"}})));
    let key = Key::new("ns", "a");
    let patch = json!({"x": 1});
    writer.merge_patch::<Machine>(&key, Sub::Status, &patch).await.unwrap();
    writer.strategic_patch::<mapi_api::Node>(&Key::cluster("n"), Sub::Main, &patch).await.unwrap();
    writer.create::<Machine>("ns", &json!({"metadata": {"generateName": "a-"}})).await.unwrap();
    writer.replace(&Lease { metadata: key_of("ns", "l"), ..Lease::default() }).await.unwrap();
    writer.get::<Pod>(&Key::new("ns", "../x")).await.unwrap();
    let lines: Vec<String> = seen.lock().unwrap().iter().map(Seen::line).collect();
    let machines = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machines";
    let expected = [
        format!("PATCH {machines}/a/status application/merge-patch+json"),
        "PATCH /api/v1/nodes/n application/strategic-merge-patch+json".to_owned(),
        format!("POST {machines} application/json"),
        "PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/l application/json".to_owned(),
        "GET /api/v1/namespaces/ns/pods/..%2Fx application/json".to_owned(),
    ];
    assert_eq!(lines, expected);
}

fn key_of(namespace: &str, name: &str) -> mapi_api::ObjectMeta {
    mapi_api::ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        ..mapi_api::ObjectMeta::default()
    }
}

#[tokio::test]
async fn a_list_follows_its_pages_and_leaves_out_what_cannot_be_decoded() {
    let (writer, seen) = answering(|seen| match seen.path.contains("continue=t%2F1") {
        false => (200, json!({"metadata": {"continue": "t/1"}, "items": [{"metadata": {"name": "a"}}]})),
        true => {
            (200, json!({"items": [{"metadata": {"name": "b"}, "spec": 7}, {"metadata": {"name": "c"}}]}))
        }
    });
    let leases: Vec<Lease> = writer.list(None, Some("a=b"), Some("c in (d)")).await.unwrap();
    assert_eq!(leases.iter().map(Object::name).collect::<Vec<_>>(), ["a", "c"]);
    let selectors = "?limit=500&fieldSelector=a%3Db&labelSelector=c%20in%20%28d%29";
    assert!(
        seen.lock().unwrap()[0].path.ends_with(&format!("/apis/coordination.k8s.io/v1/leases{selectors}"))
    );
}

#[tokio::test]
async fn a_delete_tells_gone_from_marked() {
    let check = async |code: u16, body: Value| {
        let (writer, seen) = answering(move |_| (code, body.clone()));
        let answer = writer.delete::<Lease>(&Key::new("ns", "a"), Preconditions::uid("u")).await;
        assert_eq!(seen.lock().unwrap()[0].body["preconditions"], json!({"uid": "u"}));
        match answer {
            Ok(Deleted::Gone) => "gone".to_owned(),
            Ok(Deleted::Marked(object)) => format!("marked {}", object.version()),
            Err(error) => format!("{} {}", error.code, error.is_conflict()),
        }
    };
    assert_eq!(check(200, json!({"kind": "Status", "status": "Success"})).await, "gone");
    assert_eq!(check(404, json!({"kind": "Status", "code": 404, "reason": "NotFound"})).await, "gone");
    assert_eq!(check(200, json!({"metadata": {"name": "a"}})).await, "gone");
    let marked = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "7"}});
    assert_eq!(check(200, marked).await, "marked 7");
    assert_eq!(check(409, json!({"kind": "Status", "code": 409, "reason": "Conflict"})).await, "409 true");
}

#[tokio::test]
async fn an_eviction_tells_a_budget_from_a_busy_server() {
    let check = async |code: u16, body: Value| {
        let (writer, _) = answering(move |_| (code, body.clone()));
        match writer.evict(&Key::new("ns", "a"), "u", Some(5)).await {
            Ok(Eviction::Blocked { message, retry_after }) => {
                format!("blocked {retry_after:?} {message}")
            }
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("error {}", error.code),
        }
    };
    let status = |reason: &str, cause: &str, words: &str| {
        let details = json!({"retryAfterSeconds": 10, "causes": [{"reason": cause, "message": words}]});
        json!({"kind": "Status", "reason": reason, "message": "no.", "details": details})
    };
    let budget = "The disruption budget web needs 1 healthy pods and has 1 currently";
    assert_eq!(
        check(429, status("TooManyRequests", "DisruptionBudget", budget)).await,
        format!("blocked Some(10s) no. {budget}")
    );
    assert_eq!(check(201, json!({"kind": "Status"})).await, "Accepted");
    assert_eq!(check(404, status("NotFound", "", "")).await, "Gone");
    assert_eq!(check(403, status("Forbidden", "NamespaceTerminating", "")).await, "NamespaceTerminating");
    assert_eq!(check(403, status("Forbidden", "", "")).await, "error 403");
    assert_eq!(check(429, json!("Too many requests, please try again later.")).await, "error 429");
    assert_eq!(check(500, status("InternalError", "", "")).await, "error 500");
    for words in [
        "Precondition failed: UID in precondition: u, UID in object meta: v",
        "the UID in the precondition (u) does not match the UID in record (v)",
    ] {
        let other = json!({"kind": "Status", "reason": "Conflict", "message": words});
        assert_eq!(check(409, other).await, "Gone");
    }
    assert_eq!(check(409, status("Conflict", "", "")).await, "error 409");
}

#[test]
fn an_outcome_is_unknown_only_if_the_server_may_have_acted() {
    for (code, is_unknown) in
        [(0, true), (400, false), (404, false), (409, false), (429, false), (500, true), (504, true)]
    {
        assert_eq!(ApiError::new(code, "", "").is_unknown_outcome(), is_unknown, "{code}");
    }
}

#[tokio::test]
async fn an_error_tells_what_could_not_be_done_and_the_servers_words_apart() {
    let check = async |code: u16, body: Value| {
        let (writer, _) = answering(move |_| (code, body.clone()));
        let error = writer.get::<Lease>(&Key::new("ns", "a")).await.unwrap_err();
        assert_eq!(error.message, format!("cannot get Lease `ns/a`: {}", error.words()));
        error.words().to_owned()
    };
    assert_eq!(check(403, json!({"kind": "Status", "message": "you: may not"})).await, "you: may not");
    assert_eq!(check(500, json!({"kind": "Status"})).await, "500 Internal Server Error");
    assert_eq!(check(200, json!(7)).await, "the answer cannot be decoded");
    assert_eq!(ApiError::new(404, "NotFound", "no such kind").words(), "no such kind");
}

#[tokio::test]
async fn a_refused_connection_is_a_known_outcome() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let service = tower::ServiceBuilder::new()
        .map_request(move |mut request: Request<Body>| {
            *request.uri_mut() = format!("http://{unused}{}", request.uri()).parse().unwrap();
            request
        })
        .service(http);
    let writer = Writer::new(kube::Client::new(service, "default"));
    let error = writer.create::<Lease>("ns", &json!({})).await.unwrap_err();
    assert_eq!((error.code, error.is_unknown_outcome()), (0, false), "{error:?}");
}

#[tokio::test]
async fn writes_are_counted_by_resource_verb_and_answer() {
    let (writer, _) = answering(|_| (422, json!({"kind": "Status", "reason": "Invalid", "message": "bad"})));
    let labels = ["machinehealthchecks/status", "patch", "422"];
    let before = API_WRITES.with_label_values(&labels).get();
    let answer = writer
        .merge_patch::<mapi_api::MachineHealthCheck>(&Key::new("ns", "a"), Sub::Status, &json!({}))
        .await;
    let error = answer.unwrap_err();
    assert!(
        error.is_invalid() && error.to_string().starts_with("cannot patch MachineHealthCheck `ns/a`: bad")
    );
    assert_eq!(API_WRITES.with_label_values(&labels).get(), before + 1);
}
