//! The control plane is a real one: it schedules, collects, refuses and remembers who wrote.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests themselves do")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use controlplane::{Component, ControlPlane, Options, apply_yaml};
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
    runtime::{WatchStreamExt as _, wait::await_condition, watcher},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Longer than anything here takes on a machine that others use.
const DEADLINE: Duration = Duration::from_secs(90);

const DEPLOYMENT: &str = r#"
# A comment before the first document, and an empty one after it.
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      # No kubelet confirms the end of a pod, so nobody may wait for one.
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: "example.invalid/web"}]
"#;

const WIDGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.invalid}
spec:
  group: example.invalid
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.invalid/v1
kind: Widget
metadata: {name: owner}
"#;

#[tokio::test]
async fn pods_are_scheduled_and_go_with_their_namespace() {
    let plane = start(Options { scheduler: true, ..Options::default() }).await;
    let client = plane.client();
    join_node(&client, "node-1").await;
    apply_yaml(&client, DEPLOYMENT).await.unwrap();

    let pods: Api<Pod> = Api::namespaced(client.clone(), "shop");
    until(&pods, |seen: &[Pod]| {
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        seen.iter().filter(|pod| node(pod).as_deref() == Some("node-1")).count() == 2
    })
    .await;

    let namespaces: Api<Namespace> = Api::all(client);
    let uid = namespaces.get("shop").await.unwrap().uid().unwrap();
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    within(await_condition(namespaces, "shop", kube::runtime::conditions::is_deleted(&uid))).await.unwrap();
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn a_silent_node_becomes_unknown_and_orphans_of_a_custom_kind_are_collected() {
    let options = Options {
        node_monitor_grace: Some(Duration::from_secs(2)),
        manifests: vec![WIDGETS.to_owned()],
        ..Options::default()
    };
    let plane = start(options).await;
    let client = plane.client();
    join_node(&client, "node-1").await;

    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.invalid", "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    let owner = widgets.get("owner").await.unwrap();
    let reference = owner.controller_owner_ref(&kind).unwrap();
    let mut child = DynamicObject::new("child", &kind);
    child.metadata.owner_references = Some(vec![reference]);
    widgets.create(&PostParams::default(), &child).await.unwrap();
    widgets.delete("owner", &DeleteParams::foreground()).await.unwrap();
    until(&widgets, |seen: &[DynamicObject]| seen.is_empty()).await;

    let nodes: Api<Node> = Api::all(client);
    until(&nodes, |seen: &[Node]| seen.iter().any(|node| ready(node).as_deref() == Some("Unknown"))).await;
}

#[tokio::test]
async fn a_user_without_roles_is_refused_and_the_audit_log_names_the_writer() {
    let options = Options { controller_manager: false, audit: true, ..Options::default() };
    let plane = start(options).await;

    let mut named = plane.admin();
    named.headers.push((http::header::USER_AGENT, "control-plane-test/1".parse().unwrap()));
    let maps = |config: kube::Config| -> Api<k8s_openapi::api::core::v1::ConfigMap> {
        Api::default_namespaced(Client::try_from(config).unwrap())
    };
    let object = serde_json::from_value(json!({"metadata": {"name": "note"}})).unwrap();
    maps(named).create(&PostParams::default(), &object).await.unwrap();

    let stranger = plane.user("stranger", &["one", "two"]).unwrap();
    let refusal = maps(stranger).delete("note", &DeleteParams::default()).await.unwrap_err();
    let kube::Error::Api(status) = refusal else { panic!("{refusal}") };
    assert_eq!(status.code, 403);

    let lines = audit_lines(&plane.audit_log());
    let [written, refused] = ["create", "delete"].map(|verb| {
        let is_note = |line: &&Value| line["objectRef"]["name"] == "note" && line["verb"] == verb;
        lines.iter().find(is_note).unwrap_or_else(|| panic!("no {verb} in the audit log"))
    });
    assert_eq!(written["userAgent"], "control-plane-test/1");
    assert_eq!(written["responseStatus"]["code"], 201);
    assert_eq!(refused["user"]["username"], "stranger");
    assert_eq!(refused["user"]["groups"], json!(["one", "two", "system:authenticated"]));
    assert_eq!(refused["responseStatus"]["code"], 403);
    let reads = lines.iter().filter(|line| matches!(line["verb"].as_str(), Some("get" | "list" | "watch")));
    assert_eq!(reads.count(), 0);
}

#[tokio::test]
async fn service_account_tokens_and_kubeconfig_files_log_in() {
    let plane = start(Options::default()).await;
    let account = plane.service_account("default", "default").await.unwrap();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reviews: Api<k8s_openapi::api::authentication::v1::SelfSubjectReview> =
        Api::all(Client::try_from(account).unwrap());
    let answer =
        reviews.create(&PostParams::default(), &serde_json::from_value(review).unwrap()).await.unwrap();
    let user = answer.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:default"));

    let options = kube::config::KubeConfigOptions::default();
    let file = kube::config::Kubeconfig::read_from(plane.admin_kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await.unwrap();
    Client::try_from(config).unwrap().list_api_groups().await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_after_the_end() {
    let plane = start(Options { scheduler: true, ..Options::default() }).await;
    let all = [Component::Etcd, Component::ApiServer, Component::ControllerManager, Component::Scheduler];
    let processes = all.map(|component| format!("/proc/{}", plane.pid(component).unwrap()));
    let directory = plane.directory().to_owned();
    if Path::new("/proc/self").exists() {
        assert!(processes.iter().all(|process| Path::new(process).exists()));
    }
    plane.stop();
    assert!(!directory.exists());
    assert!(processes.iter().all(|process| !Path::new(process).exists()));
}

#[tokio::test]
async fn nothing_is_left_after_its_process_was_killed() {
    let mut holder = Command::new(env!("CARGO_BIN_EXE_controlplane")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").unwrap();
    let directory = Path::new(kubeconfig).parent().unwrap();
    let pids = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
        .map(|program| fs::read_to_string(directory.join(program).with_extension("pid")).unwrap());
    let processes = pids.map(|pid| format!("/proc/{}", pid.trim()));
    holder.kill().unwrap();
    holder.wait().unwrap();
    within(async {
        while directory.exists() || processes.iter().any(|process| Path::new(process).exists()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn start(options: Options) -> ControlPlane {
    let began = std::time::Instant::now();
    let plane = ControlPlane::start(options).await.unwrap();
    println!("control plane ready after {:.2} s", began.elapsed().as_secs_f64());
    plane
}

/// Makes a Node that says it is ready, once, as a kubelet would.
async fn join_node(client: &Client, name: &str) {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let resources = json!({"cpu": "4", "memory": "8Gi", "pods": "50"});
    let status = json!({"status": {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}],
    }});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

fn ready(node: &Node) -> Option<String> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    Some(conditions.iter().find(|condition| condition.type_ == "Ready")?.status.clone())
}

fn audit_lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("the world did not come to the expected state in time")
}

/// Watches until the objects of `api` together satisfy `is_reached`.
async fn until<K>(api: &Api<K>, is_reached: impl Fn(&[K]) -> bool)
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let changes = watcher(api.clone(), watcher::Config::default()).default_backoff();
    pin_mut!(changes);
    within(async {
        while changes.next().await.is_some() {
            let seen = api.list(&ListParams::default()).await.unwrap().items;
            if is_reached(&seen) {
                return;
            }
        }
    })
    .await;
}
