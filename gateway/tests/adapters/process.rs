//! Agents that are commands: real subprocesses, and whether anything of them is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reach_core::task::event::Trace;
use reach_gateway::adapter::process::ProcessAdapter;
use reach_gateway::adapter::{Adapter, Delivered};
use reach_gateway::clock::Clock;
use reach_schemas::call::HealthReport;
use reach_schemas::{Delivery, Effect, Endpoint, ErrorCode, Failure, ProbePolicy, Protocol, Span};
use tempfile::TempDir;

use crate::contract::{LONG, PARAMS, Peers, agent, delivery, done, endpoint, failed, probing};

/// Scripts in a folder of their own, in which the commands run.
struct Scripts {
    folder: TempDir,
    clock: Clock,
    adapter: Arc<ProcessAdapter>,
}

impl Scripts {
    fn new() -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::start());
        let adapter = Arc::new(ProcessAdapter::new(clock).in_directory(folder.path()));
        Self { folder, clock, adapter }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A shell script as an agent.
    fn sh(&self, name: &str, text: &str) -> Endpoint {
        fs::write(self.path(name), text).unwrap();
        command(&format!("sh {name}"))
    }

    async fn run(&self, text: &str, effect: Effect) -> Delivered {
        let agent = self.sh("script.sh", text);
        self.adapter.deliver(&agent, delivery(self.clock, effect, PARAMS, LONG)).await
    }

    async fn fail(&self, text: &str, effect: Effect) -> (Failure, Trace) {
        failed(self.run(text, effect).await)
    }

    /// Waits until a script has written a file, whole, and reads the process ids in it.
    async fn process_ids(&self, name: &str) -> Vec<u32> {
        let path = self.path(name);
        within(Duration::from_secs(5), || fs::read_to_string(&path).is_ok_and(|text| text.ends_with("end\n"))).await;
        fs::read_to_string(&path).unwrap().lines().filter_map(|line| line.parse().ok()).collect()
    }
}

fn command(line: &str) -> Endpoint {
    endpoint(Protocol::Process, line)
}

/// Waits for something that nothing tells of.
async fn within(limit: Duration, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < until, "not so after {limit:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// State and process group of every process, as the kernel tells them.
fn processes() -> Vec<(u32, char, u32)> {
    let read = |entry: fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, _, group) = (fields.next()?.chars().next()?, fields.next()?, fields.next()?.parse().ok()?);
        Some((id, state, group))
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(read).collect()
}

/// Whether none of these processes is left, and nothing else of the group that the first of them leads: it is not even
/// a zombie.
fn are_gone(ids: &[u32]) -> bool {
    let leader = ids[0];
    let is_left = |&(id, state, group): &(u32, char, u32)| {
        // Children are reaped by the machine's first process, which takes its time.
        (group == leader || ids.contains(&id)) && (state != 'Z' || id == leader)
    };
    !processes().iter().any(is_left)
}

/// A script that starts children, some of them deep, writes all their ids, and waits for them.
const FAMILY: &str = r#"
sleep 100 & first=$!
sh -c 'sleep 100 & echo $! > deep; wait' & second=$!
until [ -s deep ]; do sleep 0.01; done
{ echo $$; echo $first; echo $second; cat deep; echo end; } > ids
wait
"#;

#[tokio::test]
async fn a_command_keeps_the_contract() {
    let scripts = Scripts::new();
    let peers = Peers {
        adapter: scripts.adapter.clone(),
        clock: scripts.clock,
        well: (scripts.sh("well.sh", "cat"), done(PARAMS)),
        silent: scripts.sh("silent.sh", "sleep 100"),
        dying: scripts.sh("dying.sh", "kill -9 $$"),
        absent: command("./nowhere --at all"),
    };
    peers.keep_the_contract().await;
}

#[tokio::test]
async fn a_command_learns_about_its_task_from_its_environment_and_little_else() {
    let scripts = Scripts::new();
    let delivery = delivery(scripts.clock, Effect::Write, PARAMS, LONG);
    let agent = scripts.sh("env.sh", "env > env; pwd > folder; echo null");
    assert_eq!(scripts.adapter.deliver(&agent, delivery.clone()).await, done("null"));
    let env = fs::read_to_string(scripts.path("env")).unwrap();
    for line in [
        format!("AGENT_REACH_TASK_ID={}", delivery.task_id),
        "AGENT_REACH_TOKEN=7".to_owned(),
        "AGENT_REACH_IDEMPOTENCY_KEY=order 17".to_owned(),
        "AGENT_REACH_CAPABILITY=do_it".to_owned(),
        format!("AGENT_REACH_DEADLINE={}", delivery.attempt_until),
        format!("TRACEPARENT={}", delivery.traceparent.unwrap()),
    ] {
        assert!(env.lines().any(|found| found == line), "{line} is not in\n{env}");
    }
    // The test runner's own are not passed on.
    assert!(!env.contains("CARGO") && !env.contains("NEXTEST"), "{env}");
    let folder = fs::read_to_string(scripts.path("folder")).unwrap();
    assert_eq!(Path::new(folder.trim()), scripts.folder.path().canonicalize().unwrap());
}

#[tokio::test]
async fn a_command_without_parameters_reads_an_empty_object_and_may_ignore_it() {
    let scripts = Scripts::new();
    let without = Delivery { params: None, ..delivery(scripts.clock, Effect::Read, PARAMS, LONG) };
    assert_eq!(scripts.adapter.deliver(&scripts.sh("cat.sh", "cat"), without).await, done("{}"));
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let large = delivery(scripts.clock, Effect::Read, &large, LONG);
    assert_eq!(scripts.adapter.deliver(&scripts.sh("deaf.sh", "echo '[]'"), large.clone()).await, done("[]"));
    // Neither side waits for the other to read first.
    assert_eq!(
        scripts.adapter.deliver(&scripts.sh("cat.sh", "cat"), large.clone()).await,
        Delivered::Done { result: large.params.unwrap(), token_count: None }
    );
}

#[tokio::test]
async fn an_exit_code_says_what_is_known_of_the_work() {
    let scripts = Scripts::new();
    let table = [
        ("exit 64", Effect::Write, Trace::FailedForGood),
        ("exit 66", Effect::Read, Trace::FailedForGood),
        ("exit 67", Effect::Read, Trace::FailedRetryable),
        ("exit 75", Effect::Write, Trace::FailedRetryable),
        ("exit 1", Effect::Read, Trace::FailedRetryable),
        ("exit 1", Effect::IdempotentWrite, Trace::FailedRetryable),
        ("exit 1", Effect::Write, Trace::Unknown),
    ];
    for (text, effect, expected) in table {
        let (failure, trace) = scripts.fail(text, effect).await;
        assert_eq!((failure.code, trace), (ErrorCode::AgentFailed, expected), "{text} {effect:?}");
    }
    let (failure, trace) = scripts.fail("kill -9 $$", Effect::Read).await;
    assert_eq!((failure.code, trace), (ErrorCode::AgentLost, Trace::Unknown));
    assert!(failure.message.contains("signal 9"), "{}", failure.message);
}

#[tokio::test]
async fn the_last_words_on_standard_error_are_told_with_the_failure() {
    let scripts = Scripts::new();
    let text = "i=0; while [ $i -lt 500 ]; do echo line $i >&2; i=$((i+1)); done; echo the disk is full >&2; exit 3";
    let (failure, _) = scripts.fail(text, Effect::Read).await;
    assert!(failure.message.starts_with("the command failed with exit code 3: "), "{}", failure.message);
    assert!(failure.message.ends_with("line 499\nthe disk is full"), "{}", failure.message);
    assert!(failure.message.len() < 2200 && !failure.message.contains("line 0\n"));
    // Standard error is not part of the result, and does not make a failure.
    assert_eq!(scripts.run("echo careful >&2; echo 1", Effect::Read).await, done("1"));
}

#[tokio::test]
async fn what_is_not_one_json_value_is_no_result() {
    let scripts = Scripts::new();
    for text in ["echo all well", "true", "echo 1; echo 2", r"printf '\377'"] {
        let (failure, trace) = scripts.fail(text, Effect::Write).await;
        assert_eq!((failure.code, trace), (ErrorCode::InvalidResult, Trace::FailedForGood), "{text}: {failure:?}");
    }
}

#[tokio::test]
async fn a_flood_on_stdout_is_cut_and_killed() {
    let scripts = Scripts::new();
    for (effect, expected) in [(Effect::Read, Trace::FailedForGood), (Effect::Write, Trace::Unknown)] {
        let _ = fs::remove_file(scripts.path("ids"));
        let (failure, trace) = scripts.fail("{ echo $$; echo end; } > ids; yes 1 | cat; wait", effect).await;
        assert_eq!((failure.code, trace), (ErrorCode::InvalidResult, expected), "{failure:?}");
        assert!(failure.message.contains("more than 8388608 bytes"), "{}", failure.message);
        let leaders = scripts.process_ids("ids").await;
        within(Duration::from_secs(3), || are_gone(&leaders)).await;
    }
}

#[tokio::test]
async fn a_flood_on_stderr_holds_nothing_up() {
    let scripts = Scripts::new();
    let result = scripts.run("yes complaint | head -c 20000000 >&2; echo true", Effect::Read).await;
    assert_eq!(result, done("true"));
}

#[tokio::test]
async fn a_cancelled_subprocess_is_gone_with_its_children() {
    let scripts = Scripts::new();
    let family = scripts.sh("family.sh", FAMILY);
    let delivery = delivery(scripts.clock, Effect::Write, PARAMS, LONG);
    let (task, token) = (delivery.task_id, delivery.token);
    let call_off = async {
        let ids = scripts.process_ids("ids").await;
        assert_eq!(ids.len(), 4);
        let members: Vec<u32> = processes().iter().filter(|(.., group)| *group == ids[0]).map(|(id, ..)| *id).collect();
        assert!(ids.iter().all(|id| members.contains(id)), "{ids:?} are not all in the group: {members:?}");
        // Another attempt of the same task is another command.
        scripts.adapter.cancel(&family, &agent(), task, reach_schemas::FencingToken(6)).await;
        assert!(!are_gone(&ids));
        scripts.adapter.cancel(&family, &agent(), task, token).await;
        ids
    };
    let (delivered, ids) = tokio::join!(scripts.adapter.deliver(&family, delivery), call_off);
    let (failure, trace) = failed(delivered);
    assert_eq!((failure.code, trace), (ErrorCode::Cancelled, Trace::Unknown));
    within(Duration::from_secs(1), || are_gone(&ids)).await;
}

#[tokio::test]
async fn a_subprocess_whose_time_is_over_is_gone_with_its_children() {
    let scripts = Scripts::new();
    let family = scripts.sh("family.sh", FAMILY);
    let delivery = delivery(scripts.clock, Effect::Read, PARAMS, Span::from_ms(500));
    let (failure, trace) = failed(scripts.adapter.deliver(&family, delivery).await);
    assert_eq!((failure.code, trace), (ErrorCode::Timeout, Trace::Unknown));
    let ids = scripts.process_ids("ids").await;
    within(Duration::from_secs(1), || are_gone(&ids)).await;
}

#[tokio::test]
async fn a_subprocess_that_is_given_up_is_gone_even_if_it_will_not_hear() {
    let scripts = Scripts::new();
    let deaf =
        "trap '' TERM\nsh -c 'while :; do sleep 1; done' &\n{ echo $$; echo end; } > ids\nwhile :; do wait; done";
    let deaf = scripts.sh("deaf.sh", deaf);
    let delivery = delivery(scripts.clock, Effect::Write, PARAMS, LONG);
    let ids = tokio::select! {
        delivered = scripts.adapter.deliver(&deaf, delivery) => panic!("{delivered:?}"),
        ids = scripts.process_ids("ids") => ids,
    };
    let begun = Instant::now();
    assert!(!are_gone(&ids));
    within(Duration::from_secs(4), || are_gone(&ids)).await;
    assert!(begun.elapsed() >= Duration::from_millis(1900), "it had {:?} to end by itself", begun.elapsed());
}

#[tokio::test]
async fn a_subprocess_may_tidy_up_and_talk_about_it_before_it_ends() {
    let scripts = Scripts::new();
    let tidy = "trap 'echo about to tidy; echo and to go >&2; echo tidied > note; exit 0' TERM\n{ echo $$; echo end; } > ids\nwhile :; do sleep 0.05; done";
    let tidy = scripts.sh("tidy.sh", tidy);
    tokio::select! {
        delivered = scripts.adapter.deliver(&tidy, delivery(scripts.clock, Effect::Write, PARAMS, LONG)) => panic!("{delivered:?}"),
        _ = scripts.process_ids("ids") => {}
    }
    within(Duration::from_millis(1500), || fs::read_to_string(scripts.path("note")).is_ok()).await;
}

#[tokio::test]
async fn children_that_a_command_leaves_behind_neither_hold_up_its_result_nor_stay() {
    let scripts = Scripts::new();
    let begun = Instant::now();
    let delivered = scripts.run("sleep 100 &\n{ echo $$; echo end; } > ids\necho '{\"left\":1}'", Effect::Read).await;
    assert_eq!(delivered, done("{\"left\":1}"));
    assert!(begun.elapsed() < Duration::from_secs(3), "took {:?}", begun.elapsed());
    let ids = scripts.process_ids("ids").await;
    within(Duration::from_secs(1), || are_gone(&ids)).await;
}

#[test]
fn a_runtime_that_shuts_down_leaves_no_subprocess() {
    let scripts = Scripts::new();
    let deaf = scripts.sh("deaf.sh", "trap '' TERM\n{ echo $$; echo end; } > ids\nwhile :; do sleep 1; done");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (adapter, work) = (scripts.adapter.clone(), delivery(scripts.clock, Effect::Write, PARAMS, LONG));
    runtime.spawn(async move { adapter.deliver(&deaf, work).await });
    let ids = runtime.block_on(scripts.process_ids("ids"));
    drop(runtime);
    let until = Instant::now() + Duration::from_secs(3);
    // As a zombie it may stay: without a runtime, the machine's first process reaps it when the gateway is gone.
    while processes().iter().any(|(_, state, group)| ids.contains(group) && *state != 'Z') {
        assert!(
            Instant::now() < until,
            "{:?}",
            processes().iter().filter(|(.., group)| ids.contains(group)).collect::<Vec<_>>()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_started_says_what_to_do() {
    let scripts = Scripts::new();
    fs::write(scripts.path("plain.txt"), "no program").unwrap();
    let table = [
        ("no-such-program --now", "there is no program \"no-such-program\"; install it"),
        ("./plain.txt", "is not executable; give it the permission (chmod +x)"),
        ("say 'hello", "has a quote that is not closed"),
        ("", "is empty"),
    ];
    for (line, words) in table {
        let work = delivery(scripts.clock, Effect::Write, PARAMS, LONG);
        let (failure, trace) = failed(scripts.adapter.deliver(&command(line), work).await);
        assert_eq!((failure.code, trace), (ErrorCode::Unreachable, Trace::NotStarted), "{line}");
        assert!(failure.message.contains(words), "{line}: {}", failure.message);
        let told = scripts.adapter.probe(&command(line), &agent(), &probing(LONG)).await.unwrap_err();
        assert!(told.contains(words), "{line}: {told}");
    }
    assert_eq!(
        scripts.adapter.probe(&command("sh anything"), &agent(), &probing(LONG)).await,
        Ok(HealthReport::default())
    );

    let nowhere = ProcessAdapter::new(scripts.clock).in_directory(scripts.path("missing"));
    let work = delivery(scripts.clock, Effect::Write, PARAMS, LONG);
    let (failure, _) = failed(nowhere.deliver(&command("sh -c true"), work).await);
    assert!(failure.message.contains("there is no folder"), "{}", failure.message);
}

#[tokio::test]
async fn a_probe_runs_the_check_that_the_card_names_and_reads_its_report() {
    let scripts = Scripts::new();
    let well = scripts.sh("well.sh", "cat");
    let probe = async |name: &str, text: &str, timeout: Span| {
        let line = scripts.sh(name, text).address;
        let policy = ProbePolicy { command: Some(line), ..probing(timeout) };
        scripts.adapter.probe(&well, &agent(), &policy).await
    };
    let report = HealthReport { queue_depth: Some(3), ..HealthReport::default() };
    let told = probe("ok.sh", r#"cat; [ "$AGENT_REACH_AGENT_ID" = worker@tests ] && echo '{"queue_depth": 3}'"#, LONG);
    assert_eq!(told.await, Ok(report));
    assert_eq!(probe("mute.sh", "exit 0", LONG).await, Ok(HealthReport::default()));
    let told = probe("ill.sh", "echo 'no model' >&2; exit 3", LONG).await;
    assert_eq!(told, Err("the probe's command failed with exit code 3: no model".to_owned()));

    let stuck = "{ echo $$; echo end; } > ids; exec sleep 100";
    let told = probe("stuck.sh", stuck, Span::from_ms(500)).await.unwrap_err();
    assert!(told.contains("took longer than the time of the probe"), "{told}");
    let ids = scripts.process_ids("ids").await;
    within(Duration::from_secs(5), || are_gone(&ids)).await;

    let nowhere = ProbePolicy { command: Some("./nowhere".to_owned()), ..probing(LONG) };
    assert!(scripts.adapter.probe(&well, &agent(), &nowhere).await.unwrap_err().contains("there is no program"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_commands_at_once_each_get_their_own_result() {
    let scripts = Scripts::new();
    let agent = scripts.sh("cat.sh", "cat");
    let each = (0..32).map(|number| {
        let (adapter, agent, clock) = (scripts.adapter.clone(), agent.clone(), scripts.clock);
        tokio::spawn(async move {
            let text = format!("[{number}]");
            assert_eq!(adapter.deliver(&agent, delivery(clock, Effect::Read, &text, LONG)).await, done(&text));
        })
    });
    for task in each.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}
