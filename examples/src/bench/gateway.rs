//! The gateway under measurement, as a process of its own.

use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::process::Process;

/// A gateway that runs. It ends with this value.
pub struct Gateway {
    process: Process,
    /// Its port.
    pub port: u16,
    /// Its address.
    pub url: String,
}

impl Gateway {
    /// Starts it, with a configuration file if one is given, and waits until it listens.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(program: &Path, data: &Path, config: Option<&Path>) -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"]).arg(data).env("RUST_LOG", "warn");
        if let Some(config) = config {
            command.arg("--config").arg(config);
        }
        let process = Process::start(&mut command).context("build it with `cargo build --release`")?;
        let gateway = Self { process, port, url: format!("http://127.0.0.1:{port}") };
        let began = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            ensure!(began.elapsed() < Duration::from_secs(20), "the gateway does not listen on port {port}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(gateway)
    }
}

impl Deref for Gateway {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

/// A port of this machine that nobody listens on.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
