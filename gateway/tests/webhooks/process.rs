//! A gateway as a process: killed before it has delivered, its secret on disk, and its signatures before the judgement of
//! the Python package `standardwebhooks`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::common::python;
use crate::receiver::{Receiver, Reply, Seen, nobody};
use crate::victim::Victim;
use crate::world::World;

/// A configuration that lets webhooks go to this machine, and tries often.
fn local() -> String {
    let retries = "\"200ms\", ".repeat(50);
    format!("[webhooks]\nallow = [\"127.0.0.0/8\"]\nretries = [{retries}]\n")
}

const FIRST: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SECOND: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_killed_before_it_has_delivered_delivers_under_the_same_id() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(folder.path(), &local()).await;
    let mut world = World::over(&victim.url()).await;
    // One receiver is down when the task ends; the other is in the midst of its answer when the gateway dies.
    let down = nobody();
    let is_first = AtomicBool::new(true);
    let busy =
        Receiver::start(
            move |_| {
                if is_first.swap(false, Ordering::SeqCst) { Reply::Silence } else { Reply::Status(200) }
            },
        )
        .await;
    let task = world.submit(&[&format!("http://{down}/"), &busy.url("/")]).await;
    world.complete(&task, json!({ "n": 1.50 })).await;
    busy.wait_for(1).await;
    let before = world.webhooks().await;
    victim.kill_and_restart().await;
    let back = Receiver::start_at(down, |_| Reply::Status(200)).await;

    let mut world = World::over(&victim.url()).await;
    let after = world.states(&["delivered", "delivered"]).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before["webhook_id"], after["webhook_id"]);
    }
    let again = busy.seen();
    assert_eq!(again.len(), 2);
    assert_eq!((again[0].id(), &again[0].body), (again[1].id(), &again[1].body));
    let came = back.wait_for(1).await.remove(0);
    assert_eq!(came.json()["data"]["task_id"], task);
    assert_eq!(came.body, again[0].body, "both are told the same");
    assert_ne!(came.id(), again[0].id(), "each receiver's message has its own id");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_told_of_a_task_that_waits_for_them_though_the_gateway_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let down = nobody();
    let people = format!("[webhooks.people]\nbench = [\"http://{down}/bench\"]\n");
    let mut victim = Victim::start(folder.path(), &format!("{}{people}", local())).await;
    let mut world = World::over(&victim.url()).await;
    world.register_with(json!({ "fallback": [{ "human": "bench" }] })).await;
    let task = world.submit_with(&[], json!({ "tries": 1 })).await["task_id"].as_str().unwrap().to_owned();
    world.fail(&task).await;
    let before = world.webhooks().await;
    assert_eq!((before.len(), &before[0]["type"]), (1, &json!("task.awaits_person")), "{before:#?}");
    victim.kill_and_restart().await;
    let receiver = Receiver::start_at(down, |_| Reply::Status(200)).await;
    let mut world = World::over(&victim.url()).await;
    let after = world.states(&["delivered"]).await;
    assert_eq!(after[0]["webhook_id"], before[0]["webhook_id"]);
    let came = receiver.wait_for(1).await.remove(0);
    assert_eq!((came.path.as_str(), &came.json()["data"]["human"]["queue"]), ("/bench", &json!("bench")));
    assert_eq!(came.json()["data"]["task_id"], task);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_on_a_card_that_is_gone_is_told_nothing_until_the_card_changes() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(folder.path(), &local()).await;
    let receiver = Receiver::start(|seen| Reply::Status(if seen.path == "/gone" { 410 } else { 200 })).await;
    let (gone, well) = (receiver.url("/gone"), receiver.url("/well"));
    let mut world = World::over(&victim.url()).await;
    let fail_one = async |world: &mut World| {
        let task = world.submit(&[]).await;
        world.poison(&task).await;
    };
    let is_over = |count: usize| {
        move |all: &[Value]| all.len() == count && all.iter().all(|webhook| webhook["state"] != "waiting")
    };
    let gones = || receiver.seen().iter().filter(|seen| seen.path == "/gone").count();

    world.register(&[&gone, &well]).await;
    fail_one(&mut world).await;
    world.until("both were to end", is_over(2)).await;
    assert_eq!(gones(), 1);
    fail_one(&mut world).await;
    world.until("four were to end", is_over(4)).await;
    victim.kill_and_restart().await;
    fail_one(&mut world).await;
    let webhooks = world.until("six were to end", is_over(6)).await;
    assert_eq!((gones(), receiver.seen().len()), (1, 4), "{webhooks:#?}");
    assert_eq!(webhooks.iter().filter(|webhook| webhook["state"] == "gone").count(), 3);

    // The same receiver on another card is another matter, and stays so over a restart.
    world.register(&[&gone]).await;
    victim.kill_and_restart().await;
    fail_one(&mut world).await;
    world.until("seven were to end", is_over(7)).await;
    assert_eq!(gones(), 2);
    let log = std::fs::read_to_string(folder.path().join("gateway.log")).unwrap();
    assert!(log.contains("answered 410") && log.contains("worker@n"), "{log}");
    assert!(log.contains(&receiver.address.to_string()) && !log.contains("/gone"), "a path may be a secret: {log}");
}

/// What the log and the answers of a gateway say, and whether any secret is in it.
#[track_caller]
fn check_silent(folder: &Path, said: &str) {
    let log = std::fs::read_to_string(folder.join("gateway.log")).unwrap();
    for text in [log.as_str(), said] {
        assert!(!text.contains("whsec_") && !text.contains("MfKQ9r8GKYq") && !text.contains("C2FVsBQI"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_implementation_verifies_what_is_signed_while_a_secret_takes_the_place_of_another() {
    let verifier = Verifier::start();
    let folder = tempfile::tempdir().unwrap();
    let secrets = folder.path().join("secrets");
    std::fs::write(&secrets, format!("{SECOND}\n{FIRST}\n")).unwrap();
    let configuration = format!("{}secret_file = {:?}\n", local(), secrets.display().to_string());
    let victim = Victim::start(folder.path(), &configuration).await;
    let mut world = World::over(&victim.url()).await;
    let receiver = Receiver::start(|_| Reply::Status(200)).await;
    let task = world.submit(&[&receiver.url("/")]).await;
    world.complete(&task, json!({ "text": "é 漢字 \u{1F980} \"quoted\"", "big": 1.10 })).await;
    world.end_one(&receiver.url("/")).await;
    let seen = receiver.wait_for(2).await;
    for one in &seen {
        assert_eq!(one.header("webhook-signature").split(' ').count(), 2, "{one:?}");
        verifier.verify(FIRST, one).unwrap();
        verifier.verify(SECOND, one).unwrap();
        let stranger = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        assert!(verifier.verify(stranger, one).unwrap_err().contains("No matching signature"));
        let forged = Seen { body: one.body.replacen("task.", "tusk.", 1), ..one.clone() };
        assert!(verifier.verify(FIRST, &forged).unwrap_err().contains("No matching signature"));
    }
    let listed = world.call("webhook/list", json!({})).await;
    assert_eq!(listed["secret_from"], format!("the file {}", secrets.display()));
    check_silent(folder.path(), &listed.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_secret_of_the_operator_one_is_made_and_kept_for_its_owner_only() {
    let verifier = Verifier::start();
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(folder.path(), &local()).await;
    let path = folder.path().join("data/webhook-secret");
    // It listens before it is ready, and has answered once it is.
    World::over(&victim.url()).await;
    let made = std::fs::read_to_string(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    victim.kill_and_restart().await;
    let mut world = World::over(&victim.url()).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), made);
    let receiver = Receiver::start(|_| Reply::Status(200)).await;
    world.end_one(&receiver.url("/")).await;
    let seen = receiver.wait_for(1).await.remove(0);
    verifier.verify(made.trim(), &seen).unwrap();
    let listed = world.call("webhook/list", json!({})).await;
    assert!(listed["secret_from"].as_str().unwrap().ends_with("data/webhook-secret"), "{listed}");
    check_silent(folder.path(), &listed.to_string());
}

/// The package as a receiver would use it: a process that verifies one request after another.
pub(crate) struct Verifier(Mutex<(Child, BufReader<ChildStdout>)>);

const VERIFY: &str = "\
import json, sys
from standardwebhooks.webhooks import Webhook
for line in sys.stdin:
    secret, body, headers = json.loads(line)
    try:
        said = ['Ok', Webhook(secret).verify(body, headers)['type']]
    except Exception as error:
        said = ['Err', f'{type(error).__name__}: {error}']
    print(json.dumps(dict([said])), flush=True)
";

impl Verifier {
    pub(crate) fn start() -> Self {
        let python = python::with("standardwebhooks", &["standardwebhooks==1.0.0"]);
        let command = &mut Command::new(python);
        let command = command.args(["-c", VERIFY]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self(Mutex::new((child, said)))
    }

    /// Has the body as it came and the headers verified: the type of the event, or what is wrong.
    pub(crate) fn verify(&self, secret: &str, seen: &Seen) -> Result<String, String> {
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers: BTreeMap<_, _> = names.iter().map(|name| (*name, seen.header(name))).collect();
        let (child, said) = &mut *self.0.lock().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{}", json!([secret, seen.body, headers])).unwrap();
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        let (child, _) = self.0.get_mut().unwrap();
        // It ends with its input.
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
