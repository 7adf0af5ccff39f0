//! The policy: shown, put, asked.

use agent_reach_sdk::Method;
use agent_reach_sdk::schemas::Policy as Standing;
use agent_reach_sdk::schemas::call::{Nothing, PolicyStands, PolicyTest, PolicyTested};

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
            // Its form is checked here, so that slips are told with the line of the file.
            let form = reach_gateway::rpc::decode_policy(text.get(), &file);
            form.map_err(|failure| Stop::Input(format!("the policy: {}", failure.message)))?;
            session.show::<PolicyStands>(Method::PolicyPut, &text, policy::put).await
        }
        Policy::Test { subject, action, object, capability } => {
            let params = PolicyTest { subject, action, object, capability };
            let judge = |told: &PolicyTested| if told.allowed { Exit::Done } else { Exit::Refused };
            session.show_and_judge(Method::PolicyTest, &params, policy::tested, judge).await
        }
    }
}
