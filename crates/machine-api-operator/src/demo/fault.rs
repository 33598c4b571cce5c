//! `--fail KIND`: which machine gets the fault, when, and what is then to be seen.
//!
//! Never here: what a fault does; that is the simulated cloud's.

use mapi_api::duration::Span;
use mapi_api::fault::{Fault, FaultArgs, FaultKind};

/// Who gets a fault, and when.
#[derive(Clone, Debug, PartialEq)]
pub enum Dose {
    /// One machine, once all run.
    Running(Fault),
    /// One machine, once all run; then it is deleted.
    Deleted(Fault),
    /// The first machine of the first set, before its instance is made.
    First(Fault),
    /// Every machine of the first set, from its first moment.
    Set(Fault),
    /// Every machine, from its first moment.
    All(Fault),
}

/// What `--fail` does.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Who gets the fault, and when.
    pub dose: Dose,
    /// Whether its machine is replaced.
    pub is_replaced: bool,
    /// What is then to be seen, in few words: there is a third of a line for them.
    pub story: &'static str,
}

/// What `--fail` does for a kind, with this many machines.
pub fn course(kind: FaultKind, machines: u32) -> Course {
    let replaced = |dose: fn(Fault) -> Dose, story| Course {
        dose: dose(fault(kind, machines)),
        is_replaced: true,
        story,
    };
    let overcome = |dose, story| Course { is_replaced: false, ..replaced(dose, story) };
    match kind {
        FaultKind::CreateError => replaced(Dose::First, "no instance, so it is replaced"),
        FaultKind::CreateErrorButCreated => overcome(Dose::First, "made all the same, and only once"),
        FaultKind::CreateDuplicateVisible => overcome(Dose::First, "unseen for a while, made only once"),
        FaultKind::StuckProvisioning => replaced(Dose::First, "does not start, so it is replaced"),
        FaultKind::NeverJoin => replaced(Dose::First, "becomes no Node, so it is replaced"),
        FaultKind::NodeNotReady => replaced(Dose::Running, "after 10 s of that it is replaced"),
        FaultKind::NodeUnknown => replaced(Dose::Running, "noticed after 50 s, then replaced"),
        FaultKind::NodeFlap => overcome(Dose::Running, "too short each time to be replaced"),
        FaultKind::NodeDeleted => replaced(Dose::Running, "replaced for it at once"),
        FaultKind::InstanceTerminated => replaced(Dose::Running, "it fails, and is replaced"),
        FaultKind::InstanceStopped => replaced(Dose::Running, "its Node falls silent, it is replaced"),
        FaultKind::DeleteStuck => replaced(Dose::Deleted, "now deleted, it stays for 20 s"),
        FaultKind::ApiThrottle => overcome(Dose::All, "one call a second, so they come late"),
        FaultKind::ApiOutage => overcome(Dose::All, "no answer for 15 s, then they come"),
        FaultKind::Quota => overcome(Dose::All, "one short, tried again each minute"),
        FaultKind::ZoneOutage => overcome(Dose::Set, "too many at once, so none is replaced"),
    }
}

/// The fault, with details that make it worth looking at.
fn fault(kind: FaultKind, machines: u32) -> Fault {
    let fault = Fault::new(kind);
    let lasting = |seconds| Fault { duration: Some(Span::seconds(seconds)), ..fault.clone() };
    match kind {
        FaultKind::DeleteStuck => lasting(20),
        FaultKind::ApiOutage => lasting(15),
        FaultKind::ZoneOutage => Fault { after: Some(Span::seconds(20)), ..lasting(90) },
        FaultKind::Quota => {
            let instances = Some(machines.saturating_sub(1).max(1));
            Fault { args: FaultArgs { instances, ..FaultArgs::default() }, ..lasting(20) }
        }
        FaultKind::ApiThrottle => {
            let args = FaultArgs { rps: Some(1), burst: Some(1), ..FaultArgs::default() };
            Fault { args, ..fault }
        }
        FaultKind::NodeFlap => {
            let (ready, not_ready) = (Some(Span::seconds(6)), Some(Span::seconds(4)));
            Fault { args: FaultArgs { ready, not_ready, ..FaultArgs::default() }, ..fault }
        }
        FaultKind::CreateError
        | FaultKind::CreateErrorButCreated
        | FaultKind::CreateDuplicateVisible
        | FaultKind::StuckProvisioning
        | FaultKind::NeverJoin
        | FaultKind::NodeNotReady
        | FaultKind::NodeUnknown
        | FaultKind::NodeDeleted
        | FaultKind::InstanceTerminated
        | FaultKind::InstanceStopped => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "kubemark")]
    #[tokio::test]
    async fn the_cloud_accepts_every_fault_that_can_be_asked_for() {
        use std::sync::Arc;

        use mapi_cloud::{Service, Severity};
        use mapi_controllers::stores::ObjectStore;
        use mapi_runtime::client::{ClientOptions, client};
        use mapi_runtime::writes::Writer;

        use crate::demo::sample::{Pace, Sample, with_faults};
        use crate::registry;

        let config = kube::Config::new("http://nowhere.invalid".parse().unwrap());
        let client = client(config, &ClientOptions::default()).unwrap();
        let instances = Arc::new(ObjectStore::new(registry::instances(), Writer::new(client)));
        let clouds = registry::clouds(&["kubemark"], &registry::Parts { instances });
        for kind in FaultKind::ALL {
            for machines in [1, 6] {
                let [set, _] = Sample::new(machines, &Pace::named(Pace::QUICK).unwrap(), false).sets;
                let set = with_faults(set, &[fault(kind, machines)]);
                let spec = set["spec"]["template"]["spec"]["providerSpec"]["value"].clone().into();
                let Service::By(cloud) = clouds.of(Some(&spec)) else { panic!("no cloud serves the sample") };
                let findings = cloud.check(&spec).0;
                assert!(findings.iter().all(|f| f.severity != Severity::Error), "{kind}: {findings:?}");
            }
        }
    }

    #[test]
    fn a_fault_of_the_making_is_there_before_the_machine_runs() {
        for kind in FaultKind::ALL {
            let Course { dose, story, .. } = course(kind, 6);
            let is_early = matches!(dose, Dose::First(_) | Dose::Set(_) | Dose::All(_));
            let is_live = matches!(
                kind,
                FaultKind::NodeNotReady
                    | FaultKind::NodeUnknown
                    | FaultKind::NodeFlap
                    | FaultKind::NodeDeleted
                    | FaultKind::InstanceTerminated
                    | FaultKind::InstanceStopped
                    | FaultKind::DeleteStuck
            );
            assert_eq!(is_early, !is_live, "{kind}");
            assert!(story.len() < 40, "{kind}: {story}");
        }
    }
}
