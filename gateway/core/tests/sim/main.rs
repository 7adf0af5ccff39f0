//! Whole worlds from one seed: gateways that crash at any point, agents that are slow, full, silent or gone, callers
//! that send again and call off, and a network that loses, delays and doubles. What must never be is checked at every
//! commit and every execution; once the weather is fine, everything must end. See the README beside this file.
//!
//! `REACH_SIM_WORLDS=n` runs so many worlds, `REACH_SIM_SEED=s` the one world of that seed.

mod agent;
mod births;
mod caller;
mod checks;
mod coverage;
mod gateway;
mod learning;
mod people;
mod reports;
mod setup;
mod store;
mod upkeep;
mod world;

use coverage::{Coverage, Covered};
use world::World;

/// How many worlds a run has if nobody says.
const WORLDS: u64 = 1000;
/// How often each hard path has to be taken in so many worlds.
const LEAST: u64 = 5;

#[expect(clippy::disallowed_methods, reason = "how many worlds there are is the tester's choice, not the core's")]
fn wish(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// What became of the world of a seed: the paths that it took, and its history as a number.
fn run(seed: u64) -> Result<(Coverage, u64), String> {
    let mut world = World::from_seed(seed);
    world.run()?;
    Ok((world.coverage, world.history))
}

/// Runs every `step`th world from `first` on.
fn run_all(first: u64, worlds: u64, step: usize) -> Result<Coverage, (u64, String)> {
    let mut all = Coverage::default();
    for seed in (first..worlds).step_by(step) {
        all.add(&run(seed).map_err(|told| (seed, told))?.0);
    }
    Ok(all)
}

#[test]
fn every_world_keeps_its_promises_and_no_hard_path_is_avoided() {
    if let Some(seed) = wish("REACH_SIM_SEED") {
        if let Err(told) = run(seed) {
            panic!("{told}");
        }
        return;
    }
    let worlds = wish("REACH_SIM_WORLDS").unwrap_or(WORLDS);
    let halves = std::thread::scope(|scope| {
        let other = scope.spawn(|| run_all(1, worlds, 2));
        let own = run_all(0, worlds, 2);
        [own, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]
    });
    let mut all = Coverage::default();
    let mut broken = Vec::new();
    for half in halves {
        half.map(|coverage| all.add(&coverage)).unwrap_or_else(|seed| broken.push(seed));
    }
    if let Some((_, told)) = broken.iter().min() {
        panic!("{told}");
    }
    let missed = all.missed(if worlds < WORLDS { 0 } else { LEAST });
    let told: Vec<String> = Covered::ALL.iter().map(|path| format!("{path:?} {}", all.count(*path))).collect();
    assert!(missed.is_empty(), "paths taken less than {LEAST} times: {missed:?}\nof {}", told.join(", "));
    show(&told.join(", "));
}

#[expect(clippy::disallowed_macros, reason = "a test may say what it has done")]
fn show(text: &str) {
    println!("{text}");
}

#[test]
fn the_same_seed_tells_the_same_story_and_another_seed_another() {
    let stories: Vec<_> = (0..24).map(|seed| run(seed).map(|(_, history)| history)).collect();
    for (seed, story) in stories.iter().enumerate() {
        let again = run(seed as u64).map(|(_, history)| history);
        assert_eq!(&again, story, "seed {seed}");
    }
    assert_ne!(stories[0], stories[1]);
}
