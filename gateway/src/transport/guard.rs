//! Keeps web pages from calling the gateway behind their reader's back: a page of a foreign origin is refused, and so
//! is a name that was made to point to loopback (DNS rebinding).

use std::net::IpAddr;

use http::{HeaderMap, Uri, header};

use super::HttpSettings;

/// Who may call, by the names in the request's head.
pub(super) struct Guard {
    is_loopback: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    /// The guard of a port that listens on this address.
    pub(super) fn new(listens_on: IpAddr, settings: &HttpSettings) -> Self {
        Self {
            is_loopback: listens_on.is_loopback(),
            hosts: settings.allowed_hosts.clone(),
            origins: settings.allowed_origins.clone(),
        }
    }

    /// Why a request is refused, if it is.
    pub(super) fn refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        let host = match headers.get(header::HOST) {
            Some(host) => Some(host.to_str().unwrap_or_default()),
            None => uri.authority().map(http::uri::Authority::as_str),
        };
        if let Some(host) = host
            && !self.may_be_called(host)
        {
            return Some(format!(
                "this port is not to be called as {host:?}; call it by 127.0.0.1 or localhost, or add the name to the \
                 allowed hosts"
            ));
        }
        let origin = headers.get(header::ORIGIN)?.to_str().unwrap_or_default();
        (!self.may_call(origin, host)).then(|| {
            format!(
                "pages of the origin {origin:?} may not call this port; add it to the allowed origins if they should"
            )
        })
    }

    fn may_be_called(&self, host: &str) -> bool {
        let name = name_of(host);
        let is_listed = |allowed: &String| allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name);
        if self.hosts.iter().any(is_listed) {
            return true;
        }
        if self.is_loopback { is_loopback(name) } else { self.hosts.is_empty() }
    }

    fn may_call(&self, origin: &str, host: Option<&str>) -> bool {
        if self.origins.iter().any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(origin)) {
            return true;
        }
        let Some(authority) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) else {
            return false;
        };
        is_loopback(name_of(authority)) || host.is_some_and(|host| host.eq_ignore_ascii_case(authority))
    }
}

/// An authority without its port.
fn name_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => authority,
    }
}

fn is_loopback(name: &str) -> bool {
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(listens_on: &str, host: &str, origin: Option<&str>, is_allowed: bool) {
        let settings = HttpSettings {
            allowed_hosts: if listens_on == "10.0.0.1" { Vec::new() } else { vec!["reach.example".to_owned()] },
            allowed_origins: vec!["https://console.example/".to_owned()],
            ..HttpSettings::default()
        };
        let guard = Guard::new(listens_on.parse().unwrap(), &settings);
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let refusal = guard.refusal(&Uri::from_static("/rpc"), &headers);
        assert_eq!(refusal.is_none(), is_allowed, "{listens_on} {host} {origin:?}: {refusal:?}");
    }

    #[test]
    fn on_loopback_only_its_own_names_and_listed_ones_are_answered_to() {
        for host in ["127.0.0.1:7340", "localhost", "LOCALHOST:7340", "[::1]:7340", "127.1.2.3", "reach.example:1"] {
            check("127.0.0.1", host, None, true);
        }
        for host in ["evil.example", "evil.example:7340", "localhost.evil.example", "10.0.0.1:7340", "", "::1:x"] {
            check("127.0.0.1", host, None, false);
        }
        check("10.0.0.1", "anything.example:80", None, true);
        check("10.0.0.2", "anything.example:80", None, false);
        check("10.0.0.2", "Reach.example:80", None, true);
    }

    #[test]
    fn a_page_may_call_from_loopback_from_the_same_host_and_from_listed_origins() {
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5173", "https://console.example"] {
            check("10.0.0.1", "gateway.example:7340", Some(origin), true);
        }
        check("10.0.0.1", "gateway.example:7340", Some("https://gateway.example:7340"), true);
        for origin in
            ["https://evil.example", "null", "http://gateway.example", "file://", "chrome-extension://abc", ""]
        {
            check("10.0.0.1", "gateway.example:7340", Some(origin), false);
        }
    }

    #[test]
    fn a_request_without_a_host_is_let_through_but_not_one_of_a_foreign_page() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), &HttpSettings::default());
        assert_eq!(guard.refusal(&Uri::from_static("/"), &HeaderMap::new()), None);
        assert!(guard.refusal(&Uri::from_static("http://evil.example/"), &HeaderMap::new()).is_some());
        let headers = HeaderMap::from_iter([(header::ORIGIN, "https://evil.example".parse().unwrap())]);
        assert!(guard.refusal(&Uri::from_static("/"), &headers).is_some());
    }
}
