//! What is measured: the server itself, the gateway's two ways to it, and proxies of others.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::peers;
use super::session::{Era, Place, Session};
use crate::bench::gateway::Gateway;
use crate::bench::process::Process;

/// How long a target may take to have the tool.
const READY: Duration = Duration::from_secs(60);

/// One way to call the tool.
pub struct Target {
    /// What the table calls it.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// The process that it is measured by.
    pub whose: Whose,
}

/// Whose process a target is.
pub enum Whose {
    /// Its own.
    Own(Process),
    /// A gateway's.
    Gateway(Gateway),
}

impl Target {
    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        match &self.whose {
            Whose::Own(process) => process,
            Whose::Gateway(gateway) => gateway,
        }
    }

    /// Waits until it has the tool, in one era at least.
    async fn is_ready(&self, eras: &[Era]) -> Result<()> {
        let began = Instant::now();
        loop {
            let mut why = None;
            for era in eras {
                match Session::open(&self.place, *era).await {
                    Ok(_) => return Ok(()),
                    Err(error) => why = Some(error),
                }
            }
            if began.elapsed() > READY {
                let why = why.context("no era was asked for")?;
                bail!("{} has no such tool: {why:#}", self.name);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// What is to be started.
pub struct Wanted<'a> {
    /// The program of the canned server.
    pub upstream: &'a Path,
    /// The program of the gateway.
    pub gateway: &'a Path,
    /// Where the gateway's data goes.
    pub data: &'a Path,
    /// Where others are installed. None: without them.
    pub peers: Option<&'a Path>,
    /// In which eras it must be possible to ask.
    pub eras: &'a [Era],
}

/// All targets, and those that are missing, each with why.
pub struct Targets {
    /// Those that are there; the first is the server itself.
    pub there: Vec<Target>,
    /// Those that could not be had.
    pub missing: Vec<(String, String)>,
}

impl Targets {
    /// Starts all of them.
    ///
    /// # Errors
    /// The server or the gateway does not start.
    pub async fn start(wanted: &Wanted<'_>) -> Result<Self> {
        let (direct, url) = canned(wanted.upstream)?;
        direct.is_ready(wanted.eras).await?;
        let mut there = vec![direct];
        // Each has a gateway of its own, so that what one remembers is not counted to the other.
        for (folder, path) in [("relay", "/servers/canned/mcp"), ("tools", "/mcp")] {
            let gateway = gateway(wanted.gateway, &wanted.data.join(folder), &url).await?;
            let place = Place { port: gateway.port, path: path.to_owned() };
            let target = Target { name: format!("gateway {path}"), place, whose: Whose::Gateway(gateway) };
            target.is_ready(wanted.eras).await?;
            there.push(target);
        }
        let mut missing = Vec::new();
        let mut peer = async |name: &str, started: Result<Target>| {
            let is_ready = match started {
                Ok(target) => target.is_ready(wanted.eras).await.map(|()| target),
                Err(error) => Err(error),
            };
            match is_ready {
                Ok(target) => there.push(target),
                Err(error) => missing.push((name.to_owned(), format!("{error:#}"))),
            }
        };
        if let Some(folder) = wanted.peers {
            std::fs::create_dir_all(folder)?;
            let folder: PathBuf = folder.canonicalize()?;
            peer("mcp-proxy (crate)", peers::mcp_proxy(&folder, &url)).await;
            peer("fastmcp (PyPI)", peers::fastmcp(&folder, &url)).await;
        }
        Ok(Self { there, missing })
    }
}

fn canned(program: &Path) -> Result<(Target, String)> {
    let mut process = Process::start(Command::new(program).stdout(Stdio::piped()))?;
    let mut url = String::new();
    BufReader::new(process.prints().context("it prints nothing")?).read_line(&mut url)?;
    let url = url.trim().to_owned();
    let port = url.rsplit(':').next().and_then(|rest| rest.split('/').next()).and_then(|port| port.parse().ok());
    let place = Place { port: port.context("the canned server has no port")?, path: "/mcp".to_owned() };
    Ok((Target { name: "direct".to_owned(), place, whose: Whose::Own(process) }, url))
}

async fn gateway(program: &Path, folder: &Path, url: &str) -> Result<Gateway> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let config = folder.join("gateway.toml");
    std::fs::write(&config, format!("[[mcp_servers]]\nname = \"canned\"\nurl = {url:?}\n"))?;
    Gateway::start(program, &folder.join("data"), Some(&config)).await
}
