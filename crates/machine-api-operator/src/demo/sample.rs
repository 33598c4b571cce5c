//! What the demo applies: the two sets and the health check of `examples/kubemark/sample.yaml`, made to measure.
//!
//! Never here: requests; which fault goes to whom.

use std::time::Duration;

use mapi_api::fault::Fault;
use serde_json::{Value, json};

use crate::registry;

const SAMPLE: &str = include_str!("../../../../examples/kubemark/sample.yaml");

/// A namespace of its own: on somebody's cluster, the demo's controllers look after this one and no other.
pub const NAMESPACE: &str = "machine-api-demo";

/// The sets, in two zones.
pub const SETS: [&str; 2] = ["sample-a", "sample-b"];

/// The health check.
pub const CHECK: &str = "sample";

/// From here on, Nodes renew their leases half as often as kubelets do: 10,000 then take no more than 500 requests a
/// second, and two in a row may still be late before a Node counts as silent, which takes 40 s at least.
const MANY: u32 = 1000;

/// Ten minutes, as in the sample: what a cloud refuses for a while comes later, and is not helped by being replaced.
const UNHURRIED: Duration = Duration::from_secs(600);

/// How long the simulated cloud takes for things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// As in `--profile`.
    pub name: &'static str,
    /// The longest that a machine takes until its Node is Ready.
    pub longest: Duration,
}

impl Pace {
    /// The delays of the sample.
    pub const QUICK: &str = "quick";

    /// All there are: that of the sample first, then the simulated cloud's own.
    pub fn all() -> Vec<Self> {
        // The delays of the sample add up to this: thrice 2 s and once 1 s, each with as much again by chance.
        let quick = Self { name: Self::QUICK, longest: Duration::from_secs(14) };
        let profiles = registry::timing_profiles().into_iter();
        [quick].into_iter().chain(profiles.map(|(name, longest)| Self { name, longest })).collect()
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|pace| pace.name == name)
    }
}

/// The objects of a demo.
pub struct Sample {
    /// The two MachineSets.
    pub sets: [Value; 2],
    /// The MachineHealthCheck.
    pub check: Value,
}

impl Sample {
    /// The sample for a number of machines. `is_hurried`: what becomes no Node is replaced as soon as that is sure.
    pub fn new(machines: u32, pace: &Pace, is_hurried: bool) -> Self {
        let documents: Vec<Value> = serde_saphyr::from_multiple(SAMPLE).expect("the sample is YAML");
        let [mut first, mut second, mut check] =
            <[Value; 3]>::try_from(documents).expect("the sample has two sets and a health check");
        for object in [&mut first, &mut second, &mut check] {
            object["metadata"]["namespace"] = NAMESPACE.into();
        }
        for (set, replicas) in [(&mut first, machines.div_ceil(2)), (&mut second, machines / 2)] {
            set["spec"]["replicas"] = replicas.into();
            let spec = provider_spec(set);
            if pace.name != Pace::QUICK {
                spec["timing"] = json!({ "profile": pace.name });
            }
            if machines > MANY {
                spec["heartbeat"] = json!({ "leaseRenew": "20s" });
            }
        }
        let least = startup(machines, pace);
        let startup = if is_hurried { least } else { least.max(UNHURRIED) };
        check["spec"]["nodeStartupTimeout"] = format!("{}s", startup.as_secs()).into();
        // A percentage is rounded down, and of one or two machines none could be repaired.
        if machines < 3 {
            check["spec"]["maxUnhealthy"] = 1.into();
        }
        Self { sets: [first, second], check }
    }
}

/// How long a machine may take to become a Node before the health check replaces it: what it takes at the longest, and
/// some time for a computer that is busy with many of them.
pub fn startup(machines: u32, pace: &Pace) -> Duration {
    pace.longest + Duration::from_secs(20) + Duration::from_millis(100) * machines
}

/// A set whose machines have faults from their first moment.
pub fn with_faults(mut set: Value, faults: &[Fault]) -> Value {
    provider_spec(&mut set)["faults"] = json!(faults);
    set
}

/// A set with another number of machines.
pub fn with_replicas(mut set: Value, replicas: u32) -> Value {
    set["spec"]["replicas"] = replicas.into();
    set
}

fn provider_spec(set: &mut Value) -> &mut Value {
    &mut set["spec"]["template"]["spec"]["providerSpec"]["value"]
}

#[cfg(test)]
mod tests {
    use mapi_api::fault::FaultKind;

    use super::*;

    fn pace(name: &str) -> Pace {
        Pace { name: if name == "quick" { "quick" } else { "cloud" }, longest: Duration::from_secs(10) }
    }

    #[test]
    fn machines_are_split_between_the_sets_and_all_of_them_count() {
        for (machines, split) in [(6, [3, 3]), (5, [3, 2]), (1, [1, 0])] {
            let sample = Sample::new(machines, &pace("quick"), false);
            let replicas = sample.sets.each_ref().map(|set| set["spec"]["replicas"].as_u64());
            assert_eq!(replicas, split.map(Some), "{machines}");
        }
    }

    #[test]
    fn every_object_is_in_the_namespace_of_the_demo_and_has_the_name_that_is_printed() {
        let Sample { sets: [a, b], check } = Sample::new(6, &pace("quick"), false);
        for (object, name) in [(&a, SETS[0]), (&b, SETS[1]), (&check, CHECK)] {
            assert_eq!(object["metadata"]["name"], name);
            assert_eq!(object["metadata"]["namespace"], NAMESPACE);
        }
        let zones = [a, b].map(|mut set| provider_spec(&mut set)["zone"].clone());
        assert_ne!(zones[0], zones[1]);
    }

    #[test]
    fn the_quick_pace_is_that_of_the_sample_and_the_others_are_the_clouds_own() {
        let timing = |name| {
            let [mut set, _] = Sample::new(2, &pace(name), false).sets;
            provider_spec(&mut set)["timing"].clone()
        };
        assert_eq!(timing("cloud"), json!({ "profile": "cloud" }));
        let quick = timing("quick");
        let most: u64 = ["provision", "boot", "join", "ready"]
            .map(|delay| {
                let text = quick[delay]["duration"].as_str().expect("a duration");
                assert_eq!(quick[delay]["jitter"], 1);
                mapi_api::duration::parse(text).expect("a duration").as_secs() * 2
            })
            .iter()
            .sum();
        assert_eq!(Pace::named("quick").expect("known").longest, Duration::from_secs(most));
    }

    #[test]
    fn a_sick_machine_may_be_repaired_however_few_there_are() {
        for (machines, limit) in [(1, json!(1)), (2, json!(1)), (3, json!("40%")), (5000, json!("40%"))] {
            assert_eq!(Sample::new(machines, &pace("quick"), false).check["spec"]["maxUnhealthy"], limit);
        }
    }

    #[test]
    fn a_machine_that_becomes_no_node_is_replaced_after_ten_minutes_or_soon() {
        let timeout = |is_hurried| {
            let check = Sample::new(6, &pace("quick"), is_hurried).check;
            check["spec"]["nodeStartupTimeout"].clone()
        };
        assert_eq!((timeout(false), timeout(true)), (json!("600s"), json!("30s")));
    }

    #[test]
    fn faults_go_where_the_cloud_reads_them() {
        let [set, _] = Sample::new(2, &pace("quick"), false).sets;
        let mut set = with_replicas(with_faults(set, &[Fault::new(FaultKind::NeverJoin)]), 1);
        assert_eq!(provider_spec(&mut set)["faults"], json!([{ "kind": "NeverJoin" }]));
        assert_eq!(set["spec"]["replicas"], 1);
    }
}
