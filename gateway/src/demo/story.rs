//! What is played, act by act. Each act checks what it shows: if it does not hold, the demonstration fails.

use std::io::IsTerminal;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::call::AgentList;
use agent_reach_sdk::{Client, RetryPolicy, TaskId};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::stage::Stage;

/// The longest that any act may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn say(text: &str) {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        println!("\n\x1b[1m{text}\x1b[0m");
    } else {
        println!("\n{text}");
    }
}

/// Plays all acts.
pub(super) async fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).context("no port is free")?.port();
    let url = format!("http://127.0.0.1:{port}");
    opening(stage, port, &url).await?;
    let client = Client::builder().url(&url).retry(patient()).connect().await?;
    meet(stage, &client, &url).await?;
    in_words(stage, &client, &url).await?;
    kill_an_agent(stage, &client, &url).await?;
    kill_the_gateway(stage, &client, port, &url).await?;
    one_key_twice(stage, &client).await?;
    closing(stage, &url);
    Ok(())
}

/// A client that bears with a gateway that is away for some seconds.
fn patient() -> RetryPolicy {
    RetryPolicy { retries: 30, ..RetryPolicy::default() }
}

async fn opening(stage: &mut Stage, port: u16, url: &str) -> anyhow::Result<()> {
    say("1. A gateway on SQLite, and three agents of different kinds");
    let config = stage.folder.path().join("gateway.toml");
    std::fs::write(&config, configuration(stage))?;
    start_gateway(stage, port).await?;
    println!("   gateway            {url}, data in {}", stage.folder.path().display());
    let summarizer = stage.beside("reach-example-summarizer")?;
    let worker = stage.beside("reach-example-worker")?;
    let (ledger, register) = (stage.ledger("work"), stage.folder.path().join("register.txt"));
    let options = |more: &[&str]| -> Vec<String> {
        let ledger = ["--ledger".to_owned(), ledger.display().to_string()];
        ledger.into_iter().chain(more.iter().map(ToString::to_string)).collect()
    };
    for (name, program, args) in [
        ("summarizer", summarizer, options(&[])),
        ("night_shift", worker, options(&["--register", &register.display().to_string()])),
    ] {
        let args: Vec<String> =
            [format!("AGENT_REACH_URL={url}"), program.display().to_string()].into_iter().chain(args).collect();
        let said = stage.folder.path().join(format!("{name}.log"));
        stage.cast.enter(name, Path::new("env"), &args, &said)?;
    }
    Ok(())
}

/// The subprocess agent is the operator's to declare: no caller can make the gateway run a command.
fn configuration(stage: &Stage) -> String {
    let command = format!("python3 {} {}", quoted(&stage.script), quoted(&stage.ledger("work")));
    format!(
        r#"[[agents]]
agent_id = "log_desk@demo"
description = "A script that the gateway starts for each task."
endpoints = [{{ protocol = "process", address = {} }}]
max_concurrency = 2

[[agents.capabilities]]
name = "report_on_log"
description = "Reads a log file and counts its levels and its most frequent errors. 统计日志文件里的级别和最常见的错误。"
tags = ["log", "errors", "日志", "错误", "统计"]
exclusions = ["does not summarize documents"]
effect = "read"
input_schema = {{ type = "object", required = ["path"], properties = {{ path = {{ type = "string", description = "the log file" }} }} }}
"#,
        json!(command)
    )
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

async fn start_gateway(stage: &mut Stage, port: u16) -> anyhow::Result<()> {
    let args = [
        "serve".to_owned(),
        "--listen".to_owned(),
        format!("127.0.0.1:{port}"),
        "--data".to_owned(),
        stage.folder.path().display().to_string(),
        "--config".to_owned(),
        stage.folder.path().join("gateway.toml").display().to_string(),
    ];
    let said = stage.folder.path().join("gateway.log");
    let program = stage.gateway.clone();
    stage.cast.enter("gateway", &program, &args, &said)?;
    let began = Instant::now();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        ensure!(began.elapsed() < PATIENCE, "the gateway does not start; see {}", said.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn meet(stage: &Stage, client: &Client, url: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let all = AgentList { namespace: None, limit: None, after: None };
    loop {
        let agents = client.agents(&all).await?;
        if agents.len() == 3 && agents.iter().filter(|agent| agent.connected).count() == 1 {
            break;
        }
        ensure!(began.elapsed() < PATIENCE, "the agents do not register; see {}", stage.folder.path().display());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    reachctl(stage, url, &["get", "agents"]).await
}

async fn in_words(stage: &Stage, client: &Client, url: &str) -> anyhow::Result<()> {
    say("2. Asked in English: \"Summarize this document for me\"");
    let params = json!({ "path": stage.document });
    let done =
        client.intent("Summarize this document for me").params(&params).submit().await?.wait_for(PATIENCE).await?;
    let summary: Value = done.result()?;
    println!("   {} words, {} sentences; the weightiest:", summary["words"], summary["sentences"]);
    for sentence in summary["summary"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        println!("   - {sentence}");
    }
    println!();
    reachctl(stage, url, &["explain", &done.id().to_string()]).await?;

    say("3. Asked in Chinese: \"统计一下这个日志文件里的错误\" (count the errors in this log file)");
    let params = json!({ "path": stage.log });
    let done = client.intent("统计一下这个日志文件里的错误").params(&params).submit().await?.wait_for(PATIENCE).await?;
    let report: Value = done.result()?;
    println!("   {} lines, {}, from {} to {}", report["lines"], report["levels"], report["first"], report["last"]);
    for trouble in report["troubles"].as_array().into_iter().flatten() {
        println!("   - {} times: {}", trouble["times"], trouble["message"].as_str().unwrap_or_default());
    }
    println!("   answered by {}", done.agent().map(ToString::to_string).unwrap_or_default());
    Ok(())
}

async fn kill_an_agent(stage: &mut Stage, client: &Client, url: &str) -> anyhow::Result<()> {
    say("4. The first choice is killed in mid-task (kill -9)");
    let params = json!({ "path": stage.document, "pace_ms": stage.pace_ms });
    let task = client.task("summarize_document").params(&params).submit().await?;
    let began = Instant::now();
    begun(stage, task.id()).await?;
    println!("   summarizer@demo has begun on {}; killing its process", task.id());
    stage.cast.kill("summarizer").await?;
    let done = task.wait_for(PATIENCE).await?;
    let attempts = &done.view().attempts;
    ensure!(attempts.len() >= 2, "no second attempt was made");
    for attempt in attempts {
        let end = attempt.failure.as_ref().map_or("answered", |failure| failure.message.as_str());
        println!("   attempt {}: {} - {end}", attempt.token.0, attempt.agent_id);
    }
    println!("   done {:.1} s after it was asked", began.elapsed().as_secs_f64());
    reachctl(stage, url, &["get", "agents"]).await
}

/// Waits until some agent has written in its ledger that it began on a task.
async fn begun(stage: &Stage, task: TaskId) -> anyhow::Result<()> {
    let began = Instant::now();
    while stage.count("work", &task.to_string()) == 0 {
        ensure!(began.elapsed() < PATIENCE, "nobody begins on task {task}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

async fn kill_the_gateway(stage: &mut Stage, client: &Client, port: u16, url: &str) -> anyhow::Result<()> {
    say("5. The gateway itself is killed in mid-task (kill -9), and started again on the same data");
    let params = json!({ "path": stage.document, "pace_ms": stage.pace_ms });
    let task = client.task("summarize_document").params(&params).submit().await?;
    begun(stage, task.id()).await?;
    stage.cast.kill("gateway").await?;
    println!("   killed while night_shift@demo works on {}", task.id());
    start_gateway(stage, port).await?;
    let done = task.wait_for(PATIENCE).await?;
    let times = stage.count("work", &task.id().to_string());
    println!("   {} after the restart; the agent's ledger has it {times} time(s)", done.view().phase.as_str());
    ensure!(times == 1, "the work was done {times} times");
    reachctl(stage, url, &["get", "task", &task.id().to_string()]).await
}

async fn one_key_twice(stage: &Stage, client: &Client) -> anyhow::Result<()> {
    say("6. One idempotency key, sent by 8 callers at once: a write that must happen once");
    let params = json!({ "path": stage.document, "pace_ms": 200 });
    let key = format!("stamp-{}", std::process::id());
    let callers = (0..8).map(|_| {
        let request = client.task("stamp_document").params(&params).idempotency_key(&key);
        tokio::spawn(async move {
            let task = request.submit().await?;
            let is_replayed = task.is_replayed();
            task.wait_for(PATIENCE).await.map(|done| (done.id(), is_replayed, done.raw().get().to_owned()))
        })
    });
    let mut answers = Vec::new();
    for caller in callers.collect::<Vec<_>>() {
        answers.push(caller.await??);
    }
    let first = answers.first().context("nobody answered")?.clone();
    let replays = answers.iter().filter(|answer| answer.1).count();
    let same = answers.iter().all(|answer| answer.0 == first.0 && answer.2 == first.2);
    let times = stage.count("work", &first.0.to_string());
    println!("   one task {}: {replays} of 8 were replays, all got {}", first.0, first.2);
    println!("   the agent's ledger has it {times} time(s)");
    ensure!(same && replays == 7 && times == 1, "the key did not hold: {replays} replays, {times} executions");
    Ok(())
}

fn closing(stage: &Stage, url: &str) {
    if stage.folder.is_passing() {
        say(
            "All of it held. To look at what was played, play it with --keep, or in a folder of your own with --data DIR",
        );
        return;
    }
    say("Where to look");
    println!("   {}  what each agent did, a line each", stage.ledger("work").display());
    println!("   {}  the gateway's log", stage.folder.path().join("gateway.log").display());
    println!(
        "   start it again:  reach-gateway serve --data {} --listen {}",
        stage.folder.path().display(),
        url.trim_start_matches("http://")
    );
    println!("   then:            reachctl --url {url} get tasks");
    println!("                    reachctl --url {url} explain TASK");
}

/// Runs the operator's tool and lets it print.
async fn reachctl(stage: &Stage, url: &str, args: &[&str]) -> anyhow::Result<()> {
    let program = stage.beside("reachctl")?;
    let output = tokio::process::Command::new(&program).args(["--url", url]).args(args).output().await?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        println!("   {line}");
    }
    if !output.status.success() {
        bail!("reachctl {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
