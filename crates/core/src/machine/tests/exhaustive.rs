//! Every sequence of a few rounds, with every answer, a lost write at every place, and a deletion at every moment.

use super::*;

/// What the cloud may say, whatever is true of it.
fn answers() -> Vec<(&'static str, Answer)> {
    vec![
        ("absent", absent()),
        ("booting", present(booting())),
        ("up", present(up())),
        ("created", taken(&[Activity::Create], present(booting()))),
        ("created unseen", taken(&[Activity::Create], absent())),
        ("outage", failed(unknown(), Activity::Observe, error(Kind::Transient, "x"))),
        ("lost create", failed(absent(), Activity::Create, error(Kind::Transient, "x").uncertain())),
        ("refused", failed(absent(), Activity::Create, error(Kind::Invalid, "x"))),
        ("terminated", taken(&[Activity::Delete], absent())),
    ]
}

/// What may happen in between.
const MARK: &str = "mark";
const RESTART: &str = "restart";

fn may_follow(before: &str, after: &str) -> bool {
    match (before, after) {
        ("", "Provisioning" | "Provisioned" | "Failed" | "Deleting") => true,
        ("Provisioning", "Provisioned" | "Running" | "Failed" | "Deleting") => true,
        ("Provisioned", "Running" | "Failed" | "Deleting") => true,
        ("Running", "Provisioned" | "Failed" | "Deleting") | ("Failed", "Deleting") => true,
        (a, b) => a == b,
    }
}

fn clone(world: &World) -> World {
    let World { machine, node, serving, memory, is_gate_on, now } = world;
    World {
        machine: machine.clone(),
        node: node.clone(),
        serving: serving.clone(),
        memory: memory.clone(),
        is_gate_on: *is_gate_on,
        now: *now,
    }
}

/// One step; `None` if it cannot happen. `can_appear` says whether an instance may exist that was not terminated.
fn step(
    world: &World,
    event: &str,
    answer: Option<Answer>,
    lost: usize,
    can_appear: bool,
) -> Option<(World, bool)> {
    let mut world = clone(world);
    world.pass(3);
    let Some(answer) = answer else {
        if event == MARK {
            if world.machine["metadata"].get("deletionTimestamp").is_some() {
                return None;
            }
            world.mark();
            world.drained();
        } else {
            world.memory = Memory::default();
        }
        return Some((world, can_appear));
    };
    let before = world.phase();
    let is_deleting = world.machine["metadata"].get("deletionTimestamp").is_some();
    let saw = shape(&answer);
    let (is_create, is_delete) = (answer.has_created(), answer.taken.contains(&Activity::Delete));
    let (round, is_lost) = world.round_until(answer, lost);
    let is_possible = (!is_create || round.asked == Some(Want::Present)) && (!is_delete || is_deleting);
    if !is_possible || (lost != usize::MAX && !is_lost) {
        return None;
    }
    let trace = format!("{event}, write {lost} lost: {round:?}");
    if is_deleting {
        assert!(round.asked.is_none_or(|want| want == Want::Absent), "I4: {trace}");
    }
    assert!(may_follow(&before, &world.phase()), "I21: {before} -> {}: {trace}", world.phase());
    let can_appear = match round.asked {
        Some(Want::Present) => saw != Shape::Nothing || can_appear,
        Some(Want::Absent) if saw == Shape::Terminated => false,
        _ => can_appear,
    };
    if !world.has_finalizer() && is_deleting {
        let has_waited = world.now >= at(100 + 3 * 5 + 35);
        assert!(!can_appear || has_waited || saw == Shape::Nothing && was_seen(&world), "I3: {trace}");
        return None;
    }
    Some((world, can_appear))
}

/// An instance that was seen and is absent now was terminated by somebody.
fn was_seen(world: &World) -> bool {
    world.condition("InstanceExists") == "True" || !world.parsed().status.addresses.is_empty()
}

#[derive(PartialEq)]
enum Shape {
    Nothing,
    Something,
    Terminated,
}

fn shape(answer: &Answer) -> Shape {
    let is_uncertain = answer.failure.as_ref().is_some_and(|f| f.error.is_uncertain);
    if answer.taken.contains(&Activity::Delete) {
        Shape::Terminated
    } else if answer.has_created() || is_uncertain || matches!(answer.sighting, Sighting::Present(_)) {
        Shape::Something
    } else {
        Shape::Nothing
    }
}

#[test]
fn no_sequence_of_answers_crashes_and_lost_writes_breaks_an_invariant() {
    let mut created = World::provisioning(json!({}));
    created.round(taken(&[Activity::Create], present(booting())));
    let fresh = [World::new(json!({})), World::provisioning(json!({}))];
    let mut frontier: Vec<_> =
        fresh.into_iter().map(|world| (world, false)).chain([(created, true)]).collect();
    let mut count = 0;
    for _ in 0..3 {
        let mut next = vec![];
        for (world, can_appear) in &frontier {
            for event in [MARK, RESTART] {
                next.extend(step(world, event, None, usize::MAX, *can_appear));
            }
            for lost in [usize::MAX, 0, 1] {
                for (event, answer) in answers() {
                    next.extend(step(world, event, Some(answer), lost, *can_appear));
                }
            }
        }
        // Worlds that look the same go on the same way.
        let mut seen = std::collections::HashSet::new();
        next.retain(|(world, can_appear)| {
            seen.insert(format!("{} {:?} {can_appear}", world.machine, world.memory))
        });
        count += next.len();
        frontier = next;
    }
    assert!(count > 1000, "only {count} worlds");
}
