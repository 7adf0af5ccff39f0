//! The matrix of access, made from `matrix.txt`: every method and every route, by every role, on what is its own, its
//! neighbour's, and another namespace's that is open to it or closed. A method or a route without a row fails the test.

use std::collections::BTreeMap;

use reach_core::access::{Caller, Grant, authorize};
use reach_gateway::gateway::Gateway;
use reach_gateway::rest::ROUTES;
use reach_schemas::{AgentCard, ErrorCode, Failure, Method};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::world::{World, card, id, told};

const MATRIX: &str = include_str!("matrix.txt");
/// Stands on the card of what is asked about, and nowhere else: who may not know of it must not read it.
const MARK: &str = "marked_thing";
/// An id that nothing has.
const NOTHING: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// One line: what is asked, what each column is answered, and with which parameters or body.
struct Row {
    what: String,
    answers: Vec<String>,
    params: String,
}

fn table() -> (Vec<String>, Vec<Row>) {
    let mut lines = MATRIX.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let columns = words(lines.next().unwrap().split('|').nth(1).unwrap());
    let rows = lines.map(|line| {
        let mut parts = line.splitn(3, '|').map(str::trim);
        let (what, answers) = (parts.next().unwrap().to_owned(), words(parts.next().unwrap()));
        assert_eq!(answers.len(), columns.len(), "{what} has another number of answers than there are columns");
        Row { what, answers, params: parts.next().unwrap_or("{}").to_owned() }
    });
    let rows = rows.collect();
    (columns, rows)
}

/// A caller, and what it asks about.
struct Cell<'a> {
    world: &'a World,
    /// The agent that asks. None: the operator.
    agent: Option<String>,
    /// What stands for itself in the parameters, and what it stands for here; longer names first.
    names: Vec<(&'static str, String)>,
}

async fn cell<'a>(world: &'a World, column: &str, number: usize) -> Cell<'a> {
    let (own, foreign) = (format!("n{number}"), format!("o{number}"));
    let both = |list: &str| json!({ list: [format!("*@{own}"), format!("*@{foreign}")] });
    let (home, access) = match column {
        "open" => (&foreign, both("callable_by")),
        "closed" => (&foreign, json!({})),
        "operator" | "self" | "peer" => (&own, json!({})),
        other => panic!("{other} is a column that nobody plays yet"),
    };
    let object = format!("object@{home}");
    let work = json!({ "name": "work", "description": "Does the work.", "effect": "read", "tags": [MARK] });
    let object_card = card(&object, &work, &access);
    world.register(&object_card).await;
    let agent = match column {
        "operator" => None,
        "self" => Some(object.clone()),
        _ => {
            let caller = format!("caller@{own}");
            world.register(&card(&caller, &json!({ "name": "ask" }), &both("may_call"))).await;
            Some(caller)
        }
    };
    let submit = json!({ "to_agent": object, "capability": "work", "from_agent": object });
    let mut tasks = Vec::new();
    for _ in 0..2 {
        tasks.push(world.call("task/submit", &submit).await["task_id"].as_str().unwrap().to_owned());
    }
    let claimed = world.call("task/claim", &json!({ "agent_id": object, "task_id": tasks[1] })).await;
    let mut register = object_card.clone();
    register["version"] = json!("2");
    let mut names = vec![
        ("AGENT", object),
        ("NAMESPACE", home.clone()),
        ("TASK", tasks[0].clone()),
        ("CLAIMED", tasks[1].clone()),
        ("FENCING", claimed["tasks"][0]["token"].to_string()),
        ("CARD", register.to_string()),
        ("NOTHING", NOTHING.to_owned()),
        ("FROM", json!(agent).to_string()),
        ("ASKED", agent.as_ref().map_or_else(String::new, |agent| format!("&from_agent={agent}"))),
    ];
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    Cell { world, agent, names }
}

impl Cell<'_> {
    fn filled(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// What is answered, in a word, and all of it.
    async fn ask(&self, row: &Row) -> (String, String) {
        let params = self.filled(&row.params);
        let params: Value = serde_json::from_str(&params).unwrap_or_else(|error| panic!("{}: {error}", row.what));
        match row.what.split_once(' ') {
            None => self.ask_method(Method::by_name(&row.what).unwrap(), params).await,
            Some(("mcp", method)) => {
                // The operator says of no agent that it is it.
                let said = self.world.mcp(self.agent.as_deref().unwrap_or_default(), method, params).await;
                let word = said["data"]["code"].as_str().map(str::to_owned);
                let usual = if said["isError"] == true { "tool_error" } else { "ok" };
                (word.unwrap_or_else(|| usual.to_owned()), said.to_string())
            }
            Some((verb, path)) => {
                let headers: Vec<(&str, &str)> = [("content-type", "application/json")]
                    .into_iter()
                    .chain(self.agent.as_deref().map(|agent| ("reach-agent", agent)))
                    .collect();
                let body = (verb == "POST" && row.params != "{}").then(|| params.to_string());
                let reply = self.world.web.ask(verb.parse().unwrap(), &self.filled(path), &headers, body).await;
                let json: Value = serde_json::from_str(&reply.text).unwrap_or(Value::Null);
                let code = [&json["error"]["data"]["code"], &json["code"]].into_iter().find_map(Value::as_str);
                let usual = if reply.status < 400 { "ok".to_owned() } else { reply.status.to_string() };
                (
                    code.filter(|_| reply.status >= 400 || json["error"].is_object()).map_or(usual, str::to_owned),
                    reply.text,
                )
            }
        }
    }

    fn grant(&self, method: Method) -> Result<Grant, Failure> {
        let caller =
            self.agent.as_ref().map_or(Caller::OPERATOR, |agent| self.world.gateway().caller_named(&id(agent)));
        authorize(caller, method.permission()).map_err(|denial| Failure::new(ErrorCode::Forbidden, denial.to_string()))
    }

    async fn ask_method(&self, method: Method, mut params: Value) -> (String, String) {
        if let (Some(agent), Method::Reach | Method::Resolve | Method::TaskSubmit) = (&self.agent, method) {
            params["from_agent"] = json!(agent);
        }
        let said = match self.grant(method) {
            Ok(grant) => use_case(self.world.gateway(), method, grant, params).await,
            Err(failure) => json!({ "failure": failure }),
        };
        let word = said["failure"]["code"].as_str().filter(|_| said.as_object().is_some_and(|said| said.len() == 1));
        (word.unwrap_or("ok").to_owned(), said.to_string())
    }
}

fn read<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params).unwrap()
}

/// What a method does for one who was granted it. A method that is not here does not compile.
async fn use_case(gateway: &std::sync::Arc<Gateway>, method: Method, grant: Grant, params: Value) -> Value {
    macro_rules! ask {
        ($use_case:ident) => {
            told(gateway.$use_case(grant, read(params)).await)
        };
    }
    match method {
        Method::AgentRegister => told(gateway.register(grant, read::<AgentCard>(params), None).await),
        Method::AgentHeartbeat => ask!(heartbeat),
        Method::AgentDrain => ask!(drain),
        Method::AgentDeregister => ask!(deregister),
        Method::AgentGet => told(gateway.agent(grant, &read(params))),
        Method::AgentList => told(gateway.agents(grant, &read(params))),
        Method::CapabilityFind => told(gateway.find(grant, &read(params))),
        Method::Reach => ask!(reach),
        Method::Resolve => told(gateway.resolve(grant, &read(params))),
        Method::TaskSubmit => ask!(submit),
        Method::TaskWait => ask!(wait),
        Method::TaskGet => ask!(get),
        Method::TaskList => ask!(list),
        Method::TaskCancel => ask!(cancel),
        Method::TaskExplain => ask!(explain),
        Method::TaskClaim => told(gateway.claim(grant, read(params), &CancellationToken::new()).await),
        Method::TaskAccept => ask!(accept),
        Method::TaskProgress => ask!(progress),
        Method::TaskComplete => ask!(complete),
        Method::TaskFail => ask!(fail),
        Method::TaskRelease => ask!(release),
        Method::TaskSubscribe => {
            let (handle, _pushes) = gateway.sessions().open(|_| {});
            told(gateway.subscribe(grant, read(params), handle.sender().unwrap()).await)
        }
        Method::MetricsOverview => told(Ok(gateway.overview(grant, &read(params)))),
        Method::HumanList => ask!(human_list),
        Method::HumanTake => ask!(human_take),
        Method::HumanAnswer => ask!(human_answer),
        Method::HumanRefuse => ask!(human_refuse),
        Method::HumanReturn => ask!(human_return),
        Method::DeadLetterList => ask!(dead_letters),
        Method::DeadLetterGet => ask!(dead_letter),
        Method::DeadLetterRedrive => ask!(redrive),
        Method::WebhookList => ask!(webhooks),
        Method::WebhookGet => ask!(webhook),
        Method::ServerAdd => ask!(add_server),
        Method::ServerRemove => ask!(remove_server),
        Method::ServerList => told(Ok(gateway.servers(grant))),
        Method::ConfigShow => ask!(config_show),
        Method::ConfigReload => ask!(config_reload),
        Method::PolicyGet => ask!(policy),
        Method::PolicyPut => ask!(put_policy),
        Method::PolicyTest => ask!(test_policy),
        Method::WebhookRetry => ask!(retry_webhooks),
        Method::AuditTail => ask!(audit_tail),
        Method::AuditSearch => ask!(audit_search),
        Method::AuditVerify => ask!(audit_verify),
        Method::AuditExport => ask!(audit_export),
        Method::AuditCheckpoint => ask!(audit_checkpoint),
        // Whoever shows a key needs no grant.
        Method::TokenIssue => told(gateway.issue(read(params), None).await),
        Method::TokenCreateJoin => ask!(create_join),
        Method::TokenCreateOperator => ask!(create_operator),
        Method::TokenTrustKey => ask!(trust_key),
        Method::TokenList => told(Ok(gateway.tokens(grant, read(params)))),
        Method::TokenRevoke => ask!(revoke),
    }
}

#[tokio::test]
async fn every_method_and_route_answers_every_caller_as_the_matrix_says() {
    let world = World::start().await;
    let (columns, rows) = table();
    let (mut wrong, mut number) = (Vec::new(), 0);
    for row in &rows {
        for (column, expected) in columns.iter().zip(&row.answers).filter(|(_, expected)| *expected != "-") {
            number += 1;
            let (word, all) = cell(&world, column, number).await.ask(row).await;
            if word != *expected {
                wrong.push(format!("{} by {column}: {word}, and the matrix says {expected}: {all:.300}", row.what));
            }
            assert!(column != "closed" || !all.contains(MARK), "{} by {column}: {all}", row.what);
        }
    }
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_method_and_every_route_has_a_row() {
    let (_, rows) = table();
    // The variable part of a path is filled in; what stands before and after it tells the route.
    let is_of = |path: &str, template: &str| match template.split_once('{') {
        None => path == template,
        Some((head, rest)) => {
            let tail = rest.split_once('}').map_or("", |(_, tail)| tail);
            let part = path.strip_prefix(head).and_then(|part| part.strip_suffix(tail));
            part.is_some_and(|part| !part.is_empty() && !part.contains('/'))
        }
    };
    let mut by_verb: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (verb, path) in rows.iter().filter_map(|row| row.what.split_once(' ')) {
        by_verb.entry(verb).or_default().push(path.split('?').next().unwrap());
    }
    let has_row = |verb: &str, template: &str| by_verb[verb].iter().any(|path| is_of(path, template));
    let methods = Method::ALL.iter().map(|method| method.name().to_owned());
    let methods = methods.filter(|name| !rows.iter().any(|row| row.what == *name));
    let routes = ROUTES.iter().filter(|route| !has_row(route.verb.as_str(), route.path));
    let routes = routes.map(|route| format!("{} {}", route.verb, route.path));
    let missing: Vec<String> = methods.chain(routes).collect();
    assert!(missing.is_empty(), "without a row in matrix.txt: {missing:?}");
}
