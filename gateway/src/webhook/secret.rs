//! The secrets that sign webhooks: `whsec_` and base64, as Standard Webhooks 1.0 has it. While one takes the place of
//! another both sign, so that receivers can change over in between. They are shown to nobody and written to no log.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reach_schemas::WebhookId;
use sha2::Sha256;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// How many bytes a secret may have.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How many bytes a secret has that is made here.
const MADE: usize = 32;
/// How many secrets may sign at once.
pub const SECRETS_MAX: usize = 4;

/// Why a text holds no secrets. It does not show the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// There is none.
    #[error("holds no secret; a secret is {PREFIX} and base64 of 24 to 64 bytes")]
    None,
    /// There are too many.
    #[error("holds more than {SECRETS_MAX} secrets")]
    TooMany,
    /// One of them is none.
    #[error("secret {number} is not {PREFIX} and base64 of 24 to 64 bytes")]
    Form {
        /// Which, counted from 1.
        number: usize,
    },
}

/// One secret or several, and where they are from.
#[derive(Clone)]
pub struct Secrets {
    keys: Vec<Vec<u8>>,
    from: String,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} from {})", self.keys.len(), self.from)
    }
}

impl Secrets {
    /// Reads secrets, the newest first, with white space between them. `from` says to people where they are from.
    ///
    /// # Errors
    /// There is none, or one is none.
    pub fn read(text: &str, from: impl Into<String>) -> Result<Self, Flaw> {
        let key = |(number, text): (usize, &str)| {
            let bytes = text.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
            bytes.filter(|bytes| BYTES.contains(&bytes.len())).ok_or(Flaw::Form { number })
        };
        let keys: Vec<_> = (1..).zip(text.split_whitespace()).map(key).collect::<Result<_, _>>()?;
        match keys.len() {
            0 => Err(Flaw::None),
            1..=SECRETS_MAX => Ok(Self { keys, from: from.into() }),
            _ => Err(Flaw::TooMany),
        }
    }

    /// A secret that is made now and that nobody else knows.
    ///
    /// # Panics
    /// The operating system has no chance to give.
    #[must_use]
    pub fn made() -> Self {
        Self { keys: vec![random()], from: "this process".to_owned() }
    }

    /// The secrets of a file; if it is not there, it is made, with one secret, for its owner's eyes only.
    ///
    /// # Errors
    /// The file cannot be read or made, or holds no secrets.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path)?,
            Err(error) => return Err(error),
        };
        let read = Self::read(&text, format!("the file {}", path.display()));
        read.map_err(|flaw| io::Error::new(io::ErrorKind::InvalidData, flaw))
    }

    /// Where they are from, for people.
    #[must_use]
    pub fn from(&self) -> &str {
        &self.from
    }

    /// The header `webhook-signature`: one signature for each secret, of id, time and body.
    #[must_use]
    pub fn sign(&self, id: &str, unix_secs: u64, body: &str) -> String {
        let sign = |key: &Vec<u8>| {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
            for part in [id, ".", &unix_secs.to_string(), ".", body] {
                mac.update(part.as_bytes());
            }
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        };
        self.keys.iter().map(sign).collect::<Vec<_>>().join(" ")
    }

    /// The header for a message of ours.
    #[must_use]
    pub fn signature(&self, id: WebhookId, unix_secs: u64, body: &str) -> String {
        self.sign(&id.to_string(), unix_secs, body)
    }
}

fn random() -> Vec<u8> {
    let mut bytes = vec![0; MADE];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// Makes a file with a new secret.
fn make(path: &Path) -> io::Result<String> {
    let text = format!("{PREFIX}{}\n", secret_text());
    write_secret(path, &text)?;
    Ok(text)
}

/// A text that nobody else knows.
///
/// # Panics
/// The operating system has no chance to give.
pub(crate) fn secret_text() -> String {
    STANDARD.encode(random())
}

/// Writes a file for its owner's eyes only. It is there with its content or not at all.
pub(crate) fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    write_whole(path, text.as_bytes(), 0o600)
}

/// Writes a file with these rights. It is there with its content or not at all. What it is written to at first is made anew:
/// somebody else who may write in the folder could have put a file there that he can read, or a link to another place.
pub(crate) fn write_whole(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const FIRST: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SECOND: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const BODY: &str = r#"{"test": 2432232314}"#;

    fn signed(secrets: &str) -> String {
        let secrets = Secrets::read(secrets, "a test").unwrap();
        secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, BODY)
    }

    #[test]
    fn the_published_vector_is_signed_as_published() {
        assert_eq!(signed(FIRST), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn two_secrets_make_two_signatures() {
        assert_eq!(signed(&format!("{FIRST}\n{SECOND}\n")), format!("{} {}", signed(FIRST), signed(SECOND)));
        assert_ne!(signed(FIRST), signed(SECOND));
    }

    #[test]
    fn what_is_no_secret_is_refused_and_not_shown() {
        let said = |text: &str| Secrets::read(text, "a test").unwrap_err().to_string();
        let short = format!("{PREFIX}{}", STANDARD.encode([7; 23]));
        let long = format!("{PREFIX}{}", STANDARD.encode([7; 65]));
        for text in [&short, &long, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_not base64", "whsec_"] {
            assert!(said(&format!("{FIRST} {text}")).starts_with("secret 2 is not"), "{text}");
            assert!(!said(text).contains("MfKQ"), "{text}");
        }
        assert_eq!(said(" \n"), Flaw::None.to_string());
        assert_eq!(said(&format!("{FIRST} ").repeat(5)), Flaw::TooMany.to_string());
        let shown = format!("{:?}", Secrets::read(FIRST, "a test").unwrap());
        assert_eq!(shown, "Secrets(1 from a test)");
    }

    #[test]
    fn what_somebody_put_where_a_secret_is_written_first_does_not_get_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, new) = (folder.path().join("audit-key"), folder.path().join("audit-key.new"));
        let his = folder.path().join("his");
        fs::write(&his, "his").unwrap();
        std::os::unix::fs::symlink(&his, &new).unwrap();
        write_secret(&path, "first").unwrap();
        fs::write(&new, "").unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o666)).unwrap();
        fs::hard_link(&new, folder.path().join("held")).unwrap();
        write_secret(&path, "second").unwrap();
        let text = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!(
            (text(&his), text(&folder.path().join("held")), text(&path)),
            ("his".into(), "".into(), "second".into())
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_is_made_once_for_its_owner_only_and_read_ever_after() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("webhook-secret");
        let made = Secrets::of_file(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Secrets::of_file(&path).unwrap().keys, made.keys);
        assert_eq!(made.keys[0].len(), MADE);
        assert_ne!(made.keys, Secrets::made().keys);
        fs::write(&path, "").unwrap();
        assert!(Secrets::of_file(&path).unwrap_err().to_string().contains("holds no secret"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
