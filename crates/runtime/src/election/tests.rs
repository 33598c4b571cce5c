//! Candidates with skewed clocks before a server that is slow, deaf or forgetful. The monotonic time is virtual.

use std::sync::Mutex;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::client::Body;
use mapi_api::Timestamp;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, proptest};
use proptest::test_runner::TestCaseError;
use serde_json::Value;
use tower::BoxError;

use super::*;

/// Seconds of wall clock that a process is off.
struct Skewed(i64, Instant);

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        let elapsed: i64 = self.1.elapsed().as_secs().try_into().unwrap();
        Timestamp::from_second(1_800_000_000 + self.0 + elapsed).unwrap()
    }
}

/// The one Lease of a server.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<(u64, Option<Value>)>>);

impl Server {
    fn answer(&self, method: &str, body: &[u8]) -> (u16, Value) {
        let mut state = self.0.lock().unwrap();
        let (version, stored) = &mut *state;
        let status =
            |code, reason: &str| (code, json!({"kind": "Status", "reason": reason, "message": reason}));
        if method == "GET" {
            return stored.clone().map_or_else(|| status(404, "NotFound"), |lease| (200, lease));
        }
        let mut lease: Value = serde_json::from_slice(body).unwrap();
        let current = stored.as_ref().map(|stored| &stored["metadata"]["resourceVersion"]);
        match (method, current) {
            ("POST", Some(_)) => return status(409, "AlreadyExists"),
            ("PUT", None) => return status(404, "NotFound"),
            ("PUT", Some(current)) if *current != lease["metadata"]["resourceVersion"] => {
                return status(409, "Conflict");
            }
            ("POST" | "PUT", _) => {}
            (other, _) => panic!("`{other}` is not a request of an election"),
        }
        *version += 1;
        lease["metadata"]["resourceVersion"] = version.to_string().into();
        *stored = Some(lease.clone());
        (200, lease)
    }

    fn spec(&self) -> LeaseSpec {
        let lease = self.0.lock().unwrap().1.clone().unwrap_or_default();
        serde_json::from_value(lease["spec"].clone()).unwrap_or_default()
    }
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Seconds until the server sees it.
    before: u64,
    /// Seconds until the answer is there.
    after: u64,
    is_lost: bool,
}

const FAIR: Fate = Fate { before: 0, after: 0, is_lost: false };

/// A writer whose n-th request has the n-th fate; then the server is fair.
fn writer(server: &Server, fates: Vec<Fate>) -> Writer {
    let (server, fates) = (server.clone(), Arc::new(Mutex::new(fates.into_iter())));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, fate) = (server.clone(), fates.lock().unwrap().next().unwrap_or(FAIR));
        async move {
            let method = request.method().to_string();
            let body = request.into_body().collect_bytes().await?;
            // A request that arrives late lands even if nobody waits for its answer any more.
            let landed = tokio::spawn(async move {
                sleep(Duration::from_secs(fate.before)).await;
                server.answer(&method, &body)
            });
            let (status, answer) = landed.await?;
            sleep(Duration::from_secs(fate.after)).await;
            if fate.is_lost {
                return Err("connection broken".into());
            }
            Ok::<_, BoxError>(
                Response::builder().status(status).body(Full::new(Bytes::from(answer.to_string())))?,
            )
        }
    });
    Writer::new(kube::Client::new(service, "default"))
}

fn config(identity: &str) -> ElectionConfig {
    ElectionConfig::new("ns", "lease", identity)
}

async fn lead(server: &Server, identity: &str) -> Leadership {
    let clock = Arc::new(Skewed(0, Instant::now()));
    Leadership::acquire(writer(server, Vec::new()), config(identity), clock, CancellationToken::new())
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_look() {
    let server = Server::default();
    let first = lead(&server, "a").await;
    assert_eq!(
        (server.spec().holder_identity.as_deref(), server.spec().lease_transitions),
        (Some("a"), Some(1))
    );
    sleep(Duration::from_secs(600)).await;
    let second = tokio::spawn({
        let server = server.clone();
        async move { lead(&server, "b").await }
    });
    sleep(Duration::from_secs(600)).await;
    assert!(!second.is_finished(), "renewed all the time");
    first.release().await;
    assert_eq!(server.spec().holder_identity.as_deref(), Some(""));
    let start = Instant::now();
    second.await.unwrap();
    assert!(start.elapsed() <= Duration::from_secs(32), "{:?}", start.elapsed());
    assert_eq!(
        (server.spec().holder_identity.as_deref(), server.spec().lease_transitions),
        (Some("b"), Some(2))
    );
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_dead_leader_is_taken_after_its_duration() {
    let server = Server::default();
    drop(lead(&server, "a").await);
    let start = Instant::now();
    lead(&server, "b").await;
    let waited = start.elapsed().as_secs();
    assert!((137..=137 + 64).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_at_its_own_deadline() {
    let server = Server::default();
    let hanging = vec![FAIR, FAIR, Fate { before: 100_000, after: 0, is_lost: false }];
    let clock = Arc::new(Skewed(0, Instant::now()));
    let stop = CancellationToken::new();
    let start = Instant::now();
    let leader = Leadership::acquire(writer(&server, hanging), config("a"), clock, stop).await.unwrap();
    leader.lost().await;
    assert_eq!(start.elapsed().as_secs(), 107);
    leader.release().await;
    assert_eq!(server.spec().holder_identity.as_deref(), Some("a"), "what is lost is not released");
}

#[tokio::test(start_paused = true)]
async fn who_is_told_to_stop_before_leading_does_not_lead() {
    let server = Server::default();
    let _leader = lead(&server, "a").await;
    let stop = CancellationToken::new();
    let clock = Arc::new(Skewed(0, Instant::now()));
    let waiting =
        tokio::spawn(Leadership::acquire(writer(&server, Vec::new()), config("b"), clock, stop.clone()));
    sleep(Duration::from_secs(60)).await;
    stop.cancel();
    assert!(waiting.await.unwrap().is_none());
}

/// A candidate: skew in seconds, when it starts, how long it leads before it goes away, what its requests meet.
#[derive(Clone, Debug)]
struct Life {
    skew: i64,
    start: u64,
    leads_for: u64,
    is_polite: bool,
    fates: Vec<Fate>,
}

fn lives() -> impl Strategy<Value = Vec<Life>> {
    let fate = (0_u64..200, 0_u64..200, proptest::bool::weighted(0.3), proptest::bool::weighted(0.6));
    let fate = fate.prop_map(
        |(before, after, is_lost, is_fair)| if is_fair { FAIR } else { Fate { before, after, is_lost } },
    );
    let fates = proptest::collection::vec(fate, 0..60);
    let life = (-86_400_i64..86_400, 0_u64..400, 1_u64..2000, any::<bool>(), fates).prop_map(
        |(skew, start, leads_for, is_polite, fates)| Life { skew, start, leads_for, is_polite, fates },
    );
    proptest::collection::vec(life, 2..4)
}

/// Leads again and again, and notes when it led.
async fn live(server: Server, life: Life, identity: String, terms: Arc<Mutex<Vec<(Instant, Instant)>>>) {
    let writer = writer(&server, life.fates);
    let clock = Arc::new(Skewed(life.skew, Instant::now()));
    sleep(Duration::from_secs(life.start)).await;
    loop {
        let config = config(&identity);
        let stop = CancellationToken::new();
        let Some(leader) = Leadership::acquire(writer.clone(), config, clock.clone(), stop).await else {
            return;
        };
        let began = Instant::now();
        let _ = timeout(Duration::from_secs(life.leads_for), leader.lost()).await;
        terms.lock().unwrap().push((began, Instant::now()));
        if life.is_polite {
            leader.release().await;
        } else {
            drop(leader);
        }
        sleep(Duration::from_secs(300)).await;
    }
}

async fn two_hours(lives: Vec<Life>) -> Result<(), TestCaseError> {
    let server = Server::default();
    let mut all = Vec::new();
    for (number, life) in lives.into_iter().enumerate() {
        let terms = Arc::new(Mutex::new(Vec::new()));
        let life = live(server.clone(), life, number.to_string(), terms.clone());
        all.push((terms, tokio::spawn(life)));
    }
    sleep(Duration::from_secs(2 * 3600)).await;
    let terms: Vec<_> = all
        .iter()
        .map(|(terms, task)| {
            task.abort();
            terms.lock().unwrap().clone()
        })
        .collect();
    prop_assert!(terms.iter().any(|terms| !terms.is_empty()), "somebody led");
    for (number, mine) in terms.iter().enumerate() {
        let others =
            terms.iter().enumerate().filter(|(other, _)| *other != number).flat_map(|(_, terms)| terms);
        for (other, (began, ended)) in others.flat_map(|theirs| mine.iter().map(move |term| (theirs, term))) {
            prop_assert!(*ended <= other.0 || other.1 <= *began, "two leaders at once");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn there_are_never_two_leaders_whatever_clocks_and_requests_do(lives in lives()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(two_hours(lives))?;
    }
}
