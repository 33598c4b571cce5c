//! Errors of the simulated cloud, classed where they happen.

use std::time::Duration;

use mapi_api::duration::Span;
use mapi_api::fault::{ErrorClass, FaultKind};
use mapi_cloud::{CloudError, Kind, StoreError};

/// The mark of an error that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("injected fault {kind}")]
pub struct Injected {
    /// Which fault.
    pub kind: FaultKind,
    /// Whether the fault ends after a number of errors.
    pub is_counted: bool,
}

impl Injected {
    /// The mark on an error, if it has one.
    pub fn of(error: &CloudError) -> Option<&Self> {
        error.source.as_ref()?.downcast_ref()
    }

    fn new(kind: FaultKind) -> Self {
        Self { kind, is_counted: false }
    }
}

/// What is being done when an instance is made.
pub const LAUNCH: &str = "launch simulated instance";
/// What is being done when an instance is looked for.
pub const FIND: &str = "find simulated instance";
/// What is being done when faults or heartbeats change.
pub const ADJUST: &str = "adjust simulated instance";
/// What is being done when an instance is removed.
pub const TERMINATE: &str = "terminate simulated instance";

/// The answer of a store as an error of the cloud. A write without an answer may have taken effect.
pub fn of_store(operation: &'static str, error: StoreError) -> CloudError {
    let kind = match &error {
        StoreError::Conflict(_) => Kind::Busy,
        StoreError::Invalid(_) => Kind::Invalid,
        StoreError::Forbidden(_) => Kind::Denied,
        StoreError::NotFound | StoreError::AlreadyExists | StoreError::NoAnswer(_) => Kind::Transient,
    };
    let is_uncertain = matches!(error, StoreError::NoAnswer(_)) && operation != FIND;
    let cloud = CloudError::new(kind, operation, error.to_string());
    if is_uncertain { cloud.uncertain() } else { cloud }
}

/// The error of a class that a create was asked to fail with.
pub fn of_class(class: ErrorClass, retry_after: Option<Span>, injected: Injected) -> CloudError {
    let error = |kind, message: &str| CloudError::new(kind, LAUNCH, message).because(injected);
    match class {
        ErrorClass::InvalidConfiguration => error(Kind::Invalid, "the configuration was refused"),
        ErrorClass::Quota => error(Kind::Exhausted, "the quota is used up"),
        ErrorClass::Throttle => {
            error(Kind::Throttled, "too many calls").retry_after(retry_after.unwrap_or(RETRY_AFTER).0)
        }
        ErrorClass::Internal => error(Kind::Transient, "internal error"),
        ErrorClass::Timeout => error(Kind::Transient, "no answer in time").uncertain(),
        ErrorClass::Unauthorized => error(Kind::Denied, "the credentials were refused"),
    }
}

/// A second: what public clouds ask for most often.
const RETRY_AFTER: Span = Span::seconds(1);

/// The instance was made, and the answer says that it was not.
pub fn made_but_failed() -> CloudError {
    let injected = Injected::new(FaultKind::CreateErrorButCreated);
    CloudError::new(Kind::Transient, LAUNCH, "internal error").uncertain().because(injected)
}

/// The zone is out.
pub fn zone_is_out(zone: &str) -> CloudError {
    let message = format!("zone `{zone}` does not answer");
    CloudError::new(Kind::Transient, LAUNCH, message).because(Injected::new(FaultKind::ZoneOutage))
}

/// The cloud is out.
pub fn cloud_is_out(operation: &'static str) -> CloudError {
    let injected = Injected::new(FaultKind::ApiOutage);
    CloudError::new(Kind::Transient, operation, "the cloud does not answer").because(injected)
}

/// A quota is used up.
pub fn over_quota(what: &str) -> CloudError {
    let message = format!("the quota of {what} is used up");
    CloudError::new(Kind::Exhausted, LAUNCH, message).because(Injected::new(FaultKind::Quota))
}

/// Too many calls.
pub fn throttled(operation: &'static str, wait: Duration) -> CloudError {
    let injected = Injected::new(FaultKind::ApiThrottle);
    CloudError::new(Kind::Throttled, operation, "too many calls").retry_after(wait).because(injected)
}

/// The object of the machine's instance is that of another one.
pub fn not_ours(operation: &'static str, id: &str) -> CloudError {
    CloudError::new(
        Kind::Transient,
        operation,
        format!("simulated instance `{id}` belongs to another machine"),
    )
}

/// Static machines stood for Nodes that exist already.
pub fn static_machine() -> CloudError {
    let message = format!(
        "annotation `{}` is not supported: it asks for no instance",
        mapi_api::names::annotation::STATIC_MACHINE
    );
    CloudError::new(Kind::Invalid, LAUNCH, message)
}

/// The name that the template gives is not one.
pub fn bad_node_name(name: &str) -> CloudError {
    let message = format!(
        "`{name}` cannot be the name of a node: nodeNameTemplate must give a DNS name of at most 253 characters"
    );
    CloudError::new(Kind::Invalid, LAUNCH, message)
}
