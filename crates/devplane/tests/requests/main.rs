//! The service by itself, in virtual time: what the conformance suite cannot see from outside.

mod junk;
mod support;

use http::StatusCode;
use serde_json::json;
use support::World;

#[test]
fn a_watch_ends_when_its_time_is_up() {
    let world = World::new();
    let mut watch =
        world.watch("/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=5&resourceVersion=0");
    assert_eq!(watch.take(), None, "nothing is there, and it goes on");
    world.pass(4);
    assert!(!watch.has_ended());
    world.pass(1);
    assert!(watch.has_ended());
}

#[test]
fn a_bookmark_tells_a_silent_watch_where_it_is() {
    let world = World::new();
    let path = "/api/v1/configmaps?watch=1&timeoutSeconds=600&allowWatchBookmarks=true&resourceVersion=0";
    let mut watch = world.watch(path);
    assert_eq!(watch.take(), None);
    world.ask("POST", "/api/v1/namespaces/default/secrets", json!({ "metadata": { "name": "a" } }));
    world.pass(61);
    let event = watch.take().expect("a bookmark");
    assert_eq!(event["type"], "BOOKMARK");
    let now = world.ask("GET", "/api/v1/namespaces/default/secrets/a", json!(null)).1;
    assert_eq!(event["object"]["metadata"]["resourceVersion"], now["metadata"]["resourceVersion"]);
    assert_eq!(event["object"]["kind"], "ConfigMap");
}

#[test]
fn a_watch_from_before_a_compaction_is_told_to_begin_anew() {
    let world = World::new();
    let (_, list) = world.ask("GET", "/api/v1/configmaps", json!(null));
    let from = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    world.ask("POST", "/api/v1/namespaces/default/configmaps", json!({ "metadata": { "name": "a" } }));
    let path = format!("/api/v1/configmaps?watch=1&resourceVersion={from}");
    assert_eq!(world.watch(&path).take().unwrap()["type"], "ADDED");
    world.plane.compact();
    let event = world.watch(&path).take().unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[test]
fn the_same_chance_makes_the_same_names() {
    let name = || {
        let body = json!({ "metadata": { "generateName": "a-" } });
        let (code, made) = World::new().ask("POST", "/api/v1/namespaces/default/configmaps", body);
        assert_eq!(code, StatusCode::CREATED);
        (made["metadata"]["name"].clone(), made["metadata"]["uid"].clone())
    };
    assert_eq!(name(), name());
}
