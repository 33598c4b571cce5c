//! Ownership, step by step. What is expected here was first seen on a real API server, version 1.36.

mod applies;
mod laws;
mod refusals;
pub(crate) mod schemas;
mod updates;

use std::fmt::Write as _;

use expect_test::Expect;
use serde_json::{Map, Value};

use crate::managed::entries::unchecked;
use crate::managed::fields::paths;
use crate::managed::{Manager, Reach, apply, note_update};
use crate::patch::merge;
use crate::schema::Schema;

/// An object that several managers write.
struct Story {
    schema: Schema,
    object: Option<Value>,
    /// Whole seconds; each step takes one.
    clock: u32,
}

impl Story {
    fn new() -> Self {
        Story { schema: schemas::thing(), object: None, clock: 0 }
    }

    /// `apply`, `force`, `update` (a merge patch), `replace`, or `status` (a merge patch of the subresource), and who
    /// does it. What is refused changes nothing.
    fn step(&mut self, what: &str, sent: &Value) -> Result<(), String> {
        let (verb, manager) = what.split_once(' ').expect("a verb and a manager");
        self.clock += 1;
        let time = format!("2030-01-01T00:00:{:02}Z", self.clock);
        let of_status = verb == "status";
        let manager = Manager {
            name: manager,
            api_version: "t.io/v1",
            subresource: if of_status { "status" } else { "" },
            time: &time,
            reach: if of_status { Reach::Only("status") } else { Reach::AllBut(&[&["status"]]) },
        };
        let mut identified = sent.clone();
        identified["apiVersion"] = "t.io/v1".into();
        identified["kind"] = "Thing".into();
        identified["metadata"]["name"] = "x".into();
        if let "apply" | "force" = verb {
            let done = apply(&self.schema, self.object.as_ref(), &identified, &manager, verb == "force");
            self.object = Some(done.map_err(|error| format!("{} {}", error.code, error.message))?);
            return Ok(());
        }
        let mut new = self.object.clone().filter(|_| verb != "replace").unwrap_or(identified);
        if verb == "replace" && self.object.is_some() {
            new["metadata"]["managedFields"] = self.managed();
        } else {
            merge(&mut new, sent);
        }
        note_update(&self.schema, self.object.as_ref(), &mut new, &manager);
        self.object = Some(new);
        Ok(())
    }

    fn managed(&self) -> Value {
        let managed = self.object.as_ref().and_then(|object| object.pointer("/metadata/managedFields"));
        managed.cloned().unwrap_or_default()
    }

    /// The object without what says which it is.
    fn content(&self) -> Value {
        let mut content = self.object.clone().unwrap_or_default();
        if let Value::Object(fields) = &mut content {
            fields.retain(|name, _| name != "apiVersion" && name != "kind");
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.retain(|name, _| name != "name" && name != "managedFields");
                if metadata.is_empty() {
                    fields.remove("metadata");
                }
            }
        }
        content
    }

    /// A line for each entry: who, how, when, what.
    fn owners(&self) -> String {
        let mut lines = String::new();
        for entry in unchecked(self.managed()) {
            let how = if entry.is(crate::managed::Operation::Apply) { "applied" } else { "updated" };
            let through = if entry.subresource().is_empty() { "" } else { " through status" };
            let second = entry.time().get(17..19).unwrap_or("never");
            let owned = paths(entry.fields().unwrap_or(&Map::new())).join(" ");
            writeln!(lines, "{} {how}{through} at {second}: {owned}", entry.manager())
                .expect("memory suffices");
        }
        lines
    }
}

/// Plays the steps; what is expected are refusals, the object, and who owns what of it in the end.
fn check(steps: &[(&str, Value)], expected: Expect) {
    let mut story = Story::new();
    let mut seen = String::new();
    for (what, sent) in steps {
        if let Err(refusal) = story.step(what, sent) {
            writeln!(seen, "{what}: {refusal}").expect("memory suffices");
        }
    }
    write!(seen, "{}\n{}", story.content(), story.owners()).expect("memory suffices");
    expected.assert_eq(&seen);
}
