//! Carries out `--fail`: picks the machine, gives it the fault when its time has come, and knows when that is over.
//!
//! Never here: which kinds there are and what they are good for; that is `fault`'s.

use anyhow::Context as _;
use mapi_api::fault::{Fault, FaultKind};
use mapi_api::names::annotation;
use mapi_api::{Key, Machine, Node, Object as _};
use mapi_controllers::Context;
use mapi_runtime::store::Change;
use mapi_runtime::writes::{Preconditions, Sub};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::fault::{Course, Dose, course};
use super::install::Installer;
use super::sample::{SETS, Sample, with_faults, with_replicas};
use super::waits::waits_for;

/// What `--fail` asks for, and how far it has come.
pub struct Healing {
    kind: FaultKind,
    course: Course,
    given: Option<Victim>,
}

/// Who has the fault.
struct Victim {
    name: String,
    /// The one machine that is to be replaced; none if all have the fault.
    uid: Option<(Key, String)>,
}

impl Healing {
    /// For a kind of fault, among this many machines.
    pub fn new(kind: FaultKind, machines: u32) -> Self {
        Self { kind, course: course(kind, machines), given: None }
    }

    /// Applies the sets, with the fault where it has to be there from the first moment. Returns who has it.
    pub async fn apply_sets(
        &mut self,
        installer: &Installer,
        sample: &Sample,
        context: &Context,
    ) -> anyhow::Result<Option<String>> {
        let [first, second] = &sample.sets;
        match self.course.dose.clone() {
            Dose::Running(_) | Dose::Deleted(_) => {
                installer.apply_set(first).await?;
                installer.apply_set(second).await?;
            }
            Dose::Set(fault) => {
                installer.apply_set(&with_faults(first.clone(), &[fault])).await?;
                installer.apply_set(second).await?;
                self.given = Some(Victim { name: SETS[0].into(), uid: None });
            }
            Dose::All(fault) => {
                installer.apply_set(&with_faults(first.clone(), std::slice::from_ref(&fault))).await?;
                installer.apply_set(&with_faults(second.clone(), &[fault])).await?;
                self.given = Some(Victim { name: "all machines".into(), uid: None });
            }
            Dose::First(fault) => {
                let machine = first_machine(installer, first, fault, context).await?;
                installer.apply_set(first).await?;
                installer.apply_set(second).await?;
                let uid = Some((machine.key(), machine.uid().to_owned()));
                self.given = Some(Victim { name: machine.name().into(), uid });
            }
        }
        Ok(self.given.as_ref().map(|victim| victim.name.clone()))
    }

    /// Gives the fault to a machine that runs, if it is for one. All must run. Returns who has it.
    pub async fn give(&mut self, context: &Context) -> anyhow::Result<Option<String>> {
        let (fault, is_deleted) = match &self.course.dose {
            Dose::Running(fault) if self.given.is_none() => (fault, false),
            Dose::Deleted(fault) if self.given.is_none() => (fault, true),
            Dose::Running(_) | Dose::Deleted(_) | Dose::First(_) | Dose::Set(_) | Dose::All(_) => {
                return Ok(None);
            }
        };
        let Some(machine) = context.machines.list().into_iter().find(|machine| works(machine, context))
        else {
            return Ok(None);
        };
        let key = machine.key();
        let faults = serde_json::to_string(&[fault]).context("a fault is text")?;
        let patch = json!({"metadata": {"annotations": {annotation::FAULTS: faults}}});
        let what = || format!("cannot give machine `{}` the fault {}", key.name, self.kind);
        context.writer.merge_patch::<Machine>(&key, Sub::Main, &patch).await.with_context(what)?;
        if is_deleted {
            let only = Preconditions::uid(machine.uid());
            context.writer.delete::<Machine>(&key, only).await.with_context(what)?;
        }
        let name = key.name.to_string();
        self.given = Some(Victim { name: name.clone(), uid: Some((key, machine.uid().into())) });
        Ok(Some(name))
    }

    /// Whether all that is to be seen has been: the fault is given, and its machine replaced if it is to be.
    pub fn is_over(&self, context: &Context) -> bool {
        match &self.given {
            None => false,
            Some(Victim { uid: Some((key, uid)), .. }) if self.course.is_replaced => {
                context.machines.get(key).is_none_or(|machine| machine.uid() != uid)
            }
            Some(_) => true,
        }
    }

    /// Whether the machine is replaced, and who looks on shall see that soon.
    pub fn is_hurried(&self) -> bool {
        self.course.is_replaced
    }

    /// The kind of the fault.
    pub fn kind(&self) -> FaultKind {
        self.kind
    }

    /// What is to be seen.
    pub fn story(&self) -> &'static str {
        self.course.story
    }
}

/// Whether a machine of the sample works.
fn works(machine: &Machine, context: &Context) -> bool {
    let node = machine.node_name().and_then(|name| context.nodes.get(&Key::cluster(name)));
    machine.set_owner().is_some_and(|owner| SETS.contains(&owner.name.as_str()))
        && waits_for(machine, node.as_deref() as Option<&Node>).is_none()
}

/// Applies a set of one machine, which has the fault, and waits for that machine.
async fn first_machine(
    installer: &Installer,
    set: &Value,
    fault: Fault,
    context: &Context,
) -> anyhow::Result<std::sync::Arc<Machine>> {
    let (sender, mut machines) = mpsc::channel(1);
    context.machines.subscribe(move |change| {
        if let Change::Added(machine, _) = change
            && machine.set_owner().is_some_and(|owner| owner.name == SETS[0])
        {
            // Only the first one is of interest, and there is room for it.
            let _ = sender.try_send(machine.clone());
        }
    });
    let one = with_replicas(with_faults(set.clone(), &[fault]), 1);
    installer.apply_set(&one).await?;
    machines.recv().await.context("the cache of machines ended")
}
