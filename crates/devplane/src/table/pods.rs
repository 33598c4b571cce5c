//! How a pod fares, in a word. Never here: columns.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, condition, items, number, text};

/// What a pod's containers amount to.
pub(super) struct Summary {
    /// `1/2`: how many are ready, and how many there are.
    pub ready: String,
    pub status: String,
    /// `3 (5m ago)`.
    pub restarts: String,
}

/// What is counted of containers.
#[derive(Default)]
struct Count {
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Count {
    fn restart(&mut self, container: &Value) {
        self.restarts += number(container, &["restartCount"]);
        let ended = text(container, &["lastState", "terminated", "finishedAt"]).parse().ok();
        self.last_restart = self.last_restart.max(ended);
    }
}

pub(super) fn summary(pod: &Value, now: Timestamp) -> Summary {
    let mut count = Count::default();
    let init = init_status(pod, &mut count);
    let is_initialised = condition(pod, "Initialized").is_some_and(|condition| condition["status"] == "True");
    let status = match init {
        Some(status) if !is_initialised => status,
        Some(_) | None => {
            // What the init containers went through is over; sidecars go on.
            let sidecars = sidecar_statuses(pod);
            count.restarts = 0;
            count.last_restart = None;
            sidecars.for_each(|container| count.restart(container));
            main_status(pod, &mut count)
        }
    };
    let total = items(pod, &["spec", "containers"]).len() + sidecars(pod).count();
    let restarts = match count.last_restart {
        Some(time) if count.restarts > 0 => {
            format!("{} ({} ago)", count.restarts, age::since(&time.to_string().into(), now))
        }
        Some(_) | None => count.restarts.to_string(),
    };
    Summary {
        ready: format!("{}/{total}", count.ready),
        status: deletion_status(pod).unwrap_or(&status).to_owned(),
        restarts,
    }
}

/// What clients may want to know of a pod's row: whether the pod has ended.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let phase = text(pod, &["status", "phase"]);
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

/// How many of a pod's readiness gates are open: `1/2`.
pub(super) fn gates(pod: &Value) -> Option<String> {
    let gates = items(pod, &["spec", "readinessGates"]);
    let is_open = |gate: &&Value| {
        condition(pod, text(gate, &["conditionType"])).is_some_and(|condition| condition["status"] == "True")
    };
    (!gates.is_empty()).then(|| format!("{}/{}", gates.iter().filter(is_open).count(), gates.len()))
}

/// Names of the init containers that stay.
fn sidecars(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = items(pod, &["spec", "initContainers"]).iter();
    containers
        .filter(|container| container["restartPolicy"] == "Always")
        .map(|container| text(container, &["name"]))
}

fn is_sidecar(pod: &Value, container: &Value) -> bool {
    sidecars(pod).any(|name| name == text(container, &["name"]))
}

fn sidecar_statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    items(pod, &["status", "initContainerStatuses"]).iter().filter(|container| is_sidecar(pod, container))
}

/// Where the initialisation stands, `None` once it is over or before it is known.
fn init_status(pod: &Value, count: &mut Count) -> Option<String> {
    for (index, container) in items(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        count.restart(container);
        let terminated = &container["state"]["terminated"];
        let waiting = text(container, &["state", "waiting", "reason"]);
        if terminated.is_object() && number(terminated, &["exitCode"]) == 0 {
            continue;
        }
        if is_sidecar(pod, container) && container["started"] == true {
            count.ready += usize::from(container["ready"] == true);
            continue;
        }
        let stage = if terminated.is_object() {
            ended(terminated)
        } else if matches!(waiting, "" | "PodInitializing") {
            format!("{index}/{}", items(pod, &["spec", "initContainers"]).len())
        } else {
            waiting.to_owned()
        };
        return Some(format!("Init:{stage}"));
    }
    None
}

/// What the containers do: the first that has something to say is heard.
fn main_status(pod: &Value, count: &mut Count) -> String {
    let mut said = None;
    let mut is_any_running = false;
    for container in items(pod, &["status", "containerStatuses"]) {
        count.restart(container);
        let state = &container["state"];
        let waiting = text(state, &["waiting", "reason"]);
        if !waiting.is_empty() {
            said.get_or_insert_with(|| waiting.to_owned());
        } else if state["terminated"].is_object() {
            said.get_or_insert_with(|| ended(&state["terminated"]));
        } else if container["ready"] == true && state["running"].is_object() {
            is_any_running = true;
            count.ready += 1;
        }
    }
    match said {
        Some(said) if said == "Completed" && is_any_running => {
            let is_ready = condition(pod, "Ready").is_some_and(|condition| condition["status"] == "True");
            if is_ready { "Running" } else { "NotReady" }.into()
        }
        Some(said) => said,
        None => overall(pod).to_owned(),
    }
}

/// What the pod itself says.
fn overall(pod: &Value) -> &str {
    let is_held = |condition: &Value| condition["reason"] == "SchedulingGated";
    if condition(pod, "PodScheduled").is_some_and(is_held) {
        return "SchedulingGated";
    }
    match text(pod, &["status", "reason"]) {
        "" => text(pod, &["status", "phase"]),
        reason => reason,
    }
}

/// How a container ended.
fn ended(terminated: &Value) -> String {
    match (text(terminated, &["reason"]), number(terminated, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(terminated, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// What counts more than all else: that the pod is being deleted.
fn deletion_status(pod: &Value) -> Option<&'static str> {
    let has_ended = matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed");
    if !pod["metadata"]["deletionTimestamp"].is_string() {
        return None;
    }
    if text(pod, &["status", "reason"]) == "NodeLost" {
        return Some("Unknown");
    }
    (!has_ended).then_some("Terminating")
}
