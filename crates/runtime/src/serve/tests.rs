//! Requests against the endpoints, on loopback.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::testing::answering;

/// Sends a request over a stream and returns the status line's code and the body.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> (u16, String) {
    let request = format!("{request}Host: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A peer that ends TLS without a goodbye is an error after the answer was read.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn health_tells_which_check_fails() {
    let (checks, is_ready) = (Checks::default(), Arc::new(AtomicBool::new(false)));
    let flag = is_ready.clone();
    checks.healthz("ping", || Ok(()));
    checks.readyz(
        "caches",
        move || if flag.load(Ordering::SeqCst) { Ok(()) } else { Err("not synced".to_owned()) },
    );
    let stop = CancellationToken::new();
    let serving = health("127.0.0.1:0", checks, stop.clone()).await.unwrap().unwrap();
    let get = async |path: &str| {
        let stream = TcpStream::connect(serving.address).await.unwrap();
        ask(stream, &format!("GET {path} HTTP/1.1\r\n")).await
    };
    assert_eq!(get("/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(get("/readyz").await, (503, "caches: not synced\n".to_owned()));
    assert_eq!(get("/other").await.0, 404);
    is_ready.store(true, Ordering::SeqCst);
    assert_eq!(get("/readyz").await.0, 200);
    stop.cancel();
    serving.task.await.unwrap();
    assert!(TcpStream::connect(serving.address).await.is_err());
}

#[tokio::test]
async fn an_endpoint_can_be_switched_off_and_a_bad_address_is_named() {
    let stop = CancellationToken::new();
    assert!(health("0", Checks::default(), stop.clone()).await.unwrap().is_none());
    let error = health("nowhere", Checks::default(), stop).await.err().unwrap();
    assert!(error.to_string().starts_with("cannot listen on `nowhere`: "), "{error}");
}

#[tokio::test]
async fn metrics_are_for_those_whom_the_api_server_allows() {
    let (writer, _) = answering(|seen| match seen.body["kind"].as_str() {
        Some("TokenReview") => {
            let token = &seen.body["spec"]["token"];
            let user = json!({"username": token, "groups": ["system:authenticated"]});
            (201, json!({"status": {"authenticated": token != "stranger", "user": user}}))
        }
        Some("SubjectAccessReview") => {
            let attributes = &seen.body["spec"]["nonResourceAttributes"];
            let is_allowed = seen.body["spec"]["user"] == "prometheus" && attributes["path"] == "/metrics";
            (201, json!({"status": {"allowed": is_allowed}}))
        }
        _ => (404, json!("no")),
    });
    let stop = CancellationToken::new();
    let serving = metrics("127.0.0.1:0", None, writer.client.clone(), stop).await.unwrap().unwrap();
    let get = async |path: &str, header: &str| {
        let stream = TcpStream::connect(serving.address).await.unwrap();
        let stream = trusting().connect("localhost".try_into().unwrap(), stream).await.unwrap();
        ask(stream, &format!("GET {path} HTTP/1.1\r\n{header}")).await
    };
    assert_eq!(get("/metrics", "").await.0, 401);
    assert_eq!(get("/metrics", "Authorization: Basic eDp5\r\n").await.0, 401);
    assert_eq!(get("/metrics", "Authorization: Bearer stranger\r\n").await.0, 401);
    assert_eq!(get("/metrics", "Authorization: Bearer somebody\r\n").await.0, 403);
    let (status, text) = get("/metrics", "Authorization: Bearer prometheus\r\n").await;
    assert_eq!(status, 200);
    assert!(text.contains("process_resident_memory_bytes"), "{text}");
    assert_eq!(get("/other", "Authorization: Bearer prometheus\r\n").await.0, 404);
}

/// A client that takes any certificate: who is asked is not what is tested here.
fn trusting() -> tokio_rustls::TlsConnector {
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, SignatureScheme};

    #[derive(Debug)]
    struct Trusting;
    impl ServerCertVerifier for Trusting {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            Ok(ServerCertVerified::assertion())
        }
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }
        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }
        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519]
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    tokio_rustls::TlsConnector::from(Arc::new(config))
}
