//! The demo on somebody's API server: what it makes there goes, and what was there before stays.

use std::{path::Path, process::Command};

use controlplane::ControlPlane;
use e2e::{Heard, Machine, Node, Object as _, Options, Signal, Talk, World, binary};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt as _, api::ListParams};

/// Namespace of the demo.
const NAMESPACE: &str = "machine-api-demo";

fn demo(kubeconfig: &Path, arguments: &[&str]) -> Talk {
    let mut command = Command::new(binary().expect("the product is built"));
    command.args(["demo", "--profile=instant"]).arg("--kubeconfig").arg(kubeconfig);
    Talk::start(command.args(arguments).env_remove("RUST_LOG"))
}

async fn ended_well(talk: Talk) -> Heard {
    let (status, heard) = talk.end().await;
    assert!(status.success(), "{status}: {heard:#?}");
    heard
}

#[tokio::test]
async fn everything_that_was_made_goes_with_the_demo() {
    let plane = ControlPlane::start(controlplane::Options::default()).await.unwrap();
    let mut talk = demo(&plane.admin_kubeconfig(), &[]);
    talk.line("the line that says that all run", |line| line.contains("6 of 6 machines run")).await;
    let client = plane.client();
    let nodes: Api<Node> = Api::all(client.clone());
    assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 6);

    talk.signal(Signal::Interrupt);
    ended_well(talk).await;
    assert!(nodes.list(&ListParams::default()).await.unwrap().items.is_empty());
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    assert!(crds.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert!(Api::<Namespace>::all(client).get_opt(NAMESPACE).await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_there_before_the_demo_stays() {
    let world = World::start(Options { idle: true, ..Options::default() }).await.unwrap();
    ended_well(demo(&world.kubeconfig(), &["--machines=3", "--until-running"])).await;
    assert!(world.cluster().list::<Node>().await.is_empty());
    let crds: Api<CustomResourceDefinition> = Api::all(world.client().clone());
    let crds = crds.list(&ListParams::default()).await.unwrap().items;
    assert!(crds.iter().any(|crd| crd.name_any() == "machines.machine.openshift.io"));

    // A namespace that has the demo's name by chance, and machines, is left alone.
    world.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}")).await;
    let ns = world.existing_namespace(NAMESPACE);
    let mine = ns.machine("mine").create().await;
    let (status, heard) = demo(&world.kubeconfig(), &[]).end().await;
    assert_eq!(status.code(), Some(1));
    assert!(heard.stderr.iter().any(|line| line.contains("exists and is no demo's")), "{heard:#?}");
    assert_eq!(ns.get::<Machine>(mine.name()).await.version(), mine.version());
}
