//! The capacity shell and the judgement of templates, with a cloud that knows two sizes.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::{Request, Response};
use kube::client::Body;
use kube::runtime::watcher::Event;
use mapi_api::{Key, MachineSet, RawJson};
use mapi_cloud::{
    Answer, Capacity, Cloud, CloudError, Clouds, Finding, Findings, Identity, Kind, ProviderKind, Want,
};
use mapi_controllers::context::{Caches, Context};
use mapi_controllers::{capacity, metrics::Metrics};
use mapi_core::machine_set::Template;
use mapi_runtime::CancellationToken;
use mapi_runtime::clock::{Clock, SystemClock};
use mapi_runtime::events::Recorder;
use mapi_runtime::writes::Writer;
use serde_json::{Value, json};

/// Knows the type `small`, and refuses specs without a type.
struct Small;

fn type_of(spec: &RawJson) -> String {
    spec.value()["type"].as_str().unwrap_or_default().into()
}

#[async_trait]
impl Cloud for Small {
    fn name(&self) -> &'static str {
        "small"
    }

    fn kinds(&self) -> &'static [ProviderKind] {
        &[ProviderKind { group: "small.io", kind: "Spec" }]
    }

    fn settle(&self) -> Duration {
        Duration::ZERO
    }

    fn check(&self, spec: &RawJson) -> Findings {
        if type_of(spec).is_empty() {
            Finding::error("type", "", "is missing").into()
        } else {
            Findings::default()
        }
    }

    async fn ask(&self, _: &Identity, _: Option<&RawJson>, _: Want) -> Answer {
        unreachable!("only sizes are asked for")
    }

    async fn capacity(&self, spec: &RawJson) -> Result<Option<Capacity>, CloudError> {
        match type_of(spec).as_str() {
            "small" => Ok(Some(Capacity { cpus: 2, memory_mib: 4096, ..Capacity::default() })),
            other => Err(CloudError::new(Kind::Invalid, "look up type", format!("no type `{other}`"))),
        }
    }

    fn changes(&self) -> BoxStream<'static, Key> {
        futures::stream::pending().boxed()
    }
}

fn clouds() -> Clouds {
    Clouds::new(vec![Arc::new(Small)])
}

fn set(version: u32, provider_spec: Value) -> MachineSet {
    let metadata = json!({"name": "s", "namespace": "ns", "uid": "u", "resourceVersion": version.to_string(),
        "generation": version});
    let template = json!({"spec": {"providerSpec": {"value": provider_spec}}});
    serde_json::from_value(json!({"metadata": metadata, "spec": {"template": template}})).expect("a set")
}

#[test]
fn a_template_is_judged_by_the_cloud_of_its_kind() {
    let spec = |kind: &str| json!({"apiVersion": "small.io/v1", "kind": kind, "type": "small"});
    let judge = |value: Value| Template::judge(&clouds(), &set(1, value));
    assert_eq!(judge(spec("Spec")), Template::Served(Findings::default()));
    let complaint = Findings::from(Finding::error("type", "", "is missing"));
    assert_eq!(judge(json!({"apiVersion": "small.io/v1", "kind": "Spec"})), Template::Served(complaint));
    let (kind, served) = ("Other.small.io".into(), vec!["Spec.small.io".into()]);
    assert_eq!(judge(spec("Other")), Template::Unknown { kind, served });
    assert_eq!(judge(Value::Null), Template::Missing);
    assert_eq!(Template::judge(&Clouds::default(), &set(1, Value::Null)), Template::Unjudged);
    let unreadable = json!({"spec": {"template": {"spec": {"taints": "none"}}}});
    let unreadable = serde_json::from_value(unreadable).expect("a set");
    let what = "taints: invalid type: string \"none\", expected a sequence";
    assert_eq!(Template::judge(&clouds(), &unreadable), Template::Unreadable(what.into()));
}

/// Requests, each as its path and body.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

fn start() -> (Arc<Context>, Requests) {
    let seen = Requests::default();
    let requests = Arc::clone(&seen);
    let service = tower::service_fn(move |request: Request<Body>| {
        let requests = Arc::clone(&requests);
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await.expect("a body in memory");
            let body: Value = serde_json::from_slice(&bytes).expect("json");
            let answer =
                json!({"metadata": {"name": "s", "namespace": "ns", "resourceVersion": "1"}}).to_string();
            requests.lock().expect("no test panicked").push((head.uri.path().into(), body));
            Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes())))
        }
    });
    let writer = Writer::new(kube::Client::new(service, "default"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (recorder, scribe) = Recorder::new(writer.clone(), "test".into(), Arc::clone(&clock));
    tokio::spawn(scribe);
    let Caches { machines, sets, checks, nodes } = Caches::default();
    let context = Arc::new(Context {
        machines,
        sets,
        checks,
        nodes,
        writer,
        recorder,
        clock,
        clouds: clouds(),
        migration: false,
        metrics: Metrics::default(),
        stop: CancellationToken::new(),
        namespace: None,
        concurrency: 1,
    });
    capacity::start(&context);
    (context, seen)
}

// S39
#[tokio::test(start_paused = true)]
async fn a_sets_annotations_follow_its_template_and_an_unknown_type_is_told_once() {
    let (context, seen) = start();
    let show = async |set: MachineSet| {
        context.sets.handle(Event::Apply(set.into()));
        tokio::time::sleep(Duration::from_secs(60)).await;
        std::mem::take(&mut *seen.lock().expect("no test panicked"))
    };
    let spec = |type_: &str| json!({"apiVersion": "small.io/v1", "kind": "Spec", "type": type_});
    let requests = show(set(10, spec("small"))).await;
    assert_eq!(requests.len(), 1);
    assert!(requests[0].0.ends_with("/machinesets/s"), "{}", requests[0].0);
    let mut annotated = set(11, spec("small"));
    annotated.metadata.annotations =
        Some(serde_json::from_value(requests[0].1["metadata"]["annotations"].clone()).expect("texts"));
    assert!(show(annotated).await.is_empty(), "the second round finds nothing to do");

    let requests = show(set(12, spec("huge"))).await;
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].1["reason"], "FailedUpdate");
    let note = "Failed to set autoscaling from zero annotations, instance type unknown: no type `huge`";
    assert_eq!(requests[0].1["note"], note);
    assert!(show(set(13, spec("huge"))).await.is_empty());
}
