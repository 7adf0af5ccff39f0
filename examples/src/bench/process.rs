//! A process under measurement.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A process that ends with this value.
pub struct Process(Child);

impl Process {
    /// Starts one. Its input stays open until it ends.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command.stdin(Stdio::piped()).spawn();
        Ok(Self(child.with_context(|| format!("{} cannot be started", command.get_program().display()))?))
    }

    /// What it prints, if it was started so. Given once.
    pub fn prints(&mut self) -> Option<std::process::ChildStdout> {
        self.0.stdout.take()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// CPU time that it has used, in microseconds.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_us(&self) -> Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        // The name, in brackets, may hold blanks; user and system time are the 12th and 13th fields behind it.
        let behind = stat.rsplit_once(')').context("/proc has another form")?.1;
        let fields: Vec<&str> = behind.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        // A tick is a hundredth of a second on Linux.
        Ok(ticks * 10_000)
    }

    /// What it has had written to disk, in bytes.
    ///
    /// # Errors
    /// It has ended.
    pub fn written(&self) -> Result<u64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.0.id()))?;
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).context("/proc has another form")?;
        Ok(line.trim().parse()?)
    }

    /// Memory that it holds, in MB.
    ///
    /// # Errors
    /// It has ended.
    pub fn rss_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("/proc has another form")?;
        let kb: f64 = line.split_whitespace().nth(1).context("/proc has another form")?.parse()?;
        Ok(kb / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
