//! A machine before its double, asked as the machine controller asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use mapi_api::{Key, RawJson, SimulatedInstance};
use mapi_cloud::laws::Bench;
use mapi_cloud::{Answer, Cloud, Erased, Identity, Instance, Kind, Sighting, Want};
use mapi_cloud_kubemark::Kubemark;
use serde_json::{Value, json};

use crate::double::{Double, Examination};

/// A machine, its cloud, and the world.
pub struct Case {
    pub bench: Examination<Kubemark>,
    pub cloud: Erased<Kubemark>,
    pub who: Identity,
    pub spec: Value,
}

impl Case {
    pub fn new(more: Value) -> Self {
        let mut spec = json!({
            "apiVersion": "kubemarkproviderconfig.machine.openshift.io/v1beta1",
            "kind": "KubemarkMachineProviderSpec",
            "timing": { "profile": "instant" },
        });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let provider: fn(Double) -> Kubemark = |double| Kubemark::new(Arc::new(double));
        let bench = Examination { double: Double::new(spec.clone()), provider };
        let cloud = Erased(bench.provider());
        let who = who(&bench, "m");
        Self { bench, cloud, who, spec }
    }

    pub fn ask(&mut self, want: Want) -> Answer {
        self.who.now = self.bench.now();
        let spec = RawJson::from(self.spec.clone());
        let answer = block_on(self.cloud.ask(&self.who, Some(&spec), want));
        if let Some(status) = &answer.provider_status {
            self.who.provider_status = Some(status.clone());
        }
        if let Sighting::Present(instance) = &answer.sighting {
            self.who.provider_id.clone_from(&instance.provider_id);
        }
        answer
    }

    pub fn pass(&self, seconds: u64) {
        self.bench.pass(Duration::from_secs(seconds));
    }

    pub fn instance(&self) -> SimulatedInstance {
        self.bench.double.instance(&self.who.uid).expect("an instance")
    }

    /// Type, status and reason of the conditions of the provider status.
    pub fn conditions(&self) -> BTreeMap<String, (String, String, String)> {
        let status = self.who.provider_status.as_ref().map(RawJson::value).unwrap_or_default();
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.iter()
            .map(|c| (text(&c["type"]), (text(&c["status"]), text(&c["reason"]), text(&c["message"]))))
            .collect()
    }

    pub fn condition(&self, type_: &str) -> Option<String> {
        self.conditions().get(type_).map(|(status, reason, _)| format!("{status}/{reason}"))
    }
}

pub fn who(bench: &impl Bench, name: &str) -> Identity {
    Identity {
        key: Key::new("ns", name),
        uid: format!("5f0c8e5e-0000-4000-8000-{name:0>12}"),
        cluster: "c".into(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        provider_id: None,
        provider_status: None,
        created: Some(bench.now()),
        deleted: None,
        now: bench.now(),
    }
}

pub fn failure(answer: &Answer) -> Option<(Kind, String)> {
    answer.failure.as_ref().map(|failure| (failure.error.kind, failure.error.to_string()))
}

pub fn present(answer: &Answer) -> &Instance {
    match &answer.sighting {
        Sighting::Present(instance) => instance,
        Sighting::Unknown | Sighting::Absent => panic!("{:?} {:?}", answer.sighting, answer.failure),
    }
}
