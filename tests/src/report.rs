//! What a failed wait says: the last states of the objects, and the ends of the logs.

use std::{fmt::Write as _, time::Duration};

use kube::{ResourceExt as _, api::DynamicObject, runtime::watcher};
use serde_json::Value;

use crate::{World, watch::Target};

/// Up to this many objects are shown whole; of more, a line each.
const WHOLE: usize = 2;
/// Of a long list, this many.
const LINES: usize = 40;
/// Of a status in a line, this many characters.
const STATUS: usize = 400;
/// Of a log, this many of the lines that name the namespace, and as many of the last ones.
const LOG_LINES: usize = 30;

/// A wait that came to nothing.
pub(crate) struct TimedOut(String);

impl TimedOut {
    /// Adds the last error of the watch, if there was one.
    pub(crate) fn with_trouble(self, trouble: Option<watcher::Error>) -> anyhow::Error {
        let TimedOut(mut text) = self;
        if let Some(error) = trouble {
            text = format!("{:#}\n{text}", anyhow::Error::new(error).context("the watch had trouble"));
        }
        anyhow::anyhow!(text)
    }
}

/// The report of a wait for `target` that came to nothing.
pub(crate) fn timed_out(
    world: &World,
    target: &Target,
    patience: Duration,
    last: &[&DynamicObject],
) -> TimedOut {
    let namespace = target.api.namespace().unwrap_or_default();
    TimedOut(format!(
        "{} are not as expected after {} s; there are {}:\n{}\n{}",
        target.what,
        patience.as_secs(),
        last.len(),
        states(last),
        logs(world, namespace),
    ))
}

/// The ends of the logs of controllers and simulated cloud, with the lines about a namespace first.
pub(crate) fn logs(world: &World, namespace: &str) -> String {
    let mut text = String::new();
    for (name, log) in [("controllers", world.controllers_log()), ("simulated cloud", world.cloud_log())] {
        if !namespace.is_empty() {
            let about: Vec<&str> = log.lines().filter(|line| line.contains(namespace)).collect();
            let _ = writeln!(text, "--- log of the {name} about `{namespace}`\n{}", tail(&about));
        }
        let all: Vec<&str> = log.lines().collect();
        let _ = writeln!(text, "--- end of the log of the {name}\n{}", tail(&all));
    }
    text
}

fn tail(lines: &[&str]) -> String {
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

fn states(objects: &[&DynamicObject]) -> String {
    if objects.len() <= WHOLE {
        return objects.iter().map(|object| whole(object)).collect::<Vec<_>>().join("\n");
    }
    let mut lines: Vec<String> = objects.iter().take(LINES).map(|object| line(object)).collect();
    if objects.len() > LINES {
        lines.push(format!("… and {} more", objects.len() - LINES));
    }
    lines.join("\n")
}

fn whole(object: &DynamicObject) -> String {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    serde_json::to_string_pretty(&object).unwrap_or_else(|error| error.to_string())
}

fn line(object: &DynamicObject) -> String {
    let deleting = if object.metadata.deletion_timestamp.is_some() { " (being deleted)" } else { "" };
    let status = object.data.get("status").unwrap_or(&Value::Null).to_string();
    let status: String = status.chars().take(STATUS).collect();
    format!("{}{deleting}: {status}", object.name_any())
}
