//! What tests over a real gateway process share: the process itself, and agents that keep a ledger.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_reach_sdk::{AgentCard, Client, RetryPolicy, Span, TaskId, card};

/// A gateway as a process, on one port and one folder for all its lives.
pub(crate) struct Victim {
    pub(crate) port: u16,
    folder: PathBuf,
    child: Child,
}

impl Victim {
    fn spawn(port: u16, folder: &Path) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(folder.join("gateway.log")).unwrap();
        Command::new(env!("CARGO_BIN_EXE_reach-gateway"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--config"])
            .arg(folder.join("gateway.toml"))
            .arg("--data")
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap()
    }

    /// Starts one with a configuration, and waits until it listens.
    pub(crate) async fn start(folder: &Path, configuration: &str) -> Self {
        std::fs::write(folder.join("gateway.toml"), configuration).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let victim = Self { port, folder: folder.to_owned(), child: Self::spawn(port, folder) };
        victim.listens().await;
        victim
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The process that runs now.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and another life on the same data.
    pub(crate) async fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(self.port, &self.folder);
        self.listens().await;
    }

    /// SIGTERM, an orderly end, and another life on the same data.
    pub(crate) async fn stop_and_restart(&mut self) {
        self.stop();
        self.again().await;
    }

    /// SIGTERM, and an orderly end.
    pub(crate) fn stop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    /// Another life on the same data.
    pub(crate) async fn again(&mut self) {
        self.child = Self::spawn(self.port, &self.folder);
        self.listens().await;
    }

    /// The database's file.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("data").join("reach.db")
    }

    async fn listens(&self) {
        let began = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            let said = || std::fs::read_to_string(self.folder.join("gateway.log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(30), "the gateway does not listen: {}", said());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::builder().url(self.url()).retry(patient()).connect().await.unwrap()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number from the environment.
pub(crate) fn from_env(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A client that bears with a gateway that is away for a while.
pub(crate) fn patient() -> RetryPolicy {
    let (cap, within) = (Duration::from_millis(500), Duration::from_secs(60));
    RetryPolicy { retries: 1000, cap, within, ..RetryPolicy::default() }
}

/// A card of an agent that is heard of often, so that its end is noticed soon.
pub(crate) fn lively(name: &str) -> AgentCard {
    AgentCard { heartbeat_interval: Span::from_ms(500), max_concurrency: 32, ..card(name).unwrap() }
}

/// What agents did, a line a thing done, in a file.
#[derive(Clone)]
pub(crate) struct Ledger(pub(crate) PathBuf, Arc<Mutex<()>>);

impl Ledger {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path, Arc::default())
    }

    pub(crate) fn add(&self, task: TaskId) {
        use std::io::Write;
        let _one_at_a_time = self.1.lock().unwrap();
        let mut file = std::fs::File::options().create(true).append(true).open(&self.0).unwrap();
        // One write for the whole line: others append to the same file.
        file.write_all(format!("{task}\n").as_bytes()).unwrap();
    }

    pub(crate) fn counts(&self) -> BTreeMap<TaskId, usize> {
        let mut counts = BTreeMap::new();
        for line in std::fs::read_to_string(&self.0).unwrap_or_default().lines() {
            *counts.entry(line.parse().unwrap()).or_insert(0) += 1;
        }
        counts
    }
}
