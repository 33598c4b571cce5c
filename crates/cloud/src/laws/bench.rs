//! What a cloud brings to its examination: a provider before a double of its cloud, on virtual time, and a ledger that tells
//! the truth.

use std::time::Duration;

use mapi_api::{RawJson, Timestamp};

use crate::Provider;

/// A provider before a double of its cloud.
pub trait Bench: Send + Sync + 'static {
    /// The provider.
    type Provider: Provider;

    /// A provider as a process makes it when it starts. Two of them share nothing but the cloud.
    fn provider(&self) -> Self::Provider;

    /// A provider spec that the cloud accepts.
    fn spec(&self) -> RawJson;

    /// The time.
    fn now(&self) -> Timestamp;

    /// Lets time pass, and the cloud work.
    fn pass(&self, time: Duration);

    /// Lets the cloud misbehave from now on. False: this cloud cannot do that.
    fn begin(&self, trouble: Trouble) -> bool;

    /// Lets the cloud behave again.
    fn calm(&self);

    /// Somebody else does something to the instances of a Machine.
    fn meddle(&self, uid: &str, meddling: Meddling);

    /// From the ledger: live instances of a Machine at this moment.
    fn live(&self, uid: &str) -> usize;

    /// From the ledger: instances ever made for a Machine.
    fn made(&self, uid: &str) -> usize;

    /// From the ledger: writes of the provider that took effect, of all kinds.
    fn writes(&self) -> usize;

    /// From the ledger: everything that exists for a Machine at this moment.
    fn left(&self, uid: &str) -> Vec<String>;
}

/// How a cloud misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Lists and searches show things this late.
    ListsLag(Duration),
    /// The provider's cache stands still, for longer than anything was promised to take.
    CacheStands,
    /// Reads by identity show things this late.
    ReadsLag(Duration),
    /// The next so many creates take effect, and the answer is lost.
    CreateAnswersLost(usize),
    /// The next so many creates take effect, and the answer is an error.
    CreatesFailAfterSuccess(usize),
    /// The next so many creates fail before they take effect.
    CreatesFail(usize),
    /// The next so many removals take effect, and the answer is lost.
    RemoveAnswersLost(usize),
    /// Creates and removals do the first half of their work only, and the rest much later.
    HalfSucceeds,
    /// Calls above one a second are refused.
    Throttles,
    /// No call is answered or takes effect.
    Out,
}

impl Trouble {
    /// Every trouble, with lags that stay within what the cloud promises.
    pub fn all(settle: Duration) -> Vec<Self> {
        let lag = settle.saturating_sub(Duration::from_secs(1));
        vec![
            Self::ListsLag(lag),
            Self::CacheStands,
            Self::ReadsLag(lag),
            Self::CreateAnswersLost(1),
            Self::CreateAnswersLost(3),
            Self::CreatesFailAfterSuccess(2),
            Self::CreatesFail(2),
            Self::RemoveAnswersLost(2),
            Self::HalfSucceeds,
            Self::Throttles,
            Self::Out,
        ]
    }
}

/// What somebody else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meddling {
    /// Terminates the instance.
    Terminate,
    /// Stops it.
    Stop,
}
