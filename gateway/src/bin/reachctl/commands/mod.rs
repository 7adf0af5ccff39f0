//! The commands, a file for each group: each reads its arguments, calls its method, and shows the answer.

mod agents;
mod audit;
mod config;
mod dead_letters;
mod errors;
mod get;
mod human;
mod policy;
mod raw;
mod servers;
mod status;
mod submit;
mod tokens;
mod top;
mod webhooks;

pub(crate) use agents::EXAMPLE_HELP;
pub(crate) use status::Status;

use agent_reach_sdk::schemas::call::{Resolved, TaskRef};
use agent_reach_sdk::{Explanation, Method, TaskView};
use clap::CommandFactory as _;

use crate::args::{Add, Cli, Command, Remove};
use crate::exit::{Exit, Stop};
use crate::output::Out;
use crate::render::text::clean;
use crate::render::{capabilities, explanation};
use crate::session::Session;

/// Runs what the command line says. Only what needs the gateway looks at where it is.
pub(crate) async fn run(cli: Cli, out: Out) -> Result<Exit, Stop> {
    let open = || Session::open(&cli.url, cli.token_file.as_deref(), out);
    match cli.command {
        Command::Get(get) => get::run(get, &open().await?).await,
        Command::Submit(args) => submit::submit(args, &open().await?).await,
        Command::Reach(args) => submit::reach(args, &open().await?).await,
        Command::Wait(args) => submit::wait(args, &open().await?).await,
        Command::Cancel { task } => {
            let render = |task: &TaskView, _: &_| format!("{} {}\n", task.task_id, task.phase.as_str());
            open().await?.show(Method::TaskCancel, &TaskRef { task_id: task }, render).await
        }
        Command::Resolve(flags) => {
            let submit = flags.into_submit()?;
            open().await?.show::<Resolved>(Method::Resolve, &submit, capabilities::resolved).await
        }
        Command::Explain { task } => {
            let params = TaskRef { task_id: task };
            open().await?.show::<Explanation>(Method::TaskExplain, &params, explanation::whole).await
        }
        Command::Human(command) => human::run(command, &open().await?).await,
        Command::DeadLetters(command) => dead_letters::run(command, &open().await?).await,
        Command::Webhooks(command) => webhooks::run(command, &open().await?).await,
        Command::Policy(command) => policy::run(command, &open().await?).await,
        Command::Audit(command) => audit::run(command, open, out).await,
        Command::Drain { agent } => agents::leave(Method::AgentDrain, agent, &open().await?).await,
        Command::Deregister { agent } => agents::leave(Method::AgentDeregister, agent, &open().await?).await,
        Command::Add(Add::Mcp(args)) => servers::add(*args, &open().await?).await,
        Command::Remove(Remove::Mcp { name }) => servers::remove(name, &open().await?).await,
        Command::Register { file: Some(file), example: _ } => agents::register(&file, &open().await?).await,
        Command::Register { file: None, example: _ } => {
            out.text(agents::EXAMPLE)?;
            Ok(Exit::Done)
        }
        Command::Config(command) => config::run(command, &cli.url, cli.token_file.as_deref(), out).await,
        Command::Token(command) => tokens::run(command, &open().await?).await,
        Command::Call { method, params } => raw::call(&method, params.as_deref(), &open().await?).await,
        Command::Status => status::run(&open().await?).await,
        Command::Top { once, interval } => top::run(once, interval, &open().await?).await,
        Command::Errors { name } => errors::run(name.as_deref(), &out),
        Command::Completions { shell } => completions(shell, &out),
    }
}

fn completions(shell: clap_complete::Shell, out: &Out) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "reachctl", &mut script);
    out.text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// A line for people, of which the parts may come from anyone.
fn note(session: &Session, line: &str) -> Result<(), Stop> {
    if session.out.is_json { Ok(()) } else { session.out.note(&clean(line)) }
}
