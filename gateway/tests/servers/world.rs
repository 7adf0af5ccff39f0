//! A gateway as a process, servers written for it, and whoever asks.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How long anything may take that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway in a folder of its own.
pub(crate) struct Gateway {
    process: Child,
    pub(crate) url: String,
    pub(crate) log: Arc<Mutex<String>>,
    folder: PathBuf,
    config: String,
}

/// What a command printed, and how it ended.
pub(crate) struct Ran {
    pub(crate) exit: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The gateway of this build, or the one that `REACH_GATEWAY` names: the one built for release, for figures.
fn program() -> OsString {
    std::env::var_os("REACH_GATEWAY").unwrap_or_else(|| env!("CARGO_BIN_EXE_reach-gateway").into())
}

impl Gateway {
    /// Starts one.
    pub(crate) fn start(folder: &Path, config: &str) -> Self {
        Self::start_with(folder, config, &[])
    }

    pub(crate) fn start_with(folder: &Path, config: &str, env: &[(&str, &str)]) -> Self {
        let file = folder.join("gateway.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(program());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.join("data")).arg("--config").arg(file);
        command.env("RUST_LOG", "info").env("NO_COLOR", "1").envs(env.iter().copied());
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let line = lines.by_ref().map(Result::unwrap).find(|line| line.contains("listening on ")).unwrap();
        let url = line.split("listening on ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let log = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self { process, url, log, folder: folder.to_owned(), config: config.to_owned() }
    }

    /// Ends it in order, and starts it again on the same data.
    pub(crate) fn restart(mut self) -> Self {
        self.stop();
        Self::start(&self.folder.clone(), &self.config.clone())
    }

    pub(crate) fn stop(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        self.process.wait().unwrap();
    }

    /// How much memory it has, in MB.
    pub(crate) fn resident_mb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Runs `reachctl`.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reachctl"));
        command.args(args).env("AGENT_REACH_URL", &self.url).env("COLUMNS", "100").stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { exit: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs `reachctl`, which must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.exit, Some(0), "{args:?}\n{}\n{}\n{}", ran.out, ran.err, self.log.lock().unwrap());
        ran.out
    }

    /// Calls a method, and gives its result.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        serde_json::from_str(&self.ok(&["call", method, &params.to_string()])).unwrap()
    }

    /// One server as the gateway tells it.
    #[track_caller]
    pub(crate) fn server(&self, name: &str) -> Value {
        let servers = self.call("server/list", &json!({}));
        servers["servers"].as_array().unwrap().iter().find(|server| server["server"]["name"] == name).unwrap().clone()
    }

    /// Asks an agent for something and gives its result as text.
    #[track_caller]
    pub(crate) fn reach(&self, agent: &str, capability: &str, params: &str) -> String {
        self.ok(&["reach", "--to", agent, "--capability", capability, "--params", params]).trim().to_owned()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut so: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = so() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never came to be: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The script of the server that is written for these tests.
pub(crate) fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/peer.py").display().to_string()
}

/// The folder in which a server keeps what it heard.
pub(crate) fn state(folder: &Path, name: &str) -> String {
    let state = folder.join(name);
    std::fs::create_dir_all(&state).unwrap();
    state.display().to_string()
}

/// What a server heard.
pub(crate) fn heard(state: &str) -> String {
    std::fs::read_to_string(Path::new(state).join("requests")).unwrap_or_default()
}

/// A server over HTTP.
pub(crate) struct Peer {
    process: Child,
    pub(crate) port: u16,
    pub(crate) state: String,
    flags: Vec<String>,
}

impl Peer {
    pub(crate) fn start(state: String, flags: &[&str]) -> Self {
        Self::start_at(state, flags.iter().map(|flag| (*flag).to_owned()).collect(), 0)
    }

    fn start_at(state: String, flags: Vec<String>, port: u16) -> Self {
        let mut command = Command::new("python3");
        command.args([&script(), "http", &state, "--port", &port.to_string()]).args(&flags).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap(), state, flags }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Kills it, and starts it again at the same address with nothing remembered.
    pub(crate) fn restart(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        *self = Self::start_at(self.state.clone(), self.flags.clone(), self.port);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
