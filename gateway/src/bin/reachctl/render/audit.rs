//! The audit log: rows, what a verification found, and a checkpoint.

use agent_reach_sdk::schemas::call::{AuditRows, AuditVerified};
use agent_reach_sdk::schemas::{AuditCheckpoint, AuditFlaw, AuditRow};

use super::text::{clean, count, one_line, when};
use super::{Grid, Look, Shape, Tone, sheet};

/// From this width on, what became of a row stands in a column of its own beside whom it is about.
const WIDE: u16 = 110;

/// Rows, as they come. Ids stand where there is room for them, so that they can be copied.
pub(crate) fn table(answer: &AuditRows, look: &Look) -> String {
    if answer.rows.is_empty() {
        return "no rows\n".to_owned();
    }
    let is_wide = look.width >= WIDE;
    let mut grid = Grid::new(if is_wide {
        &[
            ("SEQ, WHEN", Shape::Fixed),
            ("WHAT", Shape::Fixed),
            ("WHO, ON WHOM", Shape::Text),
            ("OUTCOME, WHY", Shape::Text),
        ]
    } else {
        &[("SEQ, WHEN", Shape::Fixed), ("WHAT, OUTCOME", Shape::Fixed), ("WHO, ON WHOM, WHY", Shape::Text)]
    });
    for row in &answer.rows {
        let seq = format!("{}\n{}", row.seq, when(row.at, look.now));
        let what = [Some(row.kind.clone()), (row.count != 1).then(|| format!("{} times", row.count))];
        let who = [Some(row.actor.clone()), row.target.clone(), row.task_id.map(|id| id.to_string())];
        let outcome = [Some(row.outcome.clone())];
        let why = [row.code.clone(), row.reason.clone()];
        if is_wide {
            grid.row(tone(row), [seq, lines(&[&what]), lines(&[&who]), lines(&[&outcome, &why])]);
        } else {
            grid.row(tone(row), [seq, lines(&[&what, &outcome]), lines(&[&who, &why])]);
        }
    }
    grid.render(look)
}

/// What there is of these, a line each.
fn lines(parts: &[&[Option<String>]]) -> String {
    parts.iter().copied().flatten().flatten().map(|line| one_line(line)).collect::<Vec<_>>().join("\n")
}

fn tone(row: &AuditRow) -> Tone {
    if row.outcome == "OK" { Tone::Plain } else { Tone::Warn }
}

/// How far a verification is.
pub(crate) fn so_far(told: &AuditVerified) -> String {
    format!("{} are good so far", count(usize::try_from(told.rows).unwrap_or(usize::MAX), "row", "rows"))
}

/// What a verification found.
pub(crate) fn verified(told: &AuditVerified, look: &Look) -> String {
    let rows = count(usize::try_from(told.rows).unwrap_or(usize::MAX), "row", "rows");
    let checkpoints =
        count(usize::try_from(told.checkpoints).unwrap_or(usize::MAX), "signed checkpoint", "signed checkpoints");
    let mut text = match &told.finding {
        None => look.paint(Tone::Good, &format!("the audit log is whole: {rows}, {checkpoints}")),
        Some(finding) if finding.flaw == AuditFlaw::Unsigned => {
            let said = format!("the audit log is not signed at its end: {}", clean(&finding.message));
            format!("{}\n{rows} and {checkpoints} are good", look.paint(Tone::Bad, &said))
        }
        Some(finding) if [AuditFlaw::Unvouched, AuditFlaw::Altered].contains(&finding.flaw) => {
            let said = format!("the audit log cannot be relied on: {}", clean(&finding.message));
            format!("{}\n{rows} and {checkpoints} hang together", look.paint(Tone::Bad, &said))
        }
        Some(finding) => {
            let said = format!("the audit log is bad at row {}: {}", finding.seq, clean(&finding.message));
            format!("{}\n{rows} before it and {checkpoints} are good", look.paint(Tone::Bad, &said))
        }
    };
    text.push('\n');
    if told.is_whole && told.checkpoints == 0 {
        text.push_str("no checkpoint pins it: whether its end was cut off cannot be told for certain\n");
    }
    if let Some(row) = told.accepted {
        text.push_str(&format!(
            "at row {row} an administrator accepted the log as it was, not as it had been signed: what is before is vouched for by nobody\n"
        ));
    }
    for key in &told.keys {
        text.push_str(&format!("signed by {}\n", clean(key)));
    }
    text
}

/// A log that was not as it was signed, and is signed again.
pub(crate) fn accepted(signed: &AuditCheckpoint, look: &Look) -> String {
    let said = format!("accepted, and signed from row {} on; what is before is vouched for by nobody\n\n", signed.seq);
    look.paint(Tone::Warn, &said) + &checkpoint(signed, look)
}

/// A checkpoint.
pub(crate) fn checkpoint(checkpoint: &AuditCheckpoint, look: &Look) -> String {
    let rows = [
        ("row", Tone::Head, checkpoint.seq.to_string()),
        ("hash", Tone::Plain, checkpoint.hash.clone()),
        ("signed", Tone::Plain, when(checkpoint.at, look.now)),
        ("key", Tone::Plain, checkpoint.key.clone()),
        ("signature", Tone::Plain, checkpoint.signature.clone()),
    ];
    let mut text = sheet(rows, look);
    text.push_str("\nto keep it elsewhere: reachctl audit checkpoint --json > checkpoint.json\n");
    text
}
