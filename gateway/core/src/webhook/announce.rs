//! Who is told of the end of a task, or that it waits for a person, and what.

use std::collections::{BTreeMap, BTreeSet};

use reach_schemas::webhook::BODY_MAX;
use reach_schemas::{AgentId, ErrorCode, EventType, Namespace, PhaseName, RawJson, TaskView, WebhookEvent};

use crate::task::{Attempt, Task};

/// The longest message of a failure in a body that is otherwise too large, in characters.
const MESSAGE_MAX: usize = 1000;

/// One receiver and what it is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Announcement {
    /// The receiver.
    pub url: String,
    /// Whose it is: the namespace of the agent whose card, or whose task, names it. None: the operator's.
    pub owner: Option<Namespace>,
    /// What it is told.
    pub event: WebhookEvent,
}

impl Task {
    /// Whom to tell of the end of the task: the receivers that the task names, of every end; and where it was given up
    /// on (failed, expired or a dead letter), those on the card of each agent that failed it since it was born or
    /// redriven. An agent is told of its own attempts only: who else was asked is not its business. Nobody is told of a
    /// task that has not ended.
    #[must_use]
    pub fn announcements(&self, callbacks_of: impl Fn(&AgentId) -> Vec<String>) -> Vec<Announcement> {
        let phase = self.state.phase.name();
        let Some(kind) = EventType::of(phase) else { return Vec::new() };
        let timestamp = self.state.finished_at.unwrap_or(self.state.deadline_at);
        let announce = |url: &String, agent_id: Option<AgentId>, data: TaskView| Announcement {
            url: url.clone(),
            owner: agent_id.as_ref().map(AgentId::namespace).or_else(|| self.owner()),
            event: WebhookEvent { kind, timestamp, agent_id, data, left_out: Vec::new() },
        };
        let named: BTreeSet<&String> = self.birth.submit.callbacks.iter().map(|callback| &callback.url).collect();
        let mut told: Vec<_> = named.into_iter().map(|url| announce(url, None, self.view())).collect();
        if !is_given_up(phase) {
            return told;
        }
        let agents: BTreeSet<&AgentId> = self.failed_attempts().map(|attempt| &attempt.agent_id).collect();
        for agent in agents {
            let urls: BTreeSet<String> = callbacks_of(agent).into_iter().collect();
            told.extend(urls.iter().map(|url| announce(url, Some(agent.clone()), self.view_for(agent))));
        }
        told
    }

    /// Whether the step from `before` put the task before people. A person who puts it back does not do so again.
    #[must_use]
    pub fn comes_before_people(&self, before: &Self) -> bool {
        self.state.phase.human_lease().is_some() && before.state.phase.human_lease().is_none()
    }

    /// Whom to tell that the task waits for a person: those who look after its queue, and the receivers that the task
    /// names.
    #[must_use]
    pub fn calls_to_people(&self, of_queue: &[String]) -> Vec<Announcement> {
        let timestamp = self.state.human.as_ref().map_or(self.birth.created_at, |human| human.since);
        let named = self.birth.submit.callbacks.iter().map(|callback| &callback.url);
        let named = named.map(|url| (url, self.owner()));
        // Where both name one, it is told once, as the operator's.
        let urls: BTreeMap<&String, _> = named.chain(of_queue.iter().map(|url| (url, None))).collect();
        let (kind, left_out) = (EventType::AwaitsPerson, Vec::new());
        let event = WebhookEvent { kind, timestamp, agent_id: None, data: self.view(), left_out };
        let told = |(url, owner): (&String, _)| Announcement { url: url.clone(), owner, event: event.clone() };
        urls.into_iter().map(told).collect()
    }

    /// Whose the receivers are that the task names.
    fn owner(&self) -> Option<Namespace> {
        self.birth.submit.from_agent.as_ref().map(AgentId::namespace)
    }

    /// Attempts that failed since the task was born or redriven. An agent that was full has not failed.
    fn failed_attempts(&self) -> impl DoubleEndedIterator<Item = &Attempt> {
        let is_failed =
            |attempt: &&Attempt| attempt.failure.as_ref().is_some_and(|failure| failure.code != ErrorCode::Overloaded);
        self.state.attempts.iter().filter(|attempt| attempt.token > self.state.redriven_after).filter(is_failed)
    }

    /// The task as one of the agents that failed it may see it.
    fn view_for(&self, agent: &AgentId) -> TaskView {
        let mut view = self.view();
        view.attempts.retain(|attempt| &attempt.agent_id == agent);
        if let Some(last) = self.failed_attempts().rev().find(|attempt| &attempt.agent_id == agent) {
            view.to_agent = Some(last.agent_id.clone());
            view.capability = Some(last.capability.clone());
            view.token = last.token;
            view.failure.clone_from(&last.failure);
        }
        (view.fallback_from, view.progress) = (None, None);
        view
    }
}

const fn is_given_up(phase: PhaseName) -> bool {
    match phase {
        PhaseName::Failed | PhaseName::Expired | PhaseName::DeadLettered => true,
        PhaseName::Submitted
        | PhaseName::Routed
        | PhaseName::Delivered
        | PhaseName::Accepted
        | PhaseName::Completed
        | PhaseName::Cancelled => false,
    }
}

/// A part of a task that may be left out of a body: its name, and how to take it away. False: it was not there.
type Part = (&'static str, fn(&mut TaskView) -> bool);

/// What is left out of a body that is too large, the first one first.
const PARTS: [Part; 7] = [
    ("result", |task| task.result.take().is_some()),
    ("progress", |task| task.progress.take().is_some()),
    ("attempts", |task| !std::mem::take(&mut task.attempts).is_empty()),
    ("failure.data", |task| task.failure.as_mut().is_some_and(|failure| failure.data.take().is_some())),
    ("failure.suggestions", |task| {
        task.failure.as_mut().is_some_and(|failure| !std::mem::take(&mut failure.suggestions).is_empty())
    }),
    ("intent", |task| task.intent.take().is_some()),
    ("failure.message", |task| task.failure.as_mut().is_some_and(|failure| shorten(&mut failure.message))),
];

fn shorten(text: &mut String) -> bool {
    let end = text.char_indices().nth(MESSAGE_MAX).map(|(at, _)| at);
    if let Some(end) = end {
        text.truncate(end);
    }
    end.is_some()
}

/// The body of a webhook: at most [`BODY_MAX`] bytes. What does not fit is left out and named.
#[must_use]
pub fn body(mut event: WebhookEvent) -> RawJson {
    let written = |event: &WebhookEvent| RawJson::of(event).expect("an event has text for keys, hence is JSON");
    let mut body = written(&event);
    for (name, take) in PARTS {
        if body.get().len() <= BODY_MAX {
            break;
        }
        if take(&mut event.data) {
            event.left_out.push(name.to_owned());
            body = written(&event);
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use reach_schemas::{Callback, Failure, FencingToken, Protocol, Span, Submit, TaskId, Timestamp};

    use super::*;
    use crate::task::{Birth, Phase};

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn failure(text: &str) -> Failure {
        Failure::new(ErrorCode::Timeout, text)
    }

    fn attempt(token: u64, agent: &str, failure: Option<Failure>) -> Attempt {
        Attempt {
            token: FencingToken(token),
            agent_id: agent.parse().unwrap(),
            capability: "do".parse().unwrap(),
            protocol: Protocol::Http,
            started_at: at(1),
            delivered_at: None,
            accepted_at: None,
            ended_at: Some(at(2)),
            failure,
        }
    }

    /// A task with receivers and attempts, in a phase.
    fn task(callbacks: &[&str], attempts: Vec<Attempt>, phase: Phase) -> Task {
        let callbacks = callbacks.iter().map(|url| Callback { url: (*url).to_owned() }).collect();
        let submit = Submit { callbacks, intent: Some("do it".to_owned()), ..Submit::default() };
        let id = TaskId::from_parts(1, 1);
        let birth = Birth { id, scope: "x".to_owned(), has_scoped_key: true, submit, created_at: at(1) };
        let mut task = Task::new(birth, Span::from_secs(1));
        task.state.finished_at = phase.name().is_final().then(|| at(9));
        task.state.token = attempts.last().map_or(FencingToken(0), |attempt| attempt.token);
        (task.state.attempts, task.state.phase) = (attempts, phase);
        task
    }

    /// `agent@n` has the receiver `https://agent`, `mute@n` has none.
    fn callbacks_of(agent: &AgentId) -> Vec<String> {
        if agent.name() == "mute" { Vec::new() } else { vec![format!("https://{}", agent.name())] }
    }

    #[track_caller]
    fn check(task: &Task, expected: &[&str]) {
        let told = task.announcements(callbacks_of);
        let said = |told: &Announcement| {
            let agent = told.event.agent_id.as_ref().map(|agent| format!(" for {agent}")).unwrap_or_default();
            let owner = told.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
            format!("{} {}{agent}{owner}", told.event.kind.as_str(), told.url)
        };
        assert_eq!(told.iter().map(said).collect::<Vec<_>>(), expected, "{:?}", task.state.phase);
    }

    #[test]
    fn a_task_tells_its_own_receivers_of_every_end_and_of_nothing_else() {
        let of = |phase| task(&["https://b", "https://a", "https://b"], Vec::new(), phase);
        let completed = Phase::Completed { result: RawJson::parse("1").unwrap() };
        check(&of(completed), &["task.completed https://a", "task.completed https://b"]);
        check(&of(Phase::Cancelled), &["task.cancelled https://a", "task.cancelled https://b"]);
        check(&of(Phase::Failed(failure("x"))), &["task.failed https://a", "task.failed https://b"]);
        check(&of(Phase::Expired(failure("x"))), &["task.expired https://a", "task.expired https://b"]);
        let dead = Phase::DeadLettered(failure("x"));
        check(&of(dead), &["task.dead_lettered https://a", "task.dead_lettered https://b"]);
        check(&of(Phase::Submitted { not_before: at(1), offered: Vec::new() }), &[]);
    }

    #[test]
    fn agents_that_failed_a_task_hear_of_it_once_it_is_given_up_on() {
        let attempts = || {
            vec![
                attempt(1, "bad@n", Some(failure("first"))),
                attempt(2, "bad@n", Some(failure("second"))),
                attempt(3, "mute@n", Some(failure("mute"))),
                attempt(4, "full@n", Some(Failure::new(ErrorCode::Overloaded, "full"))),
                attempt(5, "gave_back@n", None),
                attempt(6, "last@n", Some(failure("last"))),
            ]
        };
        let of = |phase| task(&["https://c"], attempts(), phase);
        let kinds = [
            ("task.dead_lettered", Phase::DeadLettered(failure("last"))),
            ("task.failed", Phase::Failed(failure("last"))),
            ("task.expired", Phase::Expired(failure("last"))),
        ];
        for (kind, phase) in kinds {
            let expected = ["https://c", "https://bad for bad@n of n", "https://last for last@n of n"];
            let expected = expected.map(|told| format!("{kind} {told}"));
            check(&of(phase), &expected.each_ref().map(String::as_str));
        }
        check(&of(Phase::Cancelled), &["task.cancelled https://c"]);
        let completed = Phase::Completed { result: RawJson::parse("1").unwrap() };
        check(&of(completed), &["task.completed https://c"]);
    }

    #[test]
    fn a_receiver_belongs_to_whoever_names_it() {
        let mut task = task(&["https://own", "https://both"], Vec::new(), Phase::Cancelled);
        let birth = std::sync::Arc::make_mut(&mut task.birth);
        birth.submit.from_agent = Some("caller@tenant".parse().unwrap());
        check(&task, &["task.cancelled https://both of tenant", "task.cancelled https://own of tenant"]);
        let told = task.calls_to_people(&["https://both".to_owned(), "https://desk".to_owned()]);
        let owners: Vec<_> = told.iter().map(|told| told.owner.as_ref().map(Namespace::as_str)).collect();
        assert_eq!(owners, [None, None, Some("tenant")]);
    }

    #[test]
    fn what_was_before_a_redrive_is_told_no_more() {
        let attempts = vec![attempt(1, "bad@n", Some(failure("x"))), attempt(2, "new@n", Some(failure("y")))];
        let mut task = task(&[], attempts, Phase::DeadLettered(failure("y")));
        task.state.redriven_after = FencingToken(1);
        check(&task, &["task.dead_lettered https://new for new@n of n"]);
    }

    #[test]
    fn those_of_the_queue_and_of_the_task_are_told_once_when_it_comes_before_people() {
        let before = task(&["https://own"], Vec::new(), Phase::Submitted { not_before: at(1), offered: Vec::new() });
        let mut waits = task(&["https://own", "https://both"], Vec::new(), Phase::Human { lease_until: None });
        waits.state.human =
            Some(crate::task::Human { queue: "desk".parse().unwrap(), since: at(7), takes: Vec::new() });
        let mut taken = waits.clone();
        taken.state.phase = Phase::Human { lease_until: Some(at(9)) };
        assert!(waits.comes_before_people(&before));
        for (after, before) in [(&taken, &waits), (&waits, &taken), (&before, &waits), (&before, &before)] {
            assert!(!after.comes_before_people(before), "{:?} {:?}", before.state.phase, after.state.phase);
        }
        let told = waits.calls_to_people(&["https://both".to_owned(), "https://desk".to_owned()]);
        let urls: Vec<&str> = told.iter().map(|told| told.url.as_str()).collect();
        assert_eq!(urls, ["https://both", "https://desk", "https://own"]);
        let event = &told[0].event;
        assert_eq!((event.kind.as_str(), event.timestamp, &event.agent_id), ("task.awaits_person", at(7), &None));
        assert_eq!(event.data.human.as_ref().unwrap().queue.as_str(), "desk");
        check(&waits, &[]);
    }

    #[test]
    fn an_agent_is_not_told_who_else_was_asked() {
        let attempts = vec![attempt(1, "bad@n", Some(failure("own"))), attempt(2, "other@m", Some(failure("other@m")))];
        let task = task(&[], attempts, Phase::DeadLettered(failure("other@m is gone")));
        let told = task.announcements(callbacks_of);
        let body = body(told[0].event.clone());
        assert!(body.get().contains("own") && body.get().contains("bad@n"), "{}", body.get());
        assert!(!body.get().contains("other"), "{}", body.get());
    }

    #[test]
    fn a_body_leaves_out_what_does_not_fit_and_says_so() {
        let long = |length: usize| RawJson::of(&"x".repeat(length)).unwrap();
        let small = task(&["https://c"], Vec::new(), Phase::Completed { result: long(15_000) });
        let body_of = |task: &Task| body(task.announcements(callbacks_of).remove(0).event);
        assert!(body_of(&small).get().contains("xxx") && !body_of(&small).get().contains("left_out"));

        let large = task(&["https://c"], Vec::new(), Phase::Completed { result: long(30_000) });
        let event: WebhookEvent = body_of(&large).read().unwrap();
        assert_eq!((event.left_out, event.data.result), (vec!["result".to_owned()], None));

        let mut huge = Failure { data: Some(long(30_000)), ..failure(&"é".repeat(30_000)) };
        huge.suggestions = Vec::new();
        let mut task = task(&["https://c"], vec![attempt(1, "a@n", Some(huge.clone()))], Phase::Failed(huge));
        task.state.progress = Some(long(30_000));
        let body = body_of(&task);
        assert!(body.get().len() <= BODY_MAX, "{}", body.get().len());
        let event: WebhookEvent = body.read().unwrap();
        assert_eq!(event.left_out, ["progress", "attempts", "failure.data", "intent", "failure.message"]);
        assert_eq!(event.data.failure.unwrap().message.chars().count(), MESSAGE_MAX);
    }
}
