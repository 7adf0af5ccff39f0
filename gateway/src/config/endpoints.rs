//! `[endpoints]` of the configuration: where agents may be that are reached over HTTP.

use std::net::SocketAddr;

use ipnet::IpNet;
use serde::Deserialize;

use crate::outbound::Guard;

/// The section as it is written. Every field may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// Networks that agents may be in though they are not public. Left out: this machine, while the gateway listens on it
    /// only.
    pub allow: Option<Vec<String>>,
}

/// Checks the section.
pub(super) fn check(section: Section, listen: Option<SocketAddr>, mistakes: &mut Vec<String>) -> Guard {
    let is_local = listen.is_none_or(|listen| listen.ip().is_loopback());
    match section.allow {
        Some(allow) => Guard::of_endpoints(networks("endpoints.allow", &allow, mistakes)),
        None if is_local => Guard::of_endpoints(Guard::loopback()),
        None => Guard::of_endpoints(Vec::new()),
    }
}

/// Reads networks, and tells of those that are none, or that nothing may allow.
pub(super) fn networks(place: &str, texts: &[String], mistakes: &mut Vec<String>) -> Vec<IpNet> {
    let read = |text: &String| match text.parse::<IpNet>() {
        Ok(network) if Guard::forbids(&network) => {
            mistakes.push(format!("{place}: {text:?} is link-local or a cloud's metadata, and cannot be allowed"));
            None
        }
        Ok(network) => Some(network),
        Err(_) => {
            mistakes.push(format!("{place}: {text:?} is not a network, such as \"127.0.0.0/8\" or \"fd00::/8\""));
            None
        }
    };
    texts.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, listen: &str) -> Result<Guard, String> {
        let mut mistakes = Vec::new();
        let section = toml::from_str(text).map_err(|error| error.to_string())?;
        let guard = check(section, listen.parse().ok(), &mut mistakes);
        if mistakes.is_empty() { Ok(guard) } else { Err(mistakes.join("\n")) }
    }

    #[track_caller]
    fn may(guard: &Guard, expected: [bool; 4]) {
        let hosts = ["127.0.0.1", "[::1]", "10.1.2.3", "8.8.8.8"];
        let told = hosts.map(|host| guard.check(&format!("http://{host}:9000/work")).is_ok());
        assert_eq!(told, expected, "{hosts:?}");
    }

    #[test]
    fn agents_may_be_on_this_machine_as_long_as_nobody_else_reaches_the_gateway() {
        may(&read("", "127.0.0.1:7340").unwrap(), [true, true, false, true]);
        may(&read("", "[::1]:7340").unwrap(), [true, true, false, true]);
        may(&read("", "10.0.0.5:7340").unwrap(), [false, false, false, true]);
        may(&read("allow = []", "127.0.0.1:7340").unwrap(), [false, false, false, true]);
        may(&read("allow = [\"10.0.0.0/8\"]", "10.0.0.5:7340").unwrap(), [false, false, true, true]);
    }

    #[test]
    fn what_may_never_be_gone_to_cannot_be_allowed() {
        for network in ["169.254.0.0/16", "169.254.169.254/32", "fe80::/10", "fd00:ec2::254/128"] {
            let said = read(&format!("allow = [\"{network}\"]"), "127.0.0.1:1").unwrap_err();
            assert!(said.contains("endpoints.allow") && said.contains("cannot be allowed"), "{said}");
        }
        assert!(read("allow = [\"here\"]", "127.0.0.1:1").unwrap_err().contains("\"here\" is not a network"));
        assert!(read("deny = []", "127.0.0.1:1").unwrap_err().contains("unknown field `deny`"));
        // A wide network is taken, less what it may not hold.
        let wide = read("allow = [\"0.0.0.0/0\", \"::/0\"]", "127.0.0.1:1").unwrap();
        may(&wide, [true, true, true, true]);
        assert!(wide.check("http://169.254.169.254/latest").is_err());
    }
}
