//! TLS towards the gateway: whom we trust, and what we show of ourselves. One configuration for both transports.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::error::{Error, Result};

/// Where the certificates are.
#[derive(Clone, Default)]
pub(crate) struct TlsFiles {
    /// The authorities, in PEM, one of which must have signed the gateway's certificate. None: those of this machine.
    pub(crate) ca: Option<PathBuf>,
    /// Our certificate with those that lead to its authority, and its key, in PEM. None: we show none.
    pub(crate) client: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Reads the files.
    pub(crate) fn read(&self) -> Result<Arc<ClientConfig>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(Error::config)?;
        let builder = match &self.ca {
            Some(path) => builder.with_root_certificates(authorities(path)?),
            None => builder.with_platform_verifier().map_err(|error| {
                Error::Config(format!("this machine's authorities cannot be used ({error}); name those of the gateway"))
            })?,
        };
        let config = match &self.client {
            Some((cert, key)) => {
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
                builder.with_client_auth_cert(certificates(cert)?, private).map_err(|error| wrong(cert, &error))?
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Arc::new(config))
    }
}

/// The configuration for those who speak these protocols inside.
pub(crate) fn speaking(config: &ClientConfig, protocols: &[&[u8]]) -> ClientConfig {
    let mut config = config.clone();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config
}

fn authorities(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(path)? {
        roots.add(authority).map_err(|error| wrong(path, &error))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    let found = read.map_err(|error| wrong(path, &error))?;
    if found.is_empty() { Err(wrong(path, &"there is no certificate in it")) } else { Ok(found) }
}

/// What is wrong with a file; never what is in it.
fn wrong(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::Config(format!("{} cannot be used for TLS: {why}", path.display()))
}

/// The error for a side that does not trust the other one, if that is why something failed: to try again is of no use. That a
/// certificate's time is over is something that the other side will mend.
pub(crate) fn distrust(error: &(dyn StdError + 'static)) -> Option<Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return hopeless(error).map(Error::Config);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = wrapped.map(|inner| inner as &(dyn StdError + 'static)).or_else(|| error.source());
    }
    None
}

fn hopeless(error: &rustls::Error) -> Option<String> {
    if let rustls::Error::InvalidCertificate(why) = error {
        let will_be_mended = matches!(
            why,
            CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. }
        );
        return (!will_be_mended)
            .then(|| format!("the gateway's certificate is not trusted ({why:?}); is the right authority named?"));
    }
    let rustls::Error::AlertReceived(alert) = error else { return None };
    if *alert == AlertDescription::CertificateRequired {
        return Some("the gateway wants a certificate of its callers, and none was given".to_owned());
    }
    let is_distrusted = matches!(
        alert,
        AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::DecryptError
            | AlertDescription::CertificateUnknown
    );
    is_distrusted.then(|| format!("the gateway does not trust our certificate ({error})"))
}
