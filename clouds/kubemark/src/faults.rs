//! Faults of calls: which are asked for, which are on, and what a refused call is told.
//!
//! Never here: faults of instances and Nodes, which are the far side's. Reading faults is pure; [`Throttle`] is the one
//! piece of memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mapi_api::duration::Span;
use mapi_api::fault::{ErrorClass, Fault, FaultArgs, FaultKind, StuckState};
use mapi_api::meta::micro;
use mapi_api::{SimulatedInstance, Timestamp, names};
use mapi_cloud::{Findings, Identity};
use serde_json::json;

use crate::check;
use crate::error::{self, Injected};
use crate::reader::Fields;

/// Reads a list of faults.
pub fn read(fields: &mut Fields<'_>, key: &str) -> Vec<Fault> {
    fields.each(key, read_one).unwrap_or_default()
}

fn read_one(fields: &mut Fields<'_>) -> Option<Fault> {
    let kinds = FaultKind::ALL.map(|kind| (kind.name(), kind));
    let kind = fields.word("kind", &kinds);
    let after = fields.span("after");
    let duration = fields.span("duration");
    let count = fields.small_count("count");
    let args = fields.within("args", |fields| {
        let classes = ErrorClass::ALL.map(|class| (class.name(), class));
        let states = [("Pending", StuckState::Pending), ("Starting", StuckState::Starting)];
        FaultArgs {
            class: fields.word("class", &classes),
            state: fields.word("state", &states),
            reason: fields.text("reason"),
            message: fields.text("message"),
            ready: fields.span("ready"),
            not_ready: fields.span("notReady"),
            re_register: fields.flag("reRegister"),
            rps: fields.small_count("rps"),
            burst: fields.small_count("burst"),
            retry_after: fields.span("retryAfter"),
            cpu: fields.small_count("cpu"),
            instances: fields.small_count("instances"),
            per_zone: fields.small_count("perZone"),
            zone: fields.text("zone"),
        }
    });
    Some(Fault { kind: kind?, after, duration, count, args: args.unwrap_or_default(), since: None })
}

/// The faults of the Machine's annotation, or what is wrong with it. One bad entry makes all of them bad: half of a
/// rehearsal is not what was asked for.
pub fn of_annotation(who: &Identity) -> Result<Vec<Fault>, Findings> {
    let Some(text) = who.annotations.get(names::annotation::FAULTS).filter(|text| !text.trim().is_empty())
    else {
        return Ok(vec![]);
    };
    let mut findings = Findings::default();
    let list = match serde_json::from_str(text) {
        Ok(list @ serde_json::Value::Array(_)) => list,
        Ok(_) | Err(_) => {
            let allowed = r#"must be a JSON list such as [{"kind":"NodeUnknown"}]"#;
            return Err(mapi_cloud::Finding::error("faults", text, allowed).into());
        }
    };
    let mut fields = Fields::of("", json!({ "faults": list }), &mut findings);
    let faults = read(&mut fields, "faults");
    fields.finish();
    for (n, fault) in faults.iter().enumerate() {
        findings.0.extend(check::fault(&format!("faults[{n}]"), fault).0);
    }
    if findings.has_error() { Err(findings) } else { Ok(faults) }
}

/// All faults that are asked for: those of the annotation, and those of the provider spec of which the annotation does not name the
/// kind. An annotation that cannot be read is as none; the provider status says so.
pub fn wanted(spec: &[Fault], who: &Identity) -> Vec<Fault> {
    let live = of_annotation(who).unwrap_or_default();
    let stays = |fault: &&Fault| live.iter().all(|other| other.kind != fault.kind);
    spec.iter().filter(stays).cloned().chain(live.iter().cloned()).collect()
}

/// The faults that `live` wants, each with the time since when the instance has it if it has it already. `now` marks
/// the new ones.
pub fn merged(present: &[Fault], wanted: Vec<Fault>, now: Timestamp) -> Vec<Fault> {
    let new = |fault: Fault| Fault { since: Some(micro(now)), ..fault };
    let known = |fault: &Fault| present.iter().find(|old| old.same_wish(fault)).cloned();
    wanted.into_iter().map(|fault| known(&fault).unwrap_or_else(|| new(fault))).collect()
}

/// The faults that may hit a call when no provider spec is at hand: those of the annotation, and those that the instance was
/// created with unless the annotation names their kind. So an outage from the provider spec is ended for a live machine
/// by an annotation such as `[{"kind":"ApiOutage","duration":"0s"}]`.
pub fn of_calls(who: &Identity, instance: Option<&SimulatedInstance>) -> Vec<Fault> {
    let present = instance.map_or(&[][..], |instance| &instance.spec.faults);
    let first: Vec<Fault> = present.iter().filter(|fault| fault.since.is_none()).cloned().collect();
    let since = |fault: Fault| present.iter().find(|old| old.same_wish(&fault)).cloned().unwrap_or(fault);
    wanted(&first, who).into_iter().map(since).collect()
}

/// The fault of a kind that is on, counted from the creation of the Machine.
pub fn find<'a>(faults: &'a [Fault], kind: FaultKind, who: &Identity) -> Option<&'a Fault> {
    let start = who.created.unwrap_or(who.now);
    faults.iter().find(|fault| fault.kind == kind && fault.is_on(start, who.now))
}

/// The error that a create is met with before anything is made, if any.
pub fn on_create(
    instance: &SimulatedInstance,
    who: &Identity,
    failures: u32,
) -> Result<(), mapi_cloud::CloudError> {
    let faults = &instance.spec.faults;
    if let Some(fault) = find(faults, FaultKind::CreateError, who)
        && fault.count.is_none_or(|count| failures < count)
    {
        let class = fault.args.class.unwrap_or(ErrorClass::Internal);
        let injected = Injected { kind: fault.kind, is_counted: fault.count.is_some() };
        return Err(error::of_class(class, fault.args.retry_after, injected));
    }
    let outage = find(faults, FaultKind::ZoneOutage, who);
    if outage.is_some_and(|fault| fault.is_for_zone(&instance.spec.zone)) {
        return Err(error::zone_is_out(&instance.spec.zone));
    }
    Ok(())
}

/// Calls that were let through and refused, for all machines that carry the same limit.
///
/// Kept in the memory of the process: a limit of calls a second is about one caller. A restarted process begins with a
/// full bucket, as a client with a new connection does.
#[derive(Debug, Default)]
pub struct Throttle {
    buckets: Mutex<HashMap<(u32, u32), Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    /// When the bucket is as full again as if nobody had ever called.
    full_at: Timestamp,
    /// When a caller who was refused may come, so that nobody is refused twice.
    promised: HashMap<String, Timestamp>,
}

/// A promise that was not taken up is forgotten after five minutes, the longest back-off of a caller in good health.
const PROMISE_KEPT: Duration = Duration::from_secs(300);

impl Throttle {
    /// Lets a call through, or tells how long to wait.
    pub fn call(&self, fault: &Fault, who: &Identity) -> Result<(), Duration> {
        let rps = fault.args.rps.unwrap_or(1).max(1);
        let burst = fault.args.burst.unwrap_or(1).max(1);
        let step = Span(Duration::from_secs(1) / rps);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets
            .entry((rps, burst))
            .or_insert_with(|| Bucket { full_at: who.now, promised: HashMap::new() });
        bucket.promised.retain(|_, at| Span(PROMISE_KEPT).after(*at) > who.now);
        if bucket.promised.get(&who.uid).is_some_and(|at| *at <= who.now) {
            bucket.promised.remove(&who.uid);
            return Ok(());
        }
        let due = bucket.promised.get(&who.uid).copied();
        let due = due.unwrap_or_else(|| {
            bucket.full_at = step.after(bucket.full_at.max(who.now));
            // The bucket holds `burst` calls, so a call is due that many steps before the bucket would be full.
            back(bucket.full_at, step.0 * burst)
        });
        if due <= who.now {
            return Ok(());
        }
        bucket.promised.insert(who.uid.clone(), due);
        let wait = due.duration_since(who.now).unsigned_abs();
        Err(wait.max(fault.args.retry_after.unwrap_or_default().0))
    }
}

fn back(at: Timestamp, by: Duration) -> Timestamp {
    let by = jiff::SignedDuration::try_from(by).unwrap_or(jiff::SignedDuration::MAX);
    at.checked_sub(by).unwrap_or(Timestamp::MIN)
}
