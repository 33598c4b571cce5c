//! Where the demo happens: the API server in this process, or somebody's.
//!
//! Never here: what is asked of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use kube::config::Kubeconfig;
use mapi_devplane::server::{self, Authority, Server, System};
use mapi_devplane::{Options, Plane, User};
use mapi_runtime::client::{self, ClientOptions};
use tokio::task::JoinHandle;

/// What cluster and user are called in the kubeconfig.
const NAME: &str = "machine-api-demo";

/// An API server.
pub enum Place {
    /// The one in this process.
    Embedded {
        /// The control plane, which our own clients call without a socket.
        plane: Plane,
        /// The same for everybody else.
        server: Server,
        /// Its loops.
        loops: JoinHandle<()>,
        /// How kubectl reaches it.
        kubeconfig: Box<Kubeconfig>,
    },
    /// One that was there before.
    Real {
        /// How to reach it.
        config: Box<kube::Config>,
        /// The same, for kubectl.
        kubeconfig: Box<Kubeconfig>,
    },
}

impl Place {
    /// Starts the embedded API server, or reads how to reach the given one.
    pub async fn open(kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = kubeconfig else {
            return Self::embedded().await.context("cannot start the embedded API server");
        };
        let what = || format!("cannot use kubeconfig `{}`", path.display());
        let config = client::config(Some(path)).await.map_err(|e| anyhow!(e)).with_context(what)?;
        let kubeconfig = Kubeconfig::read_from(path).with_context(what)?;
        Ok(Self::Real { config: Box::new(config), kubeconfig: Box::new(kubeconfig) })
    }

    async fn embedded() -> anyhow::Result<Self> {
        let (system, authority) = (Arc::new(System::new()), Authority::new()?);
        let options = Options { ca: Some(authority.pem().into()), ..Options::default() };
        let plane = Plane::new(system.clone(), options);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Server::start(plane.clone(), &authority, address).await?;
        let token = plane.issue(User::admin(), None);
        let kubeconfig = Kubeconfig::from_yaml(&server::kubeconfig(&server, &authority, NAME, &token))?;
        let loops = tokio::spawn(server::drive(plane.clone(), system));
        Ok(Self::Embedded { plane, server, loops, kubeconfig: Box::new(kubeconfig) })
    }

    /// Whether all of it goes with this process anyhow.
    pub fn is_embedded(&self) -> bool {
        match self {
            Self::Embedded { .. } => true,
            Self::Real { .. } => false,
        }
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        match self {
            Self::Embedded { .. } => "embedded API server".into(),
            Self::Real { config, .. } => match config.cluster_url.authority() {
                Some(host) => format!("API server {host}"),
                None => format!("API server {}", config.cluster_url),
            },
        }
    }

    /// How kubectl reaches it.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        match self {
            Self::Embedded { kubeconfig, .. } | Self::Real { kubeconfig, .. } => kubeconfig,
        }
    }

    /// A client with limits of its own.
    pub fn client(&self, options: &ClientOptions) -> anyhow::Result<kube::Client> {
        let client = match self {
            Self::Embedded { plane, .. } => client::client_over(plane.client_service(User::admin()), options),
            Self::Real { config, .. } => client::client((**config).clone(), options),
        };
        client.map_err(|e| anyhow!(e))
    }

    /// Ends what was started.
    pub async fn close(self) {
        match self {
            Self::Embedded { server, loops, .. } => {
                server.stop().await;
                loops.abort();
            }
            Self::Real { .. } => {}
        }
    }
}
