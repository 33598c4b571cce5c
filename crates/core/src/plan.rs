//! What a decision gives: effects as data. One place runs them, `controllers/apply.rs`.

use std::time::Duration;

use mapi_api::event::Event;
use mapi_api::{Key, Object};
use serde_json::Value;

/// What to do about one key, in order. Stopping after any prefix of the actions leaves a state from which the next round
/// ends the same way.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Plan {
    /// Effects on the cluster. A failure ends the plan, except within a [`Action::Batch`].
    pub actions: Vec<Action>,
    /// When to look again.
    pub requeue: Requeue,
    /// Why nothing more is done.
    pub gates: Vec<Gate>,
}

/// When to look at a key again although nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Requeue {
    /// Not by itself.
    #[default]
    Never,
    /// After a time; the key's failures are forgotten.
    After(Duration),
    /// After a growing time, because of this error.
    Backoff(String),
}

/// A named reason not to proceed yet, for conditions, the `why` output and the dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// One word in CamelCase.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Kinds that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Machine.
    Machine,
    /// MachineSet.
    MachineSet,
    /// MachineHealthCheck.
    MachineHealthCheck,
    /// Node.
    Node,
}

/// Which part of an object a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sub {
    /// Metadata and spec.
    Main,
    /// The status subresource.
    Status,
}

/// The very object that was decided about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Kind.
    pub kind: Kind,
    /// Namespace and name.
    pub key: Key,
    /// UID; a delete carries it as a precondition.
    pub uid: String,
    /// Version; a patch carries it as a precondition.
    pub version: String,
    /// UID of the controlling MachineSet, whose next round must see this write.
    pub owner_uid: Option<String>,
}

impl Target {
    /// The object as it was read.
    pub fn of(kind: Kind, object: &impl Object) -> Self {
        Self {
            kind,
            key: object.key(),
            uid: object.uid().into(),
            version: object.version().into(),
            owner_uid: object.set_owner().map(|o| o.uid.clone()),
        }
    }
}

/// One effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Merge-patches named fields. The patch holds no `metadata.resourceVersion`: it is added from the target, so that
    /// a patch decided on an old state is refused. Empty patches are not made.
    Patch {
        /// What is patched.
        target: Target,
        /// Which part.
        sub: Sub,
        /// The fields.
        patch: Value,
    },
    /// Creates a Machine. The name is in the object, so that a repetition of a create without an answer finds it.
    CreateMachine {
        /// UID of the MachineSet that owns it.
        owner_uid: String,
        /// Namespace and name.
        key: Key,
        /// The whole object.
        object: Value,
    },
    /// Deletes an object, if it is still the same one. An object that is gone already is a success.
    Delete(Target),
    /// Evicts a Pod through the eviction subresource. A refusal is no failure: it is a fact of the next round.
    Evict {
        /// Namespace and name of the Pod.
        pod: Key,
        /// UID of the Pod.
        uid: String,
        /// Grace period in seconds; `None` is the Pod's own.
        grace_s: Option<i64>,
    },
    /// Creates a remediation request, an object of a kind that the user chose.
    CreateRequest {
        /// The whole object, apiVersion and kind included.
        object: Value,
    },
    /// Deletes a remediation request.
    DeleteRequest {
        /// API group and version.
        api_version: String,
        /// Kind.
        kind: String,
        /// Namespace and name.
        key: Key,
        /// UID.
        uid: String,
    },
    /// Writes an event. Never fails a plan.
    Emit {
        /// Name of the reporting controller.
        reporter: &'static str,
        /// The event.
        event: Event,
    },
    /// Moves a metric. Never fails a plan.
    Measure(Measure),
    /// Runs all at once, tries every one, and fails with all errors.
    Batch(Vec<Action>),
    /// Runs an action and then one of two lists, depending on how it went. Still fails if the action failed. The error
    /// is appended to the notes of events in `failure`.
    Try {
        /// What to try.
        action: Box<Action>,
        /// What to do when it went through.
        success: Vec<Action>,
        /// What to do when it did not.
        failure: Vec<Action>,
    },
}

/// One move of a metric. Labels are bounded: names of objects that exist, and words of ours.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// `mapi_machine_phase_transition_seconds{phase}`: seconds since the Machine was created.
    PhaseTransition {
        /// The new phase.
        phase: String,
        /// Seconds.
        seconds: f64,
    },
    /// `mapi_instance_create_failed` and its siblings.
    InstanceFailed {
        /// Which of the three counters.
        activity: mapi_cloud::Activity,
        /// The Machine.
        key: Key,
        /// Class of the error.
        reason: &'static str,
    },
    /// `mapi_machinehealthcheck_nodes_covered`.
    NodesCovered {
        /// The health check.
        key: Key,
        /// Machines covered.
        count: usize,
    },
    /// `mapi_machinehealthcheck_short_circuit`.
    ShortCircuit {
        /// The health check.
        key: Key,
        /// Whether repairs are stopped.
        is_stopped: bool,
    },
    /// `mapi_machinehealthcheck_remediation_success_total`.
    Remediated {
        /// The health check.
        key: Key,
    },
    /// Drops every series of a health check that is gone.
    ForgetHealthCheck {
        /// The health check.
        key: Key,
    },
}

impl Plan {
    /// Nothing to do.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// These actions, and nothing more.
    pub fn actions(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    /// Look again after a time.
    pub fn after(self, delay: Duration) -> Self {
        Self { requeue: Requeue::After(delay), ..self }
    }

    /// Look again after a growing time, because of an error.
    pub fn backoff(self, error: impl Into<String>) -> Self {
        Self { requeue: Requeue::Backoff(error.into()), ..self }
    }

    /// With a reason not to proceed.
    pub fn gate(mut self, reason: &'static str, message: impl Into<String>) -> Self {
        self.gates.push(Gate { reason, message: message.into() });
        self
    }
}
