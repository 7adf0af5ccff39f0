//! Proxies of others, installed into a folder by their own package managers. One that cannot be had is named, with why.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::session::Place;
use super::target::{Target, Whose};
use crate::bench::gateway::free_port;
use crate::bench::process::Process;

/// The crate `mcp-proxy`, with nothing but what proxying needs.
const CRATE: (&str, &str) = ("mcp-proxy", "0.6.0");
/// The package `fastmcp` of PyPI.
const FASTMCP: &str = "fastmcp==4.2.3";

/// How `fastmcp` is told to be a proxy: its own way to make one, and its own server.
const FASTMCP_PROXY: &str = "import sys\n\
    from fastmcp.server import create_proxy\n\
    create_proxy(sys.argv[1]).run(transport='http', host='127.0.0.1', port=int(sys.argv[2]), path='/mcp',\n    \
    show_banner=False, log_level='error')\n";

/// Starts the proxy of the crate `mcp-proxy` before a server; it is built first if it is not there yet.
///
/// # Errors
/// It cannot be had, or does not start.
pub fn mcp_proxy(folder: &Path, upstream: &str) -> Result<Target> {
    let (name, version) = CRATE;
    let root = folder.join(format!("{name}-{version}"));
    let program = root.join("bin").join(name);
    if !program.exists() {
        let mut install = Command::new("cargo");
        install.args(["install", name, "--version", version, "--locked", "--no-default-features"]);
        run(install.args(["--features", "protocol-2026-07-28", "--root"]).arg(&root))?;
    }
    let port = free_port()?;
    let config = root.join("proxy.toml");
    let text = format!(
        "[proxy]\nname = \"bench\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\
         [[backends]]\nname = \"canned\"\ntransport = \"http\"\nurl = {upstream:?}\n"
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new(program);
    command.arg("--config").arg(config).env("RUST_LOG", "error").stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process::start(&mut command)?;
    let place = Place { port, path: "/".to_owned() };
    Ok(Target { name: format!("{name} {version}"), place, whose: Whose::Own(process) })
}

/// Starts the proxy of the package `fastmcp` before a server; it is installed first if it is not there yet.
///
/// # Errors
/// It cannot be had, or does not start.
pub fn fastmcp(folder: &Path, upstream: &str) -> Result<Target> {
    let name = FASTMCP.replace("==", " ");
    let root = folder.join(FASTMCP.replace("==", "-"));
    let python = root.join("bin/python");
    let is_there = root.join("installed");
    if !is_there.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&root))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", FASTMCP]))?;
        std::fs::write(&is_there, FASTMCP)?;
    }
    let port = free_port()?;
    let mut command = Command::new(python);
    command.args(["-c", FASTMCP_PROXY, upstream, &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process::start(&mut command)?;
    let place = Place { port, path: "/mcp".to_owned() };
    Ok(Target { name, place, whose: Whose::Own(process) })
}

/// Runs an installation; what it says if it fails is the reason.
fn run(command: &mut Command) -> Result<()> {
    let program: PathBuf = command.get_program().into();
    println!("installing: {} {}", program.display(), told(command));
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{} is missing", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it did not say why");
        bail!("{} {} failed: {last}", program.display(), told(command));
    }
    Ok(())
}

fn told(command: &Command) -> String {
    command.get_args().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
