//! The HTTPS server around a plane: a certificate of its own authority, bearer tokens, streams of changes. It listens on
//! the loopback interface only, as authorisation is not evaluated. Never here: what a request is answered.

mod authority;
mod caller;
mod connection;
mod kubeconfig;
mod system;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::environment::Environment;
use crate::plane::Plane;

pub use authority::Authority;
pub use caller::HttpsCaller;
pub use kubeconfig::kubeconfig;
pub use system::System;

/// Connections at once. A client of the older protocol takes one for each of its watches.
const CONNECTIONS: usize = 1024;

/// Two seconds for requests that run when the server ends. Watches end at once.
const END: Duration = Duration::from_secs(2);

/// A second until connections are accepted again after that failed: usually there are too many open files.
const PAUSE: Duration = Duration::from_secs(1);

/// A server that runs. Dropping it ends it without waiting for anything.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves a plane. The address must be one of the loopback interface; port 0 takes a free one.
    pub async fn start(plane: Plane, authority: &Authority, address: SocketAddr) -> io::Result<Server> {
        if !address.ip().is_loopback() {
            let message = format!("cannot listen on `{address}`: it is not a loopback address");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let acceptor = authority.acceptor()?;
        let listener = TcpListener::bind(address).await.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on `{address}`: {error}"))
        })?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(accept(listener, acceptor, plane, stopped));
        Ok(Server { address, stop, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same for clients.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Ends it: no new connections, watches end, other requests are given a moment.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if (&mut self.task).await.is_err() {
            tracing::warn!("the server had ended by itself");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Lets a plane's loops work whenever something changed or is due. Never ends; drop it to stop it.
pub async fn drive(plane: Plane, environment: Arc<dyn Environment>) {
    loop {
        // What changes from here on wakes the next round.
        let changed = plane.changed();
        let next = plane.work();
        match next {
            Some(next) => drop(tokio::time::timeout(until(next, environment.now()), changed).await),
            None => changed.await,
        }
    }
}

fn until(next: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(next.duration_since(now)).unwrap_or(Duration::ZERO)
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    plane: Plane,
    mut stopped: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            next = next => next,
            () = connection::ended(&mut stopped) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (acceptor, plane, stopped) = (acceptor.clone(), plane.clone(), stopped.clone());
                connections.spawn(async move {
                    connect(stream, acceptor, plane, stopped).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(END, all).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connect(stream: TcpStream, acceptor: TlsAcceptor, plane: Plane, stopped: watch::Receiver<bool>) {
    if let Err(error) = connection::serve(stream, acceptor, plane, stopped).await {
        tracing::debug!(error, "a connection ended");
    }
}

#[cfg(test)]
mod tests;
