//! Whether a set's spec can be acted upon, and how far. An error of the spec is a condition, never a retry.

use std::fmt;

use mapi_api::names::reason;
use mapi_api::{MachineSet, Object, Selector};

use super::{Facts, Template, template};

/// Longest selector text that the status can hold. Source: the schema of `status.labelSelector`.
const SELECTOR_TEXT_MAX: usize = 4096;

/// What is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Reason of the condition.
    pub reason: &'static str,
    /// Path, value, what is allowed.
    pub message: String,
}

impl Problem {
    pub fn new(reason: &'static str, path: &str, what: impl fmt::Display) -> Self {
        Self { reason, message: format!("{path}: {what}") }
    }
}

/// What each part of a spec allows.
#[derive(Debug)]
pub(super) struct Validity {
    /// Who belongs to the set. Without it nothing is done to any Machine.
    pub selector: Result<Selector, Problem>,
    /// How many Machines there shall be. Without it the number is left alone.
    pub replicas: Result<usize, Problem>,
    /// Whether new Machines would work. Without it none are made; removing goes on.
    pub template: Result<(), Problem>,
    /// Nobody here serves the template's kind. Another process may: Machines are made all the same.
    pub unserved: Option<Problem>,
}

impl Validity {
    pub fn of(facts: &Facts<'_>) -> Self {
        let Facts { set, template, .. } = facts;
        Self {
            selector: selector(set),
            replicas: replicas(set),
            template: check_template(template),
            unserved: match template {
                Template::Unknown { kind, served } => Some(unserved(kind, served)),
                Template::Unjudged | Template::Served(_) | Template::Missing | Template::Unreadable(_) => {
                    None
                }
            },
        }
    }

    /// The problem to report: the one that stops most. `late` was found while scaling.
    pub fn first<'a>(&'a self, late: Option<&'a Problem>) -> Option<&'a Problem> {
        let Self { selector, replicas, template, unserved } = self;
        let by_weight = [selector.as_ref().err(), replicas.as_ref().err(), template.as_ref().err(), late];
        by_weight.into_iter().flatten().next().or(unserved.as_ref())
    }
}

fn selector(set: &MachineSet) -> Result<Selector, Problem> {
    const PATH: &str = "spec.selector";
    let invalid = |what: &dyn fmt::Display| Problem::new(reason::INVALID_SELECTOR, PATH, what);
    let selector = set
        .spec
        .selector
        .parse()
        .map_err(|error| Problem { reason: reason::INVALID_SELECTOR, message: format!("{PATH}.{error}") })?;
    if selector.is_empty() {
        return Err(invalid(&"empty selector is not valid for MachineSet."));
    }
    let text = selector.to_string();
    if text.len() > SELECTOR_TEXT_MAX {
        return Err(invalid(&format_args!(
            "its text has {} characters, at most {SELECTOR_TEXT_MAX} are allowed",
            text.len()
        )));
    }
    if let Some(before) = set.status.label_selector.as_deref().filter(|before| *before != text) {
        let what = format_args!(
            "`{text}`: a selector cannot be changed; set it back to `{before}`, or make a new MachineSet"
        );
        return Err(Problem::new(reason::SELECTOR_CHANGED, PATH, what));
    }
    if !selector.matches(&set.spec.template.metadata.labels) {
        let what = format_args!(
            "`selector` does not match template `labels`; labels that match `{text}` are needed"
        );
        return Err(Problem::new(reason::INVALID_SELECTOR, "spec.template.metadata.labels", what));
    }
    Ok(selector)
}

fn replicas(set: &MachineSet) -> Result<usize, Problem> {
    let invalid = |what: &dyn fmt::Display| Problem::new(reason::INVALID_REPLICAS, "spec.replicas", what);
    let allowed = i32::MAX;
    match set.spec.replicas {
        None => Err(invalid(&format_args!(
            "missing, a number from 0 to {allowed} is needed: the Replicas field in Spec for machineset {} is nil, \
             this should not be allowed",
            set.name()
        ))),
        Some(count) => i32::try_from(count)
            .ok()
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| invalid(&format_args!("`{count}`: a number from 0 to {allowed} is needed"))),
    }
}

fn check_template(template: &Template) -> Result<(), Problem> {
    match template {
        Template::Unjudged | Template::Unknown { .. } => Ok(()),
        Template::Served(findings) if !findings.has_error() => Ok(()),
        Template::Served(findings) => {
            Err(Problem::new(reason::INVALID_PROVIDER_SPEC, template::PATH, findings.errors()))
        }
        Template::Missing => Err(Problem::new(
            reason::MISSING_PROVIDER_SPEC,
            template::PATH,
            "missing, an object with `apiVersion` and `kind` of a cloud is needed",
        )),
        Template::Unreadable(error) => Err(Problem::new(
            reason::INVALID_PROVIDER_SPEC,
            "spec.template.spec",
            format_args!("cannot be read as the spec of a Machine: {error}"),
        )),
    }
}

fn unserved(kind: &str, served: &[String]) -> Problem {
    let served = served.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
    let what = format_args!("`{kind}`: no cloud serves this kind here, allowed: {served}");
    Problem::new(reason::UNKNOWN_PROVIDER_KIND, &format!("{}.kind", template::PATH), what)
}
