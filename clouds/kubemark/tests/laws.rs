//! The simulated cloud keeps the laws of a cloud; and each law notices a cloud that breaks it.

#![expect(clippy::unwrap_used, reason = "a test ends where its world is not what it says")]

mod double;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use double::{Double, Examination};
use futures::executor::block_on;
use futures::stream::BoxStream;
use mapi_api::{Key, RawJson};
use mapi_cloud::{
    Activity, Capacity, CloudError, Goal, Identity, Kind, Next, Objects as _, Provider, ProviderKind,
    Sighting, Want, laws,
};
use mapi_cloud_kubemark::{Kubemark, KubemarkSpec, Sight, Step};
use serde_json::{Value, json};

fn spec(profile: &str, more: Value) -> Value {
    let mut spec = json!({
        "apiVersion": "kubemarkproviderconfig.machine.openshift.io/v1beta1",
        "kind": "KubemarkMachineProviderSpec",
        "timing": { "profile": profile },
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    spec
}

fn offences<P: Provider>(spec: Value, provider: fn(Double) -> P) -> Vec<(&'static str, String)> {
    let make = move || Examination { double: Double::new(spec.clone()), provider };
    block_on(laws::examine(&make))
}

// B12.13, B12.23, B12.24, B12.41
#[test]
fn the_simulated_cloud_is_a_cloud() {
    for (name, spec) in [
        ("instant", spec("instant", json!({}))),
        ("cloud", spec("cloud", json!({}))),
        ("baremetal", spec("baremetal", json!({}))),
        ("late", spec("instant", json!({ "timing": { "profile": "instant", "createVisible": "20s" } }))),
    ] {
        let offences = offences(spec, |double| Kubemark::new(Arc::new(double)));
        assert!(offences.is_empty(), "{name}: {offences:#?}");
    }
}

/// The simulated cloud with one defect.
struct Defective<const DEFECT: char>(Kubemark, Double);

/// Every create is under another name, so that a repetition does not meet the first one.
const FORGETS_TOKENS: char = 't';
/// An absence is read from the cache only.
const BELIEVES_CACHE: char = 'c';
/// Looking is taken for wanting.
const CREATES_ON_LOOK: char = 'l';
/// Every error is said to be the spec's fault.
const BLAMES_SPEC: char = 'b';
/// A stopped instance is said to be none.
const LOSES_STOPPED: char = 's';
/// A removal is said to be done when it was asked for.
const REMOVES_IN_WORDS: char = 'r';
/// The mark for deletion is not looked at.
const IGNORES_DELETION: char = 'd';
/// Something is written in every round.
const NEVER_RESTS: char = 'n';
/// No answer is taken for no instance.
const TAKES_SILENCE_FOR_ABSENCE: char = 'a';
/// A create without an answer is said to have failed for sure.
const SURE_OF_NOTHING: char = 'u';

#[async_trait]
impl<const DEFECT: char> Provider for Defective<DEFECT> {
    type Spec = KubemarkSpec;
    type Sight = Sight;
    type Step = Step;
    const NAME: &'static str = Kubemark::NAME;
    const KINDS: &'static [ProviderKind] = Kubemark::KINDS;

    fn settle(&self) -> Duration {
        self.0.settle()
    }

    fn settle_of(&self, spec: &KubemarkSpec) -> Duration {
        self.0.settle_of(spec)
    }

    async fn observe(&self, who: &Identity, want: Want) -> Result<Sight, CloudError> {
        let key = Key::new(&who.key.namespace, &mapi_cloud_kubemark::instance_id(&who.uid));
        match DEFECT {
            FORGETS_TOKENS => {
                let of_machine = |object: &Arc<mapi_api::SimulatedInstance>| object.spec.token == who.uid;
                let found = self.1.cached_in(&who.key.namespace).into_iter().find(of_machine);
                Ok(found.map_or_else(Sight::absent, |object| Sight::of((*object).clone())))
            }
            BELIEVES_CACHE => {
                Ok(self.1.cached(&key).map_or_else(Sight::absent, |object| Sight::of((*object).clone())))
            }
            TAKES_SILENCE_FOR_ABSENCE => match self.1.get(&key).await {
                Ok(found) => Ok(found.map_or_else(Sight::absent, Sight::of)),
                Err(_) => Ok(Sight::absent()),
            },
            _ => self.0.observe(who, want).await.map_err(Self::blame),
        }
    }

    fn plan(who: &Identity, goal: &Goal<'_, KubemarkSpec>, sight: &Sight) -> Next<Step> {
        let living = Identity { deleted: None, ..who.clone() };
        match (DEFECT, goal) {
            (CREATES_ON_LOOK, Goal::Look(spec)) => Kubemark::plan(who, &Goal::Present(spec), sight),
            (IGNORES_DELETION, _) => Kubemark::plan(&living, goal, sight),
            (REMOVES_IN_WORDS, Goal::Absent)
                if sight.instance.as_ref().is_some_and(|i| i.status.is_some()) =>
            {
                Next::Done
            }
            (NEVER_RESTS, Goal::Look(_) | Goal::Present(_)) if sight.instance.is_some() => Next::Take(
                Activity::Update,
                Step::Adjust {
                    faults: vec![],
                    heartbeat: mapi_api::simulated_instance::Heartbeat::default(),
                },
            ),
            _ => Kubemark::plan(who, goal, sight),
        }
    }

    async fn act(&self, who: &Identity, step: Step, before: Sight) -> Result<Sight, CloudError> {
        let step = match step {
            Step::Create { mut instance, ranges } if DEFECT == FORGETS_TOKENS => {
                instance.metadata.name = Some(format!("i-sim-{}", who.now.as_millisecond()));
                Step::Create { instance, ranges }
            }
            other => other,
        };
        self.0.act(who, step, before).await.map_err(Self::blame)
    }

    fn report(who: &Identity, spec: Option<&KubemarkSpec>, sight: &Sight) -> Sighting {
        match Kubemark::report(who, spec, sight) {
            Sighting::Present(instance) if DEFECT == LOSES_STOPPED && instance.state == "Stopped" => {
                Sighting::Absent
            }
            Sighting::Present(_) if DEFECT == REMOVES_IN_WORDS && who.deleted.is_some() => Sighting::Absent,
            other => other,
        }
    }

    fn status(
        who: &Identity,
        sight: Option<&Sight>,
        failed: Option<(Activity, &CloudError)>,
    ) -> Option<RawJson> {
        Kubemark::status(who, sight, failed)
    }

    async fn capacity(&self, spec: &KubemarkSpec) -> Result<Option<Capacity>, CloudError> {
        self.0.capacity(spec).await
    }

    fn changes(&self) -> BoxStream<'static, Key> {
        self.0.changes()
    }
}

impl<const DEFECT: char> Defective<DEFECT> {
    fn blame(error: CloudError) -> CloudError {
        match DEFECT {
            BLAMES_SPEC => CloudError { kind: Kind::Invalid, ..error },
            SURE_OF_NOTHING => CloudError { is_uncertain: false, ..error },
            _ => error,
        }
    }
}

#[track_caller]
fn breaks<const DEFECT: char>(law: &str) {
    let provider = |double: Double| Defective::<DEFECT>(Kubemark::new(Arc::new(double.clone())), double);
    let offences = offences(spec("cloud", json!({})), provider);
    let names: Vec<&str> = offences.iter().map(|(name, _)| *name).collect();
    assert!(names.contains(&law), "`{law}` did not notice; noticed by {names:?}");
}

#[test]
fn a_cloud_that_forgets_its_tokens_makes_second_instances() {
    breaks::<FORGETS_TOKENS>("there_is_never_a_second_instance");
}

#[test]
fn a_cloud_that_believes_its_cache_tells_absences_that_are_none() {
    breaks::<BELIEVES_CACHE>("absent_is_never_told_while_an_instance_lives");
}

#[test]
fn a_cloud_that_creates_on_a_look_is_noticed() {
    breaks::<CREATES_ON_LOOK>("looking_creates_nothing");
}

#[test]
fn a_cloud_that_blames_the_spec_for_everything_is_noticed() {
    breaks::<BLAMES_SPEC>("trouble_that_passes_fails_no_machine");
}

#[test]
fn a_cloud_that_loses_stopped_instances_is_noticed() {
    breaks::<LOSES_STOPPED>("a_stopped_instance_exists");
}

#[test]
fn a_cloud_that_removes_in_words_only_is_noticed() {
    breaks::<REMOVES_IN_WORDS>("removal_ends_with_nothing_left");
}

#[test]
fn a_cloud_that_ignores_the_mark_for_deletion_is_noticed() {
    breaks::<IGNORES_DELETION>("a_machine_being_deleted_gets_no_instance");
}

#[test]
fn a_cloud_that_never_rests_is_noticed() {
    breaks::<NEVER_RESTS>("at_rest_nothing_is_written");
}

#[test]
fn a_cloud_that_takes_silence_for_absence_is_noticed() {
    breaks::<TAKES_SILENCE_FOR_ABSENCE>("an_outage_is_not_an_absence");
}

#[test]
fn a_cloud_that_is_sure_of_what_it_does_not_know_is_noticed() {
    breaks::<SURE_OF_NOTHING>("a_lost_answer_makes_no_second_create");
}
