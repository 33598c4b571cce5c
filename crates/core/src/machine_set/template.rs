//! What the clouds say about the provider spec in a set's template.

use mapi_api::{MachineSet, Misfit, RawJson};
use mapi_cloud::{Clouds, Findings, Service};

/// Where the template's provider spec is.
pub(super) const PATH: &str = "spec.template.spec.providerSpec.value";

/// What the clouds say about a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Template {
    /// Nobody in this process can judge: it serves no clouds.
    Unjudged,
    /// A cloud serves it and has these complaints.
    Served(Findings),
    /// It has no provider spec, or one without a kind.
    Missing,
    /// No cloud of this process serves its kind; another process may.
    Unknown {
        /// The kind and group that were asked for.
        kind: String,
        /// Kinds that would be served.
        served: Vec<String>,
    },
    /// The template is no Machine spec.
    Unreadable(String),
}

impl Template {
    /// Asks the clouds.
    pub fn judge(clouds: &Clouds, set: &MachineSet) -> Self {
        if clouds.iter().next().is_none() {
            return Self::Unjudged;
        }
        let spec = match provider_spec(set) {
            Ok(spec) => spec,
            Err(error) => {
                let text = set.spec.template.spec.as_ref().map_or("", RawJson::as_str);
                return Self::Unreadable(Misfit::of(text, &error).to_string());
            }
        };
        match (clouds.of(spec.as_ref()), &spec) {
            (Service::By(cloud), Some(spec)) => Self::Served(cloud.check(spec)),
            (Service::By(_), None) | (Service::Missing, _) => Self::Missing,
            (Service::Unknown { kind, served }, _) => Self::Unknown { kind, served },
        }
    }
}

/// The provider spec in a set's template.
pub fn provider_spec(set: &MachineSet) -> Result<Option<RawJson>, serde_json::Error> {
    Ok(set.spec.template.machine_spec()?.provider_spec.value)
}
