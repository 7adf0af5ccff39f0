//! The audit log: shown, searched, exported, signed, and checked, by a gateway or without one.

use std::path::Path;

use agent_reach_sdk::Method;
use agent_reach_sdk::schemas::call::{
    AuditExport, AuditRows, AuditSearch, AuditTail, AuditVerified, AuditVerify, LIST_MAX, Nothing,
};
use agent_reach_sdk::schemas::{AuditCheckpoint, AuditFlaw};
use reach_core::audit::{Mark, Verifier};
use reach_gateway::audit::{Pins, Settings, Told, Trust, altered, of_wire, told, unsigned, verified};
use reach_gateway::boot::DATABASE;
use reach_gateway::store::sqlite::AuditFile;
use reach_gateway::store::{self, AuditQuery};

use crate::args::{Audit, AuditFilter};
use crate::exit::{Exit, Stop};
use crate::input;
use crate::output::Out;
use crate::render::audit as render;
use crate::session::{Session, read};

/// How many rows of a file are checked between two looks at the progress, and how many checkpoints are read at a time.
const CHUNK: u32 = 100_000;
const CHECKPOINTS: u32 = 10_000;

pub(crate) async fn run(
    command: Audit,
    session: impl AsyncFnOnce() -> Result<Session, Stop>,
    out: Out,
) -> Result<Exit, Stop> {
    match command {
        Audit::Tail { limit } => {
            let params = AuditTail { limit: Some(limit) };
            session().await?.show(Method::AuditTail, &params, render::table).await
        }
        Audit::Search { filter, limit } => search(filter, limit, &session().await?).await,
        Audit::Verify { since, data, key, accept_unsigned } => {
            let since = since.as_deref().map(checkpoint).transpose()?;
            let told = match data {
                None => online(since, &session().await?).await?,
                Some(data) => offline(&data, since.as_ref(), key.as_deref(), &out)?,
            };
            conclude(&told, accept_unsigned, &out)
        }
        Audit::Export { after } => export(after, &session().await?).await,
        Audit::Checkpoint => session().await?.show(Method::AuditCheckpoint, &Nothing {}, render::checkpoint).await,
        Audit::Accept => session().await?.show(Method::AuditAccept, &Nothing {}, render::accepted).await,
    }
}

/// Looks on where the gateway stopped looking, until there are as many as wanted or the log is at its end.
async fn search(filter: AuditFilter, limit: u32, session: &Session) -> Result<Exit, Stop> {
    let AuditFilter { kind, actor, target, outcome, code, task: task_id, since, until } = filter;
    let mut params =
        AuditSearch { kind, actor, target, outcome, code, task_id, since, until, limit: Some(limit), before: None };
    let mut found: Option<AuditRows> = None;
    loop {
        let answer: AuditRows = read(Method::AuditSearch, &session.ask(Method::AuditSearch, &params).await?)?;
        params.before = answer.next;
        let whole = match found.take() {
            Some(mut before) => {
                before.rows.extend(answer.rows);
                AuditRows { next: answer.next, ..before }
            }
            None => answer,
        };
        let left = limit.saturating_sub(u32::try_from(whole.rows.len()).unwrap_or(u32::MAX));
        let is_over = left == 0 || whole.next.is_none();
        found = Some(whole);
        if is_over {
            break;
        }
        params.limit = Some(left);
    }
    let Some(found) = found else { return Ok(Exit::Done) };
    if session.out.is_json {
        session.out.line(&json(&found)?)?;
    } else {
        session.out.text(&render::table(&found, &session.out.look()))?;
    }
    Ok(Exit::Done)
}

async fn export(mut after: Option<u64>, session: &Session) -> Result<Exit, Stop> {
    loop {
        let params = AuditExport { after, limit: Some(LIST_MAX) };
        let page: AuditRows = read(Method::AuditExport, &session.ask(Method::AuditExport, &params).await?)?;
        let lines: Vec<String> = page.rows.iter().map(json).collect::<Result<_, _>>()?;
        session.out.text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        after = page.next;
        if after.is_none() {
            return Ok(Exit::Done);
        }
    }
}

/// Has the gateway check, a part at a time.
async fn online(since: Option<AuditCheckpoint>, session: &Session) -> Result<AuditVerified, Stop> {
    let mut params = AuditVerify { since, from: None, limit: None };
    let mut whole: Option<AuditVerified> = None;
    loop {
        let part: AuditVerified = read(Method::AuditVerify, &session.ask(Method::AuditVerify, &params).await?)?;
        params.from.clone_from(&part.next);
        let told = match whole.take() {
            Some(before) => joined(before, part),
            None => part,
        };
        if params.from.is_none() {
            return Ok(told);
        }
        session.out.note(&render::so_far(&told))?;
        whole = Some(told);
    }
}

/// Two parts as if they were one.
fn joined(before: AuditVerified, part: AuditVerified) -> AuditVerified {
    let accepted = part.accepted.or(before.accepted);
    let keys = before.keys.iter().filter(|key| !part.keys.contains(key)).cloned().collect::<Vec<_>>();
    AuditVerified {
        rows: before.rows + part.rows,
        checkpoints: before.checkpoints + part.checkpoints,
        keys: [keys, part.keys].concat(),
        accepted,
        ..part
    }
}

/// Checks the file in a data folder.
fn offline(data: &Path, since: Option<&AuditCheckpoint>, key: Option<&str>, out: &Out) -> Result<AuditVerified, Stop> {
    let path = data.join(DATABASE);
    if !path.is_file() {
        return Err(Stop::Input(format!("{} is no data folder: there is no {DATABASE} in it", data.display())));
    }
    let wrong = |error: store::Error| Stop::Input(error.to_string());
    let file = AuditFile::open(&path).map_err(wrong)?;
    // What is told beside the log first: a gateway that runs writes that last.
    let beside = beside(data, key)?;
    let mut pins = Pins::new(beside.trust.clone());
    beside.pin(&mut pins);
    let altered_by = file.altered().map_err(wrong)?;
    if !altered_by.is_readable {
        let verifier = Verifier::new(Mark::origin(), []);
        return Ok(verified(&verifier, &pins, true, altered(&altered_by)));
    }
    let mut after = 0;
    loop {
        let page = file.checkpoints(after, CHECKPOINTS).map_err(wrong)?;
        let Some(last) = page.last() else { break };
        after = last.mark.seq;
        page.iter().for_each(|checkpoint| pins.add(checkpoint));
    }
    if let Some(since) = since {
        pins.keep(&of_wire(since).map_err(|no| Stop::Usage(no.to_string()))?);
    }
    let mut verifier = Verifier::new(Mark::origin(), pins.marks().iter().copied());
    loop {
        let (next, is_end) = file.check(verifier, CHUNK).map_err(wrong)?;
        verifier = next;
        if is_end {
            break;
        }
        out.note(&render::so_far(&verified(&verifier, &pins, false, None)))?;
    }
    let (head, signed) = (verifier.good().seq, pins.last());
    let next = AuditQuery { after: signed, limit: 1, ..AuditQuery::default() };
    let next = file.list(&next).map_err(wrong)?;
    let settings = Settings::default();
    let unsigned = next.first().and_then(|row| unsigned(head, signed, row.at, out.look().now, &settings));
    let end = beside.unvouched(head, signed).or(unsigned);
    Ok(verified(&verifier, &pins, true, altered(&altered_by).or(end.as_ref().map(told))))
}

/// Whose checkpoints are believed, the key that is named or else those that the folder tells; and what it tells beside the log.
fn beside(data: &Path, key: Option<&str>) -> Result<Told, Stop> {
    let kept = key.map(|key| match Trust::read(key) {
        Some(trust) => Ok(trust),
        None => Trust::of_file(Path::new(key)).map_err(|error| Stop::Usage(format!("--key {key}: {error}"))),
    });
    Told::of_folder(data, kept.transpose()?).map_err(|error| {
        let data = data.display();
        Stop::Usage(format!(
            "which key signs this log is not told in {data} (audit-key.pub): {error}; name it by --key"
        ))
    })
}

fn conclude(told: &AuditVerified, accept_unsigned: bool, out: &Out) -> Result<Exit, Stop> {
    if out.is_json {
        out.line(&json(told)?)?;
    } else {
        out.text(&render::verified(told, &out.look()))?;
    }
    let is_unsigned = told.finding.as_ref().is_some_and(|finding| finding.flaw == AuditFlaw::Unsigned);
    Ok(if told.is_whole || (is_unsigned && accept_unsigned) { Exit::Done } else { Exit::AuditBroken })
}

fn checkpoint(file: &str) -> Result<AuditCheckpoint, Stop> {
    let text = input::json_file("the checkpoint", file)?;
    text.read().map_err(|error| Stop::Input(format!("{file} holds no checkpoint: {error}")))
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Stop> {
    serde_json::to_string(value).map_err(|error| Stop::Unreadable(error.to_string()))
}
