//! Who may not know of an agent cannot tell it from one that is not there: every road is asked twice, in a world with the
//! agent and in one without, and must say the same, word for word.

use reach_schemas::Permission;
use reach_schemas::call::{AgentList, CapabilityFind};
use serde_json::{Value, json};

use super::world::{World, card, id, rule, told};

const CALLER: &str = "clerk@x";

/// Parts that differ from call to call, whoever is there.
const CHANGING: [&str; 12] = [
    "task_id",
    "taskId",
    "at",
    "took_us",
    "created_at",
    "deadline_at",
    "finished_at",
    "registered_at",
    "seen_at",
    "createdAt",
    "lastUpdatedAt",
    "started_at",
];

/// Figures that the words of all capabilities have a part in, those behind walls included: how rare a word is. That is said
/// in SECURITY.md, and is all that shows.
const FIGURES: [&str; 6] = ["similarity", "best", "margin", "fit", "total", "took_us"];

/// A text without its figures.
fn without_figures(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn without_what_changes(mut value: Value) -> Value {
    match &mut value {
        Value::String(text) => *text = without_figures(text),
        Value::Object(members) => {
            members.retain(|name, _| !FIGURES.contains(&name.as_str()));
            members.retain(|name, _| !CHANGING.contains(&name.as_str()));
            for member in members.values_mut() {
                *member = without_what_changes(member.take());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_what_changes(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    value
}

/// One way in which an agent is hidden from the caller.
struct Hiding {
    what: &'static str,
    ghost: &'static str,
    may_call: Value,
    callable_by: Value,
    across: &'static str,
    rules: Vec<Value>,
}

fn hidings() -> Vec<Hiding> {
    let all = || json!(["*@*"]);
    vec![
        Hiding {
            what: "its card does not let the caller call it",
            ghost: "ghost@y",
            may_call: all(),
            callable_by: Value::Null,
            across: "cards",
            rules: Vec::new(),
        },
        Hiding {
            what: "the caller's card does not name it",
            ghost: "ghost@y",
            may_call: json!(["*@x"]),
            callable_by: all(),
            across: "cards",
            rules: Vec::new(),
        },
        Hiding {
            what: "no rule allows it across namespaces",
            ghost: "ghost@y",
            may_call: all(),
            callable_by: all(),
            across: "rules",
            rules: vec![rule("allow", "other@x", &["list", "call"], "*@y", None)],
        },
        Hiding {
            what: "a rule denies to list it, in the caller's own namespace",
            ghost: "ghost@x",
            may_call: Value::Null,
            callable_by: Value::Null,
            across: "cards",
            rules: vec![rule("deny", "clerk@*", &["list"], "ghost*@*", None)],
        },
        Hiding {
            what: "a rule denies to list it, and another allows it",
            ghost: "ghost@y",
            may_call: all(),
            callable_by: all(),
            across: "rules",
            rules: vec![
                rule("allow", "*@x", &["list", "call"], "*@y", None),
                rule("deny", "*@x", &["list"], "ghost*@y", None),
            ],
        },
    ]
}

async fn world(hiding: &Hiding, has_ghost: bool) -> World {
    let world = World::start().await;
    let mut own = json!({ "may_call": hiding.may_call });
    own.as_object_mut().unwrap().retain(|_, list| !list.is_null());
    world.register(&card(CALLER, &json!({ "name": "file_papers", "description": "Files papers" }), &own)).await;
    let copies = json!({ "name": "copy_letters", "description": "Copies old letters by hand", "effect": "read" });
    world.register(&card("scribe@x", &copies, &json!({}))).await;
    let stands_in = json!([{ "agent": hiding.ghost }]);
    let reads = json!({ "name": "read_maps", "description": "Reads maps of the coast", "fallback": stands_in });
    let names_it = json!({ "callable_by": ["*@x", hiding.ghost], "may_call": ["*@x", hiding.ghost] });
    world.register(&card("pilot@x", &reads, &names_it)).await;
    if has_ghost {
        let mut access = json!({ "callable_by": hiding.callable_by });
        access.as_object_mut().unwrap().retain(|_, list| !list.is_null());
        // What it offers is said as the caller's own namespace says it, and as nobody else does.
        for (ghost, name) in [(hiding.ghost.to_owned(), "copy_letters"), (hiding.ghost.replace('@', "2@"), "conjure")] {
            let offers = json!({
                "name": name, "description": "Conjures spirits from seances", "tags": ["conjure", "seance"],
                "input_schema": { "type": "object", "required": ["spirit"] },
            });
            // The second one is the first one's like in all but its name.
            world.register(&card(&ghost, &offers, &access)).await;
        }
    }
    world.put_policy(hiding.across, &json!(hiding.rules)).await.unwrap();
    world
}

/// What was asked, and what was answered.
#[derive(Default)]
struct Roads(Vec<(String, Value)>);

impl Roads {
    fn note(&mut self, road: impl Into<String>, answer: Value) {
        self.0.push((road.into(), without_what_changes(answer)));
    }

    /// Looking at agents and capabilities.
    async fn look(&mut self, world: &World, ghost: &str) {
        let gateway = world.gateway();
        for agent in [ghost.to_owned(), ghost.replace('@', "2@")] {
            self.note("agent/get", world.shown(&agent, CALLER));
            self.note("the agent's card", world.page(CALLER, &format!("/agents/{agent}/agent-card.json")).await);
        }
        self.note("the catalogue", world.page(CALLER, "/.well-known/ai-catalog.json").await);
        for namespace in [None, Some(id(ghost).namespace())] {
            let list = AgentList { namespace: namespace.clone(), limit: None, after: None };
            self.note("agent/list", told(gateway.agents(world.grant(CALLER, Permission::Discover), &list)));
            for words in [None, Some("conjure spirits from seances"), Some("copy old letters")] {
                let (intent, from_agent) = (words.map(str::to_owned), Some(id(CALLER)));
                let find = CapabilityFind { intent, namespace: namespace.clone(), from_agent, limit: None };
                self.note("capability/find", told(gateway.find(world.grant(CALLER, Permission::Discover), &find)));
            }
        }
    }

    /// Asking for work.
    async fn ask(&mut self, world: &World, ghost: &str) {
        let targets = [
            json!({ "to_agent": ghost }),
            json!({ "to_agent": ghost.replace('@', "2@"), "capability": "conjure" }),
            json!({ "capability": "conjure" }),
            json!({ "capability": "conjure", "params": { "spirit": 1 } }),
            json!({ "intent": "conjure spirits from seances" }),
            json!({ "intent": "copy old letters by hand" }),
            json!({ "intent": "conjure", "namespace": id(ghost).namespace() }),
            json!({ "capability": "copy_letters" }),
        ];
        for target in targets {
            let mut params = target.clone();
            params["from_agent"] = json!(CALLER);
            self.note(format!("resolve {target}"), world.call("resolve", &params).await);
            params["deadline"] = json!("1m");
            let submitted = world.call("task/submit", &params).await;
            self.note(format!("task/submit {target}"), submitted.clone());
            if submitted["task_id"].is_string() {
                let task = serde_json::from_value(json!({ "task_id": submitted["task_id"] })).unwrap();
                let explained = world.gateway().explain(world.grant(CALLER, Permission::OwnTask), task).await;
                self.note(format!("task/explain {target}"), told(explained));
            }
        }
        let invoke = json!({ "from_agent": CALLER, "capability": "conjure", "wait": "1ms" });
        let invoked = world.web.post(&format!("/agent/{ghost}/invoke"), &invoke).await;
        self.note("invoke", json!(invoked.text));
    }

    /// Asking over MCP.
    async fn ask_by_tools(&mut self, world: &World) {
        self.note("tools/list", world.mcp(CALLER, "tools/list", json!({})).await);
        let spirit = || json!({ "spirit": 1 });
        let words = json!({ "intent": "conjure spirits from seances" });
        for (tool, arguments) in [
            ("conjure", spirit()),
            ("copy_letters_ghost", spirit()),
            ("copy_letters__ghost", spirit()),
            ("reach_find", words),
            ("reach_submit", json!({ "capability": "conjure", "wait_seconds": 0 })),
            ("reach_submit", json!({ "intent": "conjure spirits", "wait_seconds": 0 })),
        ] {
            let call = json!({ "name": tool, "arguments": arguments });
            self.note(format!("tools/call {tool}"), world.mcp(CALLER, "tools/call", call).await);
        }
    }
}

/// All that the caller can ask in which the agent could show.
async fn answers(world: &World, ghost: &str) -> Vec<(String, Value)> {
    let mut roads = Roads::default();
    roads.look(world, ghost).await;
    roads.ask(world, ghost).await;
    roads.ask_by_tools(world).await;
    roads.0
}

#[tokio::test]
async fn what_stands_in_for_a_capability_is_not_named_to_who_may_not_know_of_it() {
    let hiding = &hidings()[0];
    let world = world(hiding, true).await;
    let params = json!({ "from_agent": CALLER, "capability": "read_maps", "tries": 1, "deadline": "5m" });
    let task = world.call("task/submit", &params).await["task_id"].clone();
    let claimed = world.call("task/claim", &json!({ "agent_id": "pilot@x" })).await;
    let token = &claimed["tasks"][0]["token"];
    assert_eq!(claimed["tasks"][0]["task_id"], task, "{claimed}");
    let failed = json!({ "task_id": task, "token": token, "message": "fog", "retryable": true, "started": false });
    let noted = world.call("task/fail", &failed).await;
    assert!(noted["message"].is_null(), "{noted}");
    let ended = world.call("task/wait", &json!({ "task_id": task, "wait": "1m" })).await;
    assert_eq!(ended["phase"], "dead_lettered", "{ended}");
    let named = || serde_json::from_value(json!({ "task_id": task })).unwrap();
    let explained = told(world.gateway().explain(world.grant(CALLER, Permission::OwnTask), named()).await);
    assert!(!explained.to_string().contains("ghost"), "{explained}");
    assert!(explained.to_string().contains("fog"), "what it was told by whom it may call stays: {explained}");
}

#[tokio::test]
async fn who_may_not_know_of_an_agent_cannot_tell_it_from_one_that_is_not_there() {
    for hiding in hidings() {
        let (with, without) = (world(&hiding, true).await, world(&hiding, false).await);
        let (with, without) = (answers(&with, hiding.ghost).await, answers(&without, hiding.ghost).await);
        assert_eq!(with.len(), without.len(), "{}", hiding.what);
        for ((road, with), (_, without)) in with.iter().zip(&without) {
            assert_eq!(with, without, "{}: {road}", hiding.what);
        }
        let fallbacks = with.iter().filter(|(road, _)| road == "agent/list");
        assert!(fallbacks.clone().count() > 0);
        for (road, answer) in fallbacks {
            assert!(!answer.to_string().contains("ghost"), "{road} names it: {answer}");
        }
    }
}
