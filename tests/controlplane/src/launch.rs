//! Starts the programs in their order and waits for each until it answers.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client, Config, config::AuthInfo};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Component, Options,
    apply::apply_yaml,
    binaries::find_binaries,
    components::{self, Ports},
    pki::Authority,
    process::{Janitor, Process},
};

/// A start takes 5 seconds on 2 idle cores. On cores that others use it has taken ten times that.
const DEADLINE: Duration = Duration::from_secs(120);

/// How long to leave a program alone between two questions whether it is ready.
const PAUSE: Duration = Duration::from_millis(25);

/// A port is free when we pick it and may be taken when the program binds it. Thrice in a row it is not chance.
const ATTEMPTS: u32 = 3;

/// What a Go program prints when its port was taken.
const PORT_CLASH: &str = "address already in use";

/// The processes and files of a control plane. The order of the fields is the order of their end.
#[derive(Debug)]
pub(crate) struct Cluster {
    processes: Vec<(Component, Process)>,
    pub(crate) directory: TempDir,
    _janitor: Janitor,
    pub(crate) authority: Authority,
    pub(crate) url: String,
    pub(crate) binaries: PathBuf,
    ports: Ports,
}

pub(crate) async fn start(options: &Options) -> anyhow::Result<Cluster> {
    let binaries = tokio::task::spawn_blocking(find_binaries).await.context("the search was cancelled")??;
    let mut attempt = 1;
    loop {
        match start_once(options, &binaries).await {
            Err(error) if attempt < ATTEMPTS && format!("{error:#}").contains(PORT_CLASH) => {
                tracing::info!(attempt, "a port of the control plane was taken meanwhile, trying others");
                attempt += 1;
            }
            result => return result,
        }
    }
}

async fn start_once(options: &Options, binaries: &Path) -> anyhow::Result<Cluster> {
    let deadline = Instant::now() + DEADLINE;
    let mut cluster = Cluster::prepare(binaries)?;
    cluster.launch(Component::Etcd, options)?;
    cluster.wait_for_etcd(deadline).await?;
    cluster.launch(Component::ApiServer, options)?;
    cluster.wait_for_health(Component::ApiServer, deadline).await?;
    let client = Client::try_from(cluster.admin())?;
    for manifest in &options.manifests {
        apply_yaml(&client, manifest).await?;
    }
    let rest = [
        (options.controller_manager, Component::ControllerManager),
        (options.scheduler, Component::Scheduler),
    ];
    let wanted: Vec<Component> =
        rest.into_iter().filter_map(|(on, component)| on.then_some(component)).collect();
    for component in &wanted {
        cluster.launch(*component, options)?;
    }
    for component in &wanted {
        cluster.wait_for_health(*component, deadline).await?;
    }
    if options.controller_manager {
        cluster.wait_for_default_account(client, deadline).await?;
    }
    // Another control plane's etcd may have answered for ours on a port that both took. Ours is dead then.
    cluster.check_alive()?;
    Ok(cluster)
}

impl Cluster {
    fn prepare(binaries: &Path) -> anyhow::Result<Cluster> {
        let directory = tempfile::Builder::new()
            .prefix("controlplane-")
            .tempdir()
            .context("cannot make a folder for the control plane")?;
        let janitor = Janitor::watch(directory.path())?;
        let authority = Authority::new()?;
        authority.write_server_files(directory.path()).context("cannot write the server's keys")?;
        components::write_files(directory.path())?;
        let ports = free_ports().context("cannot find free ports")?;
        let cluster = Cluster {
            processes: Vec::new(),
            directory,
            _janitor: janitor,
            authority,
            url: format!("https://127.0.0.1:{}", ports.apiserver),
            binaries: binaries.to_owned(),
            ports,
        };
        cluster.write_user("admin", "admin", &["system:masters"])?;
        for component in [Component::ControllerManager, Component::Scheduler] {
            let program = component.program();
            cluster.write_user(program, &format!("system:{program}"), &[])?;
        }
        Ok(cluster)
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.path("audit.log")
    }

    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    pub(crate) fn admin(&self) -> Config {
        self.config(self.certificate("admin"))
    }

    pub(crate) fn pid(&self, component: Component) -> Option<u32> {
        self.processes.iter().find(|(which, _)| *which == component)?.1.pid()
    }

    /// Client configuration for whoever `auth` says.
    pub(crate) fn config(&self, auth: AuthInfo) -> Config {
        self.config_for_port(self.ports.apiserver, auth)
    }

    /// Writes `<name>.kubeconfig` for the certificate `<name>.crt`.
    pub(crate) fn kubeconfig(&self, name: &str) -> anyhow::Result<PathBuf> {
        let user = json!({
            "client-certificate": self.path(&format!("{name}.crt")),
            "client-key": self.path(&format!("{name}.key")),
        });
        self.write_kubeconfig(name, &user)
    }

    /// Writes `<name>.kubeconfig` with the given user entry. JSON is YAML.
    pub(crate) fn write_kubeconfig(&self, name: &str, user: &Value) -> anyhow::Result<PathBuf> {
        let content = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "test",
                "cluster": {"server": self.url, "certificate-authority": self.path("ca.crt")},
            }],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        });
        let file = self.path(&format!("{name}.kubeconfig"));
        fs::write(&file, format!("{content:#}\n"))
            .with_context(|| format!("cannot write `{}`", file.display()))?;
        Ok(file)
    }

    fn write_user(&self, name: &str, user: &str, groups: &[&str]) -> anyhow::Result<()> {
        self.authority.client(self.directory.path(), name, user, groups)?;
        self.kubeconfig(name).map(drop)
    }

    fn certificate(&self, name: &str) -> AuthInfo {
        let text = |extension: &str| Some(self.path(&format!("{name}.{extension}")).display().to_string());
        AuthInfo { client_certificate: text("crt"), client_key: text("key"), ..AuthInfo::default() }
    }

    fn config_for_port(&self, port: u16, auth: AuthInfo) -> Config {
        let url = format!("https://127.0.0.1:{port}").parse().expect("an address and a port make a URL");
        let mut config = Config::new(url);
        config.root_cert = Some(vec![self.authority.der()]);
        config.auth_info = auth;
        config.default_retry = false;
        config
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn launch(&mut self, component: Component, options: &Options) -> anyhow::Result<()> {
        let arguments = components::arguments(component, &self.ports, options);
        let process = Process::start(&self.binaries, component.program(), &arguments, self.directory.path())?;
        self.processes.push((component, process));
        Ok(())
    }

    async fn wait_for_etcd(&mut self, deadline: Instant) -> anyhow::Result<()> {
        let mut config = self.config(AuthInfo::default());
        config.cluster_url = format!("http://127.0.0.1:{}", self.ports.etcd).parse()?;
        let client = Client::try_from(config)?;
        self.wait(Component::Etcd, deadline, async || is_healthy(&client, "/readyz").await).await
    }

    async fn wait_for_health(&mut self, component: Component, deadline: Instant) -> anyhow::Result<()> {
        let (port, auth, path) = match component {
            Component::Etcd => return self.wait_for_etcd(deadline).await,
            Component::ApiServer => (self.ports.apiserver, self.certificate("admin"), "/readyz"),
            Component::ControllerManager => (self.ports.controller_manager, AuthInfo::default(), "/healthz"),
            Component::Scheduler => (self.ports.scheduler, AuthInfo::default(), "/readyz"),
        };
        let client = Client::try_from(self.config_for_port(port, auth))?;
        self.wait(component, deadline, async || is_healthy(&client, path).await).await
    }

    /// Without this account no pod can be made, and it is the controller manager's first visible work.
    async fn wait_for_default_account(&mut self, client: Client, deadline: Instant) -> anyhow::Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
        self.wait(Component::ControllerManager, deadline, async || {
            matches!(accounts.get_opt("default").await, Ok(Some(_)))
        })
        .await
    }

    /// Asks `is_ready` until it says so, a program has ended or the deadline has passed.
    async fn wait(
        &mut self,
        component: Component,
        deadline: Instant,
        is_ready: impl AsyncFn() -> bool,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            self.check_alive()?;
            let left = deadline.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, is_ready()).await {
                Ok(true) => break,
                Ok(false) => tokio::time::sleep(PAUSE).await,
                Err(_) => bail!(
                    "{} is not ready after {} s; the end of its log:\n{}",
                    component.program(),
                    began.elapsed().as_secs(),
                    self.log_tail(component),
                ),
            }
        }
        tracing::debug!(component = component.program(), elapsed = ?began.elapsed(), "ready");
        Ok(())
    }

    fn log_tail(&self, component: Component) -> String {
        let process = self.processes.iter().find(|(which, _)| *which == component);
        process.map(|(_, process)| process.log_tail()).unwrap_or_default()
    }

    fn check_alive(&mut self) -> anyhow::Result<()> {
        for (_, process) in &mut self.processes {
            if let Some(status) = process.ended()? {
                bail!("{} has ended ({status}); the end of its log:\n{}", process.name, process.log_tail());
            }
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // All at once; the drop of each then waits for its end.
        for (_, process) in &mut self.processes {
            process.kill();
        }
    }
}

async fn is_healthy(client: &Client, path: &str) -> bool {
    let Ok(request) = http::Request::get(path).body(Vec::new()) else { return false };
    client.request_text(request).await.is_ok()
}

/// Five different ports that are free now: all are held at once before any is let go.
fn free_ports() -> std::io::Result<Ports> {
    let hold = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
    let held = [hold()?, hold()?, hold()?, hold()?, hold()?];
    let [etcd, etcd_peer, apiserver, controller_manager, scheduler] = &held;
    Ok(Ports {
        etcd: port(etcd)?,
        etcd_peer: port(etcd_peer)?,
        apiserver: port(apiserver)?,
        controller_manager: port(controller_manager)?,
        scheduler: port(scheduler)?,
    })
}
