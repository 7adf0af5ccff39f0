//! What a killed gateway may forget: work that changes nothing, whose caller waits for it on an open connection and has
//! been told nothing yet. Such work runs through the same steps as all other, but need not be on disk meanwhile.

use reach_schemas::{Effect, Mode, Protocol};

use super::{Phase, Task};

impl Task {
    /// Whether the task, as it is, may be in memory only while its caller waits for it on the connection.
    ///
    /// Not if anybody could name it later (an idempotency key), is to be told of its end (a callback) or could take it up
    /// elsewhere (an offer, a queue); not while an agent has it whose capability is anything but a `read`; and not once it
    /// has ended otherwise than with a result, because people look at that, and send dead letters again.
    #[must_use]
    pub fn may_stay_in_memory(&self) -> bool {
        let submit = &self.birth.submit;
        if submit.idempotency_key.is_some() || !submit.callbacks.is_empty() || self.mode() != Mode::Direct {
            return false;
        }
        match &self.state.phase {
            Phase::Submitted { offered, .. } => offered.is_empty(),
            Phase::Routed(_) | Phase::Delivered(_) | Phase::Accepted(_) => self.is_pushed_read(),
            Phase::Completed { .. } => true,
            // A person takes longer than the open connection lasts.
            Phase::Human { .. } | Phase::Failed(_) | Phase::Cancelled | Phase::Expired(_) | Phase::DeadLettered(_) => {
                false
            }
        }
    }

    fn is_pushed_read(&self) -> bool {
        let effect = self.state.plan.as_ref().map(|plan| plan.effect);
        let is_pushed = self.live_attempt().is_some_and(|attempt| match attempt.protocol {
            Protocol::Http | Protocol::Process | Protocol::Websocket | Protocol::Mcp => true,
            Protocol::Queue => false,
        });
        is_pushed && effect == Some(Effect::Read)
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::{ErrorCode, Failure, FencingToken, RawJson, Span, Submit, TaskId, Tier, Timestamp};

    use super::super::phase::Hold;
    use super::super::{Attempt, Birth, Offered, Plan};
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1);
    const HOLD: Hold = Hold { run_until: NOW, lease_until: None, lease_for: None };

    fn task(submit: Submit, phase: Phase, effect: Effect, protocol: Protocol) -> Task {
        let id = TaskId::from_parts(1, 1);
        let birth = Birth { id, scope: String::new(), has_scoped_key: true, submit, created_at: NOW };
        let mut task = Task::new(birth, Span::from_secs(1));
        task.state.phase = phase;
        task.state.plan = Some(Plan {
            effect,
            tier: Tier::Normal,
            attempt_timeout: Span::from_secs(1),
            lateral: None,
            cancellable: false,
            fallback: Vec::new(),
            human_wait: Span::from_secs(1),
        });
        task.state.attempts.push(Attempt {
            token: FencingToken(1),
            agent_id: "a@n".parse().unwrap(),
            capability: "do".parse().unwrap(),
            protocol,
            started_at: NOW,
            delivered_at: None,
            accepted_at: None,
            ended_at: None,
            failure: None,
        });
        task
    }

    #[test]
    fn only_reads_that_are_pushed_may_be_with_an_agent() {
        for protocol in [Protocol::Http, Protocol::Process, Protocol::Websocket, Protocol::Mcp, Protocol::Queue] {
            for effect in [Effect::Read, Effect::IdempotentWrite, Effect::Write] {
                let is_light = effect == Effect::Read && protocol != Protocol::Queue;
                for phase in [Phase::Routed(HOLD), Phase::Delivered(HOLD), Phase::Accepted(HOLD)] {
                    let task = task(Submit::default(), phase.clone(), effect, protocol);
                    assert_eq!(task.may_stay_in_memory(), is_light, "{phase:?} {effect:?} {protocol:?}");
                }
            }
        }
    }

    #[test]
    fn what_waits_or_is_done_may_stay_and_what_ended_otherwise_may_not() {
        let failure = || Failure::new(ErrorCode::Timeout, "late");
        let offer = Offered { agent_id: "a@n".parse().unwrap(), capability: "do".parse().unwrap() };
        let table = [
            (Phase::Submitted { not_before: NOW, offered: Vec::new() }, true),
            (Phase::Submitted { not_before: NOW, offered: vec![offer] }, false),
            (Phase::Human { lease_until: None }, false),
            (Phase::Human { lease_until: Some(NOW) }, false),
            (Phase::Completed { result: RawJson::parse("1").unwrap() }, true),
            (Phase::Failed(failure()), false),
            (Phase::Cancelled, false),
            (Phase::Expired(failure()), false),
            (Phase::DeadLettered(failure()), false),
        ];
        for (phase, is_light) in table {
            let task = task(Submit::default(), phase.clone(), Effect::Read, Protocol::Http);
            assert_eq!(task.may_stay_in_memory(), is_light, "{phase:?}");
        }
    }

    #[test]
    fn a_key_a_callback_or_another_mode_makes_it_durable() {
        let keyed = Submit { idempotency_key: Some("k".parse().unwrap()), ..Submit::default() };
        let queued = Submit { mode: Mode::Queue, ..Submit::default() };
        let broadcast = Submit { mode: Mode::Broadcast, ..Submit::default() };
        let callbacks = vec![reach_schemas::Callback { url: "https://receiver.example".to_owned() }];
        let told = Submit { callbacks, ..Submit::default() };
        for submit in [keyed, queued, broadcast, told] {
            let waiting = Phase::Submitted { not_before: NOW, offered: Vec::new() };
            assert!(!task(submit, waiting, Effect::Read, Protocol::Http).may_stay_in_memory());
        }
    }
}
