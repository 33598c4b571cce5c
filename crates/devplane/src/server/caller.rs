//! Reaching webhooks over HTTPS. Each call has a connection of its own: writes that concern a webhook are few. Never here:
//! what webhooks are asked.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::admission::{Caller, ServiceReference, WebhookAnswer, WebhookCall};

/// Bytes of an answer. Source: the limit that Kubernetes has for requests.
const LIMIT: usize = 3 << 20;

/// Calls webhooks over HTTPS.
#[derive(Clone, Debug, Default)]
pub struct HttpsCaller {
    services: HashMap<ServiceReference, SocketAddr>,
}

impl HttpsCaller {
    /// There is no network of a cluster, so that each service that is called must be given an address.
    pub fn new(services: impl IntoIterator<Item = (ServiceReference, SocketAddr)>) -> HttpsCaller {
        HttpsCaller { services: services.into_iter().collect() }
    }

    async fn post(&self, call: WebhookCall) -> Result<WebhookAnswer, String> {
        let uri: Uri = call.url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let connected = match &call.service {
            Some(service) => match self.services.get(service) {
                Some(address) => TcpStream::connect(address).await,
                None => return Err(format!("service \"{}\" not found", service.name)),
            },
            None => TcpStream::connect((&*host, uri.port_u16().unwrap_or(443))).await,
        };
        let stream = connected.map_err(|error| refused(&uri, &error))?;
        let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::new(trust(&call.ca)?));
        let stream = connector.connect(name, stream).await.map_err(|error| untrusted(&error))?;
        exchange(TokioIo::new(stream), &uri, call.body).await.map_err(|error| error.to_string())
    }
}

impl Caller for HttpsCaller {
    fn call(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, String>> {
        Box::pin(async move {
            let timeout = call.timeout;
            let answer = tokio::time::timeout(timeout, self.post(call)).await;
            answer.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
        })
    }
}

async fn exchange<S>(stream: S, uri: &Uri, body: Bytes) -> io::Result<WebhookAnswer>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let request = Request::post(path)
        .header(header::HOST, authority)
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(io::Error::other)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let code = response.status().as_u16();
        let body = Limited::new(response.into_body(), LIMIT).collect().await.map_err(io::Error::other)?;
        Ok(WebhookAnswer { code, body: body.to_bytes() })
    };
    // The connection ends with the answer: whichever is first ends the other.
    let mut connection = std::pin::pin!(connection);
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        ended = &mut connection => {
            ended.map_err(io::Error::other)?;
            answer.await
        }
    }
}

fn trust(ca: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(ca).filter_map(Result::ok));
    // The provider is named, because a default one is a property of the whole process.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Words of Go's network library, which clients know.
fn refused(uri: &Uri, error: &io::Error) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("dial tcp {authority}: connect: connection refused"),
        _ => format!("dial tcp {authority}: {error}"),
    }
}

fn untrusted(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "tls: failed to verify certificate: x509: certificate signed by unknown authority".to_owned()
        }
        Some(error) => format!("tls: {error}"),
        None => error.to_string(),
    }
}
