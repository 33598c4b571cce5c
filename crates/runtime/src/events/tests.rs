//! What is written for what is emitted.

use std::sync::Mutex;

use mapi_api::Key;
use mapi_api::event::Regarding;

use super::*;
use crate::clock::SystemClock;
use crate::testing::{Seen, answering};

fn event(object: &str, note: &str) -> Event {
    Event {
        type_: EventType::Normal,
        reason: "Created",
        action: "Create",
        note: note.to_owned(),
        regarding: Regarding {
            api_version: "machine.openshift.io/v1beta1",
            kind: "Machine",
            key: Key::new("ns", object),
            uid: "u".to_owned(),
        },
    }
}

/// A recorder whose work runs, and the requests that arrived. Creates are accepted unless `refuse` says so.
fn recorder(refuse: fn(&Seen) -> bool) -> (Recorder, Arc<Mutex<Vec<Seen>>>) {
    let (writer, seen) =
        answering(move |seen| if refuse(seen) { (404, json!("no")) } else { (201, json!({})) });
    let (recorder, work) = Recorder::new(writer, "host".to_owned(), Arc::new(SystemClock));
    tokio::spawn(work);
    (recorder, seen)
}

/// The requests since the last time: the note of a new event, the count of a series.
fn take(seen: &Mutex<Vec<Seen>>) -> Vec<String> {
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let line = |seen: &Seen| match seen.method.as_str() {
        "POST" => format!("new {}", seen.body["note"].as_str().unwrap()),
        _ => format!("count {}", seen.body["series"]["count"]),
    };
    seen.iter().map(line).collect()
}

/// Lets the work run without letting time pass.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn repetitions_become_a_series_whose_count_is_written_once_a_minute() {
    let (recorder, seen) = recorder(|_| false);
    recorder.emit("c", event("a", "x"));
    settle().await;
    assert_eq!(take(&seen), ["new x"]);
    for _ in 0..10 {
        recorder.emit("c", event("a", "x"));
        settle().await;
    }
    assert_eq!(take(&seen), ["count 2"]);
    tokio::time::sleep(SERIES_INTERVAL + Duration::from_secs(1)).await;
    assert_eq!(take(&seen), ["count 11"]);
    tokio::time::sleep(SERIES_ENDS_AFTER * 2).await;
    assert_eq!(take(&seen), Vec::<String>::new(), "nothing is written at rest");
    recorder.emit("c", event("a", "x"));
    settle().await;
    assert_eq!(take(&seen), ["new x"], "the series was over");
}

#[tokio::test(start_paused = true)]
async fn a_listener_is_told_each_event_at_once_and_it_is_written_all_the_same() {
    let (recorder, seen) = recorder(|_| false);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = heard.clone();
    let listener =
        move |who: &'static str, event: &Event| list.lock().unwrap().push(format!("{who} {}", event.note));
    let recorder = recorder.with_listener(Arc::new(listener));
    recorder.emit("c", event("a", "x"));
    recorder.emit("c", event("a", "x"));
    assert_eq!(*heard.lock().unwrap(), ["c x", "c x"]);
    recorder.flush().await;
    assert_eq!(take(&seen)[0], "new x");
}

#[tokio::test(start_paused = true)]
async fn a_changed_text_is_never_lost_in_a_count() {
    let (recorder, seen) = recorder(|_| false);
    for note in ["x", "y", "x", "y"] {
        recorder.emit("c", event("a", note));
    }
    recorder.emit("other", event("a", "x"));
    recorder.flush().await;
    let mut lines = take(&seen);
    lines.sort();
    assert_eq!(lines, ["count 2", "count 2", "new x", "new x", "new y"]);
}

#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_all_that_was_emitted_before() {
    let (recorder, seen) = recorder(|_| false);
    for object in 0..100 {
        recorder.emit("c", event(&object.to_string(), "x"));
        recorder.emit("c", event(&object.to_string(), "x"));
    }
    recorder.flush().await;
    let lines = take(&seen);
    let count = |line: &str| lines.iter().filter(|other| *other == line).count();
    assert_eq!((count("new x"), count("count 2")), (100, 100));
}

#[tokio::test(start_paused = true)]
async fn one_object_cannot_flood_and_others_are_not_held_back() {
    let (recorder, seen) = recorder(|_| false);
    for note in 0..40 {
        recorder.emit("c", event("a", &note.to_string()));
    }
    recorder.emit("c", event("b", "calm"));
    recorder.flush().await;
    assert_eq!(take(&seen).len(), 26);
    tokio::time::sleep(REFILL).await;
    recorder.emit("c", event("a", "later"));
    recorder.flush().await;
    assert_eq!(take(&seen), ["new later"]);
}

#[tokio::test(start_paused = true)]
async fn a_series_whose_event_is_gone_begins_anew() {
    let (recorder, seen) = recorder(|seen| seen.method == "PATCH");
    for _ in 0..2 {
        recorder.emit("c", event("a", "x"));
        settle().await;
    }
    recorder.emit("c", event("a", "x"));
    recorder.flush().await;
    assert_eq!(take(&seen), ["new x", "count 2", "new x"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_written_as_the_api_wants_it() {
    let (recorder, seen) = recorder(|_| false);
    recorder.emit("machine-controller", event("a", &"ä".repeat(1000)));
    recorder.flush().await;
    let seen = seen.lock().unwrap().remove(0);
    assert_eq!(seen.path, "/apis/events.k8s.io/v1/namespaces/ns/events");
    assert_eq!(seen.body["note"].as_str().unwrap().len(), NOTE_LIMIT);
    assert_eq!(seen.body["reportingController"], "machine-controller");
    assert_eq!(seen.body["reportingInstance"], "host");
    assert_eq!((&seen.body["type"], &seen.body["action"]), (&json!("Normal"), &json!("Create")));
    assert_eq!(seen.body["regarding"]["uid"], "u");
    let time = seen.body["eventTime"].as_str().unwrap();
    assert_eq!((time.len(), &time[19..20], &time[26..]), (27, ".", "Z"), "{time}");
    let name = seen.body["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("a.") && name.len() <= 253, "{name}");
}

#[tokio::test(start_paused = true)]
async fn the_work_ends_with_the_last_recorder_and_leaves_nothing_unwritten() {
    let (writer, seen) = answering(|_| (201, json!({})));
    let (recorder, work) = Recorder::new(writer, "host".to_owned(), Arc::new(SystemClock));
    for _ in 0..3 {
        recorder.emit("c", event("a", "x"));
    }
    drop(recorder);
    work.await;
    assert_eq!(take(&seen), ["new x", "count 3"]);
}
