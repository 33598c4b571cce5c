//! Conditions of Machines, MachineSets and MachineHealthChecks: an unsorted list on the wire, one entry a type.

use serde::{Deserialize, Serialize};

use crate::{Time, Timestamp};

/// `True`, `False` or `Unknown`; anything else that a foreign writer stored is kept as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ConditionStatus(pub std::borrow::Cow<'static, str>);

impl ConditionStatus {
    /// The condition holds.
    pub const TRUE: Self = Self(std::borrow::Cow::Borrowed("True"));
    /// The condition does not hold.
    pub const FALSE: Self = Self(std::borrow::Cow::Borrowed("False"));
    /// It is not known whether the condition holds.
    pub const UNKNOWN: Self = Self(std::borrow::Cow::Borrowed("Unknown"));
}

/// How bad a condition that is not True is. Empty when it is True.
pub mod severity {
    /// The object cannot reach its goal without a change by the user.
    pub const ERROR: &str = "Error";
    /// The object may reach its goal by itself, later.
    pub const WARNING: &str = "Warning";
    /// Nothing is wrong.
    pub const INFO: &str = "Info";
}

/// One observed aspect of an object.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which aspect of the object this entry describes, in CamelCase. The list holds each type once.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// How bad it is when the condition is not True: Error, Warning or Info.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// Why the condition has its status, as one word in CamelCase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Details for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When status, severity, reason or message changed last.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(required, !default, schema_with = "crate::schema::time"))]
    pub last_transition_time: Option<Time>,
}

impl Condition {
    /// A condition that holds; severity, reason and message are empty.
    pub fn yes(type_: &str) -> Self {
        Self { type_: type_.into(), status: ConditionStatus::TRUE, ..Self::default() }
    }

    /// A condition that does not hold.
    pub fn no(type_: &str, severity: &str, reason: &str, message: impl Into<String>) -> Self {
        Self {
            type_: type_.into(),
            status: ConditionStatus::FALSE,
            severity: severity.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time: None,
        }
    }

    /// A condition of which nothing is known.
    pub fn unknown(type_: &str, reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: ConditionStatus::UNKNOWN,
            severity: String::new(),
            ..Self::no(type_, "", reason, message)
        }
    }

    /// Sets the message.
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Whether the status is True.
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::TRUE
    }

    /// Whether two conditions say the same, whenever they began to.
    pub fn same_state(&self, other: &Self) -> bool {
        let Self { type_, status, severity, reason, message, last_transition_time: _ } = self;
        *type_ == other.type_
            && *status == other.status
            && *severity == other.severity
            && *reason == other.reason
            && *message == other.message
    }
}

/// What can be asked of and done to a list of conditions.
pub trait Conditions {
    /// The entry of a type.
    fn find(&self, type_: &str) -> Option<&Condition>;

    /// Whether the entry is there and True.
    fn is_true(&self, type_: &str) -> bool {
        self.find(type_).is_some_and(Condition::is_true)
    }

    /// Whether the entry is there and False.
    fn is_false(&self, type_: &str) -> bool {
        self.find(type_).is_some_and(|c| c.status == ConditionStatus::FALSE)
    }
}

impl Conditions for [Condition] {
    fn find(&self, type_: &str) -> Option<&Condition> {
        self.iter().find(|c| c.type_ == type_)
    }
}

/// Puts a condition into the list. An entry that says the same keeps its `lastTransitionTime`; one that says something
/// else gets `now` in whole seconds; a new one gets `now` unless the caller set a time. The list ends sorted by type.
/// Returns whether anything changed.
pub fn set(list: &mut Vec<Condition>, condition: Condition, now: Timestamp) -> bool {
    let seconds = Time(whole_seconds(now));
    match list.iter_mut().find(|c| c.type_ == condition.type_) {
        Some(old) if old.same_state(&condition) => return false,
        Some(old) => *old = Condition { last_transition_time: Some(seconds), ..condition },
        None => {
            let time = condition.last_transition_time.clone().unwrap_or(seconds);
            list.push(Condition { last_transition_time: Some(time), ..condition });
        }
    }
    list.sort_by(|a, b| a.type_.cmp(&b.type_));
    true
}

/// Removes a condition. Returns whether it was there.
pub fn remove(list: &mut Vec<Condition>, type_: &str) -> bool {
    let before = list.len();
    list.retain(|c| c.type_ != type_);
    before != list.len()
}

/// A timestamp cut to whole seconds, which is what the wire format holds.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn time(second: i64) -> Option<Time> {
        Some(Time(at(second)))
    }

    // C01
    #[test]
    fn setting_two_types_leaves_the_list_sorted_by_type() {
        let mut list = vec![];
        assert!(set(&mut list, Condition::yes("B"), at(1)));
        assert!(set(&mut list, Condition::yes("A"), at(1)));
        assert_eq!(list.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), ["A", "B"]);
    }

    // C02
    #[test]
    fn an_equal_state_keeps_its_time_and_a_changed_message_moves_it() {
        let mut list = vec![];
        set(&mut list, Condition::no("A", "Warning", "R", "one"), at(1));
        assert!(!set(&mut list, Condition::no("A", "Warning", "R", "one"), at(2)));
        assert_eq!(list[0].last_transition_time, time(1));
        assert!(set(&mut list, Condition::no("A", "Warning", "R", "two"), at(3)));
        assert_eq!(list[0].last_transition_time, time(3));
    }

    // C02
    #[test]
    fn a_new_condition_keeps_a_time_that_the_caller_set() {
        let mut list = vec![];
        set(&mut list, Condition { last_transition_time: time(7), ..Condition::yes("A") }, at(9));
        assert_eq!(list[0].last_transition_time, time(7));
    }

    // C03
    #[test]
    fn a_missing_condition_is_neither_true_nor_false() {
        let list: Vec<Condition> = vec![];
        assert!(list.find("A").is_none() && !list.is_true("A") && !list.is_false("A"));
    }

    // C04: a condition cannot be absent in this signature; what is left is that setting nothing changes nothing.
    #[test]
    fn removing_a_missing_condition_changes_nothing() {
        let mut list = vec![Condition::yes("A")];
        assert!(!remove(&mut list, "B"));
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn times_are_cut_to_whole_seconds() {
        let mut list = vec![];
        set(&mut list, Condition::yes("A"), Timestamp::new(5, 999_000_000).expect("in range"));
        assert_eq!(list[0].last_transition_time, time(5));
    }
}
