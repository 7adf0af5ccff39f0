//! `top`: how well tasks reach their agents, live.

use agent_reach_sdk::schemas::call::{Nothing, Overview};
use agent_reach_sdk::{Method, Span};

use crate::args::Watch;
use crate::exit::{Exit, Stop};
use crate::render::top;
use crate::session::Session;
use crate::watch::{View, present};

pub(crate) async fn run(once: bool, interval: Span, session: &Session) -> Result<Exit, Stop> {
    let view = View::<Overview> { render: Box::new(top::whole), lines: top::lines, is_over: |_| false };
    present(session, Method::MetricsOverview, &Nothing {}, &Watch { watch: !once, interval }, view).await
}
