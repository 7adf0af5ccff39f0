//! Agents that do everything right but for one fault, each of which the runner must find by the right requirement, and
//! by no other.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;
mod wrong;

use std::sync::Arc;

use common::{Done, file, run};
use serde_json::json;
use tokio::sync::Semaphore;
use wrong::{Agent, Fault, Over, http, socket};

/// How many runs there are at once: they wait more than they work.
const RUNS_MAX: usize = 6;

/// What is planted, by which way the agent is reached, and which requirement must say so.
const TABLE: &[(Fault, Over, &str)] = &[
    (Fault::UnknownCardField, Over::Http, "card-is-valid"),
    (Fault::UnusableSchema, Over::Http, "card-schemas-usable"),
    (Fault::UnknownVersion, Over::Socket, "card-version-spoken"),
    (Fault::NoDescription, Over::Http, "card-says-what-it-does"),
    (Fault::NoEffect, Over::Http, "card-says-its-effect"),
    (Fault::NeverRegisters, Over::Http, "registers"),
    (Fault::NeverRegisters, Over::Socket, "registers"),
    (Fault::NeverRegistersAgain, Over::Http, "registers-again"),
    (Fault::RegistersAnother, Over::Socket, "registers-the-same"),
    (Fault::NeverBeats, Over::Http, "beats-in-time"),
    (Fault::BeatsForAnother, Over::Http, "beats-are-valid"),
    (Fault::BeatsWithUnknownField, Over::Socket, "beats-are-valid"),
    (Fault::ChokesOnUnknownAnswer, Over::Http, "beats-on"),
    (Fault::BeatsTooOften, Over::Socket, "beats-calmly"),
    (Fault::HidesLoad, Over::Socket, "beats-tell-load"),
    (Fault::NeverAnswers, Over::Http, "answers-work"),
    (Fault::NeverAnswers, Over::Socket, "answers-work"),
    (Fault::AnswersText, Over::Http, "result-is-json"),
    (Fault::AnswersPlainType, Over::Http, "http-says-json"),
    (Fault::BreaksSchema, Over::Socket, "result-fits-schema"),
    (Fault::AnswersSlowText, Over::Http, "result-is-json"),
    (Fault::BreaksSlowSchema, Over::Socket, "result-fits-schema"),
    (Fault::FailsWhatItOffers, Over::Http, "answers-each-capability"),
    (Fault::FailsWhatCannotBeTried, Over::Http, "refuses-bad-input"),
    (Fault::GoesSilent, Over::Http, "answers-work"),
    (Fault::GoesSilent, Over::Socket, "answers-work"),
    (Fault::ChokesOnUnknownMember, Over::Http, "passes-over-unknown-fields"),
    (Fault::NeedsTrace, Over::Http, "needs-no-trace"),
    (Fault::TakesBadInput, Over::Http, "refuses-bad-input"),
    (Fault::BlamesItselfForBadInput, Over::Http, "refuses-bad-input"),
    (Fault::TakesWrongTypes, Over::Http, "refuses-bad-input"),
    (Fault::TakesOutOfRange, Over::Queue, "refuses-bad-input"),
    (Fault::TakesUnknownMembers, Over::Socket, "refuses-bad-input"),
    (Fault::TakesBadInputElsewhere, Over::Http, "refuses-bad-input"),
    (Fault::PutsBadInputOff, Over::Http, "refuses-bad-input"),
    (Fault::RedirectsBadInput, Over::Http, "refuses-bad-input"),
    (Fault::DoesNotStartBadInput, Over::Http, "refuses-bad-input"),
    (Fault::LimpsAfterBadInput, Over::Socket, "survives-bad-input"),
    (Fault::LimpsAfterGarbage, Over::Http, "survives-garbage"),
    (Fault::TakesGarbage, Over::Http, "refuses-garbage"),
    (Fault::ManglesUnicode, Over::Socket, "keeps-unicode"),
    (Fault::RoundsNumbers, Over::Http, "keeps-numbers"),
    (Fault::DropsLarge, Over::Socket, "takes-large-params"),
    (Fault::DropsEmpty, Over::Http, "takes-empty-params"),
    (Fault::DoesAttemptTwice, Over::Http, "done-once-per-attempt"),
    (Fault::DoesAttemptTwice, Over::Socket, "done-once-per-attempt"),
    (Fault::DoesKeyTwice, Over::Queue, "done-once-per-key"),
    (Fault::DoesAttemptTwiceMeanwhile, Over::Http, "done-once-per-attempt"),
    (Fault::DoesAttemptTwiceMeanwhile, Over::Socket, "done-once-per-attempt"),
    (Fault::DoesKeyTwiceMeanwhile, Over::Http, "done-once-per-key"),
    (Fault::DoesKeyTwiceMeanwhile, Over::Queue, "done-once-per-key"),
    (Fault::RefusesRepeats, Over::Http, "answers-repeats-alike"),
    (Fault::TakesOlderToken, Over::Socket, "heeds-newer-token"),
    (Fault::IgnoresCancel, Over::Http, "stops-when-cancelled"),
    (Fault::IgnoresCancel, Over::Socket, "stops-when-cancelled"),
    (Fault::IgnoresCancelWhenLate, Over::Socket, "heeds-deadline"),
    (Fault::LimpsAfterCancel, Over::Http, "survives-cancel"),
    (Fault::NoDelete, Over::Http, "http-cancel-answered"),
    (Fault::TakesLess, Over::Http, "works-side-by-side"),
    (Fault::TakesMore, Over::Http, "keeps-its-bound"),
    (Fault::TakesMore, Over::Queue, "keeps-its-bound"),
    (Fault::NeverSaysWhen, Over::Socket, "says-when-again"),
    (Fault::LimpsAfterCrowd, Over::Http, "works-after-crowd"),
    (Fault::ProbeFails, Over::Http, "answers-probe"),
    (Fault::ProbeLies, Over::Socket, "probe-fits-schema"),
    (Fault::ProbeWaitsForWork, Over::Socket, "answers-probe-at-work"),
    (Fault::ReportsUnknownToken, Over::Socket, "reports-are-valid"),
    (Fault::ReportsOnce, Over::Socket, "reports-again"),
    (Fault::ReportsStaleForever, Over::Queue, "takes-no-for-an-answer"),
    (Fault::ReportsStaleEachSecond, Over::Socket, "takes-no-for-an-answer"),
    (Fault::WorksBeforeAccept, Over::Socket, "accepts-before-work"),
    (Fault::CompletesBeforeAccept, Over::Socket, "answers-in-order"),
    (Fault::NeverAccepts, Over::Queue, "answers-in-order"),
    (Fault::AnswersUnknownMethods, Over::Socket, "rpc-unknown-method"),
    (Fault::RoundsIds, Over::Socket, "rpc-echoes-ids"),
    (Fault::AnswersNotifications, Over::Socket, "rpc-silent-to-notifications"),
    (Fault::NeverComesBack, Over::Socket, "link-comes-back"),
    (Fault::ComesBackSilently, Over::Socket, "link-comes-back"),
    (Fault::ForgetsResults, Over::Socket, "link-reports-meanwhile"),
    (Fault::Floods, Over::Socket, "link-is-calm"),
    (Fault::FloodsBeats, Over::Socket, "link-is-calm"),
    (Fault::ClosesAtOnce, Over::Socket, "registers"),
    (Fault::ClaimsTooMuch, Over::Queue, "claims-are-valid"),
    (Fault::ClaimsHastily, Over::Queue, "claims-patiently"),
    (Fault::NeverRenews, Over::Queue, "keeps-its-lease"),
    (Fault::ForgetsLostTask, Over::Queue, "works-after-lost-lease"),
];

/// The same for agents that are asked for a token.
const WITH_TOKENS: &[(Fault, Over, &str)] = &[
    (Fault::NeverJoins, Over::Http, "joins"),
    (Fault::NeverJoins, Over::Socket, "joins"),
    (Fault::ProvesToAnother, Over::Http, "proves-its-key"),
    (Fault::ForgetsToken, Over::Http, "shows-its-token"),
    (Fault::KeepsOldToken, Over::Http, "takes-next-token"),
    (Fault::KeepsOldToken, Over::Socket, "takes-next-token"),
    (Fault::NeverShowsKeyAgain, Over::Http, "shows-its-key-again"),
    (Fault::NeverShowsKeyAgain, Over::Socket, "shows-its-key-again"),
    (Fault::ShowsAnotherKey, Over::Socket, "keeps-its-key"),
    (Fault::GoesOnWhenSuperseded, Over::Http, "stops-when-superseded"),
    (Fault::GoesOnWhenSuperseded, Over::Socket, "stops-when-superseded"),
];

/// What is looked at of agents that are asked for a token: the rest is as without.
const IDENTITY: &[&str] = &["--tokens", "--only", "identity,registers"];

/// Checks the agent with this fault.
async fn check(fault: Fault, over: Over, flags: &[&str]) -> Done {
    let folder = tempfile::tempdir().unwrap();
    // What is pulled outlasts its lease.
    let slow = if over == Over::Queue { 1500 } else { 700 };
    let samples = file(
        folder.path(),
        "samples.json",
        &json!({
            "nap": { "params": { "ms": 5 }, "slow": { "ms": slow } },
            "enter": { "slow": { "text": "one", "ms": 400 } }, "stamp": { "slow": { "text": "two", "ms": 400 } },
        }),
    );
    let samples = samples.to_str().unwrap();
    let agent = Agent::new(fault, over);
    let way: &[&str] = match over {
        Over::Http => &["--http", "--listen", "127.0.0.1:0"],
        Over::Socket | Over::Queue => &["--ws-listen", "127.0.0.1:0"],
    };
    let mut running = run(&[&["agent", "--samples", samples, "--timeout", "6s"], way, flags].concat());
    let gateway = running.address().await;
    let joined = match over {
        Over::Http => {
            let address = http::serve(agent.clone()).await;
            tokio::spawn(http::join(agent, gateway, address))
        }
        Over::Socket => tokio::spawn(socket::join(agent, gateway)),
        Over::Queue => tokio::spawn(http::pull(agent, gateway)),
    };
    let done = running.done().await;
    joined.abort();
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_fault_meets_every_requirement_by_every_way() {
    let ways = [
        (Fault::Nothing, Over::Http),
        (Fault::Nothing, Over::Socket),
        (Fault::Nothing, Over::Queue),
        (Fault::EscapesIds, Over::Socket),
    ];
    let runs = ways.map(|(fault, over)| async move { (over, check(fault, over, &[]).await) });
    for (over, done) in futures_util::future::join_all(runs).await {
        assert_eq!(done.failures(), "", "{over:?}");
        assert_eq!(done.code, 0, "{over:?}: {}", done.report);
        assert!(done.took.as_secs() < 30, "{over:?}: a run takes {:?}", done.took);
        println!("{over:?}: {} in {:?}, skipped {:?}", done.report["badge"], done.took, done.with("skipped"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_planted_fault_is_found_by_its_own_requirement_and_by_no_other() {
    each_is_found(TABLE, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_in_showing_who_one_is_is_found_by_its_own_requirement_and_by_no_other() {
    each_is_found(WITH_TOKENS, IDENTITY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_asked_for_a_token_meets_every_requirement() {
    let runs = [Over::Http, Over::Socket, Over::Queue]
        .map(|over| async move { (over, check(Fault::Nothing, over, &["--tokens"]).await) });
    for (over, done) in futures_util::future::join_all(runs).await {
        assert_eq!(done.failures(), "", "{over:?}");
        assert_eq!(done.code, 0, "{over:?}: {}", done.report);
        let skipped = done.with("skipped");
        let identity = done.report["results"].as_array().unwrap().iter().filter(|row| row["profile"] == "identity");
        let idle = identity.filter(|row| row["status"] != "passed").count();
        println!("{over:?}: {} in {:?}, skipped {skipped:?}", done.report["badge"], done.took);
        assert_eq!(idle, 0, "{over:?}: all of the profile was looked at");
    }
}

async fn each_is_found(table: &'static [(Fault, Over, &'static str)], flags: &'static [&'static str]) {
    let seats = Arc::new(Semaphore::new(RUNS_MAX));
    let runs = table.iter().map(|(fault, over, expected)| {
        let seats = seats.clone();
        async move {
            let _seat = seats.acquire().await.unwrap();
            let done = check(*fault, *over, flags).await;
            let failed = done.with("failed");
            let is_right = failed == [*expected];
            let told = if is_right { String::new() } else { done.failures() };
            println!("{fault:?} over {over:?}: {failed:?} in {:?}", done.took);
            (!is_right).then(|| format!("{fault:?} over {over:?}: expected {expected}, found {failed:?}\n{told}"))
        }
    });
    let wrong: Vec<String> = futures_util::future::join_all(runs).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), table.len(), wrong.join("\n\n"));
}
