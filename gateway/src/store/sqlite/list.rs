//! Lists of tasks, newest first, each part by the index that serves it: nothing walks through all finished work to
//! find a few.

use std::fmt::{self, Write};

use reach_core::task::Task;
use reach_schemas::{AgentId, CapabilityName, ErrorCode, Namespace, PhaseName, TaskId};
use rusqlite::{Connection, ToSql, params};

use super::row::{count_of, phase_number, task_of, time};
use crate::store::Query;

/// Greater than every id: one byte longer.
const ABOVE_ALL: [u8; 17] = [0xff; 17];
/// What has no column is read out of the text: it is asked for among few, the badly ended.
const CAPABILITY: &str = "coalesce(state ->> '$.attempts[#-1].capability', state ->> '$.target.capability') = ?4";
const CODE: &str = "?5 IN (state ->> '$.phase.dead_lettered.code', state ->> '$.phase.failed.code',
                           state ->> '$.phase.expired.code')";
const FROM_NAMESPACE: &str = "substr(birth ->> '$.submit.from_agent', instr(birth ->> '$.submit.from_agent', '@') + 1)
                              = ?7";

pub(super) fn list(file: &Connection, query: &Query) -> rusqlite::Result<Vec<Task>> {
    let mut found = Vec::new();
    for chosen in statements(query) {
        let sql = format!("SELECT birth, version, state FROM {chosen} ORDER BY {} DESC LIMIT ?10", chosen.id());
        let mut statement = file.prepare_cached(&sql)?;
        bind(query, |values| {
            for task in statement.query_map(values, task_of)? {
                found.push(task?);
            }
            Ok(())
        })?;
    }
    found.sort_by_key(|task| std::cmp::Reverse(task.id()));
    found.truncate(query.limit as usize);
    Ok(found)
}

pub(super) fn count(file: &Connection, query: &Query) -> rusqlite::Result<u64> {
    let mut counted = 0;
    for chosen in statements(query) {
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {chosen} LIMIT ?10)");
        let mut statement = file.prepare_cached(&sql)?;
        counted += bind(query, |values| statement.query_row(values, |row| row.get(0).map(count_of)))?;
    }
    Ok(counted.min(query.limit.into()))
}

/// Has a statement run with the values of a query: ?1 is the id before, ?2 the agent, ?3 the scope, ?4 the capability,
/// ?5 the reason, ?6 and ?7 the agent and the namespace that asked, ?8 and ?9 the times of the end, ?10 the limit.
fn bind<T>(query: &Query, run: impl FnOnce(&[&dyn ToSql]) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let before = query.before.as_ref().map_or(&ABOVE_ALL[..], |id: &TaskId| &id.as_bytes()[..]);
    run(params![
        before,
        query.agent.as_ref().map(AgentId::as_str),
        query.scope,
        query.capability.as_ref().map(CapabilityName::as_str),
        query.code.map(ErrorCode::name),
        query.from_agent.as_ref().map(AgentId::as_str),
        query.from_namespace.as_ref().map(Namespace::as_str),
        query.ended_after.map(time),
        query.ended_before.map(time),
        query.limit,
    ])
}

/// A way to some of the tasks that are asked for: tables and conditions.
struct Chosen {
    tables: &'static str,
    /// The table whose index gives the order.
    ordered: &'static str,
    conditions: String,
}

impl Chosen {
    fn id(&self) -> String {
        format!("{}.id", self.ordered)
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} WHERE {} < ?1{}", self.tables, self.id(), self.conditions)
    }
}

/// One for each way to the tasks that are asked for.
fn statements(query: &Query) -> Vec<Chosen> {
    let wanted = |is_final: bool| -> Vec<PhaseName> {
        let phases = PhaseName::ALL.into_iter().filter(|phase| phase.is_final() == is_final);
        phases.filter(|phase| query.phases.is_empty() || query.phases.contains(phase)).collect()
    };
    let (open, done) = (wanted(false), wanted(true));
    let mut statements = Vec::new();
    if !open.is_empty() && !query.is_of_ended() {
        // Open work is little: it is looked through.
        statements.push(chosen(query, "open CROSS JOIN task USING (no)", "open", &open, ""));
    }
    if done.is_empty() {
        return statements;
    }
    if query.agent.is_some() {
        // However much an agent has finished, each phase of it is found by itself.
        let of_phase = |phase: &PhaseName| chosen(query, "done CROSS JOIN task USING (no)", "done", &[*phase], "");
        statements.extend(done.iter().map(of_phase));
    } else if done.contains(&PhaseName::Completed) {
        // Nearly all finished work is completed, so going back in time finds enough soon.
        statements.push(chosen(query, "task CROSS JOIN done USING (no)", "task", &done, ""));
    } else {
        let badly =
            |phase: &PhaseName| chosen(query, "done CROSS JOIN task USING (no)", "done", &[*phase], " AND phase <> 4");
        statements.extend(done.iter().map(badly));
    }
    statements
}

fn chosen(query: &Query, tables: &'static str, ordered: &'static str, phases: &[PhaseName], more: &str) -> Chosen {
    let mut conditions = more.to_owned();
    if let [phase] = phases {
        // Writing to a text cannot fail.
        let _ = write!(conditions, " AND phase = {}", phase_number(*phase));
    } else if !query.phases.is_empty() {
        let numbers: Vec<String> = phases.iter().map(|phase| phase_number(*phase).to_string()).collect();
        let _ = write!(conditions, " AND phase IN ({})", numbers.join(", "));
    }
    let asked = [
        (query.agent.is_some(), "agent = ?2"),
        (query.scope.is_some(), "scope = ?3"),
        (query.ended_after.is_some(), "finished_at >= ?8"),
        (query.ended_before.is_some(), "finished_at < ?9"),
        (query.capability.is_some(), CAPABILITY),
        (query.code.is_some(), CODE),
        (query.from_agent.is_some(), "birth ->> '$.submit.from_agent' = ?6"),
        (query.from_namespace.is_some(), FROM_NAMESPACE),
    ];
    for (_, condition) in asked.iter().filter(|(is_asked, _)| *is_asked) {
        let _ = write!(conditions, " AND {condition}");
    }
    Chosen { tables, ordered, conditions }
}

#[cfg(test)]
mod tests {
    use reach_schemas::Timestamp;
    use rusqlite::StatementStatus;

    use super::*;
    use crate::store::sqlite::schema::LAYOUTS;

    /// How SQLite goes about each statement of a query.
    fn plans(query: &Query) -> Vec<String> {
        let file = Connection::open_in_memory().unwrap();
        LAYOUTS.iter().for_each(|layout| file.execute_batch(layout).unwrap());
        let explain = |chosen: Chosen| {
            let order = format!("ORDER BY {} DESC LIMIT ?10", chosen.id());
            let sql = format!("EXPLAIN QUERY PLAN SELECT birth, version, state FROM {chosen} {order}");
            let mut statement = file.prepare(&sql).unwrap();
            let read = |values: &[&dyn ToSql]| {
                let steps = statement.query_map(values, |row| row.get::<_, String>(3))?;
                steps.collect::<rusqlite::Result<Vec<_>>>()
            };
            bind(query, read).unwrap().join("; ")
        };
        statements(query).into_iter().map(explain).collect()
    }

    #[test]
    fn finished_work_is_found_by_an_index_and_never_sorted() {
        let badly = vec![PhaseName::DeadLettered, PhaseName::Failed];
        let (agent, scope) = ("a@ns".parse().ok(), Some("alice".to_owned()));
        let finished = |index: &str, query: Query| {
            for plan in plans(&query).iter().filter(|plan| plan.contains("done")) {
                assert!(
                    plan.contains(index) && !plan.contains("SCAN") && !plan.contains("B-TREE"),
                    "{query:?}: {plan}"
                );
            }
        };
        finished("SEARCH task USING INDEX", Query::default());
        finished("SEARCH task USING INDEX", Query { scope: scope.clone(), ..Query::default() });
        finished("SEARCH task USING INDEX", Query { phases: vec![PhaseName::Completed], ..Query::default() });
        finished("done_badly (phase=? AND id<?)", Query { phases: badly.clone(), ..Query::default() });
        let letters = Query {
            phases: vec![PhaseName::DeadLettered],
            capability: "do".parse().ok(),
            code: Some(ErrorCode::Timeout),
            from_agent: "c@ns".parse().ok(),
            from_namespace: "ns".parse().ok(),
            ended_after: Some(Timestamp::from_ms(1)),
            ended_before: Some(Timestamp::from_ms(2)),
            ..Query::default()
        };
        finished("done_badly (phase=? AND id<?)", letters.clone());
        finished("done_agent (agent=? AND phase=? AND id<?)", Query { agent: agent.clone(), ..letters });
        finished("done_agent (agent=? AND phase=? AND id<?)", Query { agent: agent.clone(), ..Query::default() });
        finished(
            "done_agent (agent=? AND phase=? AND id<?)",
            Query { agent, phases: badly, scope, ..Query::default() },
        );
    }

    /// How many steps of its machine SQLite takes for the list of a query.
    fn effort(file: &Connection, query: &Query) -> i32 {
        let run = |chosen: Chosen| {
            let order = format!("ORDER BY {} DESC LIMIT ?10", chosen.id());
            let mut statement = file.prepare(&format!("SELECT birth, version, state FROM {chosen} {order}")).unwrap();
            let found = bind(query, |values| statement.query_map(values, task_of).map(Iterator::count)).unwrap();
            assert_eq!(found, 0);
            statement.get_status(StatementStatus::VmStep)
        };
        statements(query).into_iter().map(run).sum()
    }

    #[test]
    fn what_an_agent_rarely_comes_to_is_found_as_soon_however_much_it_has_finished() {
        let file = Connection::open_in_memory().unwrap();
        LAYOUTS.iter().for_each(|layout| file.execute_batch(layout).unwrap());
        let fill = |from: u32, to: u32| {
            let sql = format!(
                "WITH RECURSIVE n(n) AS (VALUES ({from}) UNION ALL SELECT n + 1 FROM n WHERE n < {to})
                 INSERT INTO done SELECT n, CAST(printf('%016d', n) AS BLOB), 1, 4, n, 'a@ns', '{{}}' FROM n"
            );
            file.execute_batch(&sql).unwrap();
        };
        let agent = || "a@ns".parse().ok();
        let rare = [PhaseName::Failed, PhaseName::Cancelled, PhaseName::Expired, PhaseName::DeadLettered];
        let queries = rare.map(|phase| Query { agent: agent(), phases: vec![phase], limit: 50, ..Query::default() });
        fill(1, 100);
        let few: Vec<i32> = queries.iter().map(|query| effort(&file, query)).collect();
        fill(101, 62_000);
        let many: Vec<i32> = queries.iter().map(|query| effort(&file, query)).collect();
        assert!(few.iter().all(|steps| *steps > 0));
        assert_eq!(few, many, "steps after 100 and after 62,000 finished tasks");
    }
}
