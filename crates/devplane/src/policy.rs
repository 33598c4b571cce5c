//! Policies that refuse writes (`ValidatingAdmissionPolicy`): which of them a write concerns, and what they say of it.
//! Everything that an expression cannot be made of here, parameters among it, is refused when a policy is written, so that
//! no policy is there and does nothing. Never here: webhooks.

mod check;
mod read;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use check::{check, check_binding};
pub(crate) use read::Cache;
pub(crate) use run::judge;

/// Group of the policies.
const GROUP: &str = "admissionregistration.k8s.io";
