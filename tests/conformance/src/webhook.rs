//! An admission webhook for the cases: what it says depends on the path alone. Never here: a decision of the product.

use std::sync::Arc;

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

/// A webhook server on the loopback address.
pub(crate) struct Webhook {
    /// `https://127.0.0.1:<port>`.
    pub url: String,
    /// An address at which nobody listens.
    pub dead_url: String,
    /// The certificate that a configuration trusts, PEM in base64.
    pub ca_bundle: String,
    server: JoinHandle<()>,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Webhook {
    pub(crate) async fn start() -> anyhow::Result<Webhook> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()])?.self_signed(&key)?;
        let ca_bundle = STANDARD.encode(certificate.pem());
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .context("cannot use the certificate of the webhook")?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        // Port 1 is nobody's on a computer that runs tests.
        let dead_url = "https://127.0.0.1:1".to_owned();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream));
            }
        });
        Ok(Webhook { url, dead_url, ca_bundle, server })
    }
}

/// Serves one connection. Whoever breaks it off has their reasons.
async fn serve(acceptor: TlsAcceptor, stream: TcpStream) {
    if let Ok(stream) = acceptor.accept(stream).await {
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, text) = match verdict(&path, &review["request"]) {
        Some(response) => (200, with_response(&review, response).to_string()),
        None => (500, "this webhook is broken".to_owned()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = http::StatusCode::from_u16(status).expect("both codes are status codes");
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    Ok(response)
}

fn with_response(review: &Value, mut response: Value) -> Value {
    response["uid"] = review["request"]["uid"].clone();
    json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})
}

/// What the webhook of a path says about a request; `None` breaks.
fn verdict(path: &str, request: &Value) -> Option<Value> {
    let patched = |patch: Value| json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())});
    Some(match path {
        "/allow" => json!({"allowed": true}),
        "/deny" => {
            json!({"allowed": false, "status": {"message": "not today", "code": 403, "reason": "Forbidden"}})
        }
        "/deny-silently" => json!({"allowed": false}),
        "/deny-as-invalid" => {
            json!({"allowed": false, "status": {"message": "no good", "code": 422, "reason": "Invalid"}})
        }
        "/warn" => json!({"allowed": true, "warnings": ["mind the gap"]}),
        "/label" => patched(json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}])),
        "/unpatchable" => patched(json!([{"op": "test", "path": "/metadata/name", "value": "nobody"}])),
        // Tells what it was asked, by refusing.
        "/tell" => {
            let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let parts = [
                word(&request["operation"]),
                format!(
                    "{}/{}",
                    word(&request["resource"]["version"]),
                    word(&request["resource"]["resource"])
                ),
                format!("sub={}", word(&request["subResource"])),
                format!("name={}", word(&request["name"])),
                format!("dry={}", word(&request["dryRun"])),
                format!("object={}", word(&request["object"]["metadata"]["name"])),
                format!("old={}", word(&request["oldObject"]["metadata"]["name"])),
                format!("options={}", word(&request["options"]["kind"])),
                format!("user={}", word(&request["userInfo"]["username"])),
            ];
            json!({"allowed": false, "status": {"message": parts.join(" ")}})
        }
        _ => return None,
    })
}
