//! Tokens: made, listed, ended. A token that is made is the only thing on standard output, so that it can go into a file.

use agent_reach_sdk::Method;
use agent_reach_sdk::schemas::call::{
    JoinCreate, JoinToken, KeyTrust, KnownAgent, Nothing, OperatorCreate, OperatorToken, Revoked, TokenRevoke, Tokens,
};

use super::note;
use crate::args::{RevokeArgs, Token};
use crate::exit::{Exit, Stop};
use crate::render::text::when;
use crate::render::tokens;
use crate::session::{Session, read};

pub(crate) async fn run(command: Token, session: &Session) -> Result<Exit, Stop> {
    match command {
        Token::CreateJoin { agents, expires_in } => {
            let params = JoinCreate { agents, expires_in: Some(expires_in) };
            let answer = session.ask(Method::TokenCreateJoin, &params).await?;
            let made: JoinToken = read(Method::TokenCreateJoin, &answer)?;
            let until = when(made.expires_at, session.out.look().now);
            note(
                session,
                &format!("lets in one agent {}, until {until}; AGENT_REACH_JOIN hands it to an SDK", made.agents),
            )?;
            print(session, answer.get(), made.join.reveal())
        }
        Token::CreateOperator { name, role, expires_in } => {
            let params = OperatorCreate { name, role, expires_in };
            let answer = session.ask(Method::TokenCreateOperator, &params).await?;
            let made: OperatorToken = read(Method::TokenCreateOperator, &answer)?;
            note(session, &format!("the token of {}, {}; it cannot be shown again", made.name, made.role))?;
            print(session, answer.get(), made.token.reveal())
        }
        Token::TrustKey { agent, x } => {
            let params = KeyTrust { agent_id: agent, x };
            session.show::<KnownAgent>(Method::TokenTrustKey, &params, |known, _| tokens::trusted(known)).await
        }
        Token::List => session.show::<Tokens>(Method::TokenList, &Nothing {}, tokens::table).await,
        Token::Revoke(args) => revoke(args, session).await,
    }
}

async fn revoke(args: RevokeArgs, session: &Session) -> Result<Exit, Stop> {
    let RevokeArgs { agent, jti, forget_key, operator } = args;
    let params = TokenRevoke { agent_id: agent, jti, forget_key, operator };
    session.show::<Revoked>(Method::TokenRevoke, &params, |revoked, _| tokens::revoked(revoked)).await
}

fn print(session: &Session, json: &str, token: &str) -> Result<Exit, Stop> {
    session.out.line(if session.out.is_json { json } else { token })?;
    Ok(Exit::Done)
}
