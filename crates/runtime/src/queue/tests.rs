//! Which keys come, when and how often.

use super::*;

fn queue() -> Queue<&'static str> {
    Queue::new("test", Backoff::default())
}

/// Takes every key that is ready and gives none back.
async fn drain(queue: &Queue<&'static str>) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while !queue.is_empty() {
        keys.extend(queue.next().await);
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn keys_come_in_order_and_once() {
    let queue = queue();
    for key in ["b", "a", "b", "c"] {
        queue.add(key);
    }
    assert_eq!(drain(&queue).await, ["b", "a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn the_low_lane_waits_and_a_second_add_lifts_a_key_out_of_it() {
    let queue = queue();
    for key in ["l1", "l2"] {
        queue.add_low(key);
    }
    queue.add("h");
    queue.add("l2");
    queue.add_low("h");
    assert_eq!(drain(&queue).await, ["l2", "h", "l1"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_high_lane_does_not_starve_the_low_one() {
    let queue = Queue::new("test", Backoff::default());
    queue.add_low(0);
    for key in 1..100 {
        queue.add(key);
    }
    let mut place = 0;
    while queue.next().await != Some(0) {
        place += 1;
    }
    assert!(place < 16, "{place}");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_not_given_out_while_it_is_worked_on_and_comes_again_if_added_meanwhile() {
    let queue = queue();
    queue.add("a");
    assert_eq!(queue.next().await, Some("a"));
    queue.add_low("a");
    queue.add("a");
    assert!(queue.is_empty());
    queue.done(&"a");
    assert_eq!(drain(&queue).await, ["a"]);
    queue.done(&"a");
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_earliest_of_two_delays_wins() {
    for (first, second) in [(10, 2), (2, 10)] {
        let queue = queue();
        let start = Instant::now();
        queue.add_after("a", Duration::from_secs(first));
        queue.add_after("a", Duration::from_secs(second));
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(start.elapsed().as_secs(), 2);
        queue.done(&"a");
        let again = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(again.is_err(), "the later delay is gone");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_double_the_wait_up_to_the_limit_until_forgotten() {
    let queue = Queue::new("test", Backoff { base: Duration::from_secs(1), max: Duration::from_secs(5) });
    let waits: Vec<u64> = (0..5).map(|_| queue.add_backoff("a").as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 5, 5]);
    assert_eq!(queue.failures(&"a"), 5);
    queue.forget(&"a");
    assert_eq!((queue.failures(&"a"), queue.add_backoff("a").as_secs()), (0, 1));
    assert_eq!(Backoff::default().after(1000), Duration::from_secs(1000));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_learns_of_an_earlier_delay_and_of_the_end() {
    let queue = queue();
    queue.add_after("late", Duration::from_secs(100));
    let waiter = tokio::spawn({
        let queue = queue.clone();
        async move { (queue.next().await, queue.next().await) }
    });
    tokio::task::yield_now().await;
    queue.add_after("soon", Duration::from_secs(1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    queue.close();
    queue.add("ignored");
    assert_eq!(waiter.await.unwrap(), (Some("soon"), None));
}
