//! What a client reads to find its way: where tokens are had (RFC 8414), that they are wanted (RFC 9728), and the keys that
//! they are signed with (RFC 7517).

use reach_core::identity::MAX_AGE;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::{INTROSPECT, REVOKE, SCOPE, TOKEN};
use crate::gateway::Gateway;

/// Where tokens are had. `base`: the address by which the gateway is called.
#[must_use]
pub fn authorization_server(base: &str) -> Value {
    json!({
        "issuer": base,
        "token_endpoint": format!("{base}{TOKEN}"),
        "revocation_endpoint": format!("{base}{REVOKE}"),
        "introspection_endpoint": format!("{base}{INTROSPECT}"),
        "jwks_uri": format!("{base}/.well-known/jwks.json"),
        "response_types_supported": [],
        "grant_types_supported": ["client_credentials"],
        "scopes_supported": [SCOPE],
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["EdDSA"],
        "revocation_endpoint_auth_methods_supported": ["private_key_jwt"],
        "introspection_endpoint_auth_methods_supported": ["private_key_jwt"],
        "service_documentation": format!("{base}/errors/unauthenticated"),
    })
}

/// That tokens are wanted at an address, and whose.
#[must_use]
pub fn protected_resource(base: &str, path: &str) -> Value {
    json!({
        "resource": format!("{base}{path}"),
        "resource_name": "Agent-Reach",
        "authorization_servers": [base],
        "jwks_uri": format!("{base}/.well-known/jwks.json"),
        "scopes_supported": [SCOPE],
        "bearer_methods_supported": ["header"],
    })
}

/// The public keys, for how many seconds they may be kept, and their tag.
#[must_use]
pub fn jwks(gateway: &Gateway) -> (String, u64, String) {
    let text = gateway.identity().jwks().to_string();
    let tag: String =
        digest(&SHA256, text.as_bytes()).as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    (text, MAX_AGE.as_ms() / 1000, format!("\"{tag}\""))
}
