//! Watches: streams of events, read in the background while a case goes on. Never here: what starts them.

use std::time::Duration;

use anyhow::bail;
use futures::StreamExt as _;
use http::Response;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Map, Value, json};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use crate::{expect::Expect, words::Words};

/// Events come within milliseconds; on a computer that is busy with other things, within seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// More than any case makes.
const EVENTS: usize = 1000;

/// A watch that goes on.
#[derive(Debug)]
pub(crate) struct Watch {
    events: mpsc::Receiver<Value>,
    reader: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Watch {
    /// Reads the events of an answer from now on.
    pub(crate) fn new(response: Response<Body>) -> Watch {
        let (sender, events) = mpsc::channel(EVENTS);
        let reader = tokio::spawn(read(response.into_body(), sender));
        Watch { events, reader }
    }

    /// The differences between the next events and the wanted ones, each a map of its type to part of its object.
    pub(crate) async fn next(
        &mut self,
        wanted: &[Map<String, Value>],
        in_any_order: bool,
        words: &mut Words,
    ) -> anyhow::Result<Vec<String>> {
        let mut got = Vec::new();
        for number in 0..wanted.len() {
            let may_be_bookmark = wanted[number].contains_key("BOOKMARK");
            match timeout(PATIENCE, self.receive(may_be_bookmark)).await {
                Ok(Some(event)) => got.push(event),
                Ok(None) => {
                    bail!("the watch ended after {number} of {} events: {}", wanted.len(), json!(got))
                }
                Err(_) => {
                    let missing = json!(wanted[number]);
                    bail!(
                        "event {} of {} did not come: {missing}; before it: {}",
                        number + 1,
                        wanted.len(),
                        json!(got)
                    )
                }
            }
        }
        let wanted: Value = words.value(&wanted.iter().map(event).collect())?;
        let got = Value::from(got);
        let mut expect = Expect::new(words);
        let wanted = if in_any_order { json!({ "<any order>": wanted }) } else { wanted };
        expect.part("events", &wanted, Some(&got));
        Ok(expect.differences)
    }

    /// The next event. A server sends bookmarks whenever it likes, so that they are passed over where none is wanted.
    async fn receive(&mut self, may_be_bookmark: bool) -> Option<Value> {
        loop {
            let event = self.events.recv().await?;
            if may_be_bookmark || event["type"] != "BOOKMARK" {
                return Some(event);
            }
        }
    }

    /// What comes before the end of the watch, or that it does not end.
    pub(crate) async fn end(&mut self) -> Vec<String> {
        let mut differences = Vec::new();
        loop {
            match timeout(PATIENCE, self.receive(false)).await {
                Ok(Some(event)) => differences.push(format!("an event before the end: {event}")),
                Ok(None) => return differences,
                Err(_) => {
                    differences.push(format!("the watch goes on after {} s", PATIENCE.as_secs()));
                    return differences;
                }
            }
        }
    }
}

fn event(wanted: &Map<String, Value>) -> Value {
    wanted.iter().map(|(sort, object)| json!({"type": sort, "object": object})).next().unwrap_or_default()
}

async fn read(body: Body, events: mpsc::Sender<Value>) {
    let mut chunks = body.into_data_stream();
    let mut pending = Vec::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        pending.extend_from_slice(&chunk);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let event = serde_json::from_slice(&line)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
            if events.send(event).await.is_err() {
                return;
            }
        }
    }
}
