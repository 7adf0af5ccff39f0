//! What a caller wants, read into units with their weights.

use std::sync::Arc;

use super::lexicon::Lexicon;
use super::stance::{Stance, clauses};
use super::text;
use super::tuning::Tuning;
use super::unit::{Alternative, Kind, Term, Unit, units};

/// What a caller wants, in words and in the shape of what is passed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Intent<'a> {
    /// The request, in any mix of English and Chinese.
    pub text: &'a str,
    /// Names of the parameters that the caller passes. Validity is not judged here.
    pub parameters: &'a [&'a str],
}

impl<'a> From<&'a str> for Intent<'a> {
    fn from(text: &'a str) -> Self {
        Intent { text, parameters: &[] }
    }
}

/// A request longer than this is read by its weightiest units only.
const UNITS_MAX: usize = 64;
const PARAMETERS_MAX: usize = 32;

/// What a unit does for the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// It is wanted.
    Wanted,
    /// It is named only to be put aside.
    Aside,
    /// It is the name of a parameter that is passed.
    Passed,
}

pub(super) struct Wanted {
    pub(super) unit: Unit,
    pub(super) role: Role,
}

/// Reads an intent. The order of units is that of the text, so sums are the same everywhere.
pub(super) fn read(intent: &Intent<'_>, lexicon: &Lexicon, tuning: &Tuning) -> Vec<Wanted> {
    let tokens = text::tokens(&text::normalize(intent.text));
    let clauses = clauses(&tokens);
    let someone_asks = clauses.iter().any(|clause| clause.stance == Stance::Asks);
    let mut out: Vec<Wanted> = Vec::new();
    for clause in &clauses {
        let (role, factor) = match clause.stance {
            Stance::Asks => (Role::Wanted, 1.0),
            Stance::Tells if someone_asks => (Role::Wanted, tuning.told),
            Stance::Tells => (Role::Wanted, 1.0),
            Stance::Aside => (Role::Aside, 1.0),
        };
        for mut unit in units(clause.tokens, lexicon) {
            unit.weight *= factor;
            merge(Wanted { unit, role }, &mut out);
        }
    }
    keep_weightiest(&mut out);
    out.extend(intent.parameters.iter().take(PARAMETERS_MAX).map(|name| passed(name, tuning)));
    out
}

/// What is said twice is not wanted twice as much.
fn merge(wanted: Wanted, out: &mut Vec<Wanted>) {
    match out.iter_mut().find(|other| other.role == wanted.role && other.unit.text == wanted.unit.text) {
        Some(other) => other.unit.weight = other.unit.weight.max(wanted.unit.weight),
        None => out.push(wanted),
    }
}

fn keep_weightiest(out: &mut Vec<Wanted>) {
    if out.len() <= UNITS_MAX {
        return;
    }
    let mut weights: Vec<f32> = out.iter().map(|wanted| wanted.unit.weight).collect();
    weights.sort_by(|a, b| b.total_cmp(a));
    let bar = weights[UNITS_MAX - 1];
    let mut room = UNITS_MAX - weights.iter().filter(|weight| **weight > bar).count();
    out.retain(|wanted| {
        let at_bar = wanted.unit.weight == bar && room > 0;
        room -= usize::from(at_bar);
        at_bar || wanted.unit.weight > bar
    });
}

fn passed(name: &str, tuning: &Tuning) -> Wanted {
    let alternatives = vec![Alternative { term: Term::new(Kind::Parameter, name), strength: 1.0 }];
    let unit = Unit { text: Arc::from(name), alternatives, weight: tuning.passed, unknown: None };
    Wanted { unit, role: Role::Passed }
}
