//! What holds for all sets.

use std::time::Duration;

use mapi_api::{Object, Timestamp};
use proptest::prelude::{Strategy, any, prop};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::json;

use super::{DAY, Member, NOW, World, at, created, deleted, deleting, machine, running, with_node};
use crate::Requeue;
use crate::machine_set::STATUS_INTERVAL;
use crate::machine_set::scale::{BATCH_MAX, PASS_MAX, sizes};
use crate::machine_set::victims::{Policy, pick, priority};

/// Any Machine of a set, by what it is like.
fn member(name: &str, kind: u8, days: i64) -> Member {
    let created = at(NOW - days * DAY).to_string();
    match kind % 6 {
        0 => running(name),
        1 => with_node(name, "Unknown", NOW - DAY),
        2 => machine(name, json!({"metadata": {"creationTimestamp": created}})),
        3 => machine(
            name,
            json!({"metadata": {"creationTimestamp": created}, "status": {"errorMessage": "e"}}),
        ),
        4 => machine(
            name,
            json!({"metadata": {"creationTimestamp": created, "annotations": {
                "machine.openshift.io/delete-machine": "1"}}}),
        ),
        _ => deleting(name),
    }
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    prop::collection::vec((any::<u8>(), 0..4000_i64), 0..30).prop_map(|kinds| {
        kinds
            .into_iter()
            .enumerate()
            .map(|(i, (kind, days))| member(&format!("m{i:02}"), kind, days))
            .collect()
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![Policy::Random, Policy::Newest, Policy::Oldest])
}

proptest! {
    #[test]
    fn batches_add_up_to_the_difference_and_stay_below_the_limit(count in 0..20_000_usize) {
        let sizes = sizes(count);
        prop_assert_eq!(sizes.iter().sum::<usize>(), count);
        prop_assert!(sizes.iter().all(|size| (1..=BATCH_MAX).contains(size)));
        prop_assert!(sizes.windows(2).all(|pair| pair[1] <= pair[0] * 2));
    }

    // I9
    #[test]
    fn nobody_is_spared_who_should_have_gone_before_a_victim(
        members in members(), policy in policies(), count in 0..40_usize
    ) {
        let all: Vec<_> = members.iter().collect();
        let victims = pick(policy, &all, count, at(NOW));
        prop_assert_eq!(victims.len(), count.min(all.len()));
        let is_victim = |member: &Member| victims.iter().any(|victim| victim.machine.name() == member.machine.name());
        let order = |member: &Member| priority(policy, &member.machine, at(NOW));
        let least = victims.iter().map(|victim| order(victim)).fold(f64::INFINITY, f64::min);
        prop_assert!(all.iter().filter(|member| !is_victim(member)).all(|spared| order(spared) <= least));
    }

    // I7, I8
    #[test]
    fn a_plan_makes_or_removes_exactly_the_difference(members in members(), replicas in 0..60_i64) {
        let live = members.iter().filter(|member| !member.machine.is_deleting());
        let live: Vec<_> = live.map(|member| member.machine.name().to_owned()).collect();
        let world = World::new(json!({"replicas": replicas}), members);
        let plan = world.decide();
        let replicas = usize::try_from(replicas).expect("small");
        prop_assert_eq!(created(&plan).len(), replicas.saturating_sub(live.len()).min(PASS_MAX));
        let deleted = deleted(&plan);
        prop_assert_eq!(deleted.len(), live.len().saturating_sub(replicas));
        prop_assert!(deleted.iter().all(|name| live.contains(name)), "a deleting Machine is never deleted again");
    }

    /// Changes come at random moments; the set is looked at when one comes and when a plan asks for it.
    #[test]
    fn the_last_status_is_written_and_never_more_than_two_a_second(
        changes in prop::collection::vec((0..900_u64, 0..12_usize), 1..40)
    ) {
        let members = (0..12).map(|i| running(&format!("m{i:02}"))).collect();
        let mut world = World::settled(json!({"replicas": 12}), members);
        let mut writes: Vec<Timestamp> = vec![];
        let mut look = |world: &mut World| {
            let report = world.report();
            if !report.is_null() {
                writes.push(world.now);
                world.last_status_write = Some(world.now);
                world.apply_status(&report);
            }
            world.decide().requeue
        };
        let mut requeue = Requeue::Never;
        for (delay, ready) in changes {
            let next = world.now + Duration::from_millis(delay);
            while let Requeue::After(rest) = requeue && world.now + rest <= next {
                world.now += rest;
                requeue = look(&mut world);
            }
            world.now = next;
            let member = |i| {
                let name = format!("m{i:02}");
                if i < ready { running(&name) } else { machine(&name, json!({})) }
            };
            world.owned = (0..12).map(member).collect();
            requeue = look(&mut world);
        }
        while let Requeue::After(rest) = requeue {
            world.now += rest;
            requeue = look(&mut world);
        }
        let ready = world.owned.iter().filter(|member| member.node.is_some()).count();
        prop_assert_eq!(world.set.status.ready_replicas, Some(i32::try_from(ready).expect("small")));
        let interval = jiff::SignedDuration::try_from(STATUS_INTERVAL).expect("short");
        prop_assert!(writes.windows(2).all(|pair| pair[1].duration_since(pair[0]) >= interval));
    }
}
