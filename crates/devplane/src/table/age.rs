//! Ages as people read them. Never here: where a time comes from.

use jiff::Timestamp;
use serde_json::Value;

pub(super) const UNKNOWN: &str = "<unknown>";
pub(super) const INVALID: &str = "<invalid>";

const MINUTE_S: i64 = 60;
const HOUR_S: i64 = 60 * MINUTE_S;
const DAY_S: i64 = 24 * HOUR_S;
const YEAR_S: i64 = 365 * DAY_S;

/// How long ago a time of an object was.
pub(super) fn since(time: &Value, now: Timestamp) -> String {
    match time.as_str().unwrap_or_default() {
        "" => UNKNOWN.into(),
        text => text
            .parse()
            .map_or_else(|_| INVALID.into(), |time: Timestamp| short(now.duration_since(time).as_secs())),
    }
}

/// The age of an object.
pub(super) fn of(object: &Value, now: Timestamp) -> Value {
    since(&object["metadata"]["creationTimestamp"], now).into()
}

/// A duration with as much precision as it takes: the longer, the coarser.
fn short(seconds: i64) -> String {
    // A clock that is a little ahead is no mistake.
    if seconds < -1 {
        return INVALID.into();
    }
    let seconds = seconds.max(0);
    let two = |unit_s: i64, unit: &str, part_s: i64, part: &str| {
        let (whole, rest) = (seconds / unit_s, seconds % unit_s / part_s);
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{part}") }
    };
    let one = |unit_s: i64, unit: &str| format!("{}{unit}", seconds / unit_s);
    match seconds {
        _ if seconds < 2 * MINUTE_S => one(1, "s"),
        _ if seconds < 10 * MINUTE_S => two(MINUTE_S, "m", 1, "s"),
        _ if seconds < 3 * HOUR_S => one(MINUTE_S, "m"),
        _ if seconds < 8 * HOUR_S => two(HOUR_S, "h", MINUTE_S, "m"),
        _ if seconds < 2 * DAY_S => one(HOUR_S, "h"),
        _ if seconds < 8 * DAY_S => two(DAY_S, "d", HOUR_S, "h"),
        _ if seconds < 2 * YEAR_S => one(DAY_S, "d"),
        _ if seconds < 8 * YEAR_S => two(YEAR_S, "y", DAY_S, "d"),
        _ => one(YEAR_S, "y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_the_coarser() {
        let rows = [
            (-5, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (659, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_799, "7h59m"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_199, "7d23h"),
            (691_200, "8d"),
            (63_071_999, "729d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_287_999, "7y364d"),
            (252_288_000, "8y"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(short(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn what_is_no_time_is_said_so() {
        let now: Timestamp = "2024-01-01T00:01:00Z".parse().unwrap();
        let rows = [
            (Value::Null, "<unknown>"),
            ("".into(), "<unknown>"),
            ("junk".into(), "<invalid>"),
            ("2024-01-01T00:00:00Z".into(), "60s"),
            ("2024-01-01T00:00:00.250000Z".into(), "59s"),
            ("2024-01-01T01:00:00+01:00".into(), "60s"),
        ];
        for (time, expected) in rows {
            assert_eq!(since(&time, now), expected, "{time}");
        }
    }
}
