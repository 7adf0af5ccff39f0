//! A whole story told to a real gateway by `reachctl` alone: it plays caller, agent and operator.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{Ran, run};

/// A gateway of its own, on a port and in a folder of its own.
struct Gateway {
    process: Child,
    url: String,
    data: tempfile::TempDir,
}

impl Gateway {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_reach-gateway"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path().join("store"))
            .env("RUST_LOG", "info")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
        let line = log.by_ref().map(Result::unwrap).find(|line| line.contains("listening on ")).unwrap();
        let url = line.split("listening on ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        // The log is read to its end, so that the gateway never waits for room to write.
        std::thread::spawn(move || log.for_each(drop));
        Self { process, url, data }
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.exit, Some(0), "{args:?}\n{}\n{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[&["--json"], args].concat())).unwrap()
    }

    fn run(&self, args: &[&str]) -> Ran {
        run(&self.url, args)
    }

    /// Registers an agent by its card.
    fn take_in(&self, card: &Value) -> String {
        let path = self.data.path().join("card.json");
        std::fs::write(&path, card.to_string()).unwrap();
        self.ok(&["register", path.to_str().unwrap()])
    }

    /// Registers an agent whose work goes before people once it failed.
    fn take_in_judge(&self) {
        let capability = json!({ "name": "judge", "effect": "write", "fallback": [{ "human": "bench" }] });
        self.take_in(&json!({ "agent_id": "broken@demo", "capabilities": [capability] }));
    }

    /// Registers an agent that pulls its work.
    fn register(&self) {
        let capability = json!({
            "name": "word_count", "description": "Counts the words of a text.", "effect": "read",
            "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        });
        let told = self.take_in(&json!({ "agent_id": "counter@demo", "capabilities": [capability] }));
        assert!(told.contains("counter@demo is registered"));
    }

    /// Pulls the next task as the agent; its id and token.
    #[track_caller]
    fn claim(&self) -> (String, u64) {
        let claimed = self.json(&["call", "task/claim", r#"{"agent_id": "counter@demo", "wait": "10s"}"#]);
        let task = &claimed["tasks"][0];
        (task["task_id"].as_str().unwrap().to_owned(), task["token"].as_u64().unwrap())
    }

    #[track_caller]
    fn submit(&self, args: &[&str]) -> String {
        let line = self.ok(&[&["submit", "--intent", "count the words of a text"], args].concat());
        line.split(' ').next().unwrap().to_owned()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Its folder goes with it, so nothing is lost that anyone wants.
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

#[test]
fn a_task_goes_its_whole_way_and_every_step_of_it_can_be_seen() {
    let gateway = Gateway::start();
    gateway.register();
    assert!(gateway.ok(&["get", "agents"]).contains("counter@demo"));
    assert!(gateway.ok(&["get", "agent", "counter@demo"]).contains("word_count"));
    assert!(gateway.ok(&["get", "capabilities", "--intent", "count words"]).contains("word_count"));
    let resolved = gateway.ok(&["resolve", "--intent", "count the words of a text"]);
    assert!(resolved.contains("counter@demo") && resolved.contains("intent: the words"), "{resolved}");

    let task = gateway.submit(&["--params", r#"{"text": "a b"}"#, "--key", "k1", "--from", "editor@demo"]);
    let (claimed, token) = gateway.claim();
    assert_eq!(claimed, task);
    let complete = format!(r#"{{"task_id": "{task}", "token": {token}, "result": {{"n": 2.0}}}}"#);
    gateway.ok(&["call", "task/complete", &complete]);
    assert_eq!(gateway.ok(&["wait", &task]), "{\"n\": 2.0}\n");

    let again = ["submit", "--intent", "count the words of a text", "--params", r#"{"text": "a b"}"#];
    let again = [&again[..], &["--key", "k1", "--from", "editor@demo", "--wait"]].concat();
    assert_eq!(gateway.ok(&again), "{\"n\": 2.0}\n", "the same key is answered with the same result");
    let other = gateway.run(&["submit", "--capability", "word_count", "--key", "k1", "--from", "editor@demo"]);
    assert_eq!(other.exit, Some(4), "{}", other.stderr);
    assert!(other.stderr.contains("idempotency_key_reused"), "{}", other.stderr);

    let explained = gateway.ok(&["explain", &task]);
    for part in ["DECISION 1", "counter@demo for word_count", "TOTAL", "matched", "completed", "ATTEMPT"] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    assert_eq!(gateway.json(&["explain", &task])["decisions"][0]["stage"], "intent");
    assert!(gateway.ok(&["get", "tasks", "--phase", "completed"]).contains(&task));
    assert!(gateway.ok(&["get", "task", &task, "--watch"]).contains("completed"));
    let status = gateway.ok(&["status"]);
    for part in ["1 alive", concat!("version  ", env!("CARGO_PKG_VERSION")), "up for", "none open", "1 completed"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let top = gateway.ok(&["top", "--once"]);
    for part in ["success 100.0%", "first choice 100.0%", "counter@demo  alive", "word_count", "idempotency_key_reused"]
    {
        assert!(top.contains(part), "{part}: {top}");
    }
    assert_eq!(gateway.json(&["top", "--once"])["agents"][0]["total"]["answered"], 1);
    let waiting = gateway.submit(&["--mode", "queue"]);
    let status = gateway.ok(&["status"]);
    assert!(status.contains("1 submitted") && status.contains("waits longest"), "{waiting}: {status}");
}

#[test]
fn the_example_card_is_one_that_a_gateway_takes_without_a_warning() {
    let gateway = Gateway::start();
    let card = gateway.data.path().join("example.json");
    std::fs::write(&card, gateway.ok(&["register", "--example"])).unwrap();
    let answer = gateway.json(&["register", card.to_str().unwrap()]);
    assert_eq!((&answer["agent_id"], &answer["warnings"]), (&json!("counter@tools"), &Value::Null), "{answer}");
    assert!(gateway.ok(&["register", "--help"]).contains(r#""agent_id": "counter@tools""#));
}

#[test]
fn an_unknown_method_is_answered_with_those_that_are_near() {
    let gateway = Gateway::start();
    let ran = gateway.run(&["call", "task/sumbit"]);
    assert_eq!(ran.exit, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("near: task/submit"), "{}", ran.stderr);
}

#[test]
fn a_failure_that_is_stored_says_so_and_how_to_send_it_anew() {
    let gateway = Gateway::start();
    gateway.register();
    let submit = ["submit", "--capability", "word_count", "--key", "k1"];
    gateway.ok(&submit);
    let (task, token) = gateway.claim();
    let fail = format!(r#"{{"task_id": "{task}", "token": {token}, "message": "it broke"}}"#);
    gateway.ok(&["call", "task/fail", &fail]);
    let first = gateway.run(&["wait", &task]);
    assert!(first.stderr.contains("it broke") && !first.stderr.contains("stored answer"), "{}", first.stderr);
    let again = gateway.run(&[&submit[..], &["--wait"]].concat());
    assert_eq!(again.exit, Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("stored answer") && again.stderr.contains("--on-failed retry"), "{}", again.stderr);
}

#[test]
fn dead_letters_are_seen_and_sent_again() {
    let gateway = Gateway::start();
    gateway.register();
    let task = gateway.submit(&[]);
    let (_, token) = gateway.claim();
    let poison = format!(r#"{{"task_id": "{task}", "token": {token}, "poison": true, "message": "it breaks me"}}"#);
    gateway.ok(&["call", "task/release", &poison]);
    assert_eq!(gateway.run(&["wait", &task]).exit, Some(1));
    assert!(gateway.ok(&["dead-letters", "list"]).contains(&task));
    let shown = gateway.ok(&["dead-letters", "show", &task]);
    assert!(shown.contains("it breaks me") && shown.contains("dead-letters redrive"), "{shown}");
    assert!(gateway.ok(&["dead-letters", "redrive", &task]).contains("on its way again"));
    assert_eq!(gateway.run(&["dead-letters", "redrive", &task]).exit, Some(4), "it is no dead letter any more");
    assert_eq!(gateway.claim().0, task);
    assert_eq!(gateway.ok(&["cancel", &task]), format!("{task} cancelled\n"));
}

#[test]
fn refusals_of_a_real_gateway_have_the_exit_codes_of_the_table() {
    let gateway = Gateway::start();
    gateway.register();
    let nobody = gateway.run(&["submit", "--intent", "paint the fence"]);
    assert_eq!(nobody.exit, Some(4), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("no_candidate"), "{}", nobody.stderr);
    let params = gateway.run(&["submit", "--capability", "word_count", "--params", r#"{"text": 1}"#]);
    assert_eq!(params.exit, Some(4), "{}", params.stderr);
    assert!(params.stderr.contains("params_mismatch"), "{}", params.stderr);
    assert_eq!(gateway.run(&["get", "agent", "nobody@demo"]).exit, Some(3));
    assert_eq!(gateway.run(&["explain", super::TASK]).exit, Some(3));
    assert!(gateway.ok(&["drain", "counter@demo"]).contains("gets no new work"));
    assert!(gateway.ok(&["get", "agents"]).contains("draining"));
    gateway.ok(&["deregister", "counter@demo"]);
    assert_eq!(gateway.ok(&["get", "agents"]), "no agents\n");
}

#[test]
fn people_see_what_waits_take_it_and_answer_it() {
    let gateway = Gateway::start();
    gateway.take_in_judge();
    assert_eq!(gateway.ok(&["human", "list"]), "nothing waits for a person\n");
    assert_eq!(gateway.run(&["human", "take", "--queue", "bench"]).exit, Some(3));
    let broken = || {
        let line = gateway.ok(&["submit", "--capability", "judge", "--tries", "1", "--params", r#"{"case": 1.50}"#]);
        let claimed = gateway.json(&["call", "task/claim", r#"{"agent_id": "broken@demo", "wait": "10s"}"#]);
        let token = &claimed["tasks"][0]["token"];
        let task = line.split(' ').next().unwrap().to_owned();
        let fail = format!(r#"{{"task_id": "{task}", "token": {token}, "message": "it broke", "retryable": true}}"#);
        gateway.ok(&["call", "task/fail", &fail]);
        task
    };
    let task = broken();
    let listed = gateway.ok(&["human", "list", "--queue", "bench"]);
    for part in [task.as_str(), "bench", "judge", "agent_failed: it broke"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert_eq!(gateway.json(&["human", "list"])["tasks"][0]["human"]["queue"], "bench");
    let taken = gateway.ok(&["human", "take", "--queue", "bench", "--as", "alice"]);
    assert!(taken.contains(r#"{"case": 1.50}"#) && taken.contains("human answer"), "{taken}");
    let other = gateway.run(&["human", "answer", &task, "--result", "1", "--as", "bob"]);
    assert_eq!(other.exit, Some(4), "{}", other.stderr);
    assert!(other.stderr.contains("alice has it until"), "{}", other.stderr);
    let explained = gateway.ok(&["explain", &task]);
    assert!(explained.contains("whoever takes it from the queue bench"), "{explained}");
    assert!(explained.contains("alice has it"), "{explained}");
    let answered = gateway.ok(&["human", "answer", &task, "--result", r#"{"verdict": 1.0}"#, "--as", "alice"]);
    assert_eq!(answered, format!("{task} completed (REACH_FALLBACK)\n"));
    assert_eq!(gateway.ok(&["wait", &task]), "{\"verdict\": 1.0}\n");

    let task = broken();
    let refused = gateway.ok(&["human", "refuse", &task, "--reason", "not ours", "--as", "bob"]);
    assert!(refused.contains("dead_lettered (REACH_REFUSED)"), "{refused}");
    let ended = gateway.run(&["wait", &task]);
    assert_eq!(ended.exit, Some(1));
    assert!(ended.stderr.contains("human_refused: bob refused it: not ours"), "{}", ended.stderr);
    let task = broken();
    gateway.ok(&["human", "take", &task, "--as", "bob"]);
    assert!(gateway.ok(&["human", "return", &task, "--as", "bob"]).contains("submitted"));
}

#[test]
fn a_reach_whose_task_comes_before_people_says_how_it_is_answered_and_waits_on() {
    let gateway = Gateway::start();
    gateway.take_in_judge();
    let mut waits = super::reachctl(&gateway.url, &["reach", "--capability", "judge", "--tries", "1"]);
    let mut waits = waits.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(waits.stderr.take().unwrap()).lines().map(Result::unwrap);
    let claimed = gateway.json(&["call", "task/claim", r#"{"agent_id": "broken@demo", "wait": "10s"}"#]);
    let (task, token) = (claimed["tasks"][0]["task_id"].as_str().unwrap(), &claimed["tasks"][0]["token"]);
    let explained = gateway.ok(&["explain", task]);
    assert!(!explained.contains("waits for"), "it is worked on: {explained}");
    let fail = format!(r#"{{"task_id": "{task}", "token": {token}, "message": "it broke", "retryable": true}}"#);
    gateway.ok(&["call", "task/fail", &fail]);
    let told = said.by_ref().find(|line| line.contains("in the queue bench"));
    assert!(told.unwrap().contains("waits for a person"));
    let told = said.next().unwrap();
    for part in [format!("reachctl human take {task}"), format!("reachctl human answer {task} --result")] {
        assert!(told.contains(&part), "{part}: {told}");
    }
    gateway.ok(&["human", "take", task, "--as", "alice"]);
    gateway.ok(&["human", "answer", task, "--result", "7", "--as", "alice"]);
    let ended = waits.wait_with_output().unwrap();
    assert!(ended.status.success());
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "7\n");
}

#[test]
fn a_task_that_waits_is_explained_with_whom_it_waits_for() {
    let gateway = Gateway::start();
    gateway.register();
    let capability = json!({ "name": "dig", "effect": "read" });
    let endpoints = json!([{ "protocol": "websocket" }]);
    gateway.take_in(&json!({ "agent_id": "away@demo", "endpoints": endpoints, "capabilities": [capability] }));
    for (args, whom) in [
        (&["--capability", "dig"] as &[&str], "away@demo (not_connected)"),
        (&["--capability", "word_count", "--mode", "queue"], "counter@demo (to pull it)"),
    ] {
        let line = gateway.ok(&[&["submit"], args].concat());
        let explained = gateway.ok(&["explain", line.split(' ').next().unwrap()]);
        let told = explained.lines().find(|line| line.starts_with("waits for")).unwrap_or(&explained);
        assert!(told.contains(whom), "{whom}: {told}");
    }
}

#[test]
fn a_policy_is_read_changed_put_and_asked() {
    let gateway = Gateway::start();
    assert!(gateway.ok(&["policy", "get"]).starts_with("version 0, "));
    let file = gateway.data.path().join("policy.json");
    let mut policy = gateway.json(&["policy", "get"]);
    policy["rules"] = json!([{
        "ruling": "deny", "subject": "*@lab", "actions": ["call"], "object": "*@lab", "capability": "pay_*",
        "note": "nothing from the lab moves money",
    }]);
    std::fs::write(&file, policy.to_string()).unwrap();
    let file = file.to_str().unwrap();
    assert!(gateway.ok(&["policy", "put", file]).contains("version 1 of the policy stands, with 1 rule"));
    let shown = gateway.ok(&["policy", "get"]);
    for part in ["version 1", "deny", "*@lab", "call", "pay_*", "moves money"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let again = gateway.run(&["policy", "put", file]);
    assert!(again.exit == Some(4) && again.stderr.contains("not the one that stands"), "{}", again.stderr);
    let test = |capability| gateway.run(&["policy", "test", "a@lab", "call", "b@lab", "--capability", capability]);
    let no = test("pay_out");
    assert!(no.exit == Some(4) && no.stdout.contains("no: a@lab may not call b@lab: rules[0]"), "{}", no.stdout);
    assert!(test("read_out").exit == Some(0));
    assert_eq!(gateway.run(&["policy", "test", "a@lab", "steal", "b@lab"]).exit, Some(2));
    std::fs::write(file, r#"{"version": 1, "across": "cards", "rules": [{"ruling": "maybe"}]}"#).unwrap();
    assert_eq!(gateway.run(&["policy", "put", file]).exit, Some(2));
}
