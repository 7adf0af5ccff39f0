//! TLS for the port: its certificate and key, and whose certificates callers must show. The files are read again when that is
//! asked for; connections that are open keep what they were opened with.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What is spoken inside, best first.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where the certificates are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The port's certificate with those that lead to its authority, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// The authorities, in PEM, one of which must have signed the certificate of each caller. None: callers need none.
    pub client_ca: Option<PathBuf>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is no PEM of its kind.
    #[error("{} cannot be used: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// What is in the files does not go together.
    #[error("{} and {} do not make a certificate for TLS", cert.display(), key.display())]
    Unusable {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// TLS as it is spoken to those who connect from now on.
pub struct Tls {
    files: TlsFiles,
    current: ArcSwap<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read, or they do not go together.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(read(&files)?);
        Ok(Self { files, current })
    }

    /// Reads the files again: whoever connects from then on is shown what they hold now.
    ///
    /// # Errors
    /// As [`Tls::open`]; then what was read before stands.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(read(&self.files)?));
        Ok(())
    }

    /// Where what it goes by is.
    #[must_use]
    pub const fn files(&self) -> &TlsFiles {
        &self.files
    }

    /// Whether callers must show a certificate.
    #[must_use]
    pub const fn knows_callers(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// Speaks the handshake with one who connected.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current.load_full()).accept(stream).await
    }
}

fn read(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let unusable = |source| TlsError::Unusable { cert: files.cert.clone(), key: files.key.clone(), source };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots.add(authority).map_err(|error| wrong(path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong(path, &error))?)
        }
    };
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let mut config = builder.with_single_cert(certificates(&files.cert)?, key).map_err(unusable)?;
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| wrong(path, &error))?;
    if found.is_empty() { Err(wrong(path, &"there is no certificate in it")) } else { Ok(found) }
}

/// What is wrong with a file; never what is in it.
fn wrong(path: &Path, why: &dyn fmt::Display) -> TlsError {
    TlsError::File { path: path.to_owned(), why: why.to_string() }
}
