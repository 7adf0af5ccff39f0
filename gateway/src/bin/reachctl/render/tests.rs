//! What people see, against texts that are kept. `REACHCTL_GOLDENS=write` writes them anew, to be read before they are
//! committed.

use std::path::PathBuf;

use agent_reach_sdk::schemas::call::{
    Agents, AuditRows, ConfigRefused, Found, Overview, Redriven, Resolved, Webhooks, WebhooksRetried,
};
use agent_reach_sdk::{Error, ErrorCode, Explanation, RawJson, Refusal, Timestamp};
use serde::de::DeserializeOwned;

use super::{Look, agents, audit, capabilities, dead_letters, explanation, tasks, tokens, top, webhooks};
use crate::complaint::Complaint;
use crate::exit::Stop;

fn look(width: u16) -> Look {
    Look { width, is_colored: false, now: "2026-11-30T08:00:00Z".parse().unwrap() }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reachctl").join(name)
}

fn sample<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&std::fs::read_to_string(path(name)).unwrap()).unwrap()
}

#[track_caller]
fn check(name: &str, width: u16, text: &str) {
    use unicode_width_of as width_of;
    let path = path("goldens").join(format!("{name}.txt"));
    if std::env::var("REACHCTL_GOLDENS").is_ok_and(|wish| wish == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, text, "{} says:\n{kept}\nand now it is:\n{text}", path.display());
    let widest = text.lines().max_by_key(|line| width_of(line)).unwrap_or_default();
    assert!(width_of(widest) <= usize::from(width), "wider than {width}: {widest}");
}

/// Columns on a terminal, near enough for the samples: Chinese characters take two.
fn unicode_width_of(line: &str) -> usize {
    line.chars().map(|c| if ('\u{2E80}'..='\u{FFEF}').contains(&c) { 2 } else { 1 }).sum()
}

#[test]
fn an_explanation_fits_80_100_and_120_columns() {
    let it: Explanation = sample("explanation.json");
    for width in [80, 100, 120] {
        check(&format!("explanation_{width}"), width, &explanation::whole(&it, &look(width)));
    }
}

#[test]
fn the_figures_fit_80_and_100_columns_and_what_is_not_well_comes_first() {
    let it: Overview = sample("overview.json");
    for width in [80, 100] {
        check(&format!("top_{width}"), width, &top::whole(&it, &look(width)));
    }
    let lines: String = top::lines(&it).into_iter().map(|(name, line)| format!("{name} {line}\n")).collect();
    check("top_lines", 200, &lines);
}

#[test]
fn a_refusal_is_explained_with_what_was_near_and_steers_no_terminal() {
    let it: Explanation = sample("dead_letter.json");
    let text = explanation::whole(&it, &look(100));
    assert!(!text.contains('\x1b'));
    check("dead_letter_100", 100, &text);
    check("task_80", 80, &tasks::whole(&it.task, &look(80)));
}

#[test]
fn tasks_are_listed_with_whole_ids_at_any_width() {
    let all = ["explanation.json", "dead_letter.json"].map(|name| sample::<Explanation>(name).task);
    for width in [80, 120] {
        let text = tasks::table(&all, 2, &look(width));
        assert!(text.contains("0198a000-0000-7000-8000-000000000001"));
        check(&format!("tasks_{width}"), width, &text);
    }
}

#[test]
fn agents_are_listed_and_shown_whole() {
    let all: Agents = sample("agents.json");
    for width in [80, 120] {
        check(&format!("agents_{width}"), width, &agents::table(&all.agents, 1000, &look(width)));
    }
    check("agent_80", 80, &agents::sheet_of(&all.agents[0], &look(80)));
}

#[test]
fn capabilities_are_listed_and_a_resolution_says_who_where_and_why() {
    let all: Agents = sample("agents.json");
    let found: Vec<Found> = all
        .agents
        .iter()
        .map(|agent| Found {
            agent_id: agent.card.agent_id.clone(),
            capability: agent.card.capabilities[0].clone(),
            similarity: Some(0.5),
            available: agent.connected,
        })
        .collect();
    check("capabilities_100", 100, &capabilities::table(&found, &look(100)));
    let it: Explanation = sample("explanation.json");
    let decision = it.decisions[1].clone();
    let chosen = decision.chosen.clone().unwrap();
    let endpoints = all.agents[0].card.endpoints.clone();
    let answer = Resolved { agent_id: chosen.agent_id, capability: chosen.capability, endpoints, decision };
    check("resolved_100", 100, &capabilities::resolved(&answer, &look(100)));
}

#[test]
fn redriven_and_refused_dead_letters_are_told_apart() {
    let answer = |more: &str| -> Redriven {
        let text = format!(
            r#"{{"redriven": ["0198a000-0000-7000-8000-000000000001"], "refused": [
                {{"task_id": "0198a000-0000-7000-8000-000000000002",
                 "failure": {{"code": "wrong_phase", "message": "the task is completed, not a dead letter"}}}}],
                "as_of": "2026-11-30T08:00:00Z", {more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let named = answer(r#""matched": 2, "remaining": 0"#);
    check("redriven_100", 100, &dead_letters::redriven(&named, true, &look(100)));
    let spread = r#""matched": 900, "remaining": 897, "gone": 1, "rate": 10, "spread_until": "2030-01-01T00:00:00Z",
        "stopped": {"code": "overloaded", "message": "too many tasks are open"}"#;
    check("redriven_by_filter_100", 100, &dead_letters::redriven(&answer(spread), false, &look(100)));
    let mut would_be = answer(r#""matched": 900, "remaining": 900"#);
    (would_be.redriven, would_be.refused) = (Vec::new(), Vec::new());
    would_be.sample = vec![sample::<Explanation>("dead_letter.json").task];
    check("redrive_dry_run_100", 100, &dead_letters::redriven(&would_be, false, &look(100)));
}

#[test]
fn webhooks_show_how_their_sending_goes_and_where_the_secret_is() {
    let answer: Webhooks = sample("webhooks.json");
    for width in [80, 100] {
        check(&format!("webhooks_{width}"), width, &webhooks::table(&answer, 50, &look(width)));
    }
    check("webhook_100", 200, &webhooks::whole(&answer.webhooks[0], &look(100)));
    let retried = WebhooksRetried {
        retried: vec![answer.webhooks[0].webhook_id],
        not_found: vec![answer.webhooks[1].webhook_id],
    };
    check("retried_100", 100, &webhooks::retried(&retried, &look(100)));
}

#[test]
fn a_complaint_says_what_is_wrong_where_and_what_to_do() {
    let failure = sample::<Explanation>("dead_letter.json").task.failure.unwrap();
    let refusal = Refusal {
        retry_after: failure.retry_after.map(Into::into),
        suggestions: failure.suggestions,
        ..Refusal::new(failure.code, failure.message)
    };
    let complaint = Complaint::of(&Stop::Call(Error::NoCandidate(Box::new(refusal))));
    check("refusal_100", 200, &complaint.text(&look(100)));
    let wire: serde_json::Value = serde_json::from_str(&complaint.json()).unwrap();
    assert_eq!((&wire["code"], &wire["data"]["code"]), (&2001.into(), &"no_candidate".into()));
    assert_eq!(wire["data"]["suggestions"][0]["lacks"][0]["reason"], "ambiguous");

    let gone = Stop::NoGateway { url: "http://127.0.0.1:1".to_owned(), why: "Connection refused".to_owned() };
    check("no_gateway_100", 200, &Complaint::of(&gone).text(&look(100)));
}

#[test]
fn colors_are_only_added_never_needed() {
    let it: Explanation = sample("explanation.json");
    let colored = explanation::whole(&it, &Look { is_colored: true, ..look(100) });
    assert!(colored.contains("\x1b[32m"));
    let mut plain = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trimmed: String = plain.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    assert_eq!(trimmed, explanation::whole(&it, &look(100)));
}

#[test]
fn nothing_to_list_is_said() {
    let look = Look { now: Timestamp::from_ms(0), ..look(80) };
    assert_eq!(tasks::table(&[], 50, &look), "no tasks\n");
    assert_eq!(agents::table(&[], 50, &look), "no agents\n");
    assert_eq!(capabilities::table(&[], &look), "no capabilities\n");
}

#[test]
fn ids_in_the_audit_log_can_be_copied_at_any_width() {
    let id = "0198a000-0000-7000-8000-000000000001";
    let row = serde_json::json!({ "seq": 123_456, "at": "2026-11-30T07:48:00Z", "kind": "agent.deregistered",
        "actor": "a_caller_with_a_name@of_some_length", "target": "an_agent_with_a_name@of_some_length", "task_id": id,
        "outcome": "ROUTING_NO_CANDIDATE", "code": "no_candidate", "count": 1, "hash": "", "digest": null,
        "reason": "no agent that this caller may reach offers a capability of this name, and none is near" });
    let rows: AuditRows =
        serde_json::from_value(serde_json::json!({ "rows": [row], "head": { "seq": 1, "hash": "" } })).unwrap();
    for width in [60, 80, 100, 120] {
        let text = audit::table(&rows, &look(width));
        for whole in [id, "ROUTING_NO_CANDIDATE", "agent.deregistered", "no_candidate"] {
            assert!(text.lines().any(|line| line.contains(whole)), "{width} {whole}:\n{text}");
        }
        let widest = text.lines().map(str::len).max().unwrap_or_default();
        assert!(widest <= usize::from(width.max(80)), "wider than {width}:\n{text}");
    }
    check("audit_80", 80, &audit::table(&rows, &look(80)));
}

#[test]
fn tokens_whose_time_is_over_are_marked() {
    let operator = |name: &str, until: &str| serde_json::json!({ "name": name, "role": "viewer", "made_at": "2026-11-29T08:00:00Z", "expires_at": until });
    let tokens = serde_json::json!({ "agents": [], "signing_keys": [],
        "operators": [operator("alice", "2026-11-30T07:59:00Z"), operator("bob", "2026-11-30T08:01:00Z")],
        "joins": [{ "agents": "*@media", "expires_at": "2026-11-30T07:00:00Z" }] });
    let text = tokens::table(&serde_json::from_value(tokens).unwrap(), &look(100));
    let of = |who: &str| text.lines().find(|line| line.starts_with(who)).unwrap_or_default().contains("expired");
    assert_eq!([of("alice"), of("bob"), of("*@media")], [true, false, true], "{text}");
}

#[test]
fn a_refusal_says_what_to_do_with_this_program() {
    let told =
        |code, message: &str| Complaint::of(&Stop::Call(Error::from(Refusal::new(code, message)))).text(&look(100));
    let text = told(ErrorCode::NoCandidate, "no agent offers x; capability/find shows what there is");
    assert!(text.contains("see `reachctl get capabilities`"), "{text}");
    let text = told(ErrorCode::AgentNotFound, "there is no agent a@b; agent/list shows those there are");
    assert!(text.contains("see `reachctl get agents`"), "{text}");
    for code in [ErrorCode::Unauthenticated, ErrorCode::TokenExpired, ErrorCode::TokenRevoked] {
        let text = told(code, "who?");
        assert!(text.contains("AGENT_REACH_TOKEN") && text.contains("--token-file"), "{text}");
    }
}

#[test]
fn what_failed_without_a_task_is_no_task_that_did_not_end_well() {
    let exit = |code, task: Option<&str>| {
        let refusal = Refusal { task_id: task.map(|id| id.parse().unwrap()), ..Refusal::new(code, "") };
        Complaint::of(&Stop::Call(Error::from(refusal))).exit.code()
    };
    let task = Some("0198a000-0000-7000-8000-000000000001");
    assert_eq!([exit(ErrorCode::Unreachable, task), exit(ErrorCode::AgentFailed, task)], [1, 1]);
    assert_eq!([exit(ErrorCode::Unreachable, None), exit(ErrorCode::AgentFailed, None)], [5, 4]);
}

#[test]
fn the_mistakes_of_a_file_are_told_once() {
    let mistakes = vec!["listen: is no address".to_owned(), "open_max: expected a whole number".to_owned()];
    let message = format!("gateway.toml is not right: {}", reach_gateway::config::told(&mistakes));
    let data = RawJson::of(&ConfigRefused { mistakes, ..ConfigRefused::default() }).ok();
    let refusal = Refusal { data, ..Refusal::new(ErrorCode::InvalidConfig, message) };
    let text = Complaint::of(&Stop::Call(Error::from(refusal))).text(&look(100));
    assert!(text.contains("gateway.toml is not right: 2 mistakes"), "{text}");
    assert_eq!(text.matches("is no address").count(), 1, "{text}");
}
