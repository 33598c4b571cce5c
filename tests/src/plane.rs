//! What a world runs on: the real control plane, or the embedded one where `E2E_PLANE` is `embedded`.
//!
//! Never here: the product, and differences that a test would have to know of. What the embedded one cannot do is listed
//! in `tests/embedded.txt`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use controlplane::ControlPlane;
use kube::{Client, Config};

use crate::{Options, embedded::Embedded};

/// A control plane.
#[derive(Debug)]
pub enum Plane {
    /// Processes of Kubernetes.
    Real(Box<ControlPlane>),
    /// Our own, in this process.
    Embedded(Box<Embedded>),
}

impl Plane {
    /// Whether tests are to run on the embedded control plane.
    pub fn is_embedded() -> anyhow::Result<bool> {
        match std::env::var("E2E_PLANE").as_deref() {
            Err(_) | Ok("" | "real") => Ok(false),
            Ok("embedded") => Ok(true),
            Ok(other) => bail!("E2E_PLANE is `{other}`: `real` and `embedded` are allowed"),
        }
    }

    /// Whether there are a controller manager and a scheduler: workloads get pods, and pods get nodes.
    pub fn is_real(&self) -> bool {
        match self {
            Plane::Real(_) => true,
            Plane::Embedded(_) => false,
        }
    }

    pub(crate) async fn start(options: &Options, manifests: Vec<String>) -> anyhow::Result<Plane> {
        if Plane::is_embedded()? {
            return Ok(Plane::Embedded(Box::new(Embedded::start(options, &manifests).await?)));
        }
        let options = controlplane::Options {
            controller_manager: true,
            scheduler: options.scheduler,
            audit: options.audit,
            node_monitor_grace: options.node_monitor_grace,
            pod_toleration: options.pod_toleration,
            manifests,
        };
        Ok(Plane::Real(Box::new(ControlPlane::start(options).await?)))
    }

    /// A client with all rights. Call it in a tokio runtime.
    pub fn client(&self) -> Client {
        match self {
            Plane::Real(plane) => plane.client(),
            Plane::Embedded(plane) => plane.client(),
        }
    }

    /// The kubeconfig file of a user with all rights.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        match self {
            Plane::Real(plane) => plane.admin_kubeconfig(),
            Plane::Embedded(plane) => plane.admin_kubeconfig(),
        }
    }

    /// Writes a kubeconfig file of a ServiceAccount that exists, and returns its path.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> anyhow::Result<PathBuf> {
        match self {
            Plane::Real(plane) => plane.service_account_kubeconfig(namespace, name).await,
            Plane::Embedded(plane) => plane.service_account_kubeconfig(namespace, name).await,
        }
    }

    /// Client configuration of a ServiceAccount that exists.
    pub async fn service_account(&self, namespace: &str, name: &str) -> anyhow::Result<Config> {
        match self {
            Plane::Real(plane) => plane.service_account(namespace, name).await,
            Plane::Embedded(plane) => plane.service_account(namespace, name).await,
        }
    }

    /// The log of write requests, a JSON object a line.
    pub fn audit_log(&self) -> PathBuf {
        match self {
            Plane::Real(plane) => plane.audit_log(),
            Plane::Embedded(plane) => plane.audit_log(),
        }
    }

    /// The folder that goes with the control plane.
    pub fn directory(&self) -> &Path {
        match self {
            Plane::Real(plane) => plane.directory(),
            Plane::Embedded(plane) => plane.directory(),
        }
    }
}
