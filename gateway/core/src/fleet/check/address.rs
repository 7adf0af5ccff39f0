//! Whether an address is one that can be used, and that may be shown: cards are shown to others.

use http::Uri;
use http::uri::Authority;
use reach_schemas::card::limits::{ADDRESS_MAX, TEXT_MAX};
use reach_schemas::{AgentName, Endpoint, Protocol, SERVER_PREFIX};

const NOT_HTTP: &str = "is not an http:// or https:// URL with a host";
const HAS_CREDENTIALS: &str = "holds a user name or password: cards are shown to others, and the gateway sends no \
                               credentials to agents; put a proxy that adds them in front of the agent, and name the proxy";

/// Whether an endpoint can be reached so. What is refused is not quoted: it may hold a password.
///
/// # Errors
/// What is wrong with the address.
pub(super) fn of_endpoint(endpoint: &Endpoint) -> Result<(), String> {
    let address = &endpoint.address;
    match endpoint.protocol {
        Protocol::Http => of_http(address),
        Protocol::Mcp => of_mcp(address),
        Protocol::Process if address.trim().is_empty() => {
            Err("is empty: a process endpoint names a command".to_owned())
        }
        Protocol::Process => at_most(address, TEXT_MAX),
        Protocol::Websocket | Protocol::Queue if has_credentials(address) => Err(HAS_CREDENTIALS.to_owned()),
        Protocol::Websocket | Protocol::Queue => at_most(address, ADDRESS_MAX),
    }
}

/// A URL, or the name of a server that the operator added.
fn of_mcp(address: &str) -> Result<(), String> {
    let Some(name) = address.strip_prefix(SERVER_PREFIX) else { return of_http(address) };
    name.parse::<AgentName>().map(|_| ()).map_err(|error| format!("names no server: {error}"))
}

/// Whether this is a URL that the gateway can post to.
///
/// # Errors
/// What is wrong with it.
pub(super) fn of_http(address: &str) -> Result<(), String> {
    at_most(address, ADDRESS_MAX)?;
    if has_credentials(address) {
        return Err(HAS_CREDENTIALS.to_owned());
    }
    let is_http = address.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some_and(is_host_and_port)
    });
    if is_http { Ok(()) } else { Err(NOT_HTTP.to_owned()) }
}

/// The parser takes anything for a port, and leaves it out if it is none.
fn is_host_and_port(authority: &Authority) -> bool {
    let has_port = authority.port_u16().is_some() || authority.as_str() == authority.host();
    has_port && !authority.host().is_empty()
}

fn at_most(address: &str, max: usize) -> Result<(), String> {
    if address.len() > max { Err(format!("has {} bytes, at most {max} are taken", address.len())) } else { Ok(()) }
}

/// Whether there is something before an `@` where the host begins (RFC 3986, section 3.2).
fn has_credentials(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}
