//! Which requests are sent again, and when.

use http_body_util::Full;
use tower::ServiceExt;

use super::*;

type Script = Arc<Mutex<Vec<Result<(u16, Option<&'static str>), io::ErrorKind>>>>;

/// Sends one request to a service that answers as scripted, last first. Returns status, attempts and seconds.
async fn check(
    method: &str,
    uri: &str,
    answers: &[Result<(u16, Option<&'static str>), io::ErrorKind>],
) -> (u16, usize, u64) {
    let script: Script = Arc::new(Mutex::new(answers.iter().rev().copied().collect()));
    let service = tower::service_fn({
        let script = script.clone();
        move |_: Request<Body>| {
            let answer = script.lock().unwrap().pop().expect("an answer is scripted for each attempt");
            async move {
                let (status, after) = answer.map_err(io::Error::from)?;
                let mut response = Response::builder().status(status);
                if let Some(after) = after {
                    response = response.header(header::RETRY_AFTER, after);
                }
                Ok::<_, BoxError>(response.body(Full::new(Bytes::from("x"))).unwrap())
            }
        }
    });
    let limits = Limits::new(&ClientOptions::default()).unwrap();
    let request = Request::builder().method(method).uri(uri).body(Body::from(b"body".to_vec())).unwrap();
    let start = Instant::now();
    let status =
        Governed::new(service, limits).oneshot(request).await.map_or(0, |answer| answer.status().as_u16());
    let attempts = answers.len() - script.lock().unwrap().len();
    (status, attempts, start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_429_is_waited_out_as_the_server_asks_whatever_the_verb() {
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let (status, attempts, seconds) =
            check(method, "/apis/x/y", &[Ok((429, Some("4"))), Ok((200, None))]).await;
        assert_eq!((status, attempts), (200, 2), "{method}");
        assert!((4..=5).contains(&seconds), "{method}: {seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_429_of_an_eviction_is_an_answer() {
    let uri = "/api/v1/namespaces/ns/pods/a/eviction";
    assert_eq!(check("POST", uri, &[Ok((429, Some("4"))), Ok((201, None))]).await, (429, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_the_deadline() {
    let (status, attempts, seconds) = check("GET", "/x", &[Ok((429, Some("25"))); 9]).await;
    assert_eq!(status, 429);
    assert!(attempts <= 3 && seconds <= 60, "{attempts} attempts, {seconds} s");
    assert_eq!(check("GET", "/x", &[Ok((429, Some("3600")))]).await, (429, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_sent_again() {
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        for status in [500, 502, 503, 504] {
            let (answer, attempts, _) =
                check(method, "/x", &[Ok((status, Some("1"))), Ok((200, None))]).await;
            assert_eq!((answer, attempts), (status, 1), "{method} {status}");
        }
        let reset = Err(io::ErrorKind::ConnectionReset);
        assert_eq!(check(method, "/x", &[reset, Ok((200, None))]).await, (0, 1, 0), "{method} reset");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_sent_again_after_503_and_a_broken_connection() {
    let answers = [Ok((503, None)), Err(io::ErrorKind::ConnectionReset), Ok((200, None))];
    let (status, attempts, _) = check("GET", "/x", &answers).await;
    assert_eq!((status, attempts), (200, 3));
    assert_eq!(check("GET", "/x", &[Ok((504, None)), Ok((200, None))]).await, (504, 1, 0));
    assert_eq!(check("GET", "/x", &[Err(io::ErrorKind::InvalidData), Ok((200, None))]).await, (0, 1, 0));
}

#[tokio::test]
async fn a_post_to_a_server_that_does_not_listen_yet_arrives_once_it_does() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let client = crate::client::client(config, &ClientOptions::default()).unwrap();
    let request = Request::post("/x").body(Body::from(b"{}".to_vec())).unwrap();
    let sent = tokio::spawn(async move { client.send(request).await });
    tokio::task::yield_now().await;
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let answer = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async move {
        let agent = request.headers()[header::USER_AGENT].clone();
        Response::builder().status(201).header("agent", agent).body(Full::new(Bytes::new()))
    });
    let io = hyper_util::rt::TokioIo::new(stream);
    let serving = tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, answer));
    let response = sent.await.unwrap().unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["agent"], ClientOptions::OPERATOR);
    serving.abort();
}

/// Sends four requests to a service that takes ten seconds for each. Returns the seconds until the last answer.
async fn four(options: &ClientOptions, uri: &str) -> u64 {
    let service = tower::service_fn(|_: Request<Body>| async {
        sleep(Duration::from_secs(10)).await;
        Ok::<_, BoxError>(Response::new(Full::new(Bytes::new())))
    });
    let governed = Governed::new(service, Limits::new(options).unwrap());
    let start = Instant::now();
    let request = || governed.clone().oneshot(Request::get(uri).body(Body::empty()).unwrap());
    let (a, b, c, d) = tokio::join!(request(), request(), request(), request());
    assert!([a, b, c, d].iter().all(Result::is_ok));
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_limited_and_watches_do_not_count() {
    let options = ClientOptions { in_flight: 2, ..ClientOptions::default() };
    assert_eq!(four(&options, "/x").await, 20);
    assert_eq!(four(&options, "/x?watch=true").await, 10);
}

#[tokio::test(start_paused = true)]
async fn the_rate_is_limited_after_the_burst() {
    let options = ClientOptions { qps: 0.5, burst: 2, ..ClientOptions::default() };
    assert_eq!(four(&options, "/x").await, 14);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_with_its_time() {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Full<Bytes>>, BoxError>>()
    });
    let governed = Governed::new(service, Limits::new(&ClientOptions::default()).unwrap());
    let start = Instant::now();
    let answer = governed.oneshot(Request::get("/x").body(Body::empty()).unwrap()).await;
    assert!(answer.is_err_and(|error| error.to_string().contains("no answer within 30s")));
    assert_eq!(start.elapsed().as_secs(), 30);
}
