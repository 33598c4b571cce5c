//! Laws of the life of an instance in a cloud that behaves.

use std::time::Duration;

use super::{Bench, Driver, Make, Meddling, ensure};
use crate::{Kind, Sighting, Want};

pub async fn a_machine_gets_one_instance<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    driver.create(|_, _| Ok(())).await?;
    let uid = driver.who.uid.clone();
    ensure(bench.live(&uid) == 1, || format!("{} live instances", bench.live(&uid)))?;
    let mut other = Driver::new(&bench, "bb");
    other.create(|_, _| Ok(())).await?;
    ensure(other.who.provider_id != driver.who.provider_id, || "two machines have one instance".into())?;
    ensure(bench.live(&uid) == 1, || "another machine's create touched the first".into())
}

pub async fn looking_creates_nothing<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    for want in [Want::Look, Want::Absent] {
        let answer = driver.ask(want).await;
        ensure(answer.sighting == Sighting::Absent, || {
            format!("{want:?} of nothing told {:?}", answer.sighting)
        })?;
        ensure(bench.writes() == 0, || format!("{want:?} of nothing wrote to the cloud"))?;
    }
    ensure(bench.made(&driver.who.uid) == 0, || "an instance was made".into())
}

pub async fn at_rest_nothing_is_written<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    driver.create(|_, _| Ok(())).await?;
    // Whatever boots has booted.
    bench.pass(Duration::from_secs(1800));
    driver.ask(Want::Look).await;
    let before = bench.writes();
    for want in [Want::Look, Want::Present, Want::Look] {
        let answer = driver.ask(want).await;
        ensure(answer.taken.is_empty(), || format!("{want:?} took {:?}", answer.taken))?;
        ensure(answer.provider_status.is_none(), || format!("{want:?} changed the provider status"))?;
        bench.pass(Duration::from_secs(60));
    }
    ensure(bench.writes() == before, || format!("{} writes at rest", bench.writes() - before))
}

/// I4.
pub async fn a_machine_being_deleted_gets_no_instance<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    driver.delete();
    driver.ask(Want::Present).await;
    ensure(bench.made(&driver.who.uid) == 0, || "an instance was made".into())
}

/// I2.
pub async fn removal_ends_with_nothing_left<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    let mut other = Driver::new(&bench, "bb");
    driver.create(|_, _| Ok(())).await?;
    other.create(|_, _| Ok(())).await?;
    bench.pass(Duration::from_secs(1800));
    driver.delete();
    driver.remove(|_, _| Ok(())).await?;
    let left = bench.left(&driver.who.uid);
    ensure(left.is_empty(), || format!("left: {}", left.join(", ")))?;
    // I17: what was made for others stays.
    ensure(bench.live(&other.who.uid) == 1, || "the instance of another machine went too".into())?;
    driver.forget();
    let answer = driver.ask(Want::Look).await;
    ensure(answer.sighting == Sighting::Absent, || format!("afterwards the cloud told {:?}", answer.sighting))
}

pub async fn removal_needs_no_spec<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    for is_recorded in [true, false] {
        let bench = make();
        let mut driver = Driver::new(&bench, "a");
        driver.create(|_, _| Ok(())).await?;
        driver.without_spec();
        driver.restart();
        if !is_recorded {
            driver.forget();
        }
        driver.delete();
        driver.remove(|_, _| Ok(())).await?;
        let left = bench.left(&driver.who.uid);
        ensure(left.is_empty(), || format!("with an id recorded: {is_recorded}: left: {}", left.join(", ")))?;
    }
    Ok(())
}

pub async fn removal_can_be_repeated<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    driver.create(|_, _| Ok(())).await?;
    driver.delete();
    driver.remove(|_, _| Ok(())).await?;
    driver.restart();
    let answer = driver.ask(Want::Absent).await;
    ensure(driver.is_gone(&answer), || {
        format!("the second time the cloud told {:?}, {:?}", answer.sighting, answer.failure)
    })
}

pub async fn a_bad_spec_is_refused_and_makes_nothing<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    driver.without_spec();
    let answer = driver.ask(Want::Present).await;
    let kind = answer.failure.map(|failure| failure.error.kind);
    ensure(kind == Some(Kind::Invalid), || format!("the error was of class {kind:?}"))?;
    ensure(bench.made(&driver.who.uid) == 0, || "an instance was made".into())
}

pub async fn a_stopped_instance_exists<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    driver.create(|_, _| Ok(())).await?;
    bench.pass(Duration::from_secs(1800));
    bench.meddle(&driver.who.uid, Meddling::Stop);
    bench.pass(Duration::from_secs(600));
    let answer = driver.ask(Want::Look).await;
    ensure(matches!(answer.sighting, Sighting::Present(_)), || {
        format!("the cloud told {:?}", answer.sighting)
    })?;
    driver.delete();
    driver.remove(|_, _| Ok(())).await?;
    ensure(bench.live(&driver.who.uid) == 0, || "a stopped instance was left".into())
}

pub async fn an_instance_terminated_by_others_is_absent<B: Bench>(make: Make<'_, B>) -> Result<(), String> {
    let bench = make();
    let mut driver = Driver::new(&bench, "a");
    driver.create(|_, _| Ok(())).await?;
    bench.pass(Duration::from_secs(1800));
    bench.meddle(&driver.who.uid, Meddling::Terminate);
    bench.pass(Duration::from_secs(1800));
    let answer = driver.ask(Want::Look).await;
    ensure(answer.sighting == Sighting::Absent, || format!("the cloud told {:?}", answer.sighting))?;
    ensure(bench.made(&driver.who.uid) == 1, || "another instance was made".into())?;
    driver.delete();
    driver.remove(|_, _| Ok(())).await
}
