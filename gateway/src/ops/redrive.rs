//! Dead letters sent again: those that are named, or all that a filter fits, at a rate. When each goes is in the commit that
//! redrives it, so whatever happens to this gateway, none is lost, none goes twice, and the rate holds.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use reach_core::access::{Caller, Grant};
use reach_core::task::{Event, Refusal, Task};
use reach_schemas::call::{LIST_MAX, REDRIVE_AT_ONCE_MAX, REDRIVE_RATE, REDRIVE_RATE_MAX, Redrive, Redriven, Refused};
use reach_schemas::{ErrorCode, Failure, PhaseName, Span, TaskId, Timestamp};

use super::bounds;
use crate::gateway::{Gateway, NotApplied, task_not_found};
use crate::store::Query;

/// How many dead letters are read at a time.
const PAGE: u32 = 100;
/// How many are redriven at once: what one commit of the group takes in.
const AT_ONCE: usize = 50;
/// How many a dry run shows.
const SAMPLE: u32 = 10;

/// Which dead letters are meant.
enum Which {
    Named(Vec<TaskId>),
    Fitting(Query),
}

/// When each of them goes.
struct Pace {
    rate: Option<u32>,
    /// When the next goes, in microseconds, so that rates beyond 1000/s and those that do not divide it hold too.
    next_us: u64,
}

impl Pace {
    fn new(rate: Option<u32>, begin: Timestamp) -> Self {
        Self { rate, next_us: begin.as_ms() * 1000 }
    }

    fn next(&mut self) -> Timestamp {
        let at = Timestamp::from_ms(self.next_us.div_ceil(1000));
        self.next_us += self.rate.map_or(0, |rate| 1_000_000 / u64::from(rate));
        at
    }
}

/// What became of one of them.
enum Sent {
    Again,
    /// Somebody else was first, or it was forgotten.
    Gone,
    Refused(Failure),
}

fn invalid(message: &str) -> Failure {
    Failure::new(ErrorCode::InvalidParams, message)
}

/// Which are meant: named, or fitting, or all, and nothing of two kinds.
fn which(request: &Redrive) -> Result<Which, Failure> {
    let query = Query {
        phases: vec![PhaseName::DeadLettered],
        agent: request.agent_id.clone(),
        capability: request.capability.clone(),
        code: request.code,
        from_agent: request.from_agent.clone(),
        from_namespace: request.from_namespace.clone(),
        ended_after: request.ended_after,
        ended_before: request.ended_before,
        ..Query::default()
    };
    let has_filter = query != Query { phases: query.phases.clone(), ..Query::default() };
    match (request.task_ids.is_empty(), has_filter, request.all) {
        (false, false, false) => Ok(Which::Named(request.task_ids.clone())),
        (true, true, false) | (true, false, true) => Ok(Which::Fitting(query)),
        (true, false, false) => Err(invalid("say which: `task_ids`, at least one field of the filter, or `all`")),
        (_, _, _) => Err(invalid("say which in one way only: `task_ids`, fields of the filter, or `all`")),
    }
}

impl Gateway {
    /// Sends dead letters again, under their own ids.
    ///
    /// # Errors
    /// It is not said which, more are asked for than one call may send, or the store cannot be read. What becomes of each is
    /// in the answer.
    pub async fn redrive(&self, grant: Grant, request: Redrive) -> Result<Redriven, Failure> {
        let which = which(&request)?;
        let limit = bounds::named("task_ids", request.task_ids.len(), request.limit, LIST_MAX)?;
        request.rate.map_or(Ok(0), |rate| bounds::count("rate", rate, REDRIVE_RATE_MAX))?;
        bounds::work("deadline", request.deadline)?;
        let _one_at_a_time = self.redriving.lock().await;
        // What ends from now on, some of these among it, is no part of this call.
        let as_of = self.now() + Span::from_ms(1);
        match which {
            Which::Named(mut task_ids) => {
                let answer = Answer::new(grant.caller(), task_ids.len() as u64, request.rate, as_of);
                task_ids.truncate(limit as usize);
                self.redrive_named(task_ids, answer, &request).await
            }
            Which::Fitting(query) => {
                let by = query.ended_before.map_or(as_of, |given| given.min(as_of));
                let query = Query { ended_before: Some(by), ..query };
                let matched = self.store.count(Query { limit: u32::MAX, ..query.clone() }).await?;
                let usual = (matched > REDRIVE_AT_ONCE_MAX.into()).then_some(REDRIVE_RATE);
                let answer = Answer::new(grant.caller(), matched, request.rate.or(usual), as_of);
                self.redrive_fitting(query, limit, answer, &request).await
            }
        }
    }

    async fn redrive_named(
        &self,
        task_ids: Vec<TaskId>,
        mut answer: Answer,
        request: &Redrive,
    ) -> Result<Redriven, Failure> {
        let mut tasks = Vec::new();
        for task_id in task_ids {
            match self.dead_letter_of(task_id).await {
                Ok(task) => tasks.push(task),
                Err(failure) => answer.note(task_id, Sent::Refused(failure)),
            }
        }
        let mut pace = self.pace(answer.redriven.rate, |_| true);
        if request.dry_run {
            answer.would_send(&mut pace, tasks.len());
            answer.redriven.sample = tasks.iter().take(SAMPLE as usize).map(|task| task.view()).collect();
        } else {
            self.send_page(tasks, &mut pace, &mut answer, request.deadline).await;
        }
        Ok(answer.finish())
    }

    async fn redrive_fitting(
        &self,
        query: Query,
        limit: u32,
        mut answer: Answer,
        request: &Redrive,
    ) -> Result<Redriven, Failure> {
        // Those that were spread before have left their end behind; the rest of the filter still tells them.
        let own = Query { phases: Vec::new(), code: None, ended_after: None, ended_before: None, ..query.clone() };
        let mut pace = self.pace(answer.redriven.rate, |task| own.fits(task));
        if request.dry_run {
            let sample = self.store.list(Query { limit: SAMPLE.min(limit), ..query }).await?;
            answer.redriven.sample = sample.iter().map(Task::view).collect();
            answer.would_send(&mut pace, answer.redriven.matched.min(limit.into()) as usize);
            return Ok(answer.finish());
        }
        let (mut left, mut before) = (limit, query.before);
        while left > 0 {
            if let Some(full) = self.is_full() {
                answer.redriven.stopped = Some(full);
                break;
            }
            let page = self.store.list(Query { before, limit: PAGE.min(left), ..query.clone() }).await?;
            let Some(last) = page.last() else { break };
            before = Some(last.id());
            left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(left));
            self.send_page(page.into_iter().map(Arc::new).collect(), &mut pace, &mut answer, request.deadline).await;
        }
        Ok(answer.finish())
    }

    /// From when on they go: behind those like them that an earlier call has spread.
    fn pace(&self, rate: Option<u32>, like_them: impl Fn(&Task) -> bool) -> Pace {
        let now = self.now();
        let mut pace = Pace::new(rate, now);
        if let Some(last) = rate.and_then(|_| self.open.spread_until(now, like_them)) {
            pace = Pace::new(rate, last);
            pace.next();
        }
        pace
    }

    async fn send_page(&self, page: Vec<Arc<Task>>, pace: &mut Pace, answer: &mut Answer, deadline: Option<Span>) {
        let timed: Vec<_> = page.into_iter().map(|task| (task, pace.next())).collect();
        if answer.redriven.rate.is_some() {
            answer.redriven.spread_until = timed.last().map(|(_, at)| *at).or(answer.redriven.spread_until);
        }
        let by = &answer.by.clone();
        let sent = timed.into_iter().map(|(task, not_before)| async move {
            let sent = self.send_one(by, &task, not_before, deadline).await;
            (task.id(), sent)
        });
        let mut sent = stream::iter(sent).buffered(AT_ONCE);
        while let Some((task_id, sent)) = sent.next().await {
            answer.note(task_id, sent);
        }
    }

    /// Redrives a task as it was read, and only so: who sees it at the same time may do it once.
    async fn send_one(&self, by: &Caller, task: &Arc<Task>, not_before: Timestamp, deadline: Option<Span>) -> Sent {
        let deadline_at = not_before + deadline.unwrap_or_else(|| self.usual_deadline(task));
        match self.apply_to_for(Some(by), task, Event::Redrive { not_before, deadline_at }).await {
            Ok(Some(_)) => Sent::Again,
            Ok(None) | Err(NotApplied::NotFound | NotApplied::Refused(Refusal::Already)) => Sent::Gone,
            Err(error @ (NotApplied::Refused(_) | NotApplied::Store(_))) => Sent::Refused(error.into()),
        }
    }

    async fn dead_letter_of(&self, task_id: TaskId) -> Result<Arc<Task>, Failure> {
        let task = self.load(task_id).await?.ok_or_else(task_not_found)?;
        if task.state.phase.name() == PhaseName::DeadLettered {
            return Ok(task);
        }
        let message = format!("the task is {}, not a dead letter", task.state.phase.name().as_str());
        Err(Failure::new(ErrorCode::WrongPhase, message))
    }
}

/// The answer as it comes together.
struct Answer {
    redriven: Redriven,
    /// Who sends them.
    by: Caller,
}

impl Answer {
    fn new(by: &Caller, matched: u64, rate: Option<u32>, as_of: Timestamp) -> Self {
        let redriven = Redriven {
            redriven: Vec::new(),
            refused: Vec::new(),
            matched,
            remaining: 0,
            gone: 0,
            rate,
            spread_until: None,
            as_of,
            sample: Vec::new(),
            stopped: None,
        };
        Self { redriven, by: by.clone() }
    }

    fn note(&mut self, task_id: TaskId, sent: Sent) {
        match sent {
            Sent::Again => self.redriven.redriven.push(task_id),
            Sent::Gone => self.redriven.gone += 1,
            Sent::Refused(failure) => self.redriven.refused.push(Refused { task_id, failure }),
        }
    }

    fn would_send(&mut self, pace: &mut Pace, count: usize) {
        if self.redriven.rate.is_some() {
            self.redriven.spread_until = (0..count).map(|_| pace.next()).last();
        }
    }

    fn finish(mut self) -> Redriven {
        let done = self.redriven.redriven.len() + self.redriven.refused.len();
        self.redriven.remaining = self.redriven.matched.saturating_sub(done as u64 + self.redriven.gone);
        self.redriven
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_holds_its_rate_and_none_is_no_pace() {
        let begin = Timestamp::from_ms(5_000);
        let times = |rate: Option<u32>, count: usize| -> Vec<u64> {
            let mut pace = Pace::new(rate, begin);
            (0..count).map(|_| pace.next().since(begin).as_ms()).collect()
        };
        assert_eq!(times(None, 3), [0, 0, 0]);
        assert_eq!(times(Some(1), 3), [0, 1000, 2000]);
        assert_eq!(times(Some(3), 4), [0, 334, 667, 1000]);
        assert_eq!(times(Some(1000), 3), [0, 1, 2]);
        for rate in 1..=REDRIVE_RATE_MAX {
            let times = times(Some(rate), 2 * rate as usize);
            let within = |from: u64| times.iter().filter(|at| (from..from + 1000).contains(*at)).count();
            assert!(within(0) <= rate as usize + 1 && within(500) <= rate as usize + 1, "{rate}: {}", within(0));
        }
    }

    #[test]
    fn it_must_be_said_which_in_one_way() {
        let named = Redrive { task_ids: vec![TaskId::from_parts(1, 1)], ..Redrive::default() };
        let all = Redrive { all: true, ..Redrive::default() };
        let timed = Redrive { ended_before: Some(Timestamp::from_ms(1)), ..Redrive::default() };
        for request in [&named, &all, &timed] {
            assert!(which(request).is_ok(), "{request:?}");
        }
        let code = Some(ErrorCode::Timeout);
        for request in [
            Redrive::default(),
            Redrive { rate: Some(1), limit: Some(2), dry_run: true, ..Redrive::default() },
            Redrive { code, ..named.clone() },
            Redrive { all: true, ..named },
            Redrive { code, ..all },
        ] {
            let refused = which(&request).err().map(|failure| failure.code);
            assert_eq!(refused, Some(ErrorCode::InvalidParams), "{request:?}");
        }
    }
}
