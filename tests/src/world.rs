//! A world: a control plane with the product in it.

use std::{
    fmt,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use kube::Client;
use tokio::sync::OnceCell;

use crate::{
    Ns, Plane, Program, Scope, Signal, or_panic, or_panic_now,
    program::{crds, log_in},
};

/// Namespace of the product's accounts and leases.
const PRODUCT: &str = "openshift-machine-api";

/// What is installed beside the CRDs, in order: files below `install/`.
const INSTALLED: [&str; 3] = ["namespace.yaml", "rbac/controllers.yaml", "rbac/simulated-cloud.yaml"];

/// An account that may read metrics, as a monitoring system has one.
const METRICS_READER: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-reader, namespace: openshift-machine-api}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, name: metrics-reader, namespace: openshift-machine-api}]
"#;

/// What a [`World`] is made of. The default is a control plane without scheduler, with controllers and simulated
/// cloud running.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Run kube-scheduler, for tests with pods.
    pub scheduler: bool,
    /// Note every write request in [`World::audit_log`].
    pub audit: bool,
    /// How long a Node may be silent before it is marked Unknown; `None` is the default of Kubernetes, 50 s.
    pub node_monitor_grace: Option<Duration>,
    /// How long pods stay on a silent or unready Node; `None` is the default of Kubernetes, 300 s.
    pub pod_toleration: Option<Duration>,
    /// The feature gate MachineAPIMigration, with the CRDs that go with it.
    pub migration: bool,
    /// Leave controllers and simulated cloud to the test.
    pub idle: bool,
    /// Further arguments of `machine-api-operator controllers`, for every start.
    pub arguments: Vec<String>,
    /// Further YAML to install before anything runs, for example CRDs.
    pub manifests: Vec<String>,
}

/// A control plane with the product in it, seen by one test. Clones are views of the same world.
#[derive(Clone)]
pub struct World {
    inner: Arc<Inner>,
    client: Client,
}

/// What the views of a world share. The order of the fields is the order of their end.
#[derive(Debug)]
struct Inner {
    controllers: Role,
    cloud: Role,
    plane: Plane,
    options: Options,
    namespaces: AtomicU32,
}

/// One of the product's processes, which may be started many times.
#[derive(Debug)]
struct Role {
    /// Of the command line, and the name of the folder.
    command: &'static str,
    kubeconfig: PathBuf,
    directory: PathBuf,
    state: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    program: Option<Program>,
    starts: u32,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl World {
    /// The world that the tests of one executable share. The first call makes it; all must ask for the same.
    ///
    /// It is never dropped: its processes end with ours.
    #[track_caller]
    pub fn shared(options: Options) -> impl Future<Output = World> {
        static SHARED: OnceCell<Result<Arc<Inner>, String>> = OnceCell::const_new();
        or_panic(async move {
            let made = async || match Inner::start(options.clone()).await {
                Ok(inner) => Ok(Arc::new(inner)),
                Err(error) => Err(format!("{error:#}")),
            };
            match SHARED.get_or_init(made).await {
                Ok(inner) if inner.options == options => Ok(World::of(Arc::clone(inner))),
                Ok(inner) => bail!("the world is shared with other options: {:?}", inner.options),
                Err(error) => bail!("{error}"),
            }
        })
    }

    /// A world of the test's own. It ends with its last view.
    #[track_caller]
    pub fn own(options: Options) -> impl Future<Output = World> {
        or_panic(World::start(options))
    }

    /// The same for callers that handle errors.
    pub async fn start(options: Options) -> anyhow::Result<World> {
        Ok(World::of(Arc::new(Inner::start(options).await?)))
    }

    /// Each test has a runtime of its own, and a client belongs to the runtime that it was made in.
    fn of(inner: Arc<Inner>) -> World {
        let client = inner.plane.client();
        World { inner, client }
    }

    /// A client with all rights, as the user.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The control plane.
    pub fn plane(&self) -> &Plane {
        &self.inner.plane
    }

    /// The kubeconfig of the user.
    pub fn kubeconfig(&self) -> PathBuf {
        self.inner.plane.admin_kubeconfig()
    }

    /// The log of the API server's write requests, see [`Options::audit`].
    pub fn audit_log(&self) -> PathBuf {
        self.inner.plane.audit_log()
    }

    /// Makes a namespace that no other test has, named after `claim`.
    #[track_caller]
    pub fn namespace(&self, claim: &str) -> impl Future<Output = Ns> {
        let number = self.inner.namespaces.fetch_add(1, Ordering::Relaxed);
        or_panic(Ns::create(self.clone(), format!("{claim}-{number}")))
    }

    /// A namespace that exists already.
    pub fn existing_namespace(&self, name: &str) -> Ns {
        Ns::existing(self.clone(), name.into())
    }

    /// The kinds that have no namespace; also all namespaces at once, to look at.
    pub fn cluster(&self) -> Scope {
        Scope::cluster(self.clone())
    }

    /// Applies YAML as the user, waiting until new kinds are served.
    #[track_caller]
    pub fn apply(&self, yaml: &str) -> impl Future<Output = ()> {
        or_panic(controlplane::apply_yaml(&self.client, yaml))
    }

    /// Starts the controllers with the usual arguments and `extra`, which may give a usual one another value.
    #[track_caller]
    pub fn start_controllers(&self, extra: &[&str]) {
        or_panic_now(self.inner.start_controllers(extra));
    }

    /// SIGKILL to the controllers.
    pub fn kill_controllers(&self) {
        self.inner.controllers.kill();
    }

    /// Starts the simulated cloud.
    #[track_caller]
    pub fn start_cloud(&self) {
        or_panic_now(self.inner.cloud.start(&[]));
    }

    /// SIGKILL to the simulated cloud.
    pub fn kill_cloud(&self) {
        self.inner.cloud.kill();
    }

    /// Sends a signal to the controllers.
    #[track_caller]
    pub fn signal_controllers(&self, signal: Signal) {
        or_panic_now(self.inner.controllers.signal(signal));
    }

    /// Sends a signal to the simulated cloud.
    #[track_caller]
    pub fn signal_cloud(&self, signal: Signal) {
        or_panic_now(self.inner.cloud.signal(signal));
    }

    /// Takes the controllers' process out of the world's hands, for example to wait for its end.
    #[track_caller]
    pub fn take_controllers(&self) -> Program {
        self.inner.controllers.lock().program.take().expect("the controllers run")
    }

    /// The process id of the controllers.
    #[track_caller]
    pub fn controllers_pid(&self) -> u32 {
        let state = self.inner.controllers.lock();
        or_panic_now(state.program.as_ref().expect("the controllers run").pid())
    }

    /// Starts a further process with the controllers' account: `arguments` are those of the binary, without
    /// `--kubeconfig`. The log is in a folder called `name`.
    #[track_caller]
    pub fn run_as_controllers(&self, name: &str, arguments: &[&str]) -> Program {
        let mut line: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        line.push(format!("--kubeconfig={}", self.inner.controllers.kubeconfig.display()));
        let directory = self.inner.plane.directory().join(name);
        or_panic_now(Program::start(&directory, &line))
    }

    /// What the controllers have printed, over all starts.
    pub fn controllers_log(&self) -> String {
        self.inner.controllers.log()
    }

    /// What the simulated cloud has printed, over all starts.
    pub fn cloud_log(&self) -> String {
        self.inner.cloud.log()
    }

    /// The metrics of controllers that were started with `--metrics-bind-address=127.0.0.1:<port>`, read by an account
    /// that may.
    #[track_caller]
    pub fn metrics(&self, port: u16) -> impl Future<Output = String> {
        or_panic(async move {
            let mut config = self.inner.plane.service_account(PRODUCT, "metrics-reader").await?;
            config.cluster_url = format!("https://127.0.0.1:{port}").parse()?;
            config.root_cert = None;
            config.accept_invalid_certs = true;
            let request = http::Request::get("/metrics").body(Vec::new())?;
            Ok(Client::try_from(config)?.request_text(request).await?)
        })
    }

    /// An error if a process of the product has ended that nobody ended.
    pub(crate) fn check_programs(&self) -> anyhow::Result<()> {
        self.inner.controllers.check()?;
        self.inner.cloud.check()
    }
}

impl Inner {
    async fn start(options: Options) -> anyhow::Result<Inner> {
        let mut manifests = vec![crds(if options.migration { "CustomNoUpgrade" } else { "Default" })?];
        for file in INSTALLED {
            manifests.push(install(file)?);
        }
        manifests.push(METRICS_READER.into());
        manifests.extend(options.manifests.iter().cloned());
        let plane = Plane::start(&options, manifests).await?;
        let controllers = Role::new(&plane, "controllers", "machine-api-controllers").await?;
        let cloud = Role::new(&plane, "simulated-cloud", "machine-api-simulated-cloud").await?;
        let inner = Inner { controllers, cloud, plane, options, namespaces: AtomicU32::new(1) };
        if !inner.options.idle {
            inner.cloud.start(&[])?;
            inner.start_controllers(&[])?;
        }
        Ok(inner)
    }

    /// The usual arguments, unless the test gives its own: no open ports, and the simulated cloud outside.
    fn start_controllers(&self, extra: &[&str]) -> anyhow::Result<()> {
        let mut arguments = self.options.arguments.clone();
        arguments.extend(extra.iter().map(ToString::to_string));
        let migration = format!("MachineAPIMigration={}", self.options.migration);
        for (flag, value) in [
            ("--simulated-cloud", "external"),
            ("--metrics-bind-address", "0"),
            ("--health-addr", "0"),
            ("--feature-gates", &migration),
        ] {
            if !arguments.iter().any(|argument| argument.starts_with(flag)) {
                arguments.push(format!("{flag}={value}"));
            }
        }
        self.controllers.start(&arguments)
    }
}

impl Role {
    async fn new(plane: &Plane, command: &'static str, account: &str) -> anyhow::Result<Role> {
        let kubeconfig = plane.service_account_kubeconfig(PRODUCT, account).await?;
        let directory = plane.directory().join(command);
        Ok(Role { command, kubeconfig, directory, state: Mutex::default() })
    }

    fn start(&self, arguments: &[String]) -> anyhow::Result<()> {
        let mut state = self.lock();
        ensure!(state.program.is_none(), "`{}` already runs", self.command);
        state.starts += 1;
        let mut line = vec![self.command.to_owned(), format!("--kubeconfig={}", self.kubeconfig.display())];
        line.extend_from_slice(arguments);
        state.program = Some(Program::start(&self.folder(state.starts), &line)?);
        Ok(())
    }

    fn kill(&self) {
        let program = self.lock().program.take();
        drop(program);
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let state = self.lock();
        state.program.as_ref().with_context(|| format!("`{}` does not run", self.command))?.signal(signal)
    }

    fn check(&self) -> anyhow::Result<()> {
        if let Some(program) = self.lock().program.as_mut()
            && let Some(status) = program.ended()?
        {
            bail!("`{}` has ended by itself ({status}):\n{}", self.command, program.log());
        }
        Ok(())
    }

    fn log(&self) -> String {
        let starts = self.lock().starts;
        (1..=starts).map(|start| log_in(&self.folder(start))).collect()
    }

    /// Each start has a folder of its own, so that no log is lost.
    fn folder(&self, start: u32) -> PathBuf {
        self.directory.join(start.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A port of the loopback address that is free now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// A file of `install/`.
fn install(file: &str) -> anyhow::Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../install").join(file);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
}
