//! The figures of one number of machines, their targets, and how they are printed.
//!
//! Never here: measuring.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::audit::{Actor, Write};
use super::proc::Memory;

/// Everything that was measured for one number of machines.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Number of machines, N.
    pub machines: u32,
    /// Cores that all processes share, the control plane and this program too.
    pub cores: usize,
    /// Load average just before: figures of a busy machine are worth less.
    pub load_before: f64,
    /// Seconds from 0 to N Running.
    pub seconds_up: f64,
    /// Seconds from N to 0.
    pub seconds_down: f64,
    /// CPU-seconds on the way up.
    pub cpu_up_s: Cpu,
    /// Memory of the controllers' process 5 s after the last machine became Running.
    pub memory: Memory,
    /// Writes on the way up, from the start of the controllers.
    pub writes_up: Vec<Row>,
    /// Writes on the way down.
    pub writes_down: Vec<Row>,
    /// The fleet at rest, if that was looked at.
    pub idle: Option<Idle>,
    /// The bare loop.
    pub bare_loop: Option<BareLoop>,
}

/// CPU-seconds by process.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// The controllers, from their start.
    pub controllers: Option<f64>,
    /// The far side of the simulated cloud, from its start.
    pub simulated_cloud: Option<f64>,
    /// kube-apiserver.
    pub api_server: f64,
    /// etcd.
    pub etcd: f64,
    /// kube-controller-manager.
    pub controller_manager: f64,
}

/// Like writes and their number.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What they have in common.
    #[serde(flatten)]
    pub write: Write,
    /// How many there were.
    pub count: u64,
}

impl From<(Write, u64)> for Row {
    fn from((write, count): (Write, u64)) -> Self {
        Self { write, count }
    }
}

/// The fleet at rest.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Idle {
    /// How long it was looked at.
    pub seconds: u64,
    /// Writes of the controllers.
    pub operator_writes_per_minute: f64,
    /// Writes of the simulated cloud: heartbeats.
    pub simulated_cloud_writes_per_minute: f64,
    /// CPU of the controllers' process.
    pub controllers_cpu_s_per_minute: f64,
    /// Memory of the controllers' process at the end.
    pub resident_mib: f64,
}

/// The bare loop.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BareLoop {
    /// Writes that it sent.
    pub writes: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// CPU-seconds meanwhile.
    pub cpu_s: Cpu,
}

/// A figure and what it may be at most.
struct Line {
    name: String,
    measured: String,
    limit: Option<(String, bool)>,
}

impl Line {
    fn new(name: impl Into<String>, measured: String) -> Self {
        Self { name: name.into(), measured, limit: None }
    }

    /// Without a limit the figure is only told.
    fn at_most(name: impl Into<String>, measured: f64, digits: usize, limit: Option<f64>) -> Self {
        let limit = limit.map(|limit| (format!("≤ {limit}"), measured <= limit));
        Self { name: name.into(), measured: format!("{measured:.digits$}"), limit }
    }
}

/// The most machines for which there are targets.
const LARGEST_WITH_TARGETS: u32 = 1_000;

impl Report {
    fn lines(&self) -> Vec<Line> {
        let machines = f64::from(self.machines);
        let target = |limit: f64| (self.machines <= LARGEST_WITH_TARGETS).then_some(limit);
        let rest_mib = if self.machines <= 100 { 20.0 } else { 30.0 };
        let controllers = self.cpu_up_s.controllers.unwrap_or_default();
        let mut lines = vec![
            Line::new("seconds 0 → N Running", format!("{:.1}", self.seconds_up)),
            Line::new("seconds N → 0", format!("{:.1}", self.seconds_down)),
        ];
        if let Some(bare) = self.bare_loop {
            let name = format!("seconds of the bare loop, {} writes", bare.writes);
            lines.push(Line::new(name, format!("{:.1}", bare.seconds)));
            let ratio = self.seconds_up / bare.seconds;
            lines.push(Line::at_most("0 → N, times the bare loop", ratio, 2, target(1.5)));
        }
        let writes = count(&self.writes_up, Actor::Operator) / machines;
        let cloud = count(&self.writes_up, Actor::SimulatedCloud) / machines;
        lines.extend([
            Line::at_most("operator's writes per machine to Running", writes, 2, target(9.5)),
            Line::new("simulated cloud's writes per machine", format!("{cloud:.2}")),
            Line::at_most("CPU-seconds per 100 machines", controllers / machines * 100.0, 2, target(1.3)),
            Line::at_most(
                "VmRSS 5 s after the last Running, MiB",
                self.memory.resident_mib,
                1,
                target(rest_mib),
            ),
            Line::new("  of it heap and stacks, MiB", format!("{:.1}", self.memory.anonymous_mib)),
            Line::new("VmHWM then, MiB", format!("{:.1}", self.memory.peak_mib)),
        ]);
        if let Some(idle) = self.idle {
            let Idle {
                operator_writes_per_minute: operator, simulated_cloud_writes_per_minute: cloud, ..
            } = idle;
            lines.push(Line::at_most("operator's writes per minute at rest", operator, 1, target(0.0)));
            lines.push(Line::new("heartbeats per minute meanwhile", format!("{cloud:.0}")));
            let cpu = idle.controllers_cpu_s_per_minute;
            lines.push(Line::new("CPU-seconds per minute at rest", format!("{cpu:.2}")));
            lines.push(Line::new("VmRSS at the end of it, MiB", format!("{:.1}", idle.resident_mib)));
        }
        lines
    }
}

/// The figures as text of 80 columns.
pub fn table(report: &Report) -> String {
    let Report { machines, cores, load_before, .. } = report;
    let mut text = String::new();
    let mut line =
        |line: String| writeln!(text, "{}", line.trim_end()).expect("a string takes all that is written");
    line(format!("N = {machines} machines; {cores} cores for everything; load before: {load_before:.1}"));
    line(String::new());
    line(format!("{:<46}{:>10}  {:<10}{}", "", "measured", "target", "result"));
    for Line { name, measured, limit } in report.lines() {
        let (limit, result) = match limit {
            Some((limit, true)) => (limit, "met"),
            Some((limit, false)) => (limit, "missed"),
            None => (String::new(), ""),
        };
        line(format!("{name:<46}{measured:>10}  {limit:<10}{result}"));
    }
    line(String::new());
    line(cpu_line("CPU-seconds on the way up", &report.cpu_up_s));
    if let Some(bare) = report.bare_loop {
        line(cpu_line("CPU-seconds of the bare loop", &bare.cpu_s));
    }
    line(String::new());
    line(format!(
        "{:<50}{:>9}{:>12}{:>9}",
        "writes (code where they were refused)", "0 → N", "a machine", "N → 0"
    ));
    for (name, up, down) in rows(report) {
        // Counts stay far below 2^52, where a float holds every whole number.
        let each = up as f64 / f64::from(*machines);
        line(format!("{name:<50}{up:>9}{each:>12.2}{down:>9}"));
    }
    text
}

fn cpu_line(name: &str, cpu: &Cpu) -> String {
    let Cpu { controllers, simulated_cloud, api_server, etcd, controller_manager } = cpu;
    let mut text = format!("{name}:");
    if let (Some(controllers), Some(cloud)) = (controllers, simulated_cloud) {
        write!(text, " controllers {controllers:.1}, simulated cloud {cloud:.1},")
            .expect("a string takes all");
    }
    write!(
        text,
        "\n  API server {api_server:.1}, etcd {etcd:.1}, controller manager {controller_manager:.1}"
    )
    .expect("a string takes all that is written");
    text
}

/// What the writes of one line of the table have in common; the code is there when they were refused.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Sort<'a> {
    actor: Actor,
    resource: &'a str,
    verb: &'a str,
    refused: Option<u16>,
}

impl<'a> Sort<'a> {
    fn of(write: &'a Write) -> Self {
        let Write { actor, resource, verb, code, .. } = write;
        Self { actor: *actor, resource, verb, refused: (!write.is_accepted()).then_some(*code) }
    }
}

/// A line for each sort of write: its name, and how many there were on the way up and down.
fn rows(report: &Report) -> Vec<(String, u64, u64)> {
    let mut counts: BTreeMap<Sort<'_>, (u64, u64)> = BTreeMap::new();
    for Row { write, count } in &report.writes_up {
        counts.entry(Sort::of(write)).or_default().0 += count;
    }
    for Row { write, count } in &report.writes_down {
        counts.entry(Sort::of(write)).or_default().1 += count;
    }
    let named = counts.into_iter().map(|(Sort { actor, resource, verb, refused }, (up, down))| {
        let who = match actor {
            Actor::Operator => "operator",
            Actor::SimulatedCloud => "cloud",
        };
        let refused = refused.map(|code| format!(" ({code})")).unwrap_or_default();
        (format!("{who}: {verb} {resource}{refused}"), up, down)
    });
    named.collect()
}

fn count(rows: &[Row], actor: Actor) -> f64 {
    let count: u64 = rows.iter().filter(|row| row.write.actor == actor).map(|row| row.count).sum();
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(actor: Actor, resource: &str, code: u16, count: u64) -> Row {
        let (resource, verb, account) = (resource.into(), "create".into(), "a".into());
        Row { write: Write { actor, resource, verb, code, account }, count }
    }

    fn report(machines: u32) -> Report {
        let cpu = Cpu {
            controllers: Some(5_000.25),
            simulated_cloud: Some(5_000.25),
            api_server: 10_000.5,
            etcd: 1_000.5,
            controller_manager: 1_000.5,
        };
        Report {
            machines,
            cores: 128,
            load_before: 100.5,
            seconds_up: 12.0,
            seconds_down: 1_234.5,
            cpu_up_s: cpu,
            memory: Memory { resident_mib: 25.0, anonymous_mib: 15.0, peak_mib: 1_000.0 },
            writes_up: vec![
                row(Actor::Operator, "machinehealthchecks/status", 200, u64::from(machines) * 9),
                row(Actor::Operator, "machinehealthchecks/status", 409, 7),
                row(Actor::SimulatedCloud, "simulatedinstances/status", 201, 180_000),
            ],
            writes_down: vec![row(Actor::Operator, "machinehealthchecks/status", 201, 5)],
            idle: Some(Idle {
                seconds: 60,
                operator_writes_per_minute: 0.0,
                simulated_cloud_writes_per_minute: 30_000.0,
                controllers_cpu_s_per_minute: 0.25,
                resident_mib: 1_024.0,
            }),
            bare_loop: Some(BareLoop { writes: 300_000, seconds: 10.0, cpu_s: cpu }),
        }
    }

    fn result(report: &Report, name: &str) -> String {
        let table = table(report);
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    }

    #[test]
    fn the_table_fits_into_80_columns() {
        for machines in [100, 1_000, 5_000, 20_000] {
            let table = table(&report(machines));
            let longest = table.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(80), "{table}");
        }
    }

    #[test]
    fn targets_are_those_of_the_number_of_machines() {
        let memory = "VmRSS 5 s after";
        assert_eq!(result(&report(100), memory), "missed");
        assert_eq!(result(&report(1_000), memory), "met");
        assert_eq!(result(&report(5_000), memory), "25.0");
        assert_eq!(result(&report(1_000), "0 → N, times the bare loop"), "met");
        assert_eq!(result(&report(1_000), "operator's writes per minute at rest"), "met");
    }

    #[test]
    fn refused_writes_count_and_are_shown_by_code() {
        let report = report(100);
        assert!(table(&report).contains("operator: create machinehealthchecks/status (409)"));
        let line =
            report.lines().into_iter().find(|line| line.name.starts_with("operator's writes per machine"));
        assert_eq!(line.unwrap().measured, "9.07");
    }
}
