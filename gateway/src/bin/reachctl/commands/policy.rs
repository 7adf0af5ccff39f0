//! The policy: shown, put, asked.

use agent_reach_sdk::Method;
use agent_reach_sdk::schemas::Policy as Standing;
use agent_reach_sdk::schemas::call::{Nothing, PolicyPut, PolicyStands, PolicyTest, PolicyTested};

use crate::args::Policy;
use crate::exit::{Exit, Stop};
use crate::input;
use crate::render::policy;
use crate::session::Session;

pub(crate) async fn run(command: Policy, session: &Session) -> Result<Exit, Stop> {
    match command {
        Policy::Get => session.show::<Standing>(Method::PolicyGet, &Nothing {}, policy::whole).await,
        Policy::Put { file } => {
            let text = input::json_file("the policy", &file)?;
            // Its form is checked here, so that a slip is told with its line.
            text.read::<PolicyPut>().map_err(|error| Stop::Usage(format!("the policy from {file}: {error}")))?;
            session.show::<PolicyStands>(Method::PolicyPut, &text, policy::put).await
        }
        Policy::Test { subject, action, object, capability } => {
            let params = PolicyTest { subject, action, object, capability };
            let judge = |told: &PolicyTested| if told.allowed { Exit::Done } else { Exit::Refused };
            session.show_and_judge(Method::PolicyTest, &params, policy::tested, judge).await
        }
    }
}
