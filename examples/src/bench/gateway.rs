//! The gateway under measurement, as a process of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// A gateway that runs. It ends with this value.
pub struct Gateway {
    child: Child,
    /// Its port.
    pub port: u16,
    /// Its address.
    pub url: String,
}

impl Gateway {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(program: &Path, data: &Path) -> Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(program)
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
            .arg(data)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| {
                format!("{} cannot be started; build it with `cargo build --release`", program.display())
            })?;
        let gateway = Self { child, port, url: format!("http://127.0.0.1:{port}") };
        let began = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            ensure!(began.elapsed() < Duration::from_secs(20), "the gateway does not listen on port {port}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(gateway)
    }

    /// CPU time that it has used, in microseconds.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_us(&self) -> Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name, in brackets, may hold blanks; user and system time are the 12th and 13th fields behind it.
        let behind = stat.rsplit_once(')').context("/proc has another form")?.1;
        let fields: Vec<&str> = behind.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        // A tick is a hundredth of a second on Linux.
        Ok(ticks * 10_000)
    }

    /// Memory that it holds, in MB.
    ///
    /// # Errors
    /// It has ended.
    pub fn rss_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("/proc has another form")?;
        let kb: f64 = line.split_whitespace().nth(1).context("/proc has another form")?.parse()?;
        Ok(kb / 1024.0)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
