//! What went wrong with a cloud, classed where it happened.

use std::time::Duration;

/// Class of an error, set at birth. Unknown is [`Kind::Transient`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The cloud or the decoder will never accept this spec. The only class that may fail a Machine for good.
    Invalid,
    /// Credentials are missing, expired or lack a permission.
    Denied,
    /// A quota or a capacity is used up for now.
    Exhausted,
    /// Too many calls.
    Throttled,
    /// The object is in the middle of something else.
    Busy,
    /// Anything else; may pass by itself.
    Transient,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Invalid, Self::Denied, Self::Exhausted, Self::Throttled, Self::Busy, Self::Transient];

    /// The class as one word, for labels of metrics: one of few, never a text of a cloud.
    pub fn word(self) -> &'static str {
        match self {
            // The word that `status.errorReason` holds for it.
            Self::Invalid => "InvalidConfiguration",
            Self::Denied => "Denied",
            Self::Exhausted => "Exhausted",
            Self::Throttled => "Throttled",
            Self::Busy => "Busy",
            Self::Transient => "Transient",
        }
    }
}

/// An error of a cloud about one machine.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation}: {message}")]
pub struct CloudError {
    /// Class.
    pub kind: Kind,
    /// What was being done, in the infinitive: `launch instance`.
    pub operation: &'static str,
    /// What the cloud said, without secrets and without parts that change from call to call.
    pub message: String,
    /// When the cloud asked to be asked again.
    pub retry_after: Option<Duration>,
    /// Whether a write may have taken effect all the same, so that its result may still appear.
    pub is_uncertain: bool,
    /// The error below, logged once by the shell.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl CloudError {
    /// An error of a class.
    pub fn new(kind: Kind, operation: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            operation,
            message: message.into(),
            retry_after: None,
            is_uncertain: false,
            source: None,
        }
    }

    /// With the delay that the cloud asked for.
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), ..self }
    }

    /// Of a write whose outcome is not known.
    pub fn uncertain(self) -> Self {
        Self { is_uncertain: true, ..self }
    }

    /// With the error below.
    pub fn because(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
    }
}
