//! `call`: any method, and its answer as it came.

use agent_reach_sdk::RawJson;

use crate::exit::{Exit, Stop};
use crate::input;
use crate::session::Session;

pub(crate) async fn call(method: &str, params: Option<&str>, session: &Session) -> Result<Exit, Stop> {
    let params = input::json_argument("the parameters", params.unwrap_or("{}"))?;
    let answer: RawJson = session.ask_by_name(method, &params).await?;
    session.out.line(answer.get())?;
    Ok(Exit::Done)
}
