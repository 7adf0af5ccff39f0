//! What may be set about who callers are.

use std::collections::BTreeMap;
use std::fmt;

use reach_core::identity::{Lifetimes, Schedule};
use reach_schemas::{Namespace, Secret};

use super::signing::KeyHome;

/// Whether callers are asked who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// They are not: whoever reaches the port is an operator, or the agent that it says it is.
    #[default]
    Open,
    /// Every call needs a token.
    Required,
}

/// What may be set.
#[derive(Clone, Default)]
pub struct Settings {
    /// Whether callers are asked who they are.
    pub mode: Mode,
    /// The address by which others call, such as `https://reach.example.com`. None: whatever they call it by.
    pub public_url: Option<String>,
    /// For whom agents' tokens are. None: the cluster, by its name.
    pub audience: Option<String>,
    /// By namespace, the secrets by which all its agents may join.
    pub namespace_secrets: BTreeMap<Namespace, Secret>,
    /// Where the keys are that sign agents' tokens.
    pub keys: KeyHome,
    /// What a file holds by which whoever can read the gateway's files is an administrator.
    pub operator_key: Option<Secret>,
    /// How long things last.
    pub lifetimes: Lifetimes,
    /// When signing keys change.
    pub schedule: Schedule,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("mode", &self.mode)
            .field("public_url", &self.public_url)
            .field("namespaces", &self.namespace_secrets.keys())
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
