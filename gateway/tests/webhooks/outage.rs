//! A receiver that is away for a while: what was to be told meanwhile comes once it is back, each once, when the schedule says,
//! and signed. `REACH_OUTAGE_SECS=60` makes it long, with the schedule that is used unless another is set: its second
//! try is after 5 s and its third after 5 to 6 min, so that takes about 6 min. The receiver verifies each message as it
//! comes, as receivers do: a signature is good for five minutes only.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reach_core::webhook::schedule::RETRIES;
use reach_schemas::{Span, Timestamp};
use serde_json::Value;

use crate::process::Verifier;
use crate::receiver::{Receiver, Reply, nobody};
use crate::victim::{Victim, from_env};
use crate::world::World;

/// How many tasks end while the receiver is away.
const MESSAGES: u64 = 24;
/// How much later than the schedule says a message may come, on a machine that is busy.
const SLACK: Span = Span::from_secs(3);

fn time(value: &Value) -> Timestamp {
    serde_json::from_value(value.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_told_in_an_outage_comes_after_it_once_when_the_schedule_says_and_is_verified() {
    let long = from_env("REACH_OUTAGE_SECS", 0);
    let outage = if long > 0 { Duration::from_secs(long) } else { Duration::from_secs(2) };
    let short = [250, 750, 1500, 1500, 1500, 1500].map(Span::from_ms);
    let retries: &[Span] = if long > 0 { &RETRIES } else { &short };
    let named: Vec<String> = retries.iter().map(|wait| format!("\"{wait}\"")).collect();
    let usual = if long > 0 { String::new() } else { format!("retries = [{}]\n", named.join(", ")) };
    let verifier = Verifier::start();
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), &format!("[webhooks]\nallow = [\"127.0.0.0/8\"]\n{usual}")).await;
    let mut world = World::over(&victim.url()).await;
    let address = nobody();
    let (url, began) = (format!("http://{address}/"), Instant::now());
    for number in 0..MESSAGES {
        world.end_one(&url).await;
        let next = outage.mul_f64((number + 1) as f64 / MESSAGES as f64);
        tokio::time::sleep(next.saturating_sub(began.elapsed())).await;
    }
    let secret = std::fs::read_to_string(folder.path().join("data/webhook-secret")).unwrap();
    let verified: Arc<Mutex<Vec<Result<String, String>>>> = Arc::default();
    let receiver = Receiver::start_at(address, {
        let verified = Arc::clone(&verified);
        move |seen| {
            let verdict = verifier.verify(secret.trim(), seen);
            let status = if verdict.is_ok() { 200 } else { 401 };
            verified.lock().unwrap().push(verdict);
            Reply::Status(status)
        }
    })
    .await;
    let back = Instant::now();
    let patience = retries.iter().take(3).fold(Span::from_secs(30), |sum, wait| sum + *wait + *wait);
    let webhooks = loop {
        let webhooks = world.webhooks().await;
        if webhooks.iter().all(|webhook| webhook["state"] == "delivered") {
            break webhooks;
        }
        assert!(back.elapsed() < Duration::from(patience), "{:#?} {webhooks:#?}", verified.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(100)).await;
    };

    let (seen, verified) = (receiver.seen(), verified.lock().unwrap());
    assert!(verified.iter().all(|verdict| verdict.as_deref() == Ok("task.cancelled")), "{verified:#?}");
    assert_eq!((webhooks.len() as u64, seen.len() as u64), (MESSAGES, MESSAGES), "each comes once");
    let (mut tries, mut first, mut last) = (Vec::new(), Span::from_hours(1), Span::ZERO);
    for webhook in &webhooks {
        let came: Vec<_> = seen.iter().filter(|one| webhook["webhook_id"] == one.id()).collect();
        assert_eq!(came.len(), 1, "{webhook}");
        // Each try was as long after the one before as the schedule says, and up to a fifth more.
        let failed = webhook["tries"].as_u64().unwrap() - 1;
        let waits = retries.iter().take(failed as usize).fold(Span::ZERO, |sum, wait| sum + *wait);
        let most = waits + Span::from_ms(waits.as_ms() / 5) + SLACK;
        let took = time(&webhook["ended_at"]).since(time(&webhook["created_at"]));
        assert!((waits..=most).contains(&took), "after {failed} failures: {took}, and not {waits} to {most}");
        tries.push(failed + 1);
        (first, last) = (first.min(took), last.max(took));
    }
    tries.sort_unstable();
    assert!(tries[0] >= 2 || long == 0, "{tries:?}");
    println!(
        "{MESSAGES} messages over an outage of {outage:?}: all verified as they came and delivered {:?} after its end, {first} to {last} after the end \
         of their task, in {} to {} tries each",
        back.elapsed(),
        tries[0],
        tries[tries.len() - 1]
    );
}
