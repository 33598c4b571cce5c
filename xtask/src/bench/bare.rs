//! The bare loop: the writes of a run, sent as fast as the API server takes them.
//!
//! Never here: waiting for anything but the answer to a write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use mapi_api::lease::Lease;
use mapi_api::rbac::NAMESPACE;
use mapi_api::{Key, Machine, MachineHealthCheck, MachineSet, Node, Object, SimulatedInstance};
use mapi_runtime::client::{self, ClientOptions};
use mapi_runtime::writes::{Sub, Writer};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinSet;

use super::audit::Tally;
use super::sample::{Kind, Samples};
use super::world::{FLEET, World};

/// Requests in flight: as many keys as the controllers work on at once.
const IN_FLIGHT: usize = 32;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Create,
    Main,
    Status,
}

/// Like writes of one account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    kind: Kind,
    act: Act,
    account: String,
    count: u64,
}

/// All writes of a run, sorted: the objects of a machine come in the order of their kinds, a create before its patches.
pub struct Work {
    jobs: Vec<Job>,
    samples: Samples,
}

/// What the loop took.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Writes that were sent.
    pub writes: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
}

impl Work {
    /// The accepted writes of `tally`, with bodies like `samples`. A write that is neither a create nor of a status counts
    /// as a patch of the object: on the way up there is no other.
    pub fn new(tally: &Tally, samples: Samples) -> anyhow::Result<Self> {
        let mut counts: BTreeMap<(Kind, Act, &str), u64> = BTreeMap::new();
        for (write, count) in tally.iter().filter(|(write, _)| write.is_accepted()) {
            let (resource, sub) = write.resource.split_once('/').unwrap_or((&write.resource, ""));
            let act = match (sub, write.verb.as_str()) {
                ("", "create") => Act::Create,
                ("", _) => Act::Main,
                ("status", _) => Act::Status,
                (_, _) => bail!("the bare loop knows no `{}`", write.resource),
            };
            *counts.entry((Kind::of(resource)?, act, &write.account)).or_default() += count;
        }
        let jobs = counts.into_iter().map(|((kind, act, account), count)| Job {
            kind,
            act,
            account: account.into(),
            count,
        });
        Ok(Self { jobs: jobs.collect(), samples })
    }

    /// Objects of a kind that are created; `None` where the patches are of one that is there.
    fn objects(&self, kind: Kind) -> Option<u64> {
        let creates = self.jobs.iter().filter(|job| job.kind == kind && job.act == Act::Create);
        Some(creates.map(|job| job.count).sum()).filter(|count| *count > 0)
    }

    /// Number of chains: there is one for each machine.
    fn chains(&self) -> u64 {
        Kind::ALL.into_iter().filter_map(|kind| self.objects(kind)).max().unwrap_or(1)
    }

    /// How often a job is done in a chain, so that all chains together do it as often as it was counted.
    fn share(&self, job: &Job, chain: u64) -> u64 {
        let chains = self.objects(job.kind).unwrap_or(1);
        if chain >= chains {
            return 0;
        }
        job.count * (chain + 1) / chains - job.count * chain / chains
    }
}

/// Does the work on a control plane on which none of our processes runs.
pub async fn run(world: &World, work: Work) -> anyhow::Result<Done> {
    let sets: Api<MachineSet> = Api::namespaced(world.client.clone(), NAMESPACE);
    let set = sets.get(FLEET).await?.uid().to_owned();
    let mut writers = BTreeMap::new();
    for job in &work.jobs {
        if !writers.contains_key(&job.account) {
            let (_, name) = job.account.rsplit_once(':').context("no service account wrote")?;
            writers.insert(job.account.clone(), writer(&world.kubeconfig(name).await?).await?);
        }
    }
    let shared = Arc::new(Loop { work, writers, set, next: AtomicU64::new(0), sent: AtomicU64::new(0) });
    let began = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let shared = Arc::clone(&shared);
        workers.spawn(async move { shared.run().await });
    }
    while let Some(ended) = workers.join_next().await {
        ended.context("a worker of the bare loop ended abnormally")??;
    }
    Ok(Done { writes: shared.sent.load(Ordering::Relaxed), seconds: began.elapsed().as_secs_f64() })
}

async fn writer(kubeconfig: &str) -> anyhow::Result<Writer> {
    let config = client::config(Some(Path::new(kubeconfig))).await.map_err(|e| anyhow::anyhow!(e))?;
    let options = ClientOptions {
        user_agent: concat!("machine-api-bench/", env!("CARGO_PKG_VERSION")),
        qps: 0.0,
        burst: 0,
        in_flight: IN_FLIGHT,
        timeout: Duration::from_secs(60),
    };
    Ok(Writer::new(client::client(config, &options).map_err(|e| anyhow::anyhow!(e))?))
}

/// What the workers share.
struct Loop {
    work: Work,
    writers: BTreeMap<String, Writer>,
    set: String,
    next: AtomicU64,
    sent: AtomicU64,
}

impl Loop {
    /// Takes one chain after the other.
    async fn run(&self) -> anyhow::Result<()> {
        loop {
            let chain = self.next.fetch_add(1, Ordering::Relaxed);
            if chain >= self.work.chains() {
                return Ok(());
            }
            self.chain(chain).await?;
        }
    }

    async fn chain(&self, chain: u64) -> anyhow::Result<()> {
        let mut owners = BTreeMap::from([(Kind::MachineSet, self.set.clone())]);
        let mut round = 0;
        for job in &self.work.jobs {
            for _ in 0..self.work.share(job, chain) {
                round += 1;
                let uid = self.write(job, chain, round, &owners).await?;
                owners.insert(job.kind, uid);
                self.sent.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    async fn write(
        &self,
        job: &Job,
        chain: u64,
        round: u64,
        owners: &BTreeMap<Kind, String>,
    ) -> anyhow::Result<String> {
        let Work { samples, .. } = &self.work;
        let (kind, index) = (job.kind, self.work.objects(job.kind).map(|_| chain));
        let body = match job.act {
            Act::Create => samples.create(kind, chain, owners)?,
            Act::Main => samples.main_patch(kind, chain, round)?,
            Act::Status => samples.status_patch(kind, chain, round)?,
        };
        let key = Key::new(kind.namespace(), &samples.name(kind, index)?);
        let request =
            Request { writer: &self.writers[&job.account], kind, act: job.act, key: &key, body: &body };
        match kind {
            Kind::MachineSet => request.send::<MachineSet>().await,
            Kind::HealthCheck => request.send::<MachineHealthCheck>().await,
            Kind::Machine => request.send::<Machine>().await,
            Kind::Instance => request.send::<SimulatedInstance>().await,
            Kind::Node => request.send::<Node>().await,
            Kind::Lease => request.send::<Lease>().await,
            Kind::Event => request.send::<Event>().await,
        }
    }
}

/// One write.
struct Request<'a> {
    writer: &'a Writer,
    kind: Kind,
    act: Act,
    key: &'a Key,
    body: &'a Value,
}

impl Request<'_> {
    /// Sends it and returns the UID of the object.
    async fn send<T: Object + DeserializeOwned>(self) -> anyhow::Result<String> {
        let Self { writer, kind, act, key, body } = self;
        let patch = async |sub| {
            if kind.is_custom() {
                writer.merge_patch::<T>(key, sub, body).await
            } else {
                writer.strategic_patch::<T>(key, sub, body).await
            }
        };
        let answer = match act {
            Act::Create => writer.create::<T>(kind.namespace(), body).await,
            Act::Main => patch(Sub::Main).await,
            Act::Status => patch(Sub::Status).await,
        };
        let object =
            answer.with_context(|| format!("the bare loop cannot write {kind:?} `{key}` ({act:?})"))?;
        Ok(object.uid().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::audit::{Actor, Write};

    fn write(resource: &str, verb: &str, code: u16) -> Write {
        let (resource, verb) = (resource.into(), verb.into());
        Write { actor: Actor::Operator, resource, verb, code, account: "system:serviceaccount:a:b".into() }
    }

    /// What the loop will do, as rows of counts.
    fn work() -> Work {
        let tally = Tally::from([
            (write("machines", "create", 201), 3),
            (write("machines/status", "patch", 200), 7),
            (write("machines/status", "patch", 409), 2),
            (write("machinesets/status", "patch", 200), 4),
            (write("events", "create", 201), 2),
        ]);
        Work::new(&tally, samples()).unwrap()
    }

    fn samples() -> Samples {
        Samples::new(BTreeMap::from([(Kind::Machine, json!({"metadata": {"name": "bench-x7k2p"}}))])).unwrap()
    }

    #[test]
    fn all_chains_together_do_what_was_counted_but_refused() {
        let work = work();
        assert_eq!(work.chains(), 3);
        for job in &work.jobs {
            let done: u64 = (0..work.chains()).map(|chain| work.share(job, chain)).sum();
            assert_eq!(done, job.count, "{job:?}");
        }
        assert_eq!(work.jobs.iter().map(|job| job.count).sum::<u64>(), 16);
    }

    #[test]
    fn a_create_comes_before_the_patches_of_its_object() {
        let order: Vec<_> = work().jobs.iter().map(|job| (job.kind, job.act)).collect();
        assert_eq!(
            order,
            [
                (Kind::MachineSet, Act::Status),
                (Kind::Machine, Act::Create),
                (Kind::Machine, Act::Status),
                (Kind::Event, Act::Create),
            ]
        );
    }
}
