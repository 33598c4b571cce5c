//! The health of all targets together. Never here: what is done about it.

use std::time::Duration;

use mapi_api::Object;

use super::verdict::{Cause, Verdict, examine};
use super::{Facts, Target};
use crate::migration;

/// The health of all targets of one pass, in the order of the facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    verdicts: Vec<Verdict>,
    pub(super) total: usize,
    pub(super) healthy_count: usize,
    /// The limit, which may be negative.
    pub(super) limit: i64,
    /// When the first target that is not sick yet may be.
    pub(super) next: Option<Duration>,
}

pub(super) fn assess(facts: &Facts<'_>) -> Assessment {
    let look = |target: &Target<'_>| examine(facts.settings, target, facts.now);
    let verdicts: Vec<Verdict> = facts.targets.iter().map(look).collect();
    let waits = verdicts.iter().zip(facts.targets).filter(|(_, target)| !target.machine.is_deleting());
    let next = waits.filter_map(|(verdict, _)| match verdict {
        Verdict::Pending(left) => Some(*left),
        Verdict::Healthy | Verdict::Sick(_) | Verdict::Undecided => None,
    });
    let next = next.min();
    let total = verdicts.len();
    let healthy_count = verdicts.iter().filter(|v| **v == Verdict::Healthy).count();
    Assessment { total, healthy_count, limit: facts.settings.limit.of(total), next, verdicts }
}

impl Assessment {
    /// Starting, deleting and silent Machines count: they all are capacity that is not there (I11).
    pub(super) fn unhealthy(&self) -> usize {
        self.total - self.healthy_count
    }

    /// Whether nothing may be repaired. With nothing unhealthy it may, even under a limit below zero.
    pub(super) fn is_restricted(&self) -> bool {
        let unhealthy = i64::try_from(self.unhealthy()).unwrap_or(i64::MAX);
        unhealthy > self.limit.max(0)
    }

    /// How many more may become unhealthy.
    pub(super) fn remediations_allowed(&self) -> i32 {
        let unhealthy = i64::try_from(self.unhealthy()).unwrap_or(i64::MAX);
        i32::try_from(self.limit.saturating_sub(unhealthy).max(0)).unwrap_or(i32::MAX)
    }

    /// The numbers as messages tell them.
    pub(super) fn counts(&self, facts: &Facts<'_>) -> String {
        let (total, unhealthy, limit) = (self.total, self.unhealthy(), &facts.settings.limit_text);
        format!("total: {total}, unhealthy: {unhealthy}, maxUnhealthy: {limit}")
    }

    pub(super) fn healthy<'f>(&'f self, facts: &'f Facts<'_>) -> impl Iterator<Item = &'f Target<'f>> {
        self.zip(facts).filter(|(_, verdict)| **verdict == Verdict::Healthy).map(|(target, _)| target)
    }

    /// Targets that may become sick by the passing of time. One that is being deleted is no news to anybody.
    pub(super) fn pending<'f>(&'f self, facts: &'f Facts<'_>) -> impl Iterator<Item = &'f Target<'f>> {
        let pending = self.zip(facts).filter(|(_, verdict)| matches!(verdict, Verdict::Pending(_)));
        pending.map(|(target, _)| target).filter(|target| !target.machine.is_deleting())
    }

    pub(super) fn sick<'f>(
        &'f self,
        facts: &'f Facts<'_>,
    ) -> impl Iterator<Item = (&'f Target<'f>, &'f Cause)> {
        self.zip(facts).filter_map(|(target, verdict)| match verdict {
            Verdict::Sick(cause) => Some((target, cause)),
            Verdict::Healthy | Verdict::Pending(_) | Verdict::Undecided => None,
        })
    }

    /// Sick targets that may be touched: not being deleted, as fresh as our own writes, and ours to touch.
    pub(super) fn repairs<'f>(
        &'f self,
        facts: &'f Facts<'_>,
    ) -> impl Iterator<Item = (&'f Target<'f>, &'f Cause)> {
        self.sick(facts).filter(|(target, _)| {
            target.is_fresh && !target.machine.is_deleting() && !is_left_alone(facts, target)
        })
    }

    /// Sick targets that may be touched once the cache shows our last write to them.
    pub(super) fn waiting<'f>(&'f self, facts: &'f Facts<'_>) -> impl Iterator<Item = &'f Target<'f>> {
        let sick = self.sick(facts).map(|(target, _)| target);
        sick.filter(|target| !target.is_fresh && !target.machine.is_deleting())
    }

    fn zip<'f>(&'f self, facts: &'f Facts<'_>) -> impl Iterator<Item = (&'f Target<'f>, &'f Verdict)> {
        facts.targets.iter().zip(&self.verdicts)
    }
}

/// Whether Cluster API owns the Machine, or is about to.
pub(super) fn is_left_alone(facts: &Facts<'_>, target: &Target<'_>) -> bool {
    let status = &target.machine.status;
    migration::is_left_alone(facts.is_migration_on, status.authoritative_api.as_deref(), &status.conditions)
}
