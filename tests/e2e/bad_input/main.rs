//! What bad input gets: a condition that says where, what and what is allowed; no crash, no work without end, no harm to
//! others, and a way out by deletion.

mod foreign_node;
mod idle;
mod machines;
mod sets;

use e2e::{MachineSet, Ns, Object, Options, World};
use mapi_api::{Condition, Conditions, names::condition};
use serde_json::Value;

async fn world() -> World {
    World::shared(Options { audit: true, ..Options::default() }).await
}

/// The message of condition SpecValid, if it complains for this reason.
fn complaint<'a>(conditions: &'a [Condition], reason: &str) -> Option<&'a str> {
    let found = conditions.find(condition::SPEC_VALID)?;
    let is_complaint = found.status.0 == "False" && found.severity == "Error" && found.reason == reason;
    is_complaint.then_some(&found.message)
}

/// A message says all that it must.
fn check_says(what: &str, message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{what}: no `{part}` in `{message}`");
    }
}

/// The controllers have nothing to do any more in this namespace: they write nothing while they do other work.
async fn check_quiet(ns: &Ns) {
    // The first round is for what was still under way.
    work_elsewhere(ns).await;
    let before = writes(ns);
    work_elsewhere(ns).await;
    let after = writes(ns);
    assert_eq!(after[before.len()..], Vec::<String>::new());
    // What is said once about each object is a handful of writes.
    assert!(before.len() < 200, "{before:#?}");
}

/// Three machines come and go in another namespace.
async fn work_elsewhere(ns: &Ns) {
    let elsewhere = ns.world().namespace("elsewhere").await;
    let set = elsewhere.machine_set("a").replicas(3).create().await;
    elsewhere.wait_running(3).await;
    elsewhere.delete::<MachineSet>(set.name()).await;
    elsewhere.wait_nothing_left().await;
}

/// The controllers' writes to objects of a namespace so far.
fn writes(ns: &Ns) -> Vec<String> {
    let log = std::fs::read_to_string(ns.world().audit_log()).expect("the server writes it");
    // Half a line is about somebody else: ours are written when their answers come.
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_ours = |line: &Value| {
        line["objectRef"]["namespace"] == ns.name()
            && line["userAgent"].as_str().is_some_and(|agent| agent.starts_with("machine-api-operator/"))
    };
    let word = |line: &Value| {
        let (object, verb) = (&line["objectRef"], &line["verb"]);
        format!("{verb} {} {} {}", object["resource"], object["subresource"], object["name"])
    };
    lines.filter(is_ours).map(|line| word(&line)).collect()
}
