//! The CRDs of the product, as they are in `install/crds`.
//!
//! Never here: what is in them; `cargo xtask gen` writes them from the types.

use crate::args::FeatureSet;

const MACHINES: &str = include_str!("../../../install/crds/Default/machines.yaml");
const MACHINES_CUSTOM: &str = include_str!("../../../install/crds/CustomNoUpgrade/machines.yaml");
const MACHINE_SETS: &str = include_str!("../../../install/crds/Default/machinesets.yaml");
const MACHINE_SETS_CUSTOM: &str = include_str!("../../../install/crds/CustomNoUpgrade/machinesets.yaml");
const MACHINE_HEALTH_CHECKS: &str = include_str!("../../../install/crds/machinehealthchecks.yaml");
const SIMULATED_INSTANCES: &str = include_str!("../../../install/crds/simulatedinstances.yaml");

/// Every CRD of a feature set, as a stream of YAML documents.
pub fn yaml(set: FeatureSet) -> String {
    let (machines, machine_sets) = match set {
        FeatureSet::Default => (MACHINES, MACHINE_SETS),
        FeatureSet::CustomNoUpgrade => (MACHINES_CUSTOM, MACHINE_SETS_CUSTOM),
    };
    [machines, machine_sets, MACHINE_HEALTH_CHECKS, SIMULATED_INSTANCES].join("---\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_set_has_each_kind_once_and_gated_fields_only_where_they_belong() {
        for (set, gated) in [(FeatureSet::Default, false), (FeatureSet::CustomNoUpgrade, true)] {
            let yaml = yaml(set);
            assert_eq!(yaml.matches("\nkind: CustomResourceDefinition").count(), 4);
            assert_eq!(yaml.matches("\n---\n").count(), 3);
            assert_eq!(yaml.contains("synchronizedAPI"), gated);
        }
    }
}
