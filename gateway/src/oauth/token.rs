//! Tokens by the standard road: had with `client_credentials` and `private_key_jwt` (RFC 6749, RFC 7523), ended (RFC 7009), and
//! asked about (RFC 7662).

use http::HeaderMap;
use reach_core::access::{Caller, Operator};
use reach_core::identity::{Claims, OperatorRow};
use reach_schemas::{ErrorCode, Failure};
use serde_json::{Value, json};

use super::form::Form;
use super::{Refused, SCOPE, TOKEN};
use crate::gateway::Gateway;
use crate::identity::Pass;
use crate::ops::identity::{EndedToken, Introspected};

/// The only kind of assertion there is.
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Which agent a client is, by what it says of itself and signs.
async fn client(
    gateway: &Gateway,
    base: &str,
    path: &str,
    form: &Form,
) -> Result<reach_core::identity::Principal, Refused> {
    if form.get("client_assertion_type") != Some(JWT_BEARER) {
        let message =
            format!("a client shows who it is by private_key_jwt: `client_assertion_type` must be {JWT_BEARER}");
        return Err(Failure::new(ErrorCode::Unauthenticated, message).into());
    }
    // A name that was not chosen is that of other gateways, too.
    let named = gateway.identity().named().map(str::to_owned);
    let names: Vec<String> = [base.to_owned(), format!("{base}{path}")].into_iter().chain(named).collect();
    let client = gateway.vouched(form.required("client_assertion")?, &names).await?;
    match form.get("client_id") {
        Some(id) if id != client.agent_id.as_str() => {
            Err(Failure::new(ErrorCode::Unauthenticated, "`client_id` is not the client of the assertion").into())
        }
        Some(_) | None => Ok(client),
    }
}

/// By whom a form is: by its head, or by an assertion in it.
async fn by_whom(gateway: &Gateway, pass: &Pass, base: &str, path: &str, form: &Form) -> Result<Pass, Refused> {
    if form.get("client_assertion").is_some() {
        let client = client(gateway, base, path, form).await?;
        return Ok(gateway.pass_of(&client)?);
    }
    gateway.check(pass)?;
    Ok(pass.clone())
}

pub(super) async fn token(gateway: &Gateway, base: &str, headers: &HeaderMap, body: &[u8]) -> Result<Value, Refused> {
    let form = Form::read(headers, body)?;
    if form.required("grant_type")? != "client_credentials" {
        return Err(Refused::new("unsupported_grant_type", "the grant is client_credentials"));
    }
    if form.get("scope").is_some_and(|scope| scope.split(' ').any(|one| one != SCOPE)) {
        return Err(Refused::new("invalid_scope", format!("the scope is {SCOPE}, or left out")));
    }
    if let Some(resource) = form.get("resource")
        && !is_here(base, resource)
    {
        return Err(Refused::new("invalid_target", format!("tokens are for {base} and what is below it")));
    }
    let client = client(gateway, base, TOKEN, &form).await?;
    let (token, claims) = gateway.token_of(&client)?;
    Ok(json!({
        "access_token": token.token.reveal(),
        "token_type": "Bearer",
        "expires_in": claims.exp - claims.iat,
        "scope": claims.scope,
    }))
}

/// Whether an address is the gateway's, or below it (RFC 8707).
fn is_here(base: &str, resource: &str) -> bool {
    resource.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A token that a form is about.
pub(super) struct About {
    by: Pass,
    token: String,
}

/// Reads a form about a token, and finds out by whom it is.
pub(super) async fn about(
    gateway: &Gateway,
    pass: &Pass,
    (base, path): (&str, &str),
    headers: &HeaderMap,
    body: &[u8],
) -> Result<About, Refused> {
    let form = Form::read(headers, body)?;
    let by = by_whom(gateway, pass, base, path, &form).await?;
    Ok(About { by, token: form.required("token")?.to_owned() })
}

pub(super) async fn revoke(gateway: &Gateway, about: About) -> Result<Value, Refused> {
    match gateway.end_token(&about.by, &about.token).await? {
        EndedToken::Ended => Ok(json!({})),
        EndedToken::Unsupported => Err(Refused::new(
            "unsupported_token_type",
            "tokens of this kind are not ended here: a join token ends by being used or by its time, and the gateway's \
             own key with the gateway",
        )),
    }
}

pub(super) fn introspect(gateway: &Gateway, about: &About) -> Value {
    match gateway.introspect(&about.by, &about.token) {
        Introspected::Inactive => json!({ "active": false }),
        Introspected::Agent(claims) => active(&claims),
        Introspected::Operator(operator, row) => {
            let (iss, sub) = (gateway.identity().audience(), Caller::Operator(operator.clone()).to_string());
            operators(&operator, (iss, &sub), row.as_deref())
        }
    }
}

/// What is told of an operator's token; of the key in the gateway's own folder there is no more to tell.
fn operators(operator: &Operator, (iss, sub): (&str, &str), row: Option<&OperatorRow>) -> Value {
    let mut told = json!({
        "active": true,
        "token_type": "Bearer",
        "scope": operator.role.to_string(),
        "sub": sub,
        "aud": iss,
        "iss": iss,
    });
    if let (Some(row), Some(told)) = (row, told.as_object_mut()) {
        told.insert("username".to_owned(), json!(row.name));
        told.insert("iat".to_owned(), json!(row.made_at.as_ms() / 1000));
        if let Some(at) = row.expires_at {
            told.insert("exp".to_owned(), json!(at.as_ms() / 1000));
        }
    }
    told
}

fn active(claims: &Claims) -> Value {
    json!({
        "active": true,
        "token_type": "Bearer",
        "scope": claims.scope,
        "client_id": claims.client_id,
        "sub": claims.sub,
        "aud": claims.aud,
        "iss": claims.iss,
        "iat": claims.iat,
        "nbf": claims.nbf,
        "exp": claims.exp,
        "jti": claims.jti,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_the_gateway_and_what_is_below_it() {
        let base = "https://reach.example";
        assert!(is_here(base, "https://reach.example") && is_here(base, "https://reach.example/mcp"));
        assert!(!is_here(base, "https://reach.example.evil/mcp") && !is_here(base, "https://other"));
    }
}
