//! The laws of a cloud: what every provider must keep to, whatever the cloud behind it does.
//!
//! A new cloud is done when [`examine`] finds no offence with its double lying in every listed way. A law says
//! what is true of the world afterwards, never which calls were made. Never here: anything of one cloud.

mod bench;
mod driver;
mod life;
mod trouble;

use futures::future::LocalBoxFuture;

pub use bench::{Bench, Meddling, Trouble};
pub use driver::Driver;

/// Makes a new world for each trial.
pub type Make<'a, B> = &'a (dyn Fn() -> B + Sync);

/// One law.
pub struct Law<B> {
    /// What it claims.
    pub name: &'static str,
    /// Tries it. An error says in which trouble it broke and what was seen.
    pub check: for<'a> fn(Make<'a, B>) -> LocalBoxFuture<'a, Result<(), String>>,
}

/// All laws.
pub fn all<B: Bench>() -> Vec<Law<B>> {
    macro_rules! laws {
        ($($module:ident::$law:ident),+ $(,)?) => {
            vec![$(Law { name: stringify!($law), check: |make| Box::pin($module::$law(make)) }),+]
        };
    }
    laws![
        life::a_machine_gets_one_instance,
        life::looking_creates_nothing,
        life::at_rest_nothing_is_written,
        life::a_machine_being_deleted_gets_no_instance,
        life::removal_ends_with_nothing_left,
        life::removal_needs_no_spec,
        life::removal_can_be_repeated,
        life::a_bad_spec_is_refused_and_makes_nothing,
        life::a_stopped_instance_exists,
        life::an_instance_terminated_by_others_is_absent,
        trouble::there_is_never_a_second_instance,
        trouble::a_lost_answer_makes_no_second_create,
        trouble::absent_is_never_told_while_an_instance_lives,
        trouble::removal_ends_with_nothing_left_whatever_happened_before,
        trouble::trouble_that_passes_fails_no_machine,
        trouble::an_outage_is_not_an_absence,
    ]
}

/// Tries all laws. Gives the offences: the law's name and what was seen.
pub async fn examine<B: Bench>(make: Make<'_, B>) -> Vec<(&'static str, String)> {
    let mut offences = vec![];
    for law in all::<B>() {
        if let Err(offence) = (law.check)(make).await {
            offences.push((law.name, offence));
        }
    }
    offences
}

/// Fails a law.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
