//! How the hand-made agent shows who it is: by a token, and by its key where there is none.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::Fault;
use super::report::client;

/// The join token that the runner documents.
const JOIN: &str = "reach_join_conformance-0123456789abcdef";

/// What it has to show.
pub(crate) struct Papers {
    fault: Fault,
    token: Mutex<Option<String>>,
    key: Mutex<Ed25519KeyPair>,
    has_joined: AtomicBool,
    /// Another has taken its place.
    is_over: AtomicBool,
    proofs: AtomicU64,
    showing: tokio::sync::Mutex<()>,
}

fn key() -> Ed25519KeyPair {
    let bytes = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Ed25519KeyPair::from_pkcs8(bytes.as_ref()).unwrap()
}

impl Papers {
    pub(crate) fn new(fault: Fault) -> Self {
        Self {
            fault,
            token: Mutex::default(),
            key: Mutex::new(key()),
            has_joined: AtomicBool::default(),
            is_over: AtomicBool::default(),
            proofs: AtomicU64::default(),
            showing: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn token(&self) -> Option<String> {
        self.token.lock().unwrap().clone()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Takes the token that a heartbeat brought.
    pub(crate) fn take(&self, answer: &Value) {
        if let Some(token) = answer["token"]["token"].as_str().filter(|_| self.fault != Fault::KeepsOldToken) {
            *self.token.lock().unwrap() = Some(token.to_owned());
        }
    }

    /// What is to be done about a refusal. Whether the call is to be made again.
    pub(crate) async fn heed(&self, gateway: &str, shown: Option<&str>, code: i64) -> bool {
        match code {
            1023 => {
                self.is_over.store(self.fault != Fault::GoesOnWhenSuperseded, Ordering::Relaxed);
                false
            }
            1020..=1022 if self.fault != Fault::NeverJoins => {
                let _one_at_a_time = self.showing.lock().await;
                // Meanwhile there may be one.
                self.token().as_deref() != shown || self.show(gateway).await
            }
            _ => false,
        }
    }

    async fn show(&self, gateway: &str) -> bool {
        let is_first = !self.has_joined.load(Ordering::Relaxed);
        if !is_first && self.fault == Fault::NeverShowsKeyAgain {
            return false;
        }
        if !is_first && self.fault == Fault::ShowsAnotherKey {
            *self.key.lock().unwrap() = key();
        }
        let mut params = json!({ "agent_id": "hand@made", "proof": self.proof(gateway) });
        if is_first {
            params["join"] = json!(JOIN);
        }
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "token/issue", "params": params }).to_string();
        let request = client().post(format!("{gateway}/rpc")).header("content-type", "application/json").body(frame);
        let Ok(response) = request.send().await else { return false };
        let answer: Value = serde_json::from_str(&response.text().await.unwrap_or_default()).unwrap_or_default();
        let token = answer["result"]["token"].as_str().map(str::to_owned);
        self.has_joined.fetch_or(token.is_some(), Ordering::Relaxed);
        let has = token.is_some();
        if has {
            *self.token.lock().unwrap() = token;
        }
        has
    }

    fn proof(&self, gateway: &str) -> String {
        let key = self.key.lock().unwrap();
        let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let gateway = if self.fault == Fault::ProvesToAnother { "http://elsewhere.example" } else { gateway };
        let head = json!({ "typ": "dpop+jwt", "alg": "EdDSA", "jwk": { "kty": "OKP", "crv": "Ed25519", "x": x } });
        let id = format!("{x}-{}", self.proofs.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "htm": "POST", "htu": format!("{gateway}/rpc"), "iat": now.as_secs(), "jti": id });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&head), part(&body));
        let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }
}
