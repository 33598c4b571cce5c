//! `cargo xtask play`: a cluster with simulated machines on this computer, to look at with kubectl.
//!
//! Never here: anything of the world itself; that is what the end-to-end tests use.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{IsTerminal as _, Write as _, stdout},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use e2e::{Machine, MachineSet, Object as _, Options, World};
use kube::config::Kubeconfig;
use mapi_api::rbac::NAMESPACE;
use serde_json::json;

const SAMPLE: &str = include_str!("../../examples/kubemark/sample.yaml");

/// The sets of the sample.
const SETS: [&str; 2] = ["sample-a", "sample-b"];

/// Whoever looks on waits longer than a test: as many machines as they like may take this long.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

#[derive(clap::Args)]
pub struct Args {
    /// Machines to begin with, split between the two sets of the sample; 6 by default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=5000))]
    machines: Option<u32>,
}

/// Brings the cluster up, shows how its machines come, says what to try, and stays until Ctrl-C.
pub fn run(args: &Args) -> anyhow::Result<()> {
    build()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = play(args) => result,
            interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        }
    });
    // The world went with the work above, and took its processes and files along.
    println!("\nEverything has ended, and nothing is left.");
    result
}

/// Builds the product.
pub fn build() -> anyhow::Result<()> {
    println!("Building the product");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "machine-api-operator"]);
    // What cargo tells us about our own package: build scripts would see a change and build half the tree again.
    let is_ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_ours)) {
        command.env_remove(name);
    }
    let status = command.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("the product does not build");
    }
    Ok(())
}

async fn play(args: &Args) -> anyhow::Result<()> {
    println!("Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler,");
    println!("the controllers and the simulated cloud");
    let began = Instant::now();
    let world = World::start(Options { scheduler: true, ..Options::default() }).await?;
    println!("They run, after {:.1} s", began.elapsed().as_secs_f64());
    let kubeconfig = write_kubeconfig(&world)?;

    world.apply(SAMPLE).await;
    let ns = world.existing_namespace(NAMESPACE).patient(PATIENCE);
    if let Some(machines) = args.machines {
        for (set, replicas) in SETS.into_iter().zip([machines.div_ceil(2), machines / 2]) {
            ns.patch::<MachineSet>(set, json!({"spec": {"replicas": replicas}})).await;
        }
    }
    let wanted: i64 =
        ns.list::<MachineSet>().await.iter().map(|set| set.spec.replicas.unwrap_or_default()).sum();
    let began = Instant::now();
    let mut progress = Progress::default();
    ns.wait_machines(|machines| {
        progress.show(machines, wanted);
        is_complete(machines, wanted)
    })
    .await;
    progress.end();
    ns.wait_all::<MachineSet>(|sets| {
        let ready: i32 = sets.iter().filter_map(|set| set.status.ready_replicas).sum();
        i64::from(ready) == wanted
    })
    .await;
    println!("All {wanted} are Running and their Nodes Ready, after {:.1} s", began.elapsed().as_secs_f64());
    explain(&world, &kubeconfig);
    std::future::pending().await
}

fn is_complete(machines: &[&Machine], wanted: i64) -> bool {
    let running = machines.iter().filter(|machine| machine.phase() == "Running" && !machine.is_deleting());
    i64::try_from(running.count()) == Ok(wanted)
}

/// The user's kubeconfig, but with the namespace of the sample, so that commands are short.
fn write_kubeconfig(world: &World) -> anyhow::Result<PathBuf> {
    let mut config = Kubeconfig::read_from(world.kubeconfig())?;
    for context in config.contexts.iter_mut().filter_map(|named| named.context.as_mut()) {
        context.namespace = Some(NAMESPACE.into());
    }
    let file = world.plane().directory().join("play.kubeconfig");
    // JSON is YAML.
    fs::write(&file, serde_json::to_string_pretty(&config)?)
        .with_context(|| format!("cannot write `{}`", file.display()))?;
    Ok(file)
}

/// A line about the phases, in place on a terminal, and only at the end elsewhere.
#[derive(Default)]
struct Progress {
    line: String,
}

impl Progress {
    fn show(&mut self, machines: &[&Machine], wanted: i64) {
        let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
        for machine in machines {
            let phase = if machine.phase().is_empty() { "new" } else { machine.phase() };
            *phases.entry(phase).or_default() += 1;
        }
        let counts: Vec<String> = phases.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
        self.line = format!("{} of {wanted} machines: {}", machines.len(), counts.join(", "));
        if stdout().is_terminal() {
            print!("\r\x1b[K{}", self.line);
            // A line that cannot be shown now will be shown with the next.
            let _ = stdout().flush();
        }
    }

    fn end(&self) {
        if stdout().is_terminal() {
            println!();
        } else {
            println!("{}", self.line);
        }
    }
}

fn explain(world: &World, kubeconfig: &Path) {
    let logs = world.plane().directory();
    println!(
        r#"
In another terminal:

  export KUBECONFIG={}

  # what there is
  kubectl get machinesets,machines,mhc
  kubectl get nodes -L topology.kubernetes.io/zone

  # more of them, and see how they come (Ctrl-C ends the watch)
  kubectl scale machineset/sample-a --replicas=5
  kubectl get machines --watch

  # take one away; its set makes another
  kubectl delete --wait=false $(kubectl get machines -o name | head -n 1)

  # let a Node fall ill; the health check replaces its machine after 10 s
  kubectl annotate $(kubectl get machines -o name | tail -n 1) \
    simulation.machine.openshift.io/faults='[{{"kind":"NodeNotReady"}}]'
  kubectl describe mhc sample

  # what a machine went through, and what its fields mean
  kubectl describe $(kubectl get machines -o name | head -n 1)
  kubectl explain machine.spec

Logs: controllers/*/*.log and simulated-cloud/*/*.log in
  {}
Ctrl-C ends all of it."#,
        kubeconfig.display(),
        logs.display(),
    );
}
