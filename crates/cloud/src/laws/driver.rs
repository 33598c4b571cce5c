//! Asks a cloud as the machine controller does: records what it is told, waits where it is told to wait, and believes an
//! absence only when it may.

use std::collections::BTreeMap;
use std::time::Duration;

use mapi_api::{Key, RawJson, Timestamp};

use super::Bench;
use crate::{Answer, Cloud, Erased, Identity, Sighting, Want};

/// One Machine and its controller.
pub struct Driver<'a, B: Bench> {
    /// The world.
    pub bench: &'a B,
    /// Who asks.
    pub who: Identity,
    spec: Option<RawJson>,
    cloud: Erased<B::Provider>,
    asked_to_create: Option<Timestamp>,
}

/// The step of virtual time between rounds.
const ROUND: Duration = Duration::from_secs(1);

/// Ten minutes: whatever a double delays has come to an end by then.
const PATIENCE: usize = 600;

impl<'a, B: Bench> Driver<'a, B> {
    /// A Machine of this name, with the world's provider spec.
    pub fn new(bench: &'a B, name: &str) -> Self {
        let who = Identity {
            key: Key::new("examination", name),
            uid: format!("uid-of-{name}"),
            cluster: "examination".into(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            provider_id: None,
            provider_status: None,
            created: Some(bench.now()),
            deleted: None,
            now: bench.now(),
        };
        Self { bench, who, spec: Some(bench.spec()), cloud: Erased(bench.provider()), asked_to_create: None }
    }

    /// The same Machine, whose spec cannot be used any more.
    pub fn without_spec(&mut self) {
        self.spec = Some(RawJson::from(serde_json::json!([])));
    }

    /// How long an accepted or unanswered create may stay unseen.
    pub fn settle(&self) -> Duration {
        self.cloud.settle_of(self.spec.as_ref())
    }

    /// The process dies and another one takes over; what was not recorded is forgotten.
    pub fn restart(&mut self) {
        self.cloud = Erased(self.bench.provider());
    }

    /// What was recorded is lost, as when the write after a create fails.
    pub fn forget(&mut self) {
        self.who.provider_id = None;
        self.who.provider_status = None;
    }

    /// Marks the Machine for deletion.
    pub fn delete(&mut self) {
        self.who.deleted = Some(self.bench.now());
    }

    /// Asks once and records the answer.
    pub async fn ask(&mut self, want: Want) -> Answer {
        self.who.now = self.bench.now();
        if want == Want::Present {
            self.asked_to_create = Some(self.who.now);
        }
        let answer = self.cloud.ask(&self.who, self.spec.as_ref(), want).await;
        if let Sighting::Present(instance) = &answer.sighting
            && instance.provider_id.is_some()
        {
            self.who.provider_id.clone_from(&instance.provider_id);
        }
        if answer.provider_status.is_some() {
            self.who.provider_status.clone_from(&answer.provider_status);
        }
        answer
    }

    /// Lets time pass as the answer asks.
    pub fn wait(&self, answer: &Answer) {
        let asked = answer.failure.as_ref().and_then(|failure| failure.error.retry_after).unwrap_or_default();
        self.bench.pass(asked.max(ROUND));
    }

    /// Asks until there is an instance with an identity. `check` sees every answer.
    pub async fn create(
        &mut self,
        mut check: impl FnMut(&B, &Answer) -> Result<(), String>,
    ) -> Result<(), String> {
        for _ in 0..PATIENCE {
            let want = if self.who.is_recorded() { Want::Look } else { Want::Present };
            let answer = self.ask(want).await;
            check(self.bench, &answer)?;
            if self.who.is_recorded()
                && matches!(answer.sighting, Sighting::Present(_))
                && answer.failure.is_none()
            {
                return Ok(());
            }
            self.wait(&answer);
        }
        Err("there was no instance after ten minutes".into())
    }

    /// Asks until the finalizer may go. `check` sees every answer.
    pub async fn remove(
        &mut self,
        mut check: impl FnMut(&B, &Answer) -> Result<(), String>,
    ) -> Result<(), String> {
        for _ in 0..PATIENCE {
            let answer = self.ask(Want::Absent).await;
            check(self.bench, &answer)?;
            if self.is_gone(&answer) {
                return Ok(());
            }
            self.wait(&answer);
        }
        Err("the instance was not gone after ten minutes".into())
    }

    /// Whether the finalizer may go: the absence was told without a complaint, and no create can still appear.
    pub fn is_gone(&self, answer: &Answer) -> bool {
        let is_settled = self
            .asked_to_create
            .is_none_or(|at| self.who.now.duration_since(at).unsigned_abs() > self.settle());
        answer.sighting == Sighting::Absent && answer.failure.is_none() && answer.gate.is_none() && is_settled
    }
}
