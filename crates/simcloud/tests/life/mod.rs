//! One instance on virtual time, and a timeline of what the far side does to it, from wake to wake.

use std::fmt::Write as _;

use expect_test::Expect;
use mapi_api::condition::whole_seconds;
use mapi_api::meta::Time;
use mapi_api::{Node, SimulatedInstance, Timestamp};
use mapi_simcloud::decide::{Effect, Facts, NodeSight, Plan, advance};
use mapi_simcloud::node::{self, Readiness};
use serde_json::{Value, json};

/// One instance, and whatever has the name of its Node.
pub struct Life {
    pub now: Timestamp,
    pub instance: Option<SimulatedInstance>,
    pub node: Option<Node>,
    uids: usize,
    pub pulse: Option<Readiness>,
    log: String,
}

pub const START: i64 = 1_700_000_000;

/// 20 s to provision, 15 s to boot, 10 s to join, 5 s to be Ready, 2 s to stop, 10 s to go.
pub fn cloud() -> Value {
    json!({ "provision": "20s", "boot": "15s", "join": "10s", "ready": "5s", "stop": "2s", "delete": "10s" })
}

impl Life {
    pub fn new(timing: Value, faults: Value) -> Self {
        let created = Timestamp::from_second(START).unwrap().to_string();
        let object = json!({
            "metadata": { "name": "i-sim-1", "namespace": "ns", "uid": "u", "creationTimestamp": created },
            "spec": {
                "machineRef": { "namespace": "ns", "name": "m", "uid": "mu" }, "token": "mu", "zone": "a",
                "timing": timing, "faults": faults,
                "node": { "name": "m", "providerID": "kubemark:///a/i-sim-1" },
                "addresses": [{ "type": "InternalIP", "address": "10.200.0.7" }],
            },
        });
        Self {
            now: Timestamp::from_second(START).unwrap(),
            instance: Some(serde_json::from_value(object).unwrap()),
            node: None,
            uids: 0,
            pulse: None,
            log: String::new(),
        }
    }

    pub fn second(&self) -> String {
        let passed = self.now.duration_since(Timestamp::from_second(START).unwrap());
        let millis = passed.as_millis();
        if millis % 1000 == 0 {
            (millis / 1000).to_string()
        } else {
            format!("{}.{:03}", millis / 1000, millis % 1000)
        }
    }

    /// Looks until nothing is to be done now. Every look after a write must come to the same end.
    pub fn look(&mut self) -> Option<Timestamp> {
        let mut words = vec![];
        loop {
            let Some(instance) = self.instance.clone() else { break self.say(&words, None) };
            let node = self.node.clone();
            let facts =
                Facts { instance: &instance, node: NodeSight::of(&instance, node.as_ref()), now: self.now };
            let Plan { effects, wake, pulse } = advance(&facts);
            if pulse != self.pulse {
                words.push(if pulse.is_some() { "speaks".into() } else { "falls silent".into() });
                self.pulse = pulse;
            }
            if effects.is_empty() {
                break self.say(&words, wake);
            }
            assert!(words.len() < 20, "no end at {}: {words:?}", self.second());
            for effect in effects {
                words.push(self.perform(effect));
            }
        }
    }

    pub fn say(&mut self, words: &[String], wake: Option<Timestamp>) -> Option<Timestamp> {
        if !words.is_empty() {
            let second = self.second();
            writeln!(self.log, "{second}: {}", words.join(", ")).unwrap();
        }
        wake
    }

    pub fn perform(&mut self, effect: Effect) -> String {
        match effect {
            Effect::Status(status) => {
                let mut words = status.state.to_string();
                for condition in &status.conditions {
                    write!(words, " {}={}/{}", condition.type_, condition.status.0, condition.reason)
                        .unwrap();
                }
                self.instance.as_mut().unwrap().status = Some(*status);
                words
            }
            Effect::Register(readiness) => {
                self.uids += 1;
                let mut body = node::body(self.instance.as_ref().unwrap(), &readiness, self.now, "v1.36.0");
                body["metadata"]["uid"] = format!("n{}", self.uids).into();
                body["metadata"]["creationTimestamp"] = whole_seconds(self.now).to_string().into();
                self.node = Some(serde_json::from_value(body).unwrap());
                format!("register {}", readiness.status())
            }
            Effect::Report { readiness, was_silent } => {
                self.judge(readiness.status());
                format!("report {}{}", readiness.status(), if was_silent { " and all else" } else { "" })
            }
            Effect::Unregister => {
                self.node = None;
                "delete node".into()
            }
            Effect::Terminate => {
                self.mark();
                "terminate".into()
            }
            Effect::Remove => {
                if let Some(instance) = self.instance.take()
                    && matches!(NodeSight::of(&instance, self.node.as_ref()), NodeSight::Ours(_))
                {
                    self.node = None;
                }
                "remove".into()
            }
        }
    }

    /// Somebody else writes condition Ready of the Node.
    pub fn judge(&mut self, status: &str) {
        let conditions = &mut self.node.as_mut().unwrap().status.conditions;
        conditions.iter_mut().find(|condition| condition.type_ == "Ready").unwrap().status = status.into();
    }

    /// Somebody asks for the end.
    pub fn mark(&mut self) {
        self.instance.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(whole_seconds(self.now)));
    }

    /// From wake to wake for so many seconds.
    pub fn run(&mut self, seconds: i64) -> &mut Self {
        let end = self.now + jiff::SignedDuration::from_secs(seconds);
        loop {
            match self.look() {
                Some(wake) if wake <= end => {
                    assert!(wake > self.now, "a wake that does not lie ahead");
                    self.now = wake;
                }
                _ => break,
            }
        }
        self.now = end;
        self
    }

    #[track_caller]
    pub fn expect(&self, expected: Expect) {
        expected.assert_eq(&self.log);
    }
}
