//! A real control plane for tests: etcd, kube-apiserver, kube-controller-manager and kube-scheduler.
//!
//! Each [`ControlPlane`] is a cluster without kubelets on free loopback ports, with its own certificate
//! authority and RBAC as in production. It ends with its value, and also when the process that holds it is
//! killed. Nothing about our product may be known here: what a test installs, it hands in.

mod apply;
mod binaries;
mod components;
mod launch;
mod pki;
mod process;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::Context as _;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{AuthInfo, Kubeconfig},
};
use serde_json::json;

pub use crate::{
    apply::{apply_yaml, retry_throttled},
    binaries::find_binaries,
    process::{Janitor, Process},
};

/// What a [`ControlPlane`] is made of.
#[derive(Debug, Clone)]
pub struct Options {
    /// Run kube-controller-manager: garbage collection, namespace deletion, budgets, node life cycle.
    pub controller_manager: bool,
    /// Run kube-scheduler.
    pub scheduler: bool,
    /// Write every write request to [`ControlPlane::audit_log`].
    pub audit: bool,
    /// How long a node may be silent before the controller manager marks it Unknown. The checks come four
    /// times as often, and eviction of the pods that do not tolerate it is not rationed to a node per ten
    /// seconds. `None` leaves the defaults of Kubernetes (50 s).
    pub node_monitor_grace: Option<Duration>,
    /// How long pods tolerate a silent or unready node unless they say so themselves, in whole seconds.
    /// `None` leaves the default of Kubernetes (300 s).
    pub pod_toleration: Option<Duration>,
    /// YAML to apply before the controller manager starts. CRDs belong here: the garbage collector looks for
    /// new kinds only once in 30 seconds, but sees at once what exists when it starts.
    pub manifests: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            controller_manager: true,
            scheduler: false,
            audit: false,
            node_monitor_grace: None,
            pod_toleration: None,
            manifests: Vec::new(),
        }
    }
}

/// One program of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controller manager.
    ControllerManager,
    /// The scheduler.
    Scheduler,
}

/// A running control plane. Dropping it kills its processes and removes its files.
#[derive(Debug)]
pub struct ControlPlane {
    cluster: launch::Cluster,
    users: AtomicU32,
}

impl ControlPlane {
    /// Starts a control plane and returns once every part of it answers that it is ready.
    ///
    /// The programs come from [`find_binaries`], so the first call on a fresh clone builds them.
    pub async fn start(options: Options) -> anyhow::Result<ControlPlane> {
        let cluster = launch::start(&options).await?;
        Ok(ControlPlane { cluster, users: AtomicU32::new(0) })
    }

    /// Ends it now. The same as dropping it.
    pub fn stop(self) {}

    /// The address of the API server, `https://127.0.0.1:<port>`.
    pub fn apiserver_url(&self) -> &str {
        &self.cluster.url
    }

    /// Client configuration of a member of `system:masters`, without retries of its own.
    pub fn admin(&self) -> Config {
        self.cluster.admin()
    }

    /// The kubeconfig file that belongs to [`ControlPlane::admin`].
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.cluster.admin_kubeconfig()
    }

    /// A client with the configuration of [`ControlPlane::admin`]. Call it in a tokio runtime.
    pub fn client(&self) -> Client {
        Client::try_from(self.admin())
            .expect("the certificates were written by us and rustls has one provider")
    }

    /// Writes a kubeconfig file for a new user, known by a client certificate, and returns its path.
    ///
    /// A user may be in at most two groups beside `system:authenticated`: the certificate writer knows two
    /// ways to write the attribute that names a group.
    pub fn kubeconfig(&self, user: &str, groups: &[&str]) -> anyhow::Result<PathBuf> {
        let name = self.file_name(user);
        self.cluster.authority.client(&self.cluster.directory(), &name, user, groups)?;
        self.cluster.kubeconfig(&name)
    }

    /// Client configuration for a new user. See [`ControlPlane::kubeconfig`].
    pub fn user(&self, user: &str, groups: &[&str]) -> anyhow::Result<Config> {
        let file = self.kubeconfig(user, groups)?;
        self.config_of(&file)
    }

    /// Writes a kubeconfig file with a day's token of a ServiceAccount that exists, and returns its path.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> anyhow::Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(24 * 60 * 60),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("cannot get a token for ServiceAccount `{namespace}/{name}`"))?;
        let token = answer.status.context("the API server answered without a token")?.token;
        let file = self.file_name(name);
        self.cluster.write_kubeconfig(&file, &json!({ "token": token }))
    }

    /// Client configuration with a day's token of a ServiceAccount that exists.
    pub async fn service_account(&self, namespace: &str, name: &str) -> anyhow::Result<Config> {
        let file = self.service_account_kubeconfig(namespace, name).await?;
        self.config_of(&file)
    }

    /// The audit log: a JSON object per line for each write request that was answered, with `user`,
    /// `userAgent`, `verb`, `objectRef` and `responseStatus`. Empty or absent unless [`Options::audit`].
    ///
    /// A line is there by the time the answer to a small request is; after a large answer it may lag a little.
    pub fn audit_log(&self) -> PathBuf {
        self.cluster.audit_log()
    }

    /// What a component has printed.
    pub fn log(&self, component: Component) -> PathBuf {
        self.cluster.directory().join(format!("{}.log", component.program()))
    }

    /// The process id of a component, `None` when it was not started.
    pub fn pid(&self, component: Component) -> Option<u32> {
        self.cluster.pid(component)
    }

    /// The folder that holds the state, certificates and logs of this control plane.
    pub fn directory(&self) -> &Path {
        self.cluster.directory.path()
    }

    /// The folder that holds the programs.
    pub fn binaries(&self) -> &Path {
        &self.cluster.binaries
    }

    fn file_name(&self, user: &str) -> String {
        let number = self.users.fetch_add(1, Ordering::Relaxed);
        let readable: String =
            user.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
        format!("user-{number}-{readable}")
    }

    fn config_of(&self, kubeconfig: &Path) -> anyhow::Result<Config> {
        let parsed = Kubeconfig::read_from(kubeconfig)?;
        let auth: Option<AuthInfo> = parsed.auth_infos.into_iter().next().and_then(|named| named.auth_info);
        Ok(self.cluster.config(auth.context("a kubeconfig file of ours has one user")?))
    }
}
