//! A client of MCP over one connection that is kept alive, of either era. Every call has arguments of its own, and every
//! reply is held against them.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::bench::wire::{Message, Reader};
use crate::canned::{HANDSHAKE, STATELESS};

/// How long one answer may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// In which way a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
pub enum Era {
    /// A session, opened by a handshake.
    #[serde(rename = "2025-11-25")]
    #[value(name = "2025-11-25")]
    Handshake,
    /// Every request stands alone.
    #[serde(rename = "2026-07-28")]
    #[value(name = "2026-07-28")]
    Stateless,
}

impl Era {
    /// Its revision.
    #[must_use]
    pub fn revision(self) -> &'static str {
        match self {
            Self::Handshake => HANDSHAKE,
            Self::Stateless => STATELESS,
        }
    }

    fn meta(self) -> String {
        match self {
            Self::Handshake => String::new(),
            Self::Stateless => format!(
                r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"{STATELESS}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}}}}"#
            ),
        }
    }
}

/// Where a server is.
#[derive(Debug, Clone)]
pub struct Place {
    /// On which port of this machine.
    pub port: u16,
    /// At which path.
    pub path: String,
}

/// One client.
pub struct Session {
    from: Reader<OwnedReadHalf>,
    to: OwnedWriteHalf,
    place: Place,
    era: Era,
    id: Option<String>,
    tool: String,
    count: u64,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow)]
    content: Vec<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Listed {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
}

impl Session {
    /// Connects, opens the session where there are sessions, and finds the tool that echoes.
    ///
    /// # Errors
    /// The server does not speak this era, or has no such tool.
    pub async fn open(place: &Place, era: Era) -> Result<Self> {
        let connection = TcpStream::connect(("127.0.0.1", place.port)).await?;
        connection.set_nodelay(true)?;
        let (from, to) = connection.into_split();
        let (place, tool) = (place.clone(), String::new());
        let mut session = Self { from: Reader::new(from), to, place, era, id: None, tool, count: 0 };
        if era == Era::Handshake {
            session.begin().await?;
        }
        let listed = session.ask("tools/list", "", None).await?;
        let listed: Listed = serde_json::from_str(&listed).context("the answer to tools/list")?;
        let echo = listed.tools.into_iter().map(|tool| tool.name).find(|name| name.ends_with("echo"));
        session.tool = echo.context("there is no tool that echoes")?;
        Ok(session)
    }

    async fn begin(&mut self) -> Result<()> {
        let params = format!(
            r#""protocolVersion":"{HANDSHAKE}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}"#
        );
        let body = self.frame("initialize", &params);
        let answer = self.post("initialize", None, &body).await?;
        self.id = answer.header("mcp-session-id").map(str::to_owned);
        let result = self.result_of(&answer)?;
        ensure!(result.contains(HANDSHAKE), "it agrees to {result}");
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = self.post("notifications/initialized", None, ready).await?;
        ensure!(answer.status() == Some(202), "the end of the handshake is answered with {}", answer.first_line());
        Ok(())
    }

    /// Calls the tool with a text that no other call has, and checks that it comes back.
    ///
    /// # Errors
    /// It does not.
    pub async fn call(&mut self, who: &str) -> Result<Duration> {
        let text = format!(
            "{who}, call {}: a payload of a usual size for a tool call, some words long, that comes back as it is",
            self.count
        );
        let params = format!(r#""name":"{}","arguments":{{"n":{},"text":"{text}"}}"#, self.tool, self.count);
        let name = self.tool.clone();
        let began = Instant::now();
        let result = self.ask("tools/call", &params, Some(&name)).await?;
        let took = began.elapsed();
        let called: Called<'_> = serde_json::from_str(&result).with_context(|| result.clone())?;
        ensure!(called.content.first().is_some_and(|content| content.text == text), "another's answer came: {result}");
        Ok(took)
    }

    async fn ask(&mut self, method: &str, params: &str, name: Option<&str>) -> Result<String> {
        let body = self.frame(method, params);
        let answer = self.post(method, name, &body).await?;
        self.result_of(&answer)
    }

    fn frame(&mut self, method: &str, params: &str) -> String {
        self.count += 1;
        let meta = self.era.meta();
        let members = if params.is_empty() { meta.trim_start_matches(',') } else { &format!("{params}{meta}") };
        format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{{{members}}}}}"#, self.count)
    }

    async fn post(&mut self, method: &str, name: Option<&str>, body: &str) -> Result<Message> {
        let Place { port, path } = &self.place;
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            body.len()
        );
        if method != "initialize" {
            head.push_str(&format!("mcp-protocol-version: {}\r\n", self.era.revision()));
        }
        if let Some(id) = &self.id {
            head.push_str(&format!("mcp-session-id: {id}\r\n"));
        }
        if self.era == Era::Stateless {
            head.push_str(&format!("mcp-method: {method}\r\n"));
            head.push_str(&name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default());
        }
        self.to.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
        let answer = tokio::time::timeout(PATIENCE, self.from.next()).await;
        answer.context("no answer came in time")??.context("the connection was closed")
    }

    /// The result in an answer, which is one text or an event of a stream.
    fn result_of(&self, answer: &Message) -> Result<String> {
        let text = std::str::from_utf8(&answer.body)?;
        let is_stream = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let data = |line| str::strip_prefix(line, "data:").map(str::trim_start);
        let texts: Vec<&str> = if is_stream { text.lines().filter_map(data).collect() } else { vec![text] };
        for text in texts {
            if let Ok(Answer { id, result: Some(result) }) = serde_json::from_str(text)
                && id == self.count
            {
                return Ok(result.get().to_owned());
            }
        }
        bail!("{} {}", answer.first_line(), text.trim())
    }
}
