//! The flags of MCP servers.

use std::collections::BTreeMap;

use agent_reach_sdk::Span;
use agent_reach_sdk::schemas::server::START_TIMEOUT;
use agent_reach_sdk::schemas::{AgentName, HeaderSource, Namespace, Overlay, ServerSpec};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Add {
    /// Make an agent of an MCP server: at a URL, or a command after --, which the gateway starts and keeps running
    Mcp(Box<AddMcp>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Remove {
    /// Forget an MCP server that was added, and its agents
    Mcp { name: AgentName },
}

#[derive(Debug, Args)]
pub(crate) struct AddMcp {
    /// What it is called; its agent is NAME@NAMESPACE
    name: AgentName,
    /// Where it is, if it runs already
    #[arg(value_name = "URL", required_unless_present = "command", conflicts_with = "command")]
    address: Option<String>,
    /// The tenant wall that its agent lives behind
    #[arg(long, default_value = "mcp")]
    namespace: Namespace,
    /// An environment variable of the command; no secrets, for it is shown to operators
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "address")]
    env: Vec<(String, String)>,
    /// An environment variable of the gateway that the command is given, too
    #[arg(long, value_name = "NAME", conflicts_with = "address")]
    pass_env: Vec<String>,
    /// The folder that the command is started in
    #[arg(long, value_name = "DIR", conflicts_with = "address")]
    cwd: Option<String>,
    /// A header of every request to the URL; its value is read by the gateway, from env:NAME or file:PATH, after what stands
    /// before it, as in "Authorization=Bearer env:TOKEN"
    #[arg(long, value_name = "NAME=SOURCE", value_parser = header, conflicts_with = "command")]
    header: Vec<(String, HeaderSource)>,
    /// How long one call may take, at most
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Span>,
    /// How long it may take to start and to say what it offers
    #[arg(long, value_name = "SPAN", default_value_t = START_TIMEOUT)]
    start_timeout: Span,
    /// A card by hand that is laid over the server's own: a file with JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) card: Option<String>,
    /// The command and its arguments
    #[arg(last = true)]
    command: Vec<String>,
}

impl AddMcp {
    /// The server, with its card by hand.
    pub(crate) fn into_spec(self, card: Overlay) -> ServerSpec {
        let mut words = self.command.into_iter();
        ServerSpec {
            name: self.name,
            namespace: self.namespace,
            command: words.next(),
            args: words.collect(),
            env: self.env.into_iter().collect(),
            pass_env: self.pass_env,
            cwd: self.cwd,
            url: self.address,
            headers: self.header.into_iter().collect::<BTreeMap<_, _>>(),
            start_timeout: self.start_timeout,
            timeout: self.timeout,
            card,
        }
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn header(text: &str) -> Result<(String, HeaderSource), String> {
    let (name, source) = pair(text).map_err(|_| "write NAME=env:VARIABLE or NAME=file:PATH")?;
    // The value itself is not taken: a command line is seen by everybody on the machine, and kept in histories.
    let read = |kind: &str| source.split_once(kind).map(|(prefix, at)| (prefix.to_owned(), at.to_owned()));
    let source = match (read("env:"), read("file:")) {
        (Some((prefix, at)), None) => HeaderSource { env: Some(at), file: None, prefix },
        (None, Some((prefix, at))) => HeaderSource { env: None, file: Some(at), prefix },
        (None, None) | (Some(_), Some(_)) => {
            return Err("say where the gateway reads the value: env:VARIABLE or file:PATH".to_owned());
        }
    };
    Ok((name, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_named_and_never_given() {
        let (name, source) = header("Authorization=Bearer env:TOKEN").unwrap();
        assert_eq!((name.as_str(), source.prefix.as_str()), ("Authorization", "Bearer "));
        assert_eq!(source.env.as_deref(), Some("TOKEN"));
        assert_eq!(header("X-Key=file:/run/key").unwrap().1.file.as_deref(), Some("/run/key"));
        assert!(header("Authorization=Bearer s3cret").is_err() && header("Authorization").is_err());
    }
}
