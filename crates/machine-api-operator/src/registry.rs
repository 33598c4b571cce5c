//! The one place that names the clouds.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use mapi_api::SimulatedInstance;
use mapi_cloud::{Cloud, Clouds};
use mapi_runtime::store::Store;

/// What the clouds are made of. A cloud whose far side is Kubernetes objects gets a store handed in.
pub struct Parts {
    /// Instances of the simulated cloud.
    #[cfg_attr(not(feature = "kubemark"), expect(dead_code, reason = "only the simulated cloud reads it"))]
    pub instances: Arc<dyn mapi_cloud::Objects<SimulatedInstance>>,
}

/// An empty cache of instances of the simulated cloud, which keeps what its near side reads.
pub fn instances() -> Store<SimulatedInstance> {
    #[cfg(feature = "kubemark")]
    return Store::trimmed(&[], mapi_cloud_kubemark::trim);
    #[cfg(not(feature = "kubemark"))]
    return Store::new(&[]);
}

/// Clouds that are compiled in.
pub const COMPILED: &[&str] = &[
    #[cfg(feature = "kubemark")]
    "kubemark",
];

/// The platforms asked for, all by default; an unknown one is an error that names those compiled in.
pub fn platforms(asked: &[String]) -> anyhow::Result<Vec<&'static str>> {
    if asked.is_empty() {
        return Ok(COMPILED.to_vec());
    }
    let mut chosen = vec![];
    for name in asked {
        match COMPILED.iter().find(|c| c.eq_ignore_ascii_case(name)) {
            Some(found) => chosen.push(*found),
            None => bail!("--platforms: no cloud `{name}` is compiled in; allowed: {}", COMPILED.join(", ")),
        }
    }
    Ok(chosen)
}

/// The clouds of these platforms.
#[cfg_attr(
    not(feature = "kubemark"),
    expect(unused_mut, unused_variables, reason = "there is no cloud to make")
)]
pub fn clouds(platforms: &[&str], parts: &Parts) -> Clouds {
    let mut clouds: Vec<Arc<dyn Cloud>> = vec![];
    #[cfg(feature = "kubemark")]
    if platforms.contains(&"kubemark") {
        let kubemark = mapi_cloud_kubemark::Kubemark::new(Arc::clone(&parts.instances));
        clouds.push(Arc::new(mapi_cloud::Erased(kubemark)));
    }
    Clouds::new(clouds)
}

/// Profiles of delays that the simulated cloud knows by name, and the longest that a machine takes in each until its
/// Node is Ready.
pub fn timing_profiles() -> Vec<(&'static str, Duration)> {
    #[cfg(feature = "kubemark")]
    return mapi_cloud_kubemark::Profile::ALL.map(|(name, profile)| (name, profile.longest_start())).to_vec();
    #[cfg(not(feature = "kubemark"))]
    return vec![];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_platform_is_told_which_are_compiled_in() {
        let error = platforms(&["moon".into()]).expect_err("there is no such cloud");
        assert!(error.to_string().contains("no cloud `moon` is compiled in; allowed:"));
        assert_eq!(platforms(&[]).expect("all"), COMPILED);
    }
}
