//! What the query of a request says. Never here: what follows from it.

use serde_json::Value;

use crate::selector::{Fields, Labels};
use crate::state::{DeleteOptions, Propagation};
use crate::status::{ApiError, Fault, FieldError, Named};

/// How refusals of options of a write begin.
pub(crate) const PATCH_OPTIONS: Named<'static> =
    Named { kind: "PatchOptions", group: "meta.k8s.io", name: "" };

/// The parameters of a request that mean something here. Others are ignored, as Kubernetes does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pub labels: Labels,
    pub fields: Fields,
    pub limit: usize,
    pub r#continue: String,
    pub revision: String,
    pub revision_match: String,
    pub is_watch: bool,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_s: Option<u64>,
    pub is_dry_run: bool,
    pub manager: String,
    pub validation: Validation,
    pub force: Option<bool>,
    pub include_object: String,
    delete: Delete,
}

/// What may be done with dependents of an object that is deleted.
const POLICIES: &str = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";

/// What is done about fields that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Options of a deletion, as they can be in the query or in the body.
#[derive(Clone, Debug, Default)]
struct Delete {
    grace_s: Option<i64>,
    propagation: Option<Propagation>,
}

impl Query {
    /// Reads the query of a URI.
    pub(crate) fn parse(text: &str) -> Result<Query, ApiError> {
        let mut query = Query::default();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            query.set(&name, &value)?;
        }
        Ok(query)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        match name {
            "labelSelector" => self.labels = Labels::parse(value)?,
            "fieldSelector" => self.fields = Fields::parse(value)?,
            "limit" => self.limit = value.parse::<i64>().map_or(0, |limit| limit.try_into().unwrap_or(0)),
            "continue" => self.r#continue = value.into(),
            "resourceVersion" => self.revision = value.into(),
            "resourceVersionMatch" => self.revision_match = value.into(),
            "watch" => self.is_watch = is_true(value),
            "allowWatchBookmarks" => self.bookmarks = is_true(value),
            "sendInitialEvents" => self.send_initial_events = Some(is_true(value)),
            "timeoutSeconds" => self.timeout_s = value.parse().ok(),
            "dryRun" => self.is_dry_run = dry_run(&[value])?,
            "fieldManager" => self.manager = manager(value)?,
            "fieldValidation" => self.validation = validation(value)?,
            "force" => self.force = Some(is_true(value)),
            "includeObject" if matches!(value, "" | "None" | "Metadata" | "Object") => {
                self.include_object = value.into()
            }
            "includeObject" => {
                return Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {value:?}: must be \
                     'Metadata', 'Object', 'None', or empty"
                )));
            }
            "gracePeriodSeconds" => self.delete.grace_s = value.parse().ok(),
            "propagationPolicy" => self.delete.propagation = Some(propagation(value)?),
            "orphanDependents" => {
                self.delete.propagation =
                    Some(if is_true(value) { Propagation::Orphan } else { Propagation::Background });
            }
            _ => {}
        }
        Ok(())
    }

    /// The options of a deletion. Where there is a body, Kubernetes does not read the query.
    pub(crate) fn delete_options(&self, body: &Value) -> Result<DeleteOptions, ApiError> {
        if body.is_null() {
            let Delete { grace_s, propagation } = self.delete;
            return Ok(DeleteOptions {
                grace_s,
                propagation,
                dry_run: self.is_dry_run,
                ..DeleteOptions::default()
            });
        }
        delete_options(body)
    }
}

/// Reads an object `DeleteOptions`, which may be missing.
pub(crate) fn delete_options(body: &Value) -> Result<DeleteOptions, ApiError> {
    let mut errors = Vec::new();
    let policy = &body["propagationPolicy"];
    let orphans = body["orphanDependents"].as_bool();
    if orphans.is_some() && policy.is_string() {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", policy, detail));
    }
    let propagation = match (policy.as_str(), orphans) {
        (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (None, None) => None,
        (Some(_), _) => {
            let allowed = format!("supported values: {POLICIES}");
            errors.push(FieldError::new(Fault::Unsupported, "propagationPolicy", policy, allowed));
            None
        }
    };
    let dry_run = body["dryRun"].as_array().filter(|list| !list.is_empty());
    if dry_run.is_some_and(|list| list.iter().any(|item| item != "All")) {
        errors.push(FieldError::new(
            Fault::Unsupported,
            "dryRun",
            &body["dryRun"],
            "supported values: \"All\"",
        ));
    }
    if !errors.is_empty() {
        let named = Named { kind: "DeleteOptions", group: "meta.k8s.io", name: "" };
        return Err(ApiError::invalid(named, &errors));
    }
    let precondition = |name: &str| body["preconditions"][name].as_str().map(str::to_owned);
    Ok(DeleteOptions {
        grace_s: body["gracePeriodSeconds"].as_i64(),
        uid: precondition("uid"),
        revision: precondition("resourceVersion"),
        propagation,
        dry_run: dry_run.is_some(),
    })
}

fn is_true(value: &str) -> bool {
    // As Kubernetes reads it: everything but these is true.
    !matches!(value, "false" | "0")
}

fn dry_run(values: &[&str]) -> Result<bool, ApiError> {
    match values.iter().find(|value| **value != "All" && !value.is_empty()) {
        Some(value) => Err(unsupported("dryRun", format!("[{value:?}]"), "\"All\"")),
        None => Ok(values.contains(&"All")),
    }
}

fn validation(value: &str) -> Result<Validation, ApiError> {
    match value {
        "Ignore" => Ok(Validation::Ignore),
        "Warn" | "" => Ok(Validation::Warn),
        "Strict" => Ok(Validation::Strict),
        _ => Err(options_invalid("fieldValidation", value, "\"\", \"Ignore\", \"Strict\", \"Warn\"")),
    }
}

fn propagation(value: &str) -> Result<Propagation, ApiError> {
    match value {
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        _ => Err(options_invalid("propagationPolicy", value, POLICIES)),
    }
}

/// At most 128 characters that can be printed. Source: the API of Kubernetes.
fn manager(value: &str) -> Result<String, ApiError> {
    if value.len() > 128 {
        return Err(options_invalid("fieldManager", value, "at most 128 bytes"));
    }
    Ok(value.into())
}

fn options_invalid(field: &str, value: &str, allowed: &str) -> ApiError {
    unsupported(field, format!("{value:?}"), allowed)
}

fn unsupported(path: &str, value: String, allowed: &str) -> ApiError {
    let detail = format!("supported values: {allowed}");
    let error = FieldError { fault: Fault::Unsupported, path: path.into(), value, detail };
    ApiError::invalid(PATCH_OPTIONS, &[error])
}
