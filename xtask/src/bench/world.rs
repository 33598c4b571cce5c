//! The control plane of one measurement, what is installed on it, and the product's two processes.
//!
//! Never here: measuring.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use controlplane::{ControlPlane, Options, Process, apply_yaml};
use kube::{Api, Client};
use mapi_api::MachineSet;
use mapi_api::rbac::NAMESPACE;
use serde_json::json;

use crate::workspace;

/// Name of the set and of the health check.
pub const FLEET: &str = "bench";
/// Account of the controllers.
pub const CONTROLLERS: &str = "machine-api-controllers";
/// Account of the far side of the simulated cloud.
pub const SIMULATED_CLOUD: &str = "machine-api-simulated-cloud";

/// Longer than any phase: a Node that sends no heartbeats stays as it is.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// Above this many Nodes their heartbeats alone would keep a small machine busy, so they come every minute.
const MANY: u32 = 2_000;

/// A control plane with CRDs, roles, a set of no machines and a health check.
pub struct World {
    /// The control plane.
    pub plane: ControlPlane,
    /// A client of its administrator.
    pub client: Client,
}

impl World {
    /// Starts a control plane for `machines` machines.
    pub async fn start(binary: &Path, machines: u32) -> anyhow::Result<Self> {
        let mut manifests = vec![crds(binary)?];
        for file in ["namespace.yaml", "rbac/controllers.yaml", "rbac/simulated-cloud.yaml"] {
            let path = workspace::root().join("install").join(file);
            manifests.push(
                fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?,
            );
        }
        let options =
            Options { audit: true, node_monitor_grace: Some(GRACE), manifests, ..Options::default() };
        let plane = ControlPlane::start(options).await?;
        let client = plane.client();
        apply_yaml(&client, &fleet(machines)).await?;
        Ok(Self { plane, client })
    }

    /// Starts both processes of the product.
    pub async fn start_product(&self, binary: &Path, heartbeats: bool) -> anyhow::Result<Product> {
        let cloud = self.start_cloud(binary, heartbeats).await?;
        let kubeconfig = self.kubeconfig(CONTROLLERS).await?;
        // Health and metrics are served as in production: they cost memory.
        let arguments = [
            "controllers",
            "--simulated-cloud=external",
            "--metrics-bind-address=127.0.0.1:0",
            "--health-addr=127.0.0.1:0",
            &format!("--kubeconfig={kubeconfig}"),
        ];
        let controllers = self.spawn(binary, &arguments, "controllers")?;
        Ok(Product { controllers, cloud })
    }

    /// Starts the simulated cloud.
    pub async fn start_cloud(&self, binary: &Path, heartbeats: bool) -> anyhow::Result<Process> {
        let kubeconfig = self.kubeconfig(SIMULATED_CLOUD).await?;
        let arguments =
            ["simulated-cloud", &format!("--heartbeats={heartbeats}"), &format!("--kubeconfig={kubeconfig}")];
        self.spawn(binary, &arguments, if heartbeats { "cloud-with-heartbeats" } else { "cloud" })
    }

    /// A kubeconfig file with a token of an account.
    pub async fn kubeconfig(&self, account: &str) -> anyhow::Result<String> {
        let path = self.plane.service_account_kubeconfig(NAMESPACE, account).await?;
        path.into_os_string().into_string().map_err(|path| anyhow::anyhow!("the path {path:?} is not UTF-8"))
    }

    /// Sets the size of the fleet.
    pub async fn scale(&self, replicas: u32) -> anyhow::Result<()> {
        let sets: Api<MachineSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let patch = kube::api::Patch::Merge(json!({"spec": {"replicas": replicas}}));
        sets.patch(FLEET, &kube::api::PatchParams::default(), &patch)
            .await
            .context("cannot scale the set")?;
        Ok(())
    }

    fn spawn(&self, binary: &Path, arguments: &[&str], folder: &str) -> anyhow::Result<Process> {
        let directory = self.plane.directory().join(folder);
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make folder `{}`", directory.display()))?;
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let place = binary.parent().expect("a program is in a folder");
        Process::start(place, "machine-api-operator", &arguments, &directory)
    }
}

/// The product's processes.
pub struct Product {
    /// `machine-api-operator controllers`.
    pub controllers: Process,
    /// `machine-api-operator simulated-cloud`.
    pub cloud: Process,
}

impl Product {
    /// Fails when one of them has ended.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        for (name, process) in [("controllers", &mut self.controllers), ("simulated cloud", &mut self.cloud)]
        {
            if let Some(status) = process.ended()? {
                bail!("the {name} ended ({status}); the end of their log:\n{}", process.log_tail());
            }
        }
        Ok(())
    }

    /// The end of both logs, for a failure.
    pub fn log_tails(&self) -> String {
        let Self { controllers, cloud } = self;
        format!("-- controllers\n{}\n-- simulated cloud\n{}", controllers.log_tail(), cloud.log_tail())
    }

    /// Process id of the controllers.
    pub fn controllers_pid(&self) -> anyhow::Result<u32> {
        self.controllers.pid().context("the controllers' process has no id")
    }

    /// Process id of the simulated cloud.
    pub fn cloud_pid(&self) -> anyhow::Result<u32> {
        self.cloud.pid().context("the simulated cloud's process has no id")
    }
}

/// The CRDs as the binary prints them for its users.
fn crds(binary: &Path) -> anyhow::Result<String> {
    let path: PathBuf = binary.into();
    let output = Command::new(&path).arg("crds").output();
    let output = output.with_context(|| format!("cannot run `{}`", path.display()))?;
    if !output.status.success() {
        bail!("`{} crds` failed: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("the CRDs are not UTF-8")
}

/// A set of no machines and a health check over it.
fn fleet(machines: u32) -> String {
    let (lease, renew) = if machines > MANY { ("240s", "60s") } else { ("40s", "10s") };
    format!(
        r#"
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata:
  name: {FLEET}
  namespace: {NAMESPACE}
spec:
  replicas: 0
  selector:
    matchLabels: {{machine.openshift.io/cluster-api-machineset: {FLEET}}}
  template:
    metadata:
      labels:
        machine.openshift.io/cluster-api-cluster: simulated
        machine.openshift.io/cluster-api-machine-role: worker
        machine.openshift.io/cluster-api-machine-type: worker
        machine.openshift.io/cluster-api-machineset: {FLEET}
    spec:
      metadata:
        labels: {{node-role.kubernetes.io/worker: ""}}
      providerSpec:
        value:
          apiVersion: kubemarkproviderconfig.machine.openshift.io/v1beta1
          kind: KubemarkMachineProviderSpec
          timing: {{profile: instant}}
          heartbeat: {{leaseDuration: {lease}, leaseRenew: {renew}}}
          pods: "off"
---
apiVersion: machine.openshift.io/v1beta1
kind: MachineHealthCheck
metadata:
  name: {FLEET}
  namespace: {NAMESPACE}
spec:
  selector:
    matchLabels: {{machine.openshift.io/cluster-api-machineset: {FLEET}}}
  unhealthyConditions:
  - {{type: Ready, status: "False", timeout: 300s}}
  - {{type: Ready, status: Unknown, timeout: 300s}}
"#
    )
}
