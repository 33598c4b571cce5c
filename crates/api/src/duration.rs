//! Durations as Go writes them: `300s`, `1h30m`, `1.5h`, `0`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration that is written as Go writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// Whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Whether it takes no time.
    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// For `skip_serializing_if`: whether it takes no time.
    pub fn is_unset(&self) -> bool {
        self.is_zero()
    }

    /// The moment that lies this long after another; the end of time if it lies beyond.
    pub fn after(self, at: Timestamp) -> Timestamp {
        let long = SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX);
        at.checked_add(long).unwrap_or(Timestamp::MAX)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        parse(&text).map(Self).map_err(<D::Error as serde::de::Error>::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": r"^(0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$"})
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a duration: use numbers with units ns, us, ms, s, m or h, for example 300s or 1h30m")]
pub struct DurationError;

/// Parses a duration that is not negative. `0` needs no unit. Source: the format of Go's `time.ParseDuration`.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError);
    }
    let mut total = 0f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(DurationError)?;
        let number: f64 = rest[..digits].parse().map_err(|_| DurationError)?;
        rest = &rest[digits..];
        let unit_len = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        total += number * seconds_of(&rest[..unit_len])?;
        rest = &rest[unit_len..];
    }
    Duration::try_from_secs_f64(total).map_err(|_| DurationError)
}

fn seconds_of(unit: &str) -> Result<f64, DurationError> {
    Ok(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(DurationError),
    })
}

/// Writes a duration as Go does, to milliseconds: `1h30m0s`, `20s`, `1.5s`, `5ms`.
pub fn format(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 {
        return "0s".into();
    }
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let (seconds, fraction) = (millis / 1000 % 60, millis % 1000);
    let fraction =
        if fraction == 0 { String::new() } else { format!(".{fraction:03}").trim_end_matches('0').into() };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{fraction}s"),
        (0, _) => format!("{minutes}m{seconds}{fraction}s"),
        _ => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_zero_is_zero() {
        for text in ["0", "0s", "0m", "0h0m"] {
            assert_eq!(parse(text), Ok(Duration::ZERO), "{text}");
        }
    }

    #[test]
    fn units_add_up() {
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("300s"), Ok(Duration::from_secs(300)));
    }

    #[test]
    fn what_the_published_pattern_lets_through_is_refused() {
        for text in ["0abc", "x5m", "", "5", "-5s", "1.2.3s", "5 m"] {
            assert_eq!(parse(text), Err(DurationError), "{text}");
        }
    }

    #[test]
    fn a_span_is_text_on_the_wire_and_never_leaves_the_calendar() {
        let span: Span = serde_json::from_str("\"1m30s\"").expect("a duration");
        assert_eq!(span, Span::seconds(90));
        assert_eq!(serde_json::to_string(&span).expect("text"), "\"1m30s\"");
        assert_eq!(Span(Duration::MAX).after(Timestamp::UNIX_EPOCH), Timestamp::MAX);
    }

    #[test]
    fn format_writes_what_go_writes() {
        for (millis, text) in
            [(20_000, "20s"), (1500, "1.5s"), (5_400_000, "1h30m0s"), (5, "5ms"), (60_000, "1m0s")]
        {
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
    }
}
