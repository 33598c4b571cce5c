//! The servers that are examined. Never here: what is asked of them.

use std::{any::Any, fs, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use controlplane::{ControlPlane, Options};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use mapi_devplane::{
    Environment, Plane, User,
    server::{Authority, HttpsCaller, System, drive, kubeconfig},
};

use crate::load::package;

/// What keeps a server running until it is dropped.
type Held = Box<dyn Any + Send + Sync>;

/// Which server is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// kube-apiserver with etcd and kube-controller-manager.
    Real,
    /// The embedded control plane.
    Devplane,
}

impl Server {
    /// As it is called in reports.
    pub fn name(self) -> &'static str {
        match self {
            Server::Real => "real",
            Server::Devplane => "devplane",
        }
    }
}

/// A running server.
pub(crate) struct Target {
    pub server: Server,
    pub client: Client,
    pub kubeconfig: PathBuf,
    /// What keeps it running.
    _held: Held,
}

impl Target {
    /// Starts it, with the kinds of `fixtures/`. The environment variable `CONFORMANCE_KUBECONFIG` names one that
    /// runs already.
    pub(crate) async fn start(server: Server) -> anyhow::Result<Target> {
        let (kubeconfig, held): (PathBuf, Held) = match (std::env::var_os("CONFORMANCE_KUBECONFIG"), server) {
            (Some(file), _) => (file.into(), Box::new(())),
            (None, Server::Real) => {
                let plane =
                    ControlPlane::start(Options { manifests: fixtures()?, ..Options::default() }).await?;
                (plane.admin_kubeconfig(), Box::new(plane))
            }
            (None, Server::Devplane) => devplane().await?,
        };
        let parsed = Kubeconfig::read_from(&kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        let client = Client::try_from(config)?;
        for manifest in fixtures()? {
            controlplane::apply_yaml(&client, &manifest).await.context("cannot apply the fixtures")?;
        }
        Ok(Target { server, client, kubeconfig, _held: held })
    }
}

/// Starts the embedded control plane: its kubeconfig, and what keeps it running.
async fn devplane() -> anyhow::Result<(PathBuf, Held)> {
    let authority = Authority::new()?;
    let options =
        mapi_devplane::Options { ca: Some(authority.pem().to_owned()), ..mapi_devplane::Options::default() };
    let environment: Arc<dyn Environment> = Arc::new(System::new());
    let plane = Plane::new(Arc::clone(&environment), options);
    plane.set_caller(Arc::new(HttpsCaller::new([])));
    let token = plane.issue(User::admin(), None);
    tokio::spawn(drive(plane.clone(), environment));
    let server = mapi_devplane::server::Server::start(plane, &authority, ([127, 0, 0, 1], 0).into()).await?;
    let directory = tempfile::Builder::new().prefix("conformance-devplane-").tempdir()?;
    let file = directory.path().join("admin.kubeconfig");
    fs::write(&file, kubeconfig(&server, &authority, "admin", &token))?;
    Ok((file, Box::new((server, directory))))
}

/// The kinds that cases use: those made for it, and those of the product.
fn fixtures() -> anyhow::Result<Vec<String>> {
    let product = package().join("../../install/crds");
    let mut files = Vec::new();
    for folder in [package().join("fixtures"), product.clone(), product.join("Default")] {
        for entry in fs::read_dir(folder)? {
            files.push(entry?.path());
        }
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files.iter().map(|file| Ok(fs::read_to_string(file)?)).collect()
}
