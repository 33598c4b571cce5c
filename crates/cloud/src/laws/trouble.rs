//! Laws that hold whatever the cloud does. Each is tried in every trouble that the cloud's double can make.

use std::time::Duration;

use super::{Bench, Driver, Make, Trouble, ensure};
use crate::{Kind, Sighting, Want};

/// How long trouble lasts that does not end by itself.
const LASTING: Duration = Duration::from_secs(60);

/// I1: with a new process in every round, and with what was recorded lost in every third.
pub async fn there_is_never_a_second_instance<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    for_each(make, async |bench, trouble| {
        let mut driver = Driver::new(bench, "a");
        for round in 0..30 {
            driver.restart();
            if round % 3 == 0 {
                driver.forget();
            }
            let answer = driver.ask(if driver.who.is_recorded() { Want::Look } else { Want::Present }).await;
            let live = bench.live(&driver.who.uid);
            ensure(live <= 1, || format!("{trouble:?}, round {round}: {live} live instances"))?;
            driver.wait(&answer);
        }
        bench.calm();
        driver.create(|_, _| Ok(())).await.map_err(|e| format!("{trouble:?}: {e}"))?;
        let (live, made) = (bench.live(&driver.who.uid), bench.made(&driver.who.uid));
        ensure(live == 1 && made == 1, || format!("{trouble:?}: {live} live instances, {made} made"))
    })
    .await
}

pub async fn a_lost_answer_makes_no_second_create<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    for trouble in [Trouble::CreateAnswersLost(1), Trouble::CreatesFailAfterSuccess(1)] {
        let bench = make();
        if !bench.begin(trouble) {
            continue;
        }
        let mut driver = Driver::new(&bench, "a");
        let answer = driver.ask(Want::Present).await;
        let is_told = answer.failure.as_ref().is_some_and(|failure| failure.error.is_uncertain);
        ensure(is_told, || {
            format!("{trouble:?}: the answer does not say that the create may have taken effect")
        })?;
        driver.create(|_, _| Ok(())).await?;
        let made = bench.made(&driver.who.uid);
        ensure(made == 1, || format!("{trouble:?}: {made} instances were made"))?;
    }
    Ok(())
}

/// I3: after the settle window an absence is true, whether or not an identity was recorded.
pub async fn absent_is_never_told_while_an_instance_lives<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    for is_recorded in [true, false] {
        for_each(make, async |bench, trouble| {
            let mut driver = Driver::new(bench, "a");
            for _ in 0..5 {
                let answer = driver.ask(Want::Present).await;
                driver.wait(&answer);
            }
            if !is_recorded {
                driver.forget();
            }
            bench.pass(driver.settle() + Duration::from_secs(1));
            let started = bench.now();
            driver.restart();
            driver.delete();
            for round in 0..60 {
                let answer = driver.ask(Want::Absent).await;
                let live = bench.live(&driver.who.uid);
                ensure(!driver.is_gone(&answer) || live == 0, || {
                    format!(
                        "{trouble:?}, id recorded: {is_recorded}, round {round}: absent while {live} lives"
                    )
                })?;
                driver.wait(&answer);
                if bench.now().duration_since(started).unsigned_abs() > LASTING {
                    bench.calm();
                }
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// I2: also when the deletion follows the create at once, and another process does it.
pub async fn removal_ends_with_nothing_left_whatever_happened_before<B: Bench>(
    make: Make<'_, B>,
) -> Result<(), String> {
    for rounds in [1, 4] {
        for_each(make, async |bench, trouble| {
            let mut driver = Driver::new(bench, "a");
            for _ in 0..rounds {
                driver.ask(Want::Present).await;
                bench.pass(Duration::from_secs(1));
            }
            driver.delete();
            let started = bench.now();
            let outcome = driver.remove(|bench, _| {
                if bench.now().duration_since(started).unsigned_abs() > LASTING {
                    bench.calm();
                }
                Ok(())
            });
            outcome.await.map_err(|e| format!("{trouble:?}, {rounds} rounds: {e}"))?;
            bench.calm();
            bench.pass(Duration::from_secs(1800));
            let left = bench.left(&driver.who.uid);
            ensure(left.is_empty(), || format!("{trouble:?}, {rounds} rounds: left: {}", left.join(", ")))
        })
        .await?;
    }
    Ok(())
}

/// A class is Invalid only where a spec can never work; anything unknown is Transient.
pub async fn trouble_that_passes_fails_no_machine<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    for_each(make, async |bench, trouble| {
        let mut driver = Driver::new(bench, "a");
        let started = bench.now();
        let outcome = driver.create(|bench, answer| {
            if bench.now().duration_since(started).unsigned_abs() > LASTING {
                bench.calm();
            }
            if let Some(failure) = &answer.failure {
                let kind = failure.error.kind;
                ensure(kind != Kind::Invalid, || format!("an error of class Invalid: {}", failure.error))?;
            }
            let fatal = match &answer.sighting {
                Sighting::Present(instance) => instance.fatal.clone(),
                Sighting::Unknown | Sighting::Absent => None,
            };
            ensure(fatal.is_none(), || format!("fatal: {}", fatal.unwrap_or_default()))
        });
        outcome.await.map_err(|e| format!("{trouble:?}: {e}"))
    })
    .await
}

pub async fn an_outage_is_not_an_absence<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    driver.create(|_, _| Ok(())).await?;
    if !bench.begin(Trouble::Out) {
        return Ok(());
    }
    driver.restart();
    driver.delete();
    for round in 0..5 {
        let answer = driver.ask(Want::Absent).await;
        ensure(answer.sighting != Sighting::Absent, || format!("round {round}: absent was told"))?;
        ensure(answer.failure.is_some(), || format!("round {round}: no error was told"))?;
        driver.wait(&answer);
    }
    bench.calm();
    driver.remove(|_, _| Ok(())).await
}

async fn for_each<B: Bench>(
    make: Make<'_, B>,
    trial: impl AsyncFn(&B, Trouble) -> Result<(), String>,
) -> Result<(), String> {
    let settle = {
        let bench = make();
        Driver::new(&bench, "a").settle()
    };
    for trouble in Trouble::all(settle) {
        let bench = make();
        if bench.begin(trouble) {
            trial(&bench, trouble).await?;
        }
    }
    Ok(())
}
