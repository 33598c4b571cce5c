//! What an author of a cloud writes.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use mapi_api::{Key, RawJson};
use serde::de::DeserializeOwned;

use crate::{Activity, Capacity, CloudError, Findings, Gate, Identity, Sighting, Want};

/// A kind of provider spec, by API group and kind; any version of the group is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderKind {
    /// API group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
}

/// A cloud's provider spec. What admission says about it is said by this code too.
pub trait ProviderSpec: Sized + Send + Sync + Clone + 'static {
    /// Decodes any accepted version. Unknown fields are warnings.
    fn decode(raw: &RawJson) -> Result<(Self, Findings), Findings>;
    /// Fills what the user left open.
    fn fill(&mut self);
    /// Complaints about a filled spec.
    fn check(&self) -> Findings;
}

/// What is wanted, with the spec at hand where it is needed.
#[derive(Debug)]
pub enum Goal<'a, S> {
    /// A live instance in line with its spec; none is created.
    Look(&'a S),
    /// A live instance, created if there is none.
    Present(&'a S),
    /// Nothing left.
    Absent,
}

/// What to do next about one machine.
#[derive(Debug)]
pub enum Next<S> {
    /// Nothing.
    Done,
    /// One write.
    Take(Activity, S),
    /// Wait.
    Wait(Gate),
    /// Give up on this spec.
    Refuse(CloudError),
}

/// One cloud. Everything that takes time or can fail is in `observe` and `act`; the rest is pure.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// The provider spec.
    type Spec: ProviderSpec + DeserializeOwned;
    /// Everything that the cloud said about one machine.
    type Sight: Send + Sync + Clone + Debug;
    /// One write.
    type Step: Send + Debug;

    /// Name as in `--platforms` and in lease names.
    const NAME: &'static str;
    /// Kinds of provider specs that this cloud serves.
    const KINDS: &'static [ProviderKind];

    /// How long an accepted or unanswered create may stay unseen.
    fn settle(&self) -> Duration;

    /// The same for one spec, where it depends on it. Never more than [`Provider::settle`].
    fn settle_of(&self, _: &Self::Spec) -> Duration {
        self.settle()
    }

    /// Looks at everything that was or may have been made for a machine. With [`Want::Absent`], or when an instance is
    /// recorded, an absence must be read from the cloud, not from a cache.
    async fn observe(&self, who: &Identity, want: Want) -> Result<Self::Sight, CloudError>;

    /// The next write, from what was seen.
    fn plan(who: &Identity, goal: &Goal<'_, Self::Spec>, sight: &Self::Sight) -> Next<Self::Step>;

    /// Does one idempotent write and tells what is known after it.
    async fn act(
        &self,
        who: &Identity,
        step: Self::Step,
        before: Self::Sight,
    ) -> Result<Self::Sight, CloudError>;

    /// The sighting in the words of the Machine API.
    fn report(who: &Identity, spec: Option<&Self::Spec>, sight: &Self::Sight) -> Sighting;

    /// The provider status after a question, from the recorded one. `None` leaves it.
    fn status(
        who: &Identity,
        sight: Option<&Self::Sight>,
        failed: Option<(Activity, &CloudError)>,
    ) -> Option<RawJson>;

    /// Size of one machine, for scaling from zero. `None` if the cloud does not tell.
    async fn capacity(&self, spec: &Self::Spec) -> Result<Option<Capacity>, CloudError>;

    /// Keys of Machines of which something changed at the cloud, for clouds that announce it.
    fn changes(&self) -> BoxStream<'static, Key>;
}
