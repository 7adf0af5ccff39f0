//! What a person or tool that operates the gateway may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The role of an operator; each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees everything and changes nothing.
    Viewer,
    /// Acts: hands in work and calls it off, sends dead letters again, registers and drains agents.
    Operator,
    /// Changes who may do what, and what runs on the gateway's own machine.
    Admin,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// Its word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is no role: viewer, operator or admin")]
pub struct RoleError;

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(word: &str) -> Result<Self, RoleError> {
        Self::ALL.into_iter().find(|role| role.as_str() == word).ok_or(RoleError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_is_read_as_it_is_written_and_stands_over_those_before_it() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
            assert_eq!(serde_json::to_string(&role).ok(), Some(format!("\"{role}\"")));
        }
        assert!(Role::Viewer < Role::Operator && Role::Operator < Role::Admin);
        assert_eq!("root".parse::<Role>(), Err(RoleError));
    }
}
