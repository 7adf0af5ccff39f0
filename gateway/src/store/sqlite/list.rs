//! Lists of tasks, newest first, each part by the index that serves it: nothing walks through all finished work to
//! find a few.

use std::fmt::Write;

use reach_core::task::Task;
use reach_schemas::{AgentId, PhaseName, TaskId};
use rusqlite::{Connection, params};

use super::row::{phase_number, task_of};
use crate::store::Query;

/// Greater than every id: one byte longer.
const ABOVE_ALL: [u8; 17] = [0xff; 17];

pub(super) fn list(file: &Connection, query: &Query) -> rusqlite::Result<Vec<Task>> {
    let mut found = Vec::new();
    for sql in statements(query) {
        let before = query.before.as_ref().map_or(&ABOVE_ALL[..], |id: &TaskId| &id.as_bytes()[..]);
        let agent = query.agent.as_ref().map(AgentId::as_str);
        let mut statement = file.prepare_cached(&sql)?;
        for task in statement.query_map(params![before, agent, query.scope, query.limit], task_of)? {
            found.push(task?);
        }
    }
    found.sort_by_key(|task| std::cmp::Reverse(task.id()));
    found.truncate(query.limit as usize);
    Ok(found)
}

/// One statement for each way to the tasks that are asked for. ?1 is the id before, ?2 the agent, ?3 the scope, ?4
/// the limit.
fn statements(query: &Query) -> Vec<String> {
    let wanted = |is_final: bool| -> Vec<PhaseName> {
        let phases = PhaseName::ALL.into_iter().filter(|phase| phase.is_final() == is_final);
        phases.filter(|phase| query.phases.is_empty() || query.phases.contains(phase)).collect()
    };
    let (open, done) = (wanted(false), wanted(true));
    let mut statements = Vec::new();
    if !open.is_empty() {
        // Open work is little: it is looked through.
        statements.push(statement(query, "open CROSS JOIN task USING (no)", "open", &open, ""));
    }
    if done.is_empty() {
        return statements;
    }
    if query.agent.is_some() {
        statements.push(statement(query, "done CROSS JOIN task USING (no)", "done", &done, ""));
    } else if done.contains(&PhaseName::Completed) {
        // Nearly all finished work is completed, so going back in time finds enough soon.
        statements.push(statement(query, "task CROSS JOIN done USING (no)", "task", &done, ""));
    } else {
        let badly = |phase: &PhaseName| {
            statement(query, "done CROSS JOIN task USING (no)", "done", &[*phase], " AND phase <> 4")
        };
        statements.extend(done.iter().map(badly));
    }
    statements
}

fn statement(query: &Query, tables: &str, ordered: &str, phases: &[PhaseName], more: &str) -> String {
    let mut sql = format!("SELECT birth, version, state FROM {tables} WHERE {ordered}.id < ?1{more}");
    if query.agent.is_some() {
        sql.push_str(" AND agent = ?2");
    }
    if query.scope.is_some() {
        sql.push_str(" AND scope = ?3");
    }
    if let [phase] = phases {
        // Writing to a text cannot fail.
        let _ = write!(sql, " AND phase = {}", phase_number(*phase));
    } else if !query.phases.is_empty() {
        let numbers: Vec<String> = phases.iter().map(|phase| phase_number(*phase).to_string()).collect();
        let _ = write!(sql, " AND phase IN ({})", numbers.join(", "));
    }
    let _ = write!(sql, " ORDER BY {ordered}.id DESC LIMIT ?4");
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How SQLite goes about each statement of a query.
    fn plans(query: &Query) -> Vec<String> {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(include_str!("layout_1.sql")).unwrap();
        let explain = |sql: String| {
            let mut statement = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = params![&ABOVE_ALL[..], "a@ns", "alice", 9];
            let steps = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
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
        finished("done_agent (agent=? AND id<?)", Query { agent: agent.clone(), ..Query::default() });
        finished("done_agent (agent=? AND id<?)", Query { agent, phases: badly, scope, ..Query::default() });
    }
}
