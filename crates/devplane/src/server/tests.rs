//! A server of its own for each test, on the loopback interface. Never here: what requests are answered.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{Authority, Server, System, drive, kubeconfig};
use crate::{Options, Plane, User};

struct World {
    server: Server,
    authority: Authority,
    token: String,
    tasks: JoinSet<()>,
}

impl World {
    async fn new() -> World {
        let system = Arc::new(System::new());
        let authority = Authority::new().unwrap();
        let plane =
            Plane::new(system.clone(), Options { ca: Some(authority.pem().into()), ..Options::default() });
        let token = plane.issue(User::admin(), None);
        let server = Server::start(plane.clone(), &authority, "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(drive(plane, system));
        World { server, authority, token, tasks }
    }

    /// Sends one request on a connection of its own.
    async fn send(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(self.server.address()).await.unwrap();
        let stream = connector.connect("127.0.0.1".try_into().unwrap(), stream).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        self.tasks.spawn(async move { drop(connection.await) });
        sender.send_request(request).await.unwrap()
    }

    async fn ask(&mut self, method: &str, path: &str, token: &str, body: Vec<u8>) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let response = self.send(request).await;
        let code = response.status();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&text).unwrap())
    }
}

#[tokio::test]
async fn who_has_a_token_is_answered() {
    let mut world = World::new().await;
    let token = world.token.clone();
    let (code, list) = world.ask("GET", "/api/v1/namespaces", &token, Vec::new()).await;
    assert_eq!((code, &list["kind"]), (StatusCode::OK, &json!("NamespaceList")));
    let (code, status) = world.ask("GET", "/api/v1/namespaces", "guess", Vec::new()).await;
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
    });
    assert_eq!((code, status), (StatusCode::UNAUTHORIZED, expected));
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let mut world = World::new().await;
    let token = world.token.clone();
    let path = "/api/v1/namespaces/default/configmaps";
    let map = |size: usize| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x".repeat(size)}});
        map.to_string().into_bytes()
    };
    let (code, status) = world.ask("POST", path, &token, map(3 << 20)).await;
    assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(status["message"], "Request entity too large: limit is 3145728");
    let (code, _) = world.ask("POST", path, &token, map(1000)).await;
    assert_eq!(code, StatusCode::CREATED);
}

#[tokio::test]
async fn a_watch_streams_changes_and_ends_with_the_server() {
    let mut world = World::new().await;
    let token = world.token.clone();
    let request = Request::builder()
        .uri("/api/v1/namespaces/default/secrets?watch=1")
        .header("host", "localhost")
        .header("authorization", format!("bearer {token}"))
        .body(Full::new(Bytes::new()))
        .unwrap();
    let mut watch = world.send(request).await.into_body();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}).to_string();
    let path = "/api/v1/namespaces/default/secrets";
    world.ask("POST", path, &token, secret.into_bytes()).await;
    let frame = watch.frame().await.unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("a")));
    world.server.stop().await;
    assert!(watch.frame().await.is_none());
}

#[tokio::test]
async fn loops_work_without_being_asked() {
    let mut world = World::new().await;
    let token = world.token.clone();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}).to_string();
    let request = Request::builder()
        .uri("/api/v1/namespaces/a/configmaps?watch=1")
        .header("host", "localhost")
        .header("authorization", format!("Bearer {token}"))
        .body(Full::new(Bytes::new()))
        .unwrap();
    let mut watch = world.send(request).await.into_body();
    world.ask("POST", "/api/v1/namespaces", &token, namespace.into_bytes()).await;
    let frame = watch.frame().await.unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!(event["object"]["data"]["ca.crt"], world.authority.pem());
}

#[tokio::test]
async fn only_the_loopback_interface_is_served() {
    let plane = Plane::new(Arc::new(System::new()), Options::default());
    let authority = Authority::new().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let address: SocketAddr = address.parse().unwrap();
        let error = Server::start(plane.clone(), &authority, address).await.err().unwrap();
        assert_eq!(error.to_string(), format!("cannot listen on `{address}`: it is not a loopback address"));
    }
}

#[tokio::test]
async fn a_kubeconfig_says_all_that_a_client_needs() {
    let world = World::new().await;
    let text = kubeconfig(&world.server, &world.authority, "demo", "secret");
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], world.server.url());
    assert_eq!(config["users"][0]["user"], json!({"token": "secret"}));
    assert_eq!(config["current-context"], config["contexts"][0]["name"]);
    let context = json!({"cluster": "demo", "user": "demo", "namespace": "default"});
    assert_eq!(config["contexts"][0]["context"], context);
}
