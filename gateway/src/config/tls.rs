//! `[tls]` of the configuration: the port's certificate, and whether it may do without.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use crate::transport::{Tls, TlsFiles};

/// The section as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// The certificate with those that lead to its authority, in PEM.
    pub cert: Option<PathBuf>,
    /// Its private key, in PEM.
    pub key: Option<PathBuf>,
    /// The authorities whose certificates callers must show, in PEM.
    pub client_ca: Option<PathBuf>,
    /// Lets the port be reached from other machines in plain text, as behind a proxy that speaks TLS for it.
    pub plain_text_beyond_loopback: bool,
}

/// Checks the section, and reads the files that it names.
pub(super) fn check(section: Section, listen: Option<SocketAddr>, mistakes: &mut Vec<String>) -> Option<Arc<Tls>> {
    let Section { cert, key, client_ca, plain_text_beyond_loopback } = section;
    match (cert, key) {
        (Some(cert), Some(key)) => {
            let opened = Tls::open(TlsFiles { cert, key, client_ca });
            return opened.map_err(|error| mistakes.push(format!("tls: {error}"))).ok().map(Arc::new);
        }
        (None, None) if client_ca.is_none() => {}
        (None, None) => mistakes.push("tls.client_ca: needs `cert` and `key` of the port's own beside it".to_owned()),
        (Some(_), None) => mistakes.push("tls.key: is missing: the certificate is of no use without it".to_owned()),
        (None, Some(_)) => mistakes.push("tls.cert: is missing: the key is of no use without it".to_owned()),
    }
    if let Some(listen) = listen.filter(|listen| !listen.ip().is_loopback() && !plain_text_beyond_loopback) {
        mistakes.push(format!(
            "listen: {listen} can be reached from other machines, and what is said there could be read on the way: set \
             tls.cert and tls.key, or tls.plain_text_beyond_loopback = true where something in front of it speaks TLS"
        ));
    }
    None
}
