//! Events go.

use serde_json::json;

use crate::loops::testing::Bench;

#[test]
fn an_event_goes_an_hour_after_it_was_last_written() {
    let mut bench = Bench::new();
    for name in ["a", "b"] {
        bench.put(
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"}}),
        );
    }
    bench.pass(1800);
    bench.change("events", "default/b", |event| event["count"] = 2.into());
    bench.pass(1799);
    assert_eq!(bench.objects(), ["events default/a", "events default/b"]);
    bench.pass(1);
    assert_eq!(bench.objects(), ["events default/b"]);
    bench.pass(1800);
    assert_eq!(bench.objects(), [""; 0]);
    assert_eq!(bench.next, None);
}
