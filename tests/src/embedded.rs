//! The embedded control plane in the process of the tests, with the same interface as the real one's.
//!
//! It runs in a runtime of its own: that of a test ends with the test.

use std::{
    fmt,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use controlplane::Janitor;
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::ServiceAccount,
    },
    jiff::SignedDuration,
};
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use mapi_devplane::{
    Audit, Environment, Plane, User,
    server::{Authority, Server, System, drive, kubeconfig},
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::Options;

/// A control plane of ours. The order of the fields is the order of their end.
pub struct Embedded {
    server: Server,
    authority: Arc<Authority>,
    config: Config,
    users: AtomicU32,
    directory: TempDir,
    _janitor: Janitor,
    runtime: Option<Runtime>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("url", &self.server.url()).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Starts one and applies `manifests`.
    pub(crate) async fn start(options: &Options, manifests: &[String]) -> anyhow::Result<Embedded> {
        let directory = tempfile::Builder::new().prefix("embedded-").tempdir()?;
        let janitor = Janitor::watch(directory.path())?;
        let authority = Arc::new(Authority::new()?);
        let mut settings = mapi_devplane::Options::default();
        if let Some(grace) = options.node_monitor_grace {
            settings.node_grace = signed(grace)?;
        }
        if let Some(toleration) = options.pod_toleration {
            settings.pod_toleration = signed(toleration)?;
        }
        settings.ca = Some(authority.pem().to_owned());
        settings.audit =
            if options.audit { Some(log_to(&directory.path().join("audit.log"))?) } else { None };

        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let environment: Arc<dyn Environment> = Arc::new(System::new());
        let plane = Plane::new(Arc::clone(&environment), settings);
        let admin = plane.issue(User::admin(), None);
        runtime.spawn(drive(plane.clone(), environment));
        let starting = {
            let (plane, authority) = (plane.clone(), Arc::clone(&authority));
            async move { Server::start(plane, &authority, ([127, 0, 0, 1], 0).into()).await }
        };
        let server = runtime.spawn(starting).await.context("the embedded control plane ended")??;
        let text = kubeconfig(&server, &authority, "admin", &admin);
        fs::write(directory.path().join("admin.kubeconfig"), &text)?;
        let config = config_of(&text).await?;
        let users = AtomicU32::new(0);
        let plane = Embedded {
            server,
            authority,
            config,
            users,
            directory,
            _janitor: janitor,
            runtime: Some(runtime),
        };
        for manifest in manifests {
            controlplane::apply_yaml(&plane.client(), manifest).await?;
        }
        Ok(plane)
    }

    pub(crate) fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("the configuration was written by us")
    }

    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.directory.path().join("admin.kubeconfig")
    }

    pub(crate) async fn service_account_kubeconfig(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<PathBuf> {
        let text = self.log_in(namespace, name).await?;
        let number = self.users.fetch_add(1, Ordering::Relaxed);
        let file = self.directory.path().join(format!("user-{number}.kubeconfig"));
        fs::write(&file, text)?;
        Ok(file)
    }

    pub(crate) async fn service_account(&self, namespace: &str, name: &str) -> anyhow::Result<Config> {
        config_of(&self.log_in(namespace, name).await?).await
    }

    /// A kubeconfig with a day's token.
    async fn log_in(&self, namespace: &str, name: &str) -> anyhow::Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let spec = TokenRequestSpec { expiration_seconds: Some(24 * 60 * 60), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let answer =
            answer.with_context(|| format!("cannot get a token of ServiceAccount `{namespace}/{name}`"))?;
        let token = answer.status.and_then(|status| status.token).context("the answer holds no token")?;
        Ok(kubeconfig(&self.server, &self.authority, name, &token))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.directory.path().join("audit.log")
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last view may go in a test's own runtime, in which another cannot be waited for.
            runtime.shutdown_background();
        }
    }
}

fn signed(duration: Duration) -> anyhow::Result<SignedDuration> {
    SignedDuration::try_from(duration).context("the duration is too long")
}

async fn config_of(kubeconfig: &str) -> anyhow::Result<Config> {
    let file = Kubeconfig::from_yaml(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(config)
}

/// Writes what is noted, a line each.
fn log_to(file: &Path) -> anyhow::Result<Arc<Audit>> {
    let file = Mutex::new(File::create(file).context("cannot make the audit log")?);
    Ok(Arc::new(move |event| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(file, "{event}").expect("the folder is there as long as the control plane");
    }))
}
