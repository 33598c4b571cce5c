//! What the kernel tells of a process: CPU, memory, and how busy the machine is.
//!
//! Never here: a number that is estimated.

use std::fs;

use anyhow::Context as _;
use serde::Serialize;

/// Ticks a second in `/proc/<pid>/stat`. Linux shows 100 to every program whatever the kernel's own rate is.
const TICKS: f64 = 100.0;

/// Memory of a process in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Resident now.
    pub resident_mib: f64,
    /// What of it is no page of a file: heap and stacks.
    pub anonymous_mib: f64,
    /// The most that was ever resident.
    pub peak_mib: f64,
}

/// Seconds of CPU, user and system, that a process has used.
pub fn cpu_s(pid: u32) -> anyhow::Result<f64> {
    parse_stat(&read(&format!("/proc/{pid}/stat"))?).with_context(|| format!("/proc/{pid}/stat has no times"))
}

/// Memory of a process.
pub fn memory(pid: u32) -> anyhow::Result<Memory> {
    parse_status(&read(&format!("/proc/{pid}/status"))?)
        .with_context(|| format!("/proc/{pid}/status has no sizes"))
}

/// Average number of processes that wanted to run during the last minute.
pub fn load() -> anyhow::Result<f64> {
    let text = read("/proc/loadavg")?;
    text.split(' ').next().and_then(|first| first.parse().ok()).context("/proc/loadavg has no number")
}

fn read(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{path}`"))
}

fn parse_stat(text: &str) -> Option<f64> {
    // The second field is the name in brackets and may hold anything, so the count begins behind it.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

fn parse_status(text: &str) -> Option<Memory> {
    let mib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: f64 = line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kib / 1024.0)
    };
    let peak_mib = mib("VmHWM")?;
    Some(Memory { resident_mib: mib("VmRSS")?, anonymous_mib: mib("RssAnon")?, peak_mib })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_brackets_and_spaces() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 900 0 0 0 150 25 0 0 20 0 3 0 100 1 2 3\n";
        assert_eq!(parse_stat(text), Some(1.75));
        assert_eq!(parse_stat("7 (a) S 1"), None);
    }

    #[test]
    fn sizes_are_read_in_mib() {
        let text = "Name:\tx\nVmPeak:\t  9000 kB\nVmHWM:\t  3072 kB\nVmRSS:\t  2048 kB\nRssAnon:\t  512 kB\n";
        let memory = Memory { resident_mib: 2.0, anonymous_mib: 0.5, peak_mib: 3.0 };
        assert_eq!(parse_status(text), Some(memory));
        assert_eq!(parse_status("Name:\tx\n"), None);
    }
}
