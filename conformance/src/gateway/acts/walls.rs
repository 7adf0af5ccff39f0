//! Two namespaces: what is behind the wall is not found, not reached, and not even named.

use serde_json::{Value, json};

use super::alike::present;
use super::{refused, words};
use crate::engine::{Act, Findings, Stop};
use crate::gateway::stage::Gateway;

/// An agent here, and a caller there.
pub(crate) async fn walls(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    let (here, there) = (gateway.namespace("here"), gateway.namespace("there"));
    let capability = format!("secret_{}", gateway.run);
    let (agent, stranger) = (format!("keeper@{here}"), format!("stranger@{there}"));
    let peer = gateway.http()?;
    present(peer, &agent, &capability).await?;
    let found = peer.call("capability/find", &json!({ "from_agent": stranger, "limit": 1000 })).await.map_err(Stop)?;
    let is_told = words(&found).contains(&capability) || found.is_err();
    let own = peer.call("capability/find", &json!({ "from_agent": format!("friend@{here}"), "limit": 1000 })).await;
    let is_known = own.map_err(Stop)?.is_ok_and(|found| found.to_string().contains(&capability));
    let judged = match (is_told, is_known) {
        (false, true) => Ok(()),
        (true, _) => Err(words(&found)),
        (_, false) => Err("its own namespace does not find it either".to_owned()),
    };
    findings.judge(
        "gw-wall-hides",
        "capability/find does not tell a stranger of it, and tells its own namespace",
        judged,
    );

    findings.begin(false);
    let mut found = Ok(());
    for method in ["task/submit", "reach", "resolve"] {
        let to_hidden = json!({ "to_agent": agent, "capability": capability, "from_agent": stranger, "params": {} });
        let answer = peer.call(method, &to_hidden).await.map_err(Stop)?;
        if answer.is_ok() {
            found = Err(format!("{method}: {}", words(&answer)));
        }
    }
    findings.judge("gw-wall-holds", "no task of a stranger's for it", found);

    findings.begin(false);
    let mut found = Ok(());
    let absent = format!("nobody@{here}");
    let wishes = |agent: &str| {
        [
            json!({ "to_agent": agent, "from_agent": stranger }),
            json!({ "to_agent": agent, "capability": capability, "from_agent": stranger }),
        ]
    };
    for (hidden, nobody) in wishes(&agent).into_iter().zip(wishes(&absent)) {
        let hidden = peer.call("task/submit", &hidden).await.map_err(Stop)?;
        let nobody = peer.call("task/submit", &nobody).await.map_err(Stop)?;
        let told = |answer: &Result<Value, Value>| words(answer).replace(&agent, "-").replace(&absent, "-");
        if told(&hidden) != told(&nobody) || refused(&hidden).is_none() {
            found = Err(format!("{}, and of one that there is not {}", words(&hidden), words(&nobody)));
        }
    }
    let missing = json!({ "capability": capability, "from_agent": stranger });
    let answer = peer.call("task/submit", &missing).await.map_err(Stop)?;
    if words(&answer).contains(&agent) {
        found = Err(words(&answer));
    }
    findings.judge("gw-wall-is-blank", "the same refusal as for an agent that there is not", found);
    Ok(())
}
