//! Measures the lexical matcher on a labelled set: `intent_eval CATALOG QUERIES REFUSALS`.
//!
//! Options: `--no-lexicon`, `--accept X`, `--margin X`, `--set WEIGHT=X` (repeatable),
//! `--half 0|1` (only lines with an even or odd number), `--misses` (what went wrong),
//! `--evidence` (a table of evidence for fitting, in place of the report).

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a measurement reads the clock and prints; only the library may not"
)]

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use reach_core::lexical::{Document, Index, Intent, Match, Scratch, Thresholds, Tuning, Verdict, decide};
use serde_json::Value;

struct Capability {
    id: String,
    validator: jsonschema::Validator,
}

struct Line {
    id: String,
    text: String,
    params: Option<Value>,
    right: Vec<String>,
    near: Vec<String>,
    kind: String,
    language: String,
}

impl Line {
    /// The names of the parameters that are passed.
    fn names(&self) -> Vec<&str> {
        self.params.iter().filter_map(Value::as_object).flatten().map(|(name, _)| name.as_str()).collect()
    }
}

struct Options {
    files: Vec<String>,
    tuning: Tuning,
    thresholds: Thresholds,
    has_lexicon: bool,
    half: Option<u32>,
    shows_misses: bool,
    shows_evidence: bool,
}

#[derive(Default)]
struct Tally {
    lines: usize,
    first: usize,
    five: usize,
    accepted: usize,
    wrong: usize,
    refused: usize,
    refusals: usize,
    micros: Vec<f64>,
}

fn main() -> Result<()> {
    let options = options()?;
    let [catalog, queries, refusals] = options.files.as_slice() else {
        bail!("usage: intent_eval CATALOG QUERIES REFUSALS [options]");
    };
    let (index, capabilities) = load_catalog(catalog, &options)?;
    let mut lines = load_lines(queries)?;
    lines.extend(load_lines(refusals)?);
    lines.retain(|line| options.half.is_none_or(|half| number(&line.id) % 2 == half));
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for line in &lines {
        let (matches, micros) = decide_line(&index, &capabilities, line);
        let verdict = decide(&matches, &options.thresholds);
        if options.shows_evidence {
            print_evidence(line, &matches, &capabilities);
        }
        if options.shows_misses {
            print_miss(&index, line, &matches, &verdict, &capabilities);
        }
        for key in [format!("kind {}", line.kind), format!("lang {}", line.language), "total".into()] {
            tallies.entry(key).or_default().add(line, &matches, &verdict, micros, &capabilities);
        }
    }
    if !options.shows_evidence {
        report(&tallies);
    }
    Ok(())
}

fn options() -> Result<Options> {
    let mut options = Options {
        files: Vec::new(),
        tuning: Tuning::default(),
        thresholds: Thresholds::default(),
        has_lexicon: true,
        half: None,
        shows_misses: false,
        shows_evidence: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--no-lexicon" => options.has_lexicon = false,
            "--misses" => options.shows_misses = true,
            "--evidence" => options.shows_evidence = true,
            "--accept" => options.thresholds.accept = value()?.parse()?,
            "--margin" => options.thresholds.margin = value()?.parse()?,
            "--half" => options.half = Some(value()?.parse()?),
            "--set" => set(&mut options.tuning, &value()?)?,
            _ => options.files.push(argument),
        }
    }
    Ok(options)
}

fn set(tuning: &mut Tuning, assignment: &str) -> Result<()> {
    let (name, value) = assignment.split_once('=').context("expected WEIGHT=X")?;
    let field = match name {
        "name" => &mut tuning.name,
        "tag" => &mut tuning.tag,
        "description" => &mut tuning.description,
        "parameter" => &mut tuning.parameter,
        "agent" => &mut tuning.agent,
        "saturation" => &mut tuning.saturation,
        "length" => &mut tuning.length,
        "usual_length" => &mut tuning.usual_length,
        "imagined" => &mut tuning.imagined,
        "told" => &mut tuning.told,
        "aside" => &mut tuning.aside,
        "exclusion" => &mut tuning.exclusion,
        "agreed" => &mut tuning.agreed,
        "passed" => &mut tuning.passed,
        _ => bail!("no weight is called {name}"),
    };
    *field = value.parse()?;
    Ok(())
}

fn load_catalog(path: &str, options: &Options) -> Result<(Index, Vec<Capability>)> {
    let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
    let catalog: Vec<Value> = serde_json::from_str(&text)?;
    let mut index = Index::with(options.tuning, options.has_lexicon);
    let mut capabilities = Vec::new();
    for (doc, capability) in catalog.iter().enumerate() {
        let schema = capability.get("input_schema").cloned().unwrap_or(Value::Bool(true));
        let parameters = parameters(&schema);
        let (name, agent) = (string(capability, "capability"), string(capability, "agent_id"));
        index.insert(
            u32::try_from(doc)?,
            &Document {
                name: &name,
                description: &string(capability, "description"),
                tags: &strings(capability, "tags"),
                exclusions: &strings(capability, "exclusions"),
                parameters: &parameters,
                agent: &string(capability, "agent_description"),
                agent_tags: &[],
            },
        );
        let validator = jsonschema::validator_for(&schema)?;
        capabilities.push(Capability { id: format!("{agent}/{name}"), validator });
    }
    Ok((index, capabilities))
}

fn parameters(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut out = Vec::new();
    for (name, property) in properties.into_iter().flatten() {
        out.push(name.clone());
        out.extend(property.get("description").and_then(Value::as_str).map(str::to_owned));
    }
    out
}

fn load_lines(path: &str) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
    let lines = text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let value: Value = serde_json::from_str(line)?;
        let mut right = strings(&value, "also_ok");
        right.extend(value.get("gold").and_then(Value::as_str).map(str::to_owned));
        Ok(Line {
            id: string(&value, "id"),
            text: string(&value, "intent"),
            params: value.get("params").filter(|params| params.is_object()).cloned(),
            near: strings(&value, "near"),
            kind: if right.is_empty() { "(refusal)".into() } else { string(&value, "kind") },
            language: string(&value, "lang"),
            right,
        })
    });
    lines.collect()
}

fn string(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or("").to_owned()
}

fn strings(value: &Value, key: &str) -> Vec<String> {
    let items = value.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn number(id: &str) -> u32 {
    id.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

/// Searches once to answer and some more times to measure; the schema filter is not measured.
fn decide_line(index: &Index, capabilities: &[Capability], line: &Line) -> (Vec<Match>, f64) {
    let names = line.names();
    let valid: Vec<bool> = capabilities
        .iter()
        .map(|capability| line.params.as_ref().is_none_or(|params| capability.validator.is_valid(params)))
        .collect();
    let intent = Intent { text: &line.text, parameters: &names };
    let keep = |doc: u32| valid[doc as usize];
    let mut scratch = Scratch::default();
    let mut times = Vec::new();
    let mut matches = Vec::new();
    for _ in 0..15 {
        let start = Instant::now();
        matches = index.search(&intent, keep, 5, &mut scratch);
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    (matches, times[times.len() / 2])
}

impl Tally {
    fn add(&mut self, line: &Line, matches: &[Match], verdict: &Verdict, micros: f64, capabilities: &[Capability]) {
        let is_right = |found: &Match| line.right.contains(&capabilities[found.doc as usize].id);
        self.micros.push(micros);
        let accepted = matches!(verdict, Verdict::Accept { .. });
        let first_is_right = matches.first().is_some_and(is_right);
        self.accepted += usize::from(accepted);
        self.wrong += usize::from(accepted && !first_is_right);
        if line.right.is_empty() {
            self.refusals += 1;
            self.refused += usize::from(!accepted);
        } else {
            self.lines += 1;
            self.first += usize::from(first_is_right);
            self.five += usize::from(matches.iter().take(5).any(is_right));
        }
    }
}

fn report(tallies: &BTreeMap<String, Tally>) {
    println!(
        "{:<20} {:>4} {:>6} {:>6} {:>9} {:>6} {:>9} {:>8}",
        "", "n", "top-1", "top-5", "accepted", "wrong", "refused", "us"
    );
    for (key, tally) in tallies {
        let share = |part: usize| match tally.lines {
            0 => "-".to_owned(),
            lines => format!("{:.0}%", 100.0 * part as f64 / lines as f64),
        };
        let mut micros = tally.micros.clone();
        micros.sort_by(f64::total_cmp);
        println!(
            "{key:<20} {:>4} {:>6} {:>6} {:>9} {:>6} {:>9} {:>8.1}",
            tally.lines + tally.refusals,
            share(tally.first),
            share(tally.five),
            tally.accepted,
            tally.wrong,
            if tally.refusals > 0 { format!("{}/{}", tally.refused, tally.refusals) } else { "-".into() },
            micros[micros.len() / 2],
        );
    }
    if let Some(total) = tallies.get("total") {
        let all = (total.lines + total.refusals) as f64;
        println!(
            "dares to accept {:.1} % of all, {:.1} % of all are accepted and wrong",
            100.0 * total.accepted as f64 / all,
            100.0 * total.wrong as f64 / all
        );
    }
}

fn print_miss(index: &Index, line: &Line, matches: &[Match], verdict: &Verdict, capabilities: &[Capability]) {
    let accepted = matches!(verdict, Verdict::Accept { .. });
    let is_right = matches.first().is_some_and(|found| line.right.contains(&capabilities[found.doc as usize].id));
    if is_right || (line.right.is_empty() && !accepted) {
        return;
    }
    println!("{} [{}] {:?} {} -> {:?}", line.id, line.kind, verdict, line.text, line.right);
    let names = line.names();
    let reading = index.read(&Intent { text: &line.text, parameters: &names });
    for found in matches.iter().take(3) {
        let terms = reading.explain(found.doc);
        let terms: Vec<String> = terms.iter().map(|term| format!("{} {:.1}", term.text, term.score)).collect();
        println!(
            "    {:<32} {:.2} sim {:.2} excl {:.2} | {}",
            capabilities[found.doc as usize].id,
            found.score,
            found.similarity,
            found.exclusion_penalty,
            terms.join(", ")
        );
    }
    if !line.near.is_empty() {
        println!("    near: {:?}", line.near);
    }
}

fn print_evidence(line: &Line, matches: &[Match], capabilities: &[Capability]) {
    let Some(first) = matches.first() else { return };
    let right = line.right.contains(&capabilities[first.doc as usize].id);
    let e = first.evidence;
    let valid = line.params.is_some();
    println!(
        "{}\t{}\t{}\t{valid}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
        line.id,
        line.kind,
        u8::from(right),
        capabilities[first.doc as usize].id,
        e.score,
        e.wanted,
        e.met,
        e.coverage,
        e.shape,
        e.excluded,
        e.agreed,
        e.lead
    );
}
