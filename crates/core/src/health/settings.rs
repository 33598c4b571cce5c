//! What a check asks for, parsed once. A value that cannot be used is a complaint with its path, never an error loop.
//! Never here: what follows from a value.

use std::collections::BTreeMap;
use std::time::Duration;

use mapi_api::duration;
use mapi_api::machine::ObjectReference;
use mapi_api::names::{annotation, reason};
use mapi_api::{Machine, MachineHealthCheck, Object, Selector};
use serde_json::Value;

/// What a check asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Which Machines are checked; empty means all of the namespace.
    selector: Selector,
    /// How many may be unhealthy.
    pub(super) limit: Limit,
    /// `maxUnhealthy` as the user wrote it, for messages.
    pub(super) limit_text: String,
    /// How long a Machine may take to become a Node; `None` turns this off.
    pub(super) startup: Option<Duration>,
    /// States of a Node that are unhealthy when they last.
    pub(super) rules: Vec<Rule>,
    /// Template of the request that is made in place of deleting the Machine.
    pub template: Option<TemplateRef>,
    /// Whether a Machine is annotated for its bare-metal host to be power-cycled, in place of deleting it.
    pub(super) is_bare_metal: bool,
}

/// How many may be unhealthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    All,
    Count(i64),
    Percent(i64),
}

/// One entry of `unhealthyConditions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) type_: String,
    pub(super) status: String,
    pub(super) timeout: Duration,
}

/// Where the template of remediation requests is. Its namespace is that of the check, whatever the reference says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRef {
    /// API group and version.
    pub api_version: String,
    /// Kind, for example `Metal3RemediationTemplate`.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl TemplateRef {
    /// Kind of the requests: the template's without the suffix.
    pub fn request_kind(&self) -> &str {
        self.kind.strip_suffix("Template").filter(|kind| !kind.is_empty()).unwrap_or(&self.kind)
    }

    /// `Kind.group` of the template.
    pub(super) fn group_kind(&self) -> String {
        match self.api_version.split_once('/') {
            Some((group, _)) => format!("{}.{group}", self.kind),
            None => self.kind.clone(),
        }
    }
}

/// Why a check cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Ten minutes, the default of the published type.
const DEFAULT_STARTUP: Duration = Duration::from_secs(600);

const DURATION: &str = "a duration such as 300s, 5m or 1h30m";

impl Settings {
    /// Reads a check, or says everything that is wrong with it.
    pub(super) fn parse(check: &MachineHealthCheck) -> Result<Self, Complaint> {
        let spec = &check.spec;
        let mut wrong = Wrong::default();
        let selector = spec.selector.parse().unwrap_or_else(|error| {
            wrong.add(reason::INVALID_SELECTOR, format!("spec.selector.{error}"));
            Selector::default()
        });
        let limit = Limit::parse(spec.max_unhealthy.as_ref()).unwrap_or_else(|value| {
            wrong.value("spec.maxUnhealthy", &value, "a whole number, or a percentage such as 40%");
            Limit::All
        });
        let startup = match spec.node_startup_timeout.as_deref() {
            None => DEFAULT_STARTUP,
            Some(text) => wrong.duration("spec.nodeStartupTimeout", text, "; 0 turns the check off"),
        };
        let rules = spec.unhealthy_conditions.iter().enumerate().map(|(i, rule)| Rule {
            type_: rule.type_.clone(),
            status: rule.status.clone(),
            timeout: wrong.duration(&format!("spec.unhealthyConditions[{i}].timeout"), &rule.timeout, ""),
        });
        let rules = rules.collect();
        let template = spec.remediation_template.as_ref().map(|reference| wrong.template(reference));
        let settings = Self {
            selector,
            limit,
            limit_text: spec.max_unhealthy.as_ref().map_or_else(|| "100%".into(), plain),
            startup: (!startup.is_zero()).then_some(startup),
            rules,
            template,
            is_bare_metal: check.annotation(annotation::REMEDIATION_STRATEGY)
                == Some(annotation::STRATEGY_EXTERNAL_BAREMETAL),
        };
        wrong.finish(settings)
    }

    /// Whether a Machine of the check's namespace is checked.
    pub fn covers(&self, machine: &Machine) -> bool {
        matches(&self.selector, machine)
    }
}

/// Whether a check is about a Machine, so that a change of the one is a reason to look at the other. A check with an
/// invalid selector is about none: its own edit is what wakes it.
pub fn concerns(check: &MachineHealthCheck, machine: &Machine) -> bool {
    check.metadata.namespace == machine.metadata.namespace
        && check.spec.selector.parse().is_ok_and(|selector| matches(&selector, machine))
}

fn matches(selector: &Selector, machine: &Machine) -> bool {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    selector.matches(machine.metadata.labels.as_ref().unwrap_or(&NONE))
}

impl Limit {
    fn parse(value: Option<&Value>) -> Result<Self, String> {
        match value {
            None | Some(Value::Null) => Ok(Self::All),
            Some(Value::Number(number)) => number.as_i64().map(Self::Count).ok_or_else(|| number.to_string()),
            Some(Value::String(text)) => match text.strip_suffix('%') {
                Some(percent) => percent.parse().map(Self::Percent).map_err(|_| text.clone()),
                None => text.parse().map(Self::Count).map_err(|_| text.clone()),
            },
            Some(other) => Err(other.to_string()),
        }
    }

    /// The limit for a number of targets. Percentages round down; a negative limit stays negative.
    pub(super) fn of(self, total: usize) -> i64 {
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        match self {
            Self::All => total,
            Self::Count(count) => count,
            Self::Percent(percent) => percent.saturating_mul(total).div_euclid(100),
        }
    }
}

/// Collects complaints, so that a user sees all of them at once.
#[derive(Default)]
struct Wrong {
    reason: Option<&'static str>,
    messages: Vec<String>,
}

impl Wrong {
    fn add(&mut self, reason: &'static str, message: String) {
        self.reason.get_or_insert(reason);
        self.messages.push(message);
    }

    fn value(&mut self, path: &str, value: &str, allowed: &str) {
        self.add(reason::INVALID_FIELD, format!("{path}: invalid value {value:?}: {allowed}"));
    }

    fn duration(&mut self, path: &str, text: &str, hint: &str) -> Duration {
        duration::parse(text).unwrap_or_else(|_| {
            self.value(path, text, &format!("{DURATION}{hint}"));
            Duration::ZERO
        })
    }

    fn template(&mut self, reference: &ObjectReference) -> TemplateRef {
        let mut field = |name: &str, value: &Option<String>, allowed: &str| {
            let value = value.clone().unwrap_or_default();
            if value.is_empty() {
                self.value(&format!("spec.remediationTemplate.{name}"), &value, allowed);
            }
            value
        };
        TemplateRef {
            api_version: field(
                "apiVersion",
                &reference.api_version,
                "the API group and version of the template",
            ),
            kind: field("kind", &reference.kind, "the kind of the template"),
            name: field(
                "name",
                &reference.name,
                "the name of a template in the namespace of the health check",
            ),
        }
    }

    fn finish(self, settings: Settings) -> Result<Settings, Complaint> {
        match self.reason {
            None => Ok(settings),
            Some(reason) => Err(Complaint { reason, message: self.messages.join("; ") }),
        }
    }
}

/// A number or string as a person would write it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}
