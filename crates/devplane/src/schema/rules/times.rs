//! Points in time and spans of it, as values of rules. Never here: what time it is.

use std::any::Any;
use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::traits::{Adder, Comparer, Subtractor};
use cel::common::types::{CelInt, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, add_member_overload, add_overload};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::super::formats::is_go_duration;

static TIME: Type = Type::new_unspecified_type("google.protobuf.Timestamp");
static SPAN: Type = Type::new_unspecified_type("google.protobuf.Duration");

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Time(Timestamp);

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span(SignedDuration);

impl Time {
    /// A date, or a time as RFC 3339 has it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() == 10 {
            let date: Date = text.parse().ok()?;
            return date.to_zoned(TimeZone::UTC).ok().map(|time| Time(time.timestamp()));
        }
        text.to_uppercase().parse().ok().map(Time)
    }

    fn civil(&self) -> DateTime {
        TimeZone::UTC.to_datetime(self.0)
    }
}

impl Span {
    /// `1h30m`, or words for units: `3 days`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (sign, mut rest) = match text.trim().strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text.trim().trim_start_matches('+')),
        };
        let mut seconds = 0.0;
        while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit() || letter == '.') {
            let number = &rest[start..];
            let behind = number.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            let amount: f64 = number[..number.len() - behind.len()].parse().ok()?;
            let behind = behind.trim_start();
            let end = behind.find(|letter: char| !letter.is_alphabetic()).unwrap_or(behind.len());
            seconds += amount * unit_s(&behind[..end])?;
            rest = &behind[end..];
        }
        SignedDuration::try_from_secs_f64(sign * seconds).ok().map(Span)
    }
}

/// Seconds of a unit, which may be spelt out. A number without one is only ever 0.
fn unit_s(unit: &str) -> Option<f64> {
    Some(match unit.to_lowercase().as_str() {
        "" => 0.0,
        "ns" | "nano" | "nanosecond" | "nanoseconds" => 1e-9,
        "us" | "µs" | "μs" | "micro" | "microsecond" | "microseconds" => 1e-6,
        "ms" | "milli" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        "w" | "wk" | "wks" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// What both types are as values.
macro_rules! value {
    ($name:ident, $kind:ident) => {
        impl Val for $name {
            fn get_type(&self) -> &Type {
                &$kind
            }
            fn cel_type() -> &'static Type {
                &$kind
            }
            fn as_comparer(&self) -> Option<&dyn Comparer> {
                Some(self)
            }
            fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }
            fn as_subtractor<'b, 'v>(&'b self) -> Option<&'b (dyn Subtractor + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }
            fn equals(&self, other: &dyn Val) -> bool {
                other.downcast_ref::<$name>() == Some(self)
            }
            fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
                Box::new(*self)
            }
            fn as_any(&self) -> Option<&dyn Any> {
                Some(self)
            }
        }

        impl StaticVal for $name {}

        impl Comparer for $name {
            fn compare(&self, other: &dyn Val) -> Result<Ordering, ExecutionError> {
                match other.downcast_ref::<$name>() {
                    Some(other) => Ok(self.0.cmp(&other.0)),
                    None => Err(mismatch("_<_", self, other)),
                }
            }
        }
    };
}

value!(Time, TIME);
value!(Span, SPAN);

impl Adder for Time {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(span) = other.downcast_ref::<Span>() else { return Err(mismatch("_+_", self, other)) };
        self.0.checked_add(span.0).map(|time| CowVal::owned(Time(time))).map_err(|_| overflow("_+_"))
    }
}

impl Adder for Span {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        if let Some(time) = other.downcast_ref::<Time>() {
            return time
                .0
                .checked_add(self.0)
                .map(|time| CowVal::owned(Time(time)))
                .map_err(|_| overflow("_+_"));
        }
        let Some(span) = other.downcast_ref::<Span>() else { return Err(mismatch("_+_", self, other)) };
        self.0.checked_add(span.0).map(|span| CowVal::owned(Span(span))).ok_or_else(|| overflow("_+_"))
    }
}

impl Subtractor for Time {
    fn sub<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        if let Some(time) = other.downcast_ref::<Time>() {
            return Ok(CowVal::owned(Span(self.0.duration_since(time.0))));
        }
        let Some(span) = other.downcast_ref::<Span>() else { return Err(mismatch("_-_", self, other)) };
        self.0.checked_sub(span.0).map(|time| CowVal::owned(Time(time))).map_err(|_| overflow("_-_"))
    }
}

impl Subtractor for Span {
    fn sub<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(span) = other.downcast_ref::<Span>() else { return Err(mismatch("_-_", self, other)) };
        self.0.checked_sub(span.0).map(|span| CowVal::owned(Span(span))).ok_or_else(|| overflow("_-_"))
    }
}

fn mismatch(operator: &str, one: &dyn Val, other: &dyn Val) -> ExecutionError {
    let names = [one, other].map(|value| value.get_type().name().to_owned());
    ExecutionError::no_such_overload(operator, names.to_vec())
}

fn overflow(operator: &str) -> ExecutionError {
    ExecutionError::function_error(operator, "timestamp overflow")
}

/// Functions of times and spans.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn time: (CelString) -> Result<Time>, name = "timestamp")?;
    add_overload!(env, fn same_time: (Time) -> Time, name = "timestamp")?;
    add_overload!(env, fn span: (CelString) -> Result<Span>, name = "duration")?;
    add_overload!(env, fn same_span: (Span) -> Span, name = "duration")?;
    add_overload!(env, fn time_text: (Time) -> CelString, name = "string")?;
    add_overload!(env, fn span_text: (Span) -> CelString, name = "string")?;
    add_overload!(env, fn epoch_s: (Time) -> CelInt, name = "int")?;
    add_member_overload!(env, fn get_full_year: (Time) -> CelInt)?;
    add_member_overload!(env, fn get_month: (Time) -> CelInt)?;
    add_member_overload!(env, fn get_date: (Time) -> CelInt)?;
    add_member_overload!(env, fn get_day_of_month: (Time) -> CelInt)?;
    add_member_overload!(env, fn get_day_of_week: (Time) -> CelInt)?;
    add_member_overload!(env, fn get_day_of_year: (Time) -> CelInt)?;
    add_member_overload!(env, fn get_hours: (Time) -> CelInt)?;
    add_member_overload!(env, fn get_minutes: (Time) -> CelInt)?;
    add_member_overload!(env, fn get_seconds: (Time) -> CelInt)?;
    add_member_overload!(env, fn whole_hours: (Span) -> CelInt, name = "getHours")?;
    add_member_overload!(env, fn whole_minutes: (Span) -> CelInt, name = "getMinutes")?;
    add_member_overload!(env, fn whole_seconds: (Span) -> CelInt, name = "getSeconds")
}

fn time(text: &CelString<'_>) -> Result<Time, ExecutionError> {
    Time::parse(text.inner()).ok_or_else(|| unconverted("timestamp", "Timestamp"))
}

fn unconverted(function: &str, name: &str) -> ExecutionError {
    let why = format!("type conversion error from 'string' to 'google.protobuf.{name}'");
    ExecutionError::function_error(function, why)
}

fn same_time(time: &Time) -> Time {
    *time
}

fn span(text: &CelString<'_>) -> Result<Span, ExecutionError> {
    // Values of schemas may spell units out; a text that is converted may not.
    let is_right = is_go_duration(text.inner());
    Span::parse(text.inner()).filter(|_| is_right).ok_or_else(|| unconverted("duration", "Duration"))
}

fn same_span(span: &Span) -> Span {
    *span
}

fn time_text<'v>(time: &Time) -> CelString<'v> {
    CelString::from(time.0.to_string())
}

fn span_text<'v>(span: &Span) -> CelString<'v> {
    CelString::from(format!("{}s", span.0.as_secs_f64()))
}

fn epoch_s(time: &Time) -> CelInt {
    CelInt::from(time.0.as_second())
}

fn get_full_year(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().year()))
}

fn get_month(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().month()) - 1)
}

fn get_date(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().day()))
}

/// From 0, unlike the date.
fn get_day_of_month(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().day()) - 1)
}

/// Sunday is 0.
fn get_day_of_week(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().weekday().to_sunday_zero_offset()))
}

fn get_day_of_year(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().day_of_year()) - 1)
}

fn get_hours(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().hour()))
}

fn get_minutes(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().minute()))
}

fn get_seconds(time: &Time) -> CelInt {
    CelInt::from(i64::from(time.civil().second()))
}

fn whole_hours(span: &Span) -> CelInt {
    CelInt::from(span.0.as_hours())
}

fn whole_minutes(span: &Span) -> CelInt {
    CelInt::from(span.0.as_mins())
}

fn whole_seconds(span: &Span) -> CelInt {
    CelInt::from(span.0.as_secs())
}
