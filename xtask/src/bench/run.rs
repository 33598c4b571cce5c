//! One number of machines, from the start of its control plane to the end of its bare loop.
//!
//! Never here: how a figure is printed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use controlplane::Component;
use kube::Api;
use mapi_api::lease::Lease;
use mapi_api::machine::phase;
use mapi_api::rbac::NAMESPACE;
use mapi_api::{Machine, MachineHealthCheck, MachineSet, Node, Object as _, SimulatedInstance, names};

use super::audit::{Actor, AuditLog, Tally, total};
use super::bare::{self, Work};
use super::census::Census;
use super::proc;
use super::report::{BareLoop, Cpu, Idle, Report};
use super::sample::Samples;
use super::say;
use super::world::{Product, World};

/// When memory is read: long enough for what comes after the last machine, above all the last counts of the set.
const SETTLED: Duration = Duration::from_secs(5);

/// Who has written nothing for so long has nothing left to write: counts of sets go out twice a second.
const QUIET: Duration = Duration::from_secs(2);

/// Limit of what does not grow with the fleet. Everything takes a second on an idle machine.
const SHORT: Duration = Duration::from_secs(60);

/// Limit of a phase: a minute and half a second for each machine, ten times what it takes.
fn limit(machines: u32) -> Duration {
    SHORT + Duration::from_millis(500) * machines
}

/// Measures everything for one number of machines.
pub async fn run(binary: &Path, machines: u32, idle: Duration) -> anyhow::Result<Report> {
    let load_before = proc::load()?;
    say(&format!("{machines} machines: starting a control plane"));
    let (mut report, work) = {
        let world = World::start(binary, machines).await?;
        let mut fleet = Fleet::start(binary, world, machines).await?;
        let up = fleet.up().await?;
        let samples = Samples::take(&fleet.world.client).await?;
        let work = Work::new(&up.writes, samples)?;
        let idle = fleet.rest(binary, idle).await?;
        let (seconds_down, writes_down) = fleet.down().await?;
        let report = Report {
            machines,
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            load_before,
            seconds_up: up.seconds,
            seconds_down,
            cpu_up_s: up.cpu,
            memory: up.memory,
            writes_up: up.writes.into_iter().map(Into::into).collect(),
            writes_down: writes_down.into_iter().map(Into::into).collect(),
            idle,
            bare_loop: None,
        };
        (report, work)
    };
    say(&format!("{machines} machines: bare loop on another control plane"));
    let world = World::start(binary, machines).await?;
    let before = Cpu::of_plane(&world)?;
    let done = bare::run(&world, work).await?;
    let cpu = Cpu::of_plane(&world)?.since(&before);
    report.bare_loop = Some(BareLoop { writes: done.writes, seconds: done.seconds, cpu_s: cpu });
    Ok(report)
}

/// A control plane with the product on it.
struct Fleet {
    product: Product,
    log: AuditLog,
    world: World,
    machines: u32,
    /// CPU of the control plane when the product started.
    cpu_before: Cpu,
}

/// What the way up took.
struct Up {
    seconds: f64,
    cpu: Cpu,
    memory: proc::Memory,
    writes: Tally,
}

impl Fleet {
    /// Starts the product and waits until its controllers have said something of the empty set and of the health check.
    async fn start(binary: &Path, world: World, machines: u32) -> anyhow::Result<Self> {
        let mut log = AuditLog::new(world.plane.audit_log());
        log.take()?;
        let cpu_before = Cpu::of_plane(&world)?;
        let mut product = world.start_product(binary, false).await?;
        let sets: Api<MachineSet> = Api::namespaced(world.client.clone(), NAMESPACE);
        let is_seen = |set: &MachineSet| set.status.observed_generation.is_some();
        Census::new(sets, "sets that the controllers know", is_seen)
            .until(|count| count.marked == 1, SHORT, &mut product)
            .await?;
        let checks: Api<MachineHealthCheck> = Api::namespaced(world.client.clone(), NAMESPACE);
        let is_seen = |check: &MachineHealthCheck| !check.status.conditions.is_empty();
        Census::new(checks, "health checks that the controllers know", is_seen)
            .until(|count| count.marked == 1, SHORT, &mut product)
            .await?;
        Ok(Self { product, log, world, machines, cpu_before })
    }

    async fn up(&mut self) -> anyhow::Result<Up> {
        let wanted = self.machines;
        let is_running =
            |machine: &Machine| machine.phase() == phase::RUNNING && machine.node_name().is_some();
        let census = Census::new(self.machines_api(), "machines are Running", is_running);
        let mut census = census.begun(&mut self.product).await?;
        say(&format!("{wanted} machines: up"));
        let began = Instant::now();
        self.world.scale(wanted).await?;
        let is_enough = |count: super::census::Count| count.marked == wanted as usize;
        census.until(is_enough, limit(wanted), &mut self.product).await?;
        let seconds = began.elapsed().as_secs_f64();
        drop(census);
        say(&format!("{wanted} machines: all are Running after {seconds:.1} s"));
        tokio::time::sleep(SETTLED).await;
        let controllers = self.product.controllers_pid()?;
        let memory = proc::memory(controllers)?;
        let writes = self.rest_of_writes().await?;
        let mut cpu = Cpu::of_plane(&self.world)?.since(&self.cpu_before);
        cpu.controllers = Some(proc::cpu_s(controllers)?);
        cpu.simulated_cloud = Some(proc::cpu_s(self.product.cloud_pid()?)?);
        Ok(Up { seconds, cpu, memory, writes })
    }

    /// All writes since the log was read last, once the operator has stopped: events may come late.
    async fn rest_of_writes(&mut self) -> anyhow::Result<Tally> {
        let deadline = Instant::now() + limit(self.machines);
        let mut tally = self.log.take()?;
        loop {
            tokio::time::sleep(QUIET).await;
            let more = self.log.take()?;
            let is_quiet = total(&more, Actor::Operator) == 0;
            for (write, count) in more {
                *tally.entry(write).or_default() += count;
            }
            if is_quiet || Instant::now() > deadline {
                return Ok(tally);
            }
        }
    }

    /// Turns heartbeats on, and counts writes for a while.
    async fn rest(&mut self, binary: &Path, idle: Duration) -> anyhow::Result<Option<Idle>> {
        let wanted = self.machines as usize;
        let cloud = self.world.start_cloud(binary, true).await?;
        drop(std::mem::replace(&mut self.product.cloud, cloud));
        let leases: Api<Lease> = Api::namespaced(self.world.client.clone(), "kube-node-lease");
        Census::new(leases, "leases are there", |_| true)
            .until(|count| count.all >= wanted, limit(self.machines), &mut self.product)
            .await?;
        if idle.is_zero() {
            return Ok(None);
        }
        let pid = self.product.controllers_pid()?;
        tokio::time::sleep(SETTLED).await;
        self.log.take()?;
        let before = proc::cpu_s(pid)?;
        say(&format!("{wanted} machines: counting writes at rest for {} s", idle.as_secs()));
        tokio::time::sleep(idle).await;
        let tally = self.log.take()?;
        let minutes = idle.as_secs_f64() / 60.0;
        Ok(Some(Idle {
            seconds: idle.as_secs(),
            operator_writes_per_minute: per(total(&tally, Actor::Operator), minutes),
            simulated_cloud_writes_per_minute: per(total(&tally, Actor::SimulatedCloud), minutes),
            controllers_cpu_s_per_minute: (proc::cpu_s(pid)? - before) / minutes,
            resident_mib: proc::memory(pid)?.resident_mib,
        }))
    }

    async fn down(&mut self) -> anyhow::Result<(f64, Tally)> {
        let census = Census::new(self.machines_api(), "machines are left", |_| true);
        let mut census = census.begun(&mut self.product).await?;
        say(&format!("{} machines: down", self.machines));
        self.log.take()?;
        let began = Instant::now();
        self.world.scale(0).await?;
        census.until(|count| count.all == 0, limit(self.machines), &mut self.product).await?;
        let seconds = began.elapsed().as_secs_f64();
        self.nothing_is_left().await?;
        Ok((seconds, self.rest_of_writes().await?))
    }

    /// A fleet that leaves something behind has not come down, however fast it was.
    async fn nothing_is_left(&mut self) -> anyhow::Result<()> {
        let client = || self.world.client.clone();
        let product = &mut self.product;
        let instances: Api<SimulatedInstance> = Api::all(client());
        Census::new(instances, "instances are left", |_| true)
            .until(|count| count.all == 0, SHORT, product)
            .await?;
        let nodes: Api<Node> = Api::all(client());
        let is_ours = |node: &Node| node.label(names::label::SIMULATED).is_some();
        Census::new(nodes, "nodes are left", is_ours)
            .until(|count| count.marked == 0, SHORT, product)
            .await?;
        let leases: Api<Lease> = Api::namespaced(client(), "kube-node-lease");
        Census::new(leases, "leases are left", |_| true)
            .until(|count| count.all == 0, SHORT, product)
            .await
            .context("the fleet left something behind")
    }

    fn machines_api(&self) -> Api<Machine> {
        Api::namespaced(self.world.client.clone(), NAMESPACE)
    }
}

impl Cpu {
    /// What the control plane has used since its start.
    fn of_plane(world: &World) -> anyhow::Result<Self> {
        let of = |component: Component| {
            let pid = world.plane.pid(component);
            proc::cpu_s(pid.with_context(|| format!("{} has no process", component.program()))?)
        };
        Ok(Self {
            controllers: None,
            simulated_cloud: None,
            api_server: of(Component::ApiServer)?,
            etcd: of(Component::Etcd)?,
            controller_manager: of(Component::ControllerManager)?,
        })
    }

    /// What the control plane has used since an earlier reading.
    fn since(&self, before: &Self) -> Self {
        Self {
            controllers: self.controllers,
            simulated_cloud: self.simulated_cloud,
            api_server: self.api_server - before.api_server,
            etcd: self.etcd - before.etcd,
            controller_manager: self.controller_manager - before.controller_manager,
        }
    }
}

/// A count for each minute.
fn per(count: u64, minutes: f64) -> f64 {
    // Counts stay far below 2^52, where a float holds every whole number.
    count as f64 / minutes
}
