//! An agent's own key, and the proof that it has it (the form is that of DPoP, RFC 9449). The key never leaves its file and
//! this process.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reach_schemas::{AgentId, Secret};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// The folder of keys within the user's own.
const FOLDER: &str = ".agent-reach";

/// An agent's key.
pub(super) struct Key(Ed25519KeyPair);

/// Where an agent's key is: where it was said, else in the user's folder under the agent's name.
pub(super) fn place(said: Option<&Path>, agent: &AgentId) -> Result<PathBuf> {
    if let Some(path) = said {
        return Ok(path.to_owned());
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home =
        home.ok_or_else(|| Error::Config("there is no HOME to keep the agent's key in: name a file".to_owned()))?;
    Ok(Path::new(&home).join(FOLDER).join(format!("{agent}.key")))
}

fn cannot(path: &Path, what: &str, error: impl std::fmt::Display) -> Error {
    Error::Config(format!("the key {} cannot be {what}: {error}", path.display()))
}

impl Key {
    /// The key of a file. None: there is no file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot(path, "read", error)),
        };
        refuse_exposed(path)?;
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map(Zeroizing::new);
        let bytes = bytes.map_err(|error| cannot(path, "read", error))?;
        let pair = Ed25519KeyPair::from_pkcs8(&bytes).map_err(|error| cannot(path, "read", error))?;
        Ok(Some(Self(pair)))
    }

    /// Makes a key and its file, for its owner's eyes only.
    pub(super) fn make(path: &Path) -> Result<Self> {
        let bytes = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let bytes = bytes.map_err(|error| cannot(path, "made", error))?;
        let bytes = Zeroizing::new(bytes.as_ref().to_vec());
        let text = Zeroizing::new(format!("{}\n", URL_SAFE_NO_PAD.encode(&*bytes)));
        write(path, &text).map_err(|error| cannot(path, "written", error))?;
        Ed25519KeyPair::from_pkcs8(&bytes).map(Self).map_err(|error| cannot(path, "made", error))
    }

    /// That we have it, to be shown at this address.
    pub(super) fn proof(&self, url: &str) -> Secret {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        let head = json!({ "typ": "dpop+jwt", "alg": "EdDSA", "jwk": { "kty": "OKP", "crv": "Ed25519", "x": x } });
        let body = json!({ "htm": "POST", "htu": url, "iat": now, "jti": uuid::Uuid::now_v7().to_string() });
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&head), part(&body));
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(text.as_bytes()).as_ref());
        format!("{text}.{signature}").into()
    }
}

/// A key that others can read is no proof of anything.
#[cfg(unix)]
fn refuse_exposed(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::metadata(path).map_err(|error| cannot(path, "read", error))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(cannot(path, "used", format!("others can read it (mode {mode:o}); chmod 600 it, or delete it and join again")))
}

#[cfg(not(unix))]
fn refuse_exposed(_: &Path) -> Result<()> {
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(proof: &Secret) -> Vec<String> {
        proof.reveal().split('.').map(str::to_owned).collect()
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_only_and_found_again() {
        let folder = std::env::temp_dir().join(format!("agent-reach-key-{}", uuid::Uuid::now_v7()));
        let path = folder.join("deep").join("a@b.key");
        assert!(Key::read(&path).unwrap().is_none());
        let made = Key::make(&path).unwrap();
        let found = Key::read(&path).unwrap().unwrap();
        assert_eq!(made.0.public_key().as_ref(), found.0.public_key().as_ref());
        assert!(Key::make(&path).is_err(), "a key that there is is not overwritten");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(Key::read(&path).err().unwrap().to_string().contains("mode 644"));
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_proof_says_for_whom_it_is_and_never_the_same_twice() {
        let key =
            Key(Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap().as_ref())
                .unwrap());
        let (one, two) = (parts(&key.proof("http://h/rpc")), parts(&key.proof("http://h/rpc")));
        assert_eq!((one.len(), &one[0]), (3, &two[0]));
        assert_ne!(one[1], two[1]);
        let body = String::from_utf8(URL_SAFE_NO_PAD.decode(&one[1]).unwrap()).unwrap();
        assert!(body.contains(r#""htu":"http://h/rpc""#) && body.contains(r#""htm":"POST""#), "{body}");
    }
}
