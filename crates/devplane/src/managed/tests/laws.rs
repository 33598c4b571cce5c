//! What holds whoever writes what.

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::{collection, option, sample};
use serde_json::{Map, Value, json};

use super::Story;
use crate::managed::entries::unchecked;
use crate::managed::fields::{Fields, intersection, subtract, unite};

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!("1")), Just(json!("2"))]
}

fn fields(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    collection::btree_map(sample::select(names), text(), 0..3).prop_map(|fields| json!(fields))
}

fn items() -> impl Strategy<Value = Value> {
    collection::btree_map(sample::select(&["a", "b", "c"][..]), fields(&["v", "w"]), 0..3).prop_map(|items| {
        let item = |(name, mut item): (&str, Value)| {
            item["name"] = name.into();
            item
        };
        items.into_iter().map(item).collect()
    })
}

fn spec() -> impl Strategy<Value = Value> {
    let set = sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_shuffle().prop_map(|set| json!(set));
    let pairs = collection::btree_map(sample::select(&["k", "l"][..]), fields(&["x", "y"]), 0..2);
    let parts = (
        option::of(text()),
        option::of(fields(&["a", "b"])),
        option::of(pairs.prop_map(|pairs| json!(pairs))),
        option::of(set),
        option::of(items()),
        option::of(fields(&["a", "b"])),
    );
    parts.prop_map(|(text, labels, pairs, set, items, atomic)| {
        let names = ["text", "labels", "pairs", "set", "items", "atomicMap"];
        let values = [text, labels, pairs, set, items, atomic];
        let fields =
            names.into_iter().zip(values).filter_map(|(name, value)| Some((name.to_owned(), value?)));
        json!({ "spec": fields.collect::<Map<String, Value>>() })
    })
}

/// Who applies nothing that can be owned leaves no entry, and an object without entries has a first owner to meet.
fn owned_spec() -> impl Strategy<Value = Value> {
    (spec(), text()).prop_map(|(mut spec, text)| {
        spec["spec"]["text"] = text;
        spec
    })
}

fn steps() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    const WHAT: &[&str] = &["apply a", "apply b", "force a", "force b", "update a", "replace u"];
    collection::vec((sample::select(WHAT), spec()), 0..7)
}

fn play(steps: &[(&str, Value)]) -> Story {
    let mut story = Story::new();
    for (what, sent) in steps {
        // What is refused changes nothing.
        let _refusal = story.step(what, sent);
    }
    story
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(steps in steps(), last in owned_spec()) {
        let mut story = play(&steps);
        story.step("force c", &last).expect("force is not refused");
        let (once, owners) = (story.content(), story.owners());
        story.step("apply c", &last).expect("it is all its own");
        prop_assert_eq!(&once, &story.content());
        prop_assert_eq!(&owners, &story.owners());
    }

    #[test]
    fn applying_what_is_there_takes_nothing_from_anybody(steps in steps(), last in owned_spec()) {
        let mut story = play(&steps);
        story.step("force c", &last).expect("force is not refused");
        let before = story.owners();
        story.step("apply d", &last).expect("it is there already");
        for line in before.lines() {
            prop_assert!(story.owners().contains(line), "{line} is lost");
        }
    }

    #[test]
    fn nobody_owns_what_is_not_there(steps in steps()) {
        let mut story = play(&steps);
        story.step("replace z", &json!({})).expect("updates are not refused");
        prop_assert_eq!(story.owners(), "");
    }

    #[test]
    fn what_is_given_up_is_gone_or_owned(steps in steps(), last in owned_spec()) {
        let mut story = play(&steps);
        story.step("force c", &last).expect("force is not refused");
        story.step("apply c", &json!({})).expect("nothing is applied");
        let owners = story.owners();
        prop_assert!(!owners.contains("c applied"));
        let is_there = story.content().pointer("/spec/text").is_some();
        prop_assert_eq!(is_there, owners.contains(" .spec.text"), "{}", owners);
    }

    #[test]
    fn sets_are_sets(steps in steps(), flip in any::<bool>()) {
        let sets: Vec<Fields> = unchecked(play(&steps).managed()).into_iter().map(|entry| entry.into_fields()).collect();
        let [a, b, ..] = &*sets else { return Ok(()) };
        let (a, b) = if flip { (b, a) } else { (a, b) };
        let both = intersection(a, b);
        prop_assert_eq!(&both, &intersection(b, a));
        let mut rest = a.clone();
        subtract(&mut rest, b);
        prop_assert!(intersection(&rest, b).is_empty());
        unite(&mut rest, both);
        prop_assert_eq!(&rest, a);
    }
}
