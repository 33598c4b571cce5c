//! What a process remembers of its questions about one Machine, and how long it leaves a failing cloud alone.
//! Losing it is safe: it only makes questions rarer, one write fewer, or a wait shorter.

use std::time::Duration;

use mapi_api::names::{annotation, condition as types};
use mapi_api::{Conditions, Machine, Object, Timestamp};
use mapi_cloud::{Activity, Answer, CloudError, Failure, Kind, Sighting, Want};

use super::{Facts, may_have_created};
use crate::spread::hash;

/// What a process remembers of its questions about one Machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The cloud failed at the last question.
    pub trouble: Option<Trouble>,
    /// When a create was accepted last.
    pub created: Option<Timestamp>,
    /// What is known of the creates that were asked for.
    pub creates: Creates,
}

/// The cloud failed at the last question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// How often in a row.
    pub failures: u32,
    /// Until when it is left alone.
    pub until: Timestamp,
    /// What was wanted. Another wish is asked for at once.
    pub want: Want,
    /// What was asked about. A Machine that its user changed is asked about at once.
    pub subject: u64,
}

/// What is known of the creates that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Creates {
    /// Nothing: this process did not ask for all of them, or one got no certain answer.
    #[default]
    Unknown,
    /// This process asked for all of them and knows that none made anything: no instance can appear any more.
    Void,
}

/// What a failure leads to. Of each row the delay grows from the first to the last while it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Not asked again until the spec changes.
    GiveUp,
    /// Asked again.
    Retry {
        /// After the first failure.
        first: Duration,
        /// At most.
        most: Duration,
    },
}

/// Five minutes: what an outage of a cloud costs at most after it ended.
const MOST: Duration = Duration::from_secs(300);

/// The one table of kind × activity (design decision 7).
pub(super) fn reaction(kind: Kind, activity: Activity) -> Reaction {
    let retry = |first_s, most| Reaction::Retry { first: Duration::from_secs(first_s), most };
    match (kind, activity) {
        (Kind::Invalid, Activity::Observe | Activity::Create) => Reaction::GiveUp,
        // Somebody must mend the spec, the credentials or the quota: a minute is quick for people. A change that is
        // refused ends no instance that lives.
        (Kind::Invalid, Activity::Update | Activity::Delete) | (Kind::Denied | Kind::Exhausted, _) => {
            retry(60, MOST)
        }
        // Clouds refill their buckets within seconds; all machines of an account wait together.
        (Kind::Throttled, _) => retry(10, MOST),
        // Something else works on the object, as a rule for seconds up to a minute.
        (Kind::Busy, _) => retry(10, Duration::from_secs(60)),
        // Item 8: from 1 s to 5 min.
        (Kind::Transient, _) => retry(1, MOST),
    }
}

/// How long to wait after `earlier` failures in a row and this one. What the cloud asked for wins, unless it asked for
/// nothing: a zero means "later, rate limited".
pub(super) fn delay(failure: &Failure, earlier: u32) -> Duration {
    let CloudError { kind, retry_after, .. } = &failure.error;
    if let Some(asked) = retry_after.filter(|asked| !asked.is_zero()) {
        return asked;
    }
    match reaction(*kind, failure.activity) {
        Reaction::GiveUp => MOST,
        Reaction::Retry { first, most } => first.saturating_mul(2u32.saturating_pow(earlier)).min(most),
    }
}

impl Memory {
    /// What to remember from the moment a question is asked until its answer was written down.
    pub fn asking(&self, want: Want) -> Self {
        match want {
            Want::Present => Self { creates: Creates::Unknown, ..self.clone() },
            Want::Look | Want::Absent => self.clone(),
        }
    }

    /// What to remember after the plan for an answer was carried out. `facts` are from before the question, which took
    /// until `answered`.
    pub fn after(facts: &Facts, want: Want, answer: &Answer, answered: Timestamp) -> Self {
        let earlier = facts.memory;
        let trouble = answer.failure.as_ref().filter(|failure| is_held(failure, want)).map(|failure| {
            let failures = earlier.failures(want);
            let until = later(answered, delay(failure, failures));
            Trouble { failures: failures.saturating_add(1), until, want, subject: subject(facts.machine) }
        });
        let created = if answer.has_created() { Some(answered) } else { earlier.created };
        Self {
            trouble,
            created: created.filter(|_| is_unseen(facts.machine)),
            creates: creates_after(facts, want, answer),
        }
    }

    /// What to remember when the plan for an answer could not be carried out: another process may have been at work.
    pub fn doubted(self) -> Self {
        Self { creates: Creates::Unknown, ..self }
    }

    /// What to remember when something changed at the cloud: it is asked at once, but a further failure still counts.
    pub fn relent(&mut self, now: Timestamp) {
        if let Some(trouble) = &mut self.trouble {
            trouble.until = trouble.until.min(now);
        }
    }

    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Failures in a row of what is wanted.
    pub(super) fn failures(&self, want: Want) -> u32 {
        self.trouble.as_ref().filter(|t| t.want == want).map_or(0, |t| t.failures)
    }

    /// How long the cloud is still left alone about this question.
    pub(super) fn wait(&self, facts: &Facts, want: Want) -> Option<Duration> {
        let trouble =
            self.trouble.as_ref().filter(|t| t.want == want && t.subject == subject(facts.machine))?;
        until(facts.now, trouble.until)
    }
}

/// A question made nothing if its answer says so for certain. A Machine that was never looked at has none to account
/// for.
fn creates_after(facts: &Facts, want: Want, answer: &Answer) -> Creates {
    let made_nothing = answer.failure.as_ref().is_none_or(|f| !f.error.is_uncertain)
        && !answer.has_created()
        && !matches!(answer.sighting, Sighting::Present(_));
    match (want, facts.memory.creates) {
        (Want::Look, _) if !may_have_created(facts.machine) => Creates::Void,
        (Want::Present, Creates::Void) if made_nothing => Creates::Void,
        (Want::Present, _) => Creates::Unknown,
        (Want::Look | Want::Absent, before) => before,
    }
}

/// Reading a bad spec again costs nothing, so a live Machine that waits for a better one is not held back. A removal has
/// to go on: it is tried again now and then.
fn is_held(failure: &Failure, want: Want) -> bool {
    match reaction(failure.error.kind, failure.activity) {
        Reaction::GiveUp => want == Want::Absent,
        Reaction::Retry { first: _, most: _ } => true,
    }
}

fn is_unseen(machine: &Machine) -> bool {
    !machine.is_deleting() && !machine.status.conditions.is_true(types::INSTANCE_EXISTS)
}

/// What a cloud is asked about, as one number: the user's part of the Machine, without what answers change.
fn subject(machine: &Machine) -> u64 {
    let mut text = machine.metadata.generation.unwrap_or_default().to_string();
    for (key, value) in machine.metadata.annotations.iter().flatten() {
        if key != annotation::INSTANCE_STATE {
            text.extend(["\0", key, "\0", value]);
        }
    }
    hash(text.as_bytes())
}

/// The time from `now` to `then`, if it is still to come.
pub(super) fn until(now: Timestamp, then: Timestamp) -> Option<Duration> {
    Duration::try_from(then.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// The time since `then`; zero if it is still to come.
pub(super) fn since(now: Timestamp, then: Timestamp) -> Duration {
    until(then, now).unwrap_or_default()
}

/// `time` and a delay.
pub(super) fn later(time: Timestamp, delay: Duration) -> Timestamp {
    time.checked_add(delay).unwrap_or(Timestamp::MAX)
}
