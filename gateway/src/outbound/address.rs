//! Which addresses may be gone to. A caller or an agent names the address and the gateway goes there, from within the
//! operator's network: so it goes to public addresses only, and to those that the operator allows; to link-local ones and
//! to a cloud's metadata never. What is written as an address is judged when it is named and each time it is used; what is
//! written as a name, each time it is resolved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reach_schemas::card::limits::ADDRESS_MAX;
use url::{Host, Url};

const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix)
}

const fn v6(a: u16, b: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), prefix)
}

/// What of IPv4 is not public: the IANA registry of special-purpose addresses, multicast and what is reserved.
const SPECIAL_V4: [Ipv4Net; 16] = [
    v4(0, 0, 0, 8),       // this network
    v4(10, 0, 0, 8),      // private
    v4(100, 64, 0, 10),   // shared between a provider and its customers (CGNAT)
    v4(127, 0, 0, 8),     // loopback
    v4(169, 254, 0, 16),  // link-local, where clouds have their metadata
    v4(172, 16, 0, 12),   // private
    v4(192, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 24),    // documentation
    v4(192, 31, 196, 24), // AS112
    v4(192, 52, 193, 24), // AMT relays
    v4(192, 88, 99, 24),  // 6to4 relays
    v4(192, 168, 0, 16),  // private
    v4(198, 18, 0, 15),   // benchmarks
    v4(198, 51, 100, 24), // documentation
    v4(203, 0, 113, 24),  // documentation
    v4(224, 0, 0, 3),     // multicast, reserved, broadcast
];

/// All that may be public in IPv6; outside are loopback, unspecified, link-local, unique local, multicast, and the forms
/// that carry an IPv4 address (mapped, compatible, NAT64).
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// What of it is not.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),     // protocol assignments: Teredo, benchmarks, ORCHID
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x2002, 0, 16),     // 6to4: carries an IPv4 address
    v6(0x3fff, 0, 20),     // documentation
];

const fn one_v4(a: u8, b: u8, c: u8, d: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), 32)
}

/// What nothing may allow: whoever reads from there may become the machine that reads.
const NEVER_V4: [Ipv4Net; 4] = [
    v4(169, 254, 0, 16),        // link-local, where most clouds have their metadata
    one_v4(100, 100, 100, 200), // Alibaba Cloud
    one_v4(168, 63, 129, 16),   // Azure's wire server
    one_v4(192, 0, 0, 192),     // Oracle Cloud
];

/// The same in IPv6.
const NEVER_V6: [Ipv6Net; 4] = [
    v6(0xfe80, 0, 10),                                                            // link-local
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128), // AWS
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),  // Google Cloud
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128),   // Scaleway
];

/// Prefixes of IPv6 that carry an IPv4 address, and at which byte.
const CARRIERS: [(Ipv6Net, usize); 2] = [
    (Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96), 12), // NAT64
    (v6(0x2002, 0, 16), 2),                                                       // 6to4
];

/// Why an address may not be gone to. As text: a fragment that goes on from "the address".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no address.
    #[error("is not a URL: {0}")]
    Form(String),
    /// It is too long.
    #[error("is longer than {ADDRESS_MAX} bytes")]
    TooLong,
    /// It is not HTTP.
    #[error("is not http:// or https://")]
    Scheme,
    /// It has a user name or a password, which would be kept and shown.
    #[error("has a user name or password in it, which would be kept and shown")]
    Credentials,
    /// It is no public address, and not allowed.
    #[error("is {ip}, which is not a public address; the operator may allow it by {setting}")]
    Special {
        /// Which.
        ip: IpAddr,
        /// By which setting.
        setting: &'static str,
    },
    /// It is one that nothing allows.
    #[error("is {ip}, a link-local or metadata address; nothing goes there")]
    Never {
        /// Which.
        ip: IpAddr,
    },
}

/// Judges addresses. A clone goes by what the first one goes by, also after that was changed.
#[derive(Debug, Clone)]
pub struct Guard {
    allowed: Arc<ArcSwap<Vec<IpNet>>>,
    /// What the operator may change.
    setting: &'static str,
}

/// Of webhooks, and nothing is allowed that is not public.
impl Default for Guard {
    fn default() -> Self {
        Self::allowing(Vec::new())
    }
}

impl Guard {
    /// A guard of webhooks that lets pass public addresses, and these.
    #[must_use]
    pub fn allowing(allowed: Vec<IpNet>) -> Self {
        Self { allowed: Arc::new(ArcSwap::from_pointee(allowed)), setting: "[webhooks] allow" }
    }

    /// A guard of agents' endpoints that lets pass public addresses, and these.
    #[must_use]
    pub fn of_endpoints(allowed: Vec<IpNet>) -> Self {
        Self { allowed: Arc::new(ArcSwap::from_pointee(allowed)), setting: "[endpoints] allow" }
    }

    /// What is let pass beside public addresses.
    #[must_use]
    pub fn allowed(&self) -> Arc<Vec<IpNet>> {
        self.allowed.load_full()
    }

    /// Lets pass what the other one does, from now on, with every clone of it. A connection that is open by then is used
    /// until it is idle.
    pub fn go_by(&self, other: &Self) {
        self.allowed.store(other.allowed());
    }

    /// This machine.
    #[must_use]
    pub fn loopback() -> Vec<IpNet> {
        vec![v4(127, 0, 0, 8).into(), Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128).into()]
    }

    /// Whether a network holds nothing that could be allowed.
    #[must_use]
    pub fn forbids(network: &IpNet) -> bool {
        match network {
            IpNet::V4(network) => NEVER_V4.iter().any(|never| never.contains(network)),
            IpNet::V6(network) => NEVER_V6.iter().any(|never| never.contains(network)),
        }
    }

    /// Whether an address may be gone to.
    ///
    /// # Errors
    /// It may not.
    pub fn judge(&self, ip: IpAddr) -> Result<(), Refused> {
        // An IPv4 address in the clothes of IPv6 is what it is underneath.
        let ip = ip.to_canonical();
        if is_never(ip) {
            return Err(Refused::Never { ip });
        }
        let is_permitted = self.allowed.load().iter().any(|net| net.contains(&ip)) || is_public(ip);
        if is_permitted { Ok(()) } else { Err(Refused::Special { ip, setting: self.setting }) }
    }

    /// Reads an address. What is a name in it is not resolved here.
    ///
    /// # Errors
    /// It is none that may be gone to.
    pub fn check(&self, text: &str) -> Result<Url, Refused> {
        if text.len() > ADDRESS_MAX {
            return Err(Refused::TooLong);
        }
        // The parser is the one that the client goes by, so that both see the same host.
        let url = Url::parse(text).map_err(|error| Refused::Form(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        match url.host() {
            Some(Host::Ipv4(ip)) => self.judge(ip.into())?,
            Some(Host::Ipv6(ip)) => self.judge(ip.into())?,
            // RFC 6761 section 6.3: these names are this machine, whatever a resolver says.
            Some(Host::Domain(name)) if is_localhost(name) => self.judge(Ipv4Addr::LOCALHOST.into())?,
            Some(Host::Domain(_)) => {}
            None => return Err(Refused::Form("it has no host".to_owned())),
        }
        Ok(url)
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

fn is_never(ip: IpAddr) -> bool {
    let is_in = |ip: Ipv4Addr| NEVER_V4.iter().any(|net| net.contains(&ip));
    match ip {
        IpAddr::V4(ip) => is_in(ip),
        IpAddr::V6(ip) => NEVER_V6.iter().any(|net| net.contains(&ip)) || carried(ip).is_some_and(is_in),
    }
}

/// The IPv4 address that a gateway on the way would turn this one into.
fn carried(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let at = CARRIERS.iter().find(|(net, _)| net.contains(&ip)).map(|(_, at)| *at)?;
    let octets = ip.octets();
    octets.get(at..at + 4).and_then(|four| <[u8; 4]>::try_from(four).ok()).map(Ipv4Addr::from)
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !SPECIAL_V4.iter().any(|net| net.contains(&ip)),
        IpAddr::V6(ip) => GLOBAL_V6.contains(&ip) && !SPECIAL_V6.iter().any(|net| net.contains(&ip)),
    }
}

/// Host and port of a receiver.
#[must_use]
pub fn host_of(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(guard: &Guard, text: &str, expected: &str) {
        let said = match guard.check(text) {
            Ok(url) => host_of(&url),
            Err(refused) => refused.to_string(),
        };
        assert!(said.starts_with(expected), "{text}: {said}");
    }

    #[test]
    fn public_addresses_and_names_pass() {
        let guard = Guard::default();
        check(&guard, "https://hooks.example.com/a?b=c", "hooks.example.com:443");
        check(&guard, "http://hooks.example.com:8080", "hooks.example.com:8080");
        check(&guard, "https://8.8.8.8/x", "8.8.8.8:443");
        check(&guard, "https://[2606:4700::1111]/x", "[2606:4700::1111]:443");
        check(&guard, "https://[::ffff:8.8.8.8]/", "[::ffff:808:808]:443");
        check(&guard, "https://localhost.example.com/", "localhost.example.com:443");
    }

    #[test]
    fn what_is_not_an_address_to_be_told_is_refused() {
        let guard = Guard::default();
        check(&guard, "", "is not a URL");
        check(&guard, "hooks.example.com", "is not a URL");
        check(&guard, "https://", "is not a URL");
        check(&guard, "https://[::1", "is not a URL");
        check(&guard, "ftp://hooks.example.com", "is not http");
        check(&guard, "file:///etc/passwd", "is not http");
        check(&guard, "gopher://127.0.0.1:6379/_x", "is not http");
        check(&guard, "https://me:secret@hooks.example.com/", "has a user name");
        check(&guard, "https://me@hooks.example.com/", "has a user name");
        check(&guard, "https://:secret@hooks.example.com/", "has a user name");
        check(&guard, &format!("https://hooks.example.com/{}", "a".repeat(2048)), "is longer than 2048 bytes");
    }

    #[test]
    fn special_addresses_are_refused_in_every_way_to_write_them() {
        let table = [
            ("127.0.0.1", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("127.255.255.254", "127.255.255.254"),
            ("2130706433", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("0177.0.0.1", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("①②⑦.0.0.1", "127.0.0.1"),
            ("localhost", "127.0.0.1"),
            ("LOCALHOST.", "127.0.0.1"),
            ("a.localhost", "127.0.0.1"),
            ("0", "0.0.0.0"),
            ("0.0.0.0", "0.0.0.0"),
            ("0.1.2.3", "0.1.2.3"),
            ("10.0.0.1", "10.0.0.1"),
            ("10.255.255.255", "10.255.255.255"),
            ("100.64.0.1", "100.64.0.1"),
            ("100.127.255.255", "100.127.255.255"),
            ("169.254.169.254", "169.254.169.254"),
            ("172.16.0.1", "172.16.0.1"),
            ("172.31.255.255", "172.31.255.255"),
            ("192.0.0.8", "192.0.0.8"),
            ("192.0.2.1", "192.0.2.1"),
            ("192.88.99.1", "192.88.99.1"),
            ("192.168.1.1", "192.168.1.1"),
            ("198.18.0.1", "198.18.0.1"),
            ("198.19.255.255", "198.19.255.255"),
            ("198.51.100.7", "198.51.100.7"),
            ("203.0.113.7", "203.0.113.7"),
            ("224.0.0.1", "224.0.0.1"),
            ("239.255.255.250", "239.255.255.250"),
            ("240.0.0.1", "240.0.0.1"),
            ("255.255.255.255", "255.255.255.255"),
            ("[::]", "::"),
            ("[::1]", "::1"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("[::ffff:a9fe:a9fe]", "169.254.169.254"),
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            ("[::127.0.0.1]", "::"),
            ("[64:ff9b::7f00:1]", "64:ff9b::7f00:1"),
            ("[64:ff9b:1::1]", "64:ff9b:1::1"),
            ("[100::1]", "100::1"),
            ("[2001::1]", "2001::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2002:7f00:1::]", "2002:7f00:1::"),
            ("[3fff::1]", "3fff::1"),
            ("[5f00::1]", "5f00::1"),
            ("[fc00::1]", "fc00::1"),
            ("[fd00:ec2::254]", "fd00:ec2::254"),
            ("[fe80::1]", "fe80::1"),
            ("[fec0::1]", "fec0::1"),
            ("[ff02::1]", "ff02::1"),
        ];
        let guard = Guard::default();
        for (host, ip) in table {
            check(&guard, &format!("http://{host}:80/latest/meta-data"), &format!("is {ip}"));
        }
    }

    #[test]
    fn neighbours_of_special_addresses_are_public() {
        let table = ["9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"];
        let more = ["172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"];
        let v6 = ["2000::1", "2001:200::1", "2001:db9::1", "2003::1", "3ffe:ffff::1", "3fff:1000::1"];
        for text in table.iter().chain(&more).chain(&v6) {
            assert!(Guard::default().judge(text.parse().unwrap()).is_ok(), "{text}");
        }
    }

    #[test]
    fn link_local_and_metadata_addresses_are_refused_whatever_is_allowed() {
        let wide = ["0.0.0.0/0", "::/0", "169.254.0.0/16", "fe80::/10"].map(|net| net.parse().unwrap());
        for guard in [Guard::allowing(wide.into()), Guard::of_endpoints(wide.into())] {
            let never =
                ["169.254.169.254", "169.254.0.1", "2852039166", "100.100.100.200", "168.63.129.16", "192.0.0.192"];
            let v6 = ["[fe80::1]", "[febf::1]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "[fd20:ce::254]"];
            let carried = ["[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]"];
            for host in never.iter().chain(&v6).chain(&carried) {
                let refused = guard.check(&format!("http://{host}:80/latest/meta-data"));
                assert!(matches!(refused, Err(Refused::Never { .. })), "{host}: {refused:?}");
            }
            for host in ["127.0.0.1", "10.0.0.1", "169.253.255.255", "169.255.0.0", "[fec0::1]", "[64:ff9b::a00:1]"] {
                assert!(guard.check(&format!("http://{host}/")).is_ok(), "{host}");
            }
        }
    }

    #[test]
    fn what_the_operator_allows_passes_and_nothing_beside_it() {
        let nets = ["127.0.0.0/8", "10.1.0.0/16", "fd00::/8"].map(|net| net.parse().unwrap());
        let guard = Guard::allowing(nets.into());
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "10.1.2.3", "[fd12::1]", "8.8.8.8"] {
            assert!(guard.check(&format!("http://{host}/")).is_ok(), "{host}");
        }
        for host in ["10.2.0.1", "192.168.0.1", "[::1]", "[fe80::1]"] {
            assert!(guard.check(&format!("http://{host}/")).is_err(), "{host}");
        }
    }
}
