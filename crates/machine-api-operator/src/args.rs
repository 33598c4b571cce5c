//! The command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args as Group, Parser, Subcommand, ValueEnum};
use mapi_api::fault::FaultKind;
use mapi_controllers::start::Controller;

use crate::demo::Pace;

/// The Machine API for Kubernetes: Machines, MachineSets and MachineHealthChecks of group machine.openshift.io.
#[derive(Debug, Parser)]
#[command(name = "machine-api-operator", version, about, propagate_version = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the whole product at work: an API server, the controllers and a simulated cloud in this one process.
    Demo(Box<DemoArgs>),
    /// Run the controllers.
    Controllers(Box<ControllersArgs>),
    /// Run the far side of the simulated cloud by itself: instances, their Nodes, Leases and Pods.
    SimulatedCloud(SimulatedCloudArgs),
    /// Print the CustomResourceDefinitions as YAML, for `kubectl apply --server-side -f -`.
    Crds(CrdsArgs),
}

/// Where the simulated cloud's far side runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimulatedCloud {
    /// In this process.
    InProcess,
    /// In a process of its own: `machine-api-operator simulated-cloud`.
    External,
}

/// Which fields the CRDs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FeatureSet {
    /// What every cluster has.
    #[value(name = "Default")]
    Default,
    /// With the fields of the migration to Cluster API.
    #[value(name = "CustomNoUpgrade")]
    CustomNoUpgrade,
}

#[derive(Debug, Group)]
pub struct DemoArgs {
    /// Machines to begin with, split between two sets in two zones.
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub machines: u32,
    /// How long the simulated cloud takes: `quick` is some seconds, the others are its own profiles.
    #[arg(long, default_value = Pace::QUICK, value_parser = paces())]
    pub profile: Pace,
    /// Let something go wrong, to see it heal: a fault of the simulated cloud.
    #[arg(long, value_name = "KIND", value_parser = faults())]
    pub fail: Option<FaultKind>,
    /// End once every machine runs, with 0; with 1 and the reasons if that takes longer than `--timeout`.
    #[arg(long)]
    pub until_running: bool,
    /// How long `--until-running` waits. By default two minutes, and more for many machines or a slow profile.
    #[arg(long, value_name = "TIME", requires = "until_running", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// File to write a kubeconfig to; it must not exist yet, and goes at the end. By default a temporary one.
    #[arg(long, value_name = "FILE")]
    pub write_kubeconfig: Option<PathBuf>,
    /// Use the API server of this kubeconfig file in place of the embedded one. What is made there goes at the end.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// File to note each state of the table in, as on a terminal of 80 by 24; for pictures.
    #[arg(long, value_name = "FILE", hide = true)]
    pub frames: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub struct CrdsArgs {
    /// Which fields the CRDs have.
    #[arg(long, value_enum, default_value = "Default")]
    pub feature_set: FeatureSet,
}

#[derive(Debug, Group)]
pub struct SimulatedCloudArgs {
    /// Kubeconfig file. Without it, the service account of the pod is used.
    #[arg(long, env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the instances. Empty means all.
    #[arg(long, default_value = "")]
    pub namespace: String,
    /// Renew the Leases of simulated Nodes. Without, the cluster will see them fall silent.
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "true|false")]
    pub heartbeats: bool,
}

#[derive(Debug, Group)]
pub struct ControllersArgs {
    /// Kubeconfig file. Without it, the service account of the pod is used.
    #[arg(long, env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of Machines, MachineSets and MachineHealthChecks. Empty means all.
    #[arg(long, default_value = "")]
    pub namespace: String,
    /// Controllers to run: machineset, machine, drain, nodelink, machinehealthcheck, capacity. All by default.
    #[arg(long, value_delimiter = ',', value_parser = Controller::from_str)]
    pub only: Vec<Controller>,
    /// Clouds to serve. All that are compiled in by default.
    #[arg(long, value_delimiter = ',')]
    pub platforms: Vec<String>,
    /// Where the simulated cloud runs.
    #[arg(long, value_enum, default_value = "in-process")]
    pub simulated_cloud: SimulatedCloud,
    /// Renew the Leases of simulated Nodes of an in-process simulated cloud.
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "true|false")]
    pub simulated_heartbeats: bool,
    /// Feature gates, as `Name=true,Name=false`. Known: MachineAPIMigration.
    #[arg(long, value_delimiter = ',', value_parser = parse_gate, value_name = "NAME=BOOL")]
    pub feature_gates: Vec<(String, bool)>,
    /// Address of the metrics endpoint, HTTPS. `0` turns it off.
    #[arg(long, default_value = ":8081")]
    pub metrics_bind_address: String,
    /// Folder with `tls.crt` and `tls.key` for the metrics endpoint. Without it, a certificate is made.
    #[arg(long)]
    pub tls_dir: Option<PathBuf>,
    /// Address of the health endpoint, HTTP. `0` turns it off.
    #[arg(long, default_value = ":9440")]
    pub health_addr: String,
    /// Run only while holding the lease of each controller.
    #[arg(long, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set)]
    pub leader_elect: bool,
    /// How long others wait after the last renewal of a lease.
    #[arg(long, default_value = "137s", value_parser = parse_duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long renewing a lease is tried before the process gives up.
    #[arg(long, default_value = "107s", value_parser = parse_duration)]
    pub leader_elect_renew_deadline: Duration,
    /// Time between two attempts at a lease.
    #[arg(long, default_value = "26s", value_parser = parse_duration)]
    pub leader_elect_retry_period: Duration,
    /// Namespace of the leases. By default that of `--namespace`, else openshift-machine-api.
    #[arg(long, default_value = "")]
    pub leader_elect_resource_namespace: String,
    /// Keys that each controller works on at once.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub max_concurrent_reconciles: u16,
    /// Requests a second to the API server. `0` is unlimited: the server's own fairness decides.
    #[arg(long, default_value_t = 0.0)]
    pub kube_api_qps: f32,
    /// Requests that may go out at once above the rate.
    #[arg(long, default_value_t = 100)]
    pub kube_api_burst: u32,
}

fn paces() -> impl TypedValueParser<Value = Pace> {
    let named = |name: String| Pace::named(&name).expect("no other value is possible");
    PossibleValuesParser::new(Pace::all().into_iter().map(|pace| pace.name)).map(named)
}

fn faults() -> impl TypedValueParser<Value = FaultKind> {
    let named = |name: String| name.parse::<FaultKind>().expect("no other value is possible");
    PossibleValuesParser::new(FaultKind::ALL.map(FaultKind::name)).map(named)
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    mapi_api::duration::parse(text).map_err(|error| error.to_string())
}

fn parse_gate(text: &str) -> Result<(String, bool), String> {
    let wrong = || format!("`{text}` is no feature gate; allowed: NAME=true or NAME=false");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.into(), value.parse().map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn leader_election_is_off_until_asked_for() {
        let parse = |extra: &[&str]| {
            let line = ["machine-api-operator", "controllers"].iter().chain(extra);
            match Args::try_parse_from(line).expect("valid").command {
                Command::Controllers(args) => args.leader_elect,
                other => panic!("{other:?}"),
            }
        };
        assert!(!parse(&[]));
        assert!(parse(&["--leader-elect"]));
        assert!(parse(&["--leader-elect=true"]));
        assert!(!parse(&["--leader-elect=false"]));
    }

    fn demo(extra: &[&str]) -> Result<Box<DemoArgs>, String> {
        let line = ["machine-api-operator", "demo"].iter().chain(extra);
        match Args::try_parse_from(line).map_err(|error| error.to_string())?.command {
            Command::Demo(args) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_demo_needs_no_arguments() {
        let args = demo(&[]).expect("valid");
        assert_eq!((args.machines, args.profile.name, args.fail), (6, "quick", None));
        assert!(!args.until_running && args.kubeconfig.is_none());
    }

    #[test]
    fn a_demo_is_told_which_faults_profiles_and_sizes_there_are() {
        let args = demo(&["--fail", "NodeUnknown", "--profile", "quick"]).expect("valid");
        assert_eq!((args.fail, args.profile.name), (Some(FaultKind::NodeUnknown), "quick"));
        let paces = Pace::all().into_iter().map(|pace| pace.name).collect::<Vec<_>>().join(", ");
        for (wrong, told) in [
            (&["--fail", "Fire"][..], "CreateError, CreateErrorButCreated"),
            (&["--profile", "slow"], paces.as_str()),
            (&["--machines", "0"], "1..=10000"),
            (&["--timeout", "5s"], "--until-running"),
            (&["--until-running", "--timeout", "soon"], "not a duration"),
        ] {
            let error = demo(wrong).expect_err("refused");
            assert!(error.contains(told), "{wrong:?}: {error}");
        }
    }

    #[test]
    fn a_bad_gate_is_told_what_is_allowed() {
        assert!(parse_gate("MachineAPIMigration").expect_err("no value").contains("NAME=true"));
        assert_eq!(parse_gate("A=true"), Ok(("A".into(), true)));
    }
}
