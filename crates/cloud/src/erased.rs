//! What the machine controller uses: any cloud, with its types erased and the loop around `plan` written once.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use mapi_api::{Key, RawJson};

use crate::provider::{Goal, Next, Provider, ProviderKind, ProviderSpec};
use crate::{Activity, Answer, Capacity, CloudError, Failure, Findings, Identity, Kind, Sighting, Want};

/// Writes that one question may take. Creating the richest instance takes about ten; the rest is left to the next round.
const MAX_STEPS: usize = 16;

/// Any cloud.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Name as in `--platforms`.
    fn name(&self) -> &'static str;
    /// Kinds of provider specs that it serves.
    fn kinds(&self) -> &'static [ProviderKind];
    /// How long an accepted or unanswered create may stay unseen.
    fn settle(&self) -> Duration;
    /// The same for one machine; that of the cloud if its spec is missing or cannot be used.
    fn settle_of(&self, _spec: Option<&RawJson>) -> Duration {
        self.settle()
    }
    /// Complaints about a provider spec: those of decoding, else those of checking.
    fn check(&self, spec: &RawJson) -> Findings;
    /// Asks for a machine. `spec` may be missing or undecodable only with [`Want::Absent`].
    async fn ask(&self, who: &Identity, spec: Option<&RawJson>, want: Want) -> Answer;
    /// Size of one machine, for scaling from zero.
    async fn capacity(&self, spec: &RawJson) -> Result<Option<Capacity>, CloudError>;
    /// Keys of Machines of which something changed at the cloud.
    fn changes(&self) -> BoxStream<'static, Key>;
}

/// A provider as a cloud.
pub struct Erased<P>(pub P);

fn decode<S: ProviderSpec>(raw: &RawJson) -> Result<S, Findings> {
    let (mut spec, _) = S::decode(raw)?;
    spec.fill();
    let findings = spec.check();
    if findings.has_error() { Err(findings) } else { Ok(spec) }
}

#[async_trait]
impl<P: Provider> Cloud for Erased<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn kinds(&self) -> &'static [ProviderKind] {
        P::KINDS
    }

    fn settle(&self) -> Duration {
        self.0.settle()
    }

    fn settle_of(&self, raw: Option<&RawJson>) -> Duration {
        let spec = raw.and_then(|raw| decode::<P::Spec>(raw).ok());
        spec.map_or_else(|| self.0.settle(), |spec| self.0.settle_of(&spec))
    }

    fn check(&self, raw: &RawJson) -> Findings {
        match P::Spec::decode(raw) {
            Err(findings) => findings,
            Ok((mut spec, mut findings)) => {
                spec.fill();
                findings.0.extend(spec.check().0);
                findings
            }
        }
    }

    async fn ask(&self, who: &Identity, raw: Option<&RawJson>, want: Want) -> Answer {
        let spec = match raw.map(decode::<P::Spec>) {
            Some(Ok(spec)) => Some(spec),
            Some(Err(findings)) if want != Want::Absent => return refuse(findings.errors()),
            None if want != Want::Absent => return refuse("providerSpec.value is missing".into()),
            Some(Err(_)) | None => None,
        };
        let goal = match (&spec, want) {
            (Some(spec), Want::Look) => Goal::Look(spec),
            (Some(spec), Want::Present) => Goal::Present(spec),
            _ => Goal::Absent,
        };
        self.pursue(who, spec.as_ref(), &goal, want).await
    }

    async fn capacity(&self, raw: &RawJson) -> Result<Option<Capacity>, CloudError> {
        let spec = decode::<P::Spec>(raw)
            .map_err(|findings| CloudError::new(Kind::Invalid, "read provider spec", findings.errors()))?;
        self.0.capacity(&spec).await
    }

    fn changes(&self) -> BoxStream<'static, Key> {
        self.0.changes()
    }
}

impl<P: Provider> Erased<P> {
    async fn pursue(
        &self,
        who: &Identity,
        spec: Option<&P::Spec>,
        goal: &Goal<'_, P::Spec>,
        want: Want,
    ) -> Answer {
        let mut answer = Answer {
            sighting: Sighting::Unknown,
            taken: vec![],
            failure: None,
            gate: None,
            provider_status: None,
        };
        let fail = |mut answer: Answer, sight: Option<&P::Sight>, activity, error: CloudError| {
            answer.provider_status = P::status(who, sight, Some((activity, &error)));
            answer.failure = Some(Failure { activity, error });
            answer
        };
        let mut sight = match self.0.observe(who, want).await {
            Ok(sight) => sight,
            Err(error) => return fail(answer, None, Activity::Observe, error),
        };
        answer.sighting = P::report(who, spec, &sight);
        while answer.taken.len() < MAX_STEPS {
            let (activity, step) = match P::plan(who, goal, &sight) {
                Next::Done => break,
                Next::Take(activity, step) => (activity, step),
                Next::Wait(gate) => {
                    answer.gate = Some(gate);
                    break;
                }
                Next::Refuse(error) => return fail(answer, Some(&sight), Activity::Create, error),
            };
            match self.0.act(who, step, sight.clone()).await {
                Ok(after) => sight = after,
                Err(error) => return fail(answer, Some(&sight), activity, error),
            }
            answer.taken.push(activity);
            answer.sighting = P::report(who, spec, &sight);
        }
        answer.provider_status = P::status(who, Some(&sight), None);
        answer
    }
}

fn refuse(message: String) -> Answer {
    let error = CloudError::new(Kind::Invalid, "read provider spec", message);
    Answer {
        sighting: Sighting::Unknown,
        taken: vec![],
        failure: Some(Failure { activity: Activity::Create, error }),
        gate: None,
        provider_status: None,
    }
}
