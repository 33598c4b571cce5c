//! Pods for drains: Deployments and budgets whose pods run on the Nodes of one namespace's machines.

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod, policy::v1::PodDisruptionBudget};
use mapi_api::{Node, Object as _};
use serde_json::{Value, json};

use crate::{Kind, Ns, or_panic, scope::NODE_LABEL};

impl Ns {
    /// A pod template whose pods go to this namespace's Nodes only, and do not come back to one that is being drained.
    /// Pods have the label `app: <app>`.
    pub fn pod_template(&self, app: &str) -> Value {
        json!({
            "metadata": {"labels": {"app": app}},
            "spec": {
                "nodeSelector": {NODE_LABEL: self.name()},
                "tolerations": [{"key": "kubemark", "operator": "Exists"}],
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "example.invalid/main"}],
            },
        })
    }

    /// Makes a Deployment and waits until all its pods run. Where nobody makes pods of a Deployment it is a ReplicaSet
    /// with pods that are bound already, and that nobody replaces.
    #[track_caller]
    pub fn deploy(&self, app: &str, replicas: usize) -> impl Future<Output = Vec<Pod>> {
        let kind = if self.world().plane().is_real() { "Deployment" } else { "ReplicaSet" };
        let applied = self.apply(json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": app},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": app}},
                "template": self.pod_template(app),
            },
        }));
        let running = self.wait_pods(app, move |pods| {
            pods.len() == replicas && pods.iter().all(|pod| pod_phase(pod) == "Running")
        });
        async move {
            applied.await;
            if kind == "ReplicaSet" {
                self.make_pods::<ReplicaSet>(app, replicas).await;
            }
            running.await
        }
    }

    /// Makes the pods of a workload, on the namespace's Nodes in turn, where nobody else does.
    pub async fn make_pods<K: Kind>(&self, app: &str, replicas: usize) {
        let uid = self.get::<K>(app).await.meta().uid.clone();
        let selector = format!("{NODE_LABEL}={}", self.name());
        let nodes = self.world().cluster().wait_labelled::<Node>(&selector, |nodes| !nodes.is_empty()).await;
        let nodes: Vec<&Node> = nodes.iter().filter(|node| !node.spec.unschedulable).collect();
        for number in 0..replicas {
            let mut pod = self.pod_template(app);
            pod["apiVersion"] = json!("v1");
            pod["kind"] = json!("Pod");
            pod["metadata"]["name"] = json!(format!("{app}-{number}"));
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": K::api_version(&()), "kind": K::kind(&()), "name": app, "uid": uid, "controller": true,
            }]);
            pod["spec"]["nodeName"] = json!(nodes[number % nodes.len()].name());
            self.apply(pod).await;
        }
    }

    /// Makes a PodDisruptionBudget of the app's name and waits until its status counts the pods. `limit` is, for example,
    /// `{"minAvailable": 1}`.
    #[track_caller]
    pub fn budget(&self, app: &str, limit: Value) -> impl Future<Output = PodDisruptionBudget> {
        let mut spec = limit;
        spec["selector"] = json!({"matchLabels": {"app": app}});
        let applied = self.apply(json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app},
            "spec": spec,
        }));
        let counted = self.wait(app, |budget: &PodDisruptionBudget| {
            let generation = budget.metadata.generation;
            budget.status.as_ref().is_some_and(|status| {
                status.observed_generation == generation && status.expected_pods > Some(0)
            })
        });
        async move {
            applied.await;
            counted.await
        }
    }

    /// Waits until the pods of an app together are as they should be.
    #[track_caller]
    pub fn wait_pods(
        &self,
        app: &str,
        is_reached: impl FnMut(&[&Pod]) -> bool,
    ) -> impl Future<Output = Vec<Pod>> {
        or_panic(self.reach(self.target::<Pod>().labelled(&format!("app={app}")), is_reached))
    }
}

/// The phase of a pod, empty if it has none.
pub fn pod_phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The Node that a pod is bound to, empty if it is not.
pub fn pod_node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}
