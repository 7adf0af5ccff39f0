//! Claims about the lexical matcher as its callers see it.

use proptest::prelude::*;
use reach_core::lexical::{Document, Doubt, Evidence, Index, Intent, Match, Scratch, Thresholds, Verdict, decide};
use serde_json::Value;

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn insert(index: &mut Index, doc: u32, name: &str, description: &str, tags: &[&str], exclusions: &[&str]) {
    let (tags, exclusions) = (owned(tags), owned(exclusions));
    let document = Document { name, description, tags: &tags, exclusions: &exclusions, ..Document::default() };
    index.insert(doc, &document);
}

fn search(index: &Index, text: &str) -> Vec<Match> {
    index.search(&Intent::from(text), |_| true, 5, &mut Scratch::default())
}

fn office() -> Index {
    let mut index = Index::new();
    insert(&mut index, 1, "issue_invoice", "Draws up an invoice for a customer.", &["invoice", "开票"], &[]);
    insert(&mut index, 2, "translate_text", "把文字在中文和英文之间互译。", &["翻译"], &["does not summarize"]);
    insert(&mut index, 3, "summarize_text", "Condenses a long text.", &["summary", "摘要"], &["不翻译"]);
    index
}

#[test]
fn a_plain_request_is_accepted_in_either_language() {
    let index = office();
    for text in ["draw up an invoice for this customer", "给客户开票"] {
        let verdict = decide(&search(&index, text), &Thresholds::default());
        assert!(matches!(verdict, Verdict::Accept { doc: 1, .. }), "{text}: {verdict:?}");
    }
}

#[test]
fn a_word_finds_its_twin_in_the_other_language() {
    let index = office();
    assert_eq!(search(&index, "translate this").first().map(|found| found.doc), Some(2));
    assert_eq!(search(&index, "发票").first().map(|found| found.doc), Some(1));
}

#[test]
fn nothing_in_common_is_no_match() {
    let matches = search(&office(), "water the orchids");
    assert_eq!(decide(&matches, &Thresholds::default()), Verdict::Unsure(Doubt::Nothing));
}

#[test]
fn twins_are_left_to_someone_else() {
    let mut index = Index::new();
    insert(&mut index, 1, "print_report", "Prints a report.", &[], &[]);
    insert(&mut index, 2, "print_report", "Prints a report.", &[], &[]);
    let matches = search(&index, "print the report");
    assert_eq!(matches.iter().map(|found| found.doc).collect::<Vec<_>>(), [1, 2]);
    assert!(matches!(decide(&matches, &Thresholds::default()), Verdict::Unsure(_)));
}

/// What speaks for document 1 where so many documents print reports, and one more that says something of its own.
fn evidence_among(printers: u32, other: &str) -> Evidence {
    let mut index = office();
    let printer = Document { name: "print_report", description: "Prints a report.", ..Document::default() };
    for doc in 0..printers {
        let agent = format!("Press {doc} for every report");
        index.insert(100 + doc, &Document { agent: &agent, ..printer });
    }
    index.insert(99, &Document { description: other, ..printer });
    let found = search(&index, "print the report");
    Evidence { lead: 0.0, ..found.first().expect("some document prints reports").evidence }
}

#[test]
fn a_word_is_as_telling_however_many_offer_the_same() {
    let one = evidence_among(1, "Prints a report.");
    assert_eq!(evidence_among(50, "Prints a report."), one);
    let two = evidence_among(1, "Prints a report in colour.");
    assert!(two.wanted < one.wanted, "what says something else is counted: {two:?}, {one:?}");
}

#[test]
fn an_exclusion_pushes_down_and_is_never_accepted() {
    let mut index = office();
    insert(&mut index, 9, "edit_video", "Edits a video.", &["video"], &["does not dub voices"]);
    let matches = search(&index, "dub voices in the video");
    let found = matches.iter().find(|found| found.doc == 9).unwrap();
    assert!(found.exclusion_penalty > 0.3, "{found:?}");
    assert!(!matches!(decide(&matches, &Thresholds::default()), Verdict::Accept { doc: 9, .. }));
}

#[test]
fn what_is_put_aside_does_not_attract() {
    let index = office();
    let matches = search(&index, "不用翻译，写个摘要");
    assert_eq!(matches.first().map(|found| found.doc), Some(3));
}

#[test]
fn what_the_wall_holds_back_takes_no_place() {
    let mut index = Index::new();
    for doc in 0..500 {
        insert(&mut index, doc, "send_parcel", "Sends a parcel.", &["parcel"], &[]);
    }
    let matches = index.search(&Intent::from("send a parcel"), |doc| doc >= 497, 5, &mut Scratch::default());
    assert_eq!(matches.iter().map(|found| found.doc).collect::<Vec<_>>(), [497, 498, 499]);
}

#[test]
fn the_wall_is_asked_only_about_what_would_take_a_place() {
    let mut index = Index::new();
    for doc in 0..500 {
        insert(&mut index, doc, "send_parcel", "Sends a parcel.", &["parcel"], &[]);
    }
    let asked = std::cell::Cell::new(0);
    let keep = |_| {
        asked.set(asked.get() + 1);
        true
    };
    let matches = index.search(&Intent::from("send a parcel"), keep, 5, &mut Scratch::default());
    assert_eq!(matches.iter().map(|found| found.doc).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(asked.get() <= 64, "asked about {}", asked.get());
}

#[test]
fn passed_parameters_speak_where_words_do_not() {
    let mut index = Index::new();
    for (doc, parameter) in [(1, "invoice_no"), (2, "photo_url")] {
        let parameters = owned(&[parameter]);
        let document = Document { name: "run", parameters: &parameters, ..Document::default() };
        index.insert(doc, &document);
    }
    let intent = Intent { text: "the usual, please", parameters: &["photo_url"] };
    let matches = index.search(&intent, |_| true, 5, &mut Scratch::default());
    assert_eq!(matches.iter().map(|found| found.doc).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_removed_document_is_gone() {
    let mut index = office();
    index.remove(1);
    index.remove(1);
    assert_eq!(index.len(), 2);
    assert!(search(&index, "draw up an invoice").is_empty());
}

const WORDS: &[&str] =
    &["invoice", "print", "报表", "客户", "video", "cut", "翻译文本", "search", "查询订单", "k9", "tax", "开票"];

fn sentence() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(WORDS), 1..6).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_index_answers_the_same_whatever_its_past(
        steps in proptest::collection::vec((0u32..12, proptest::option::of((sentence(), sentence()))), 1..40),
        text in sentence(),
    ) {
        let mut grown = Index::new();
        let mut last = std::collections::BTreeMap::new();
        for (doc, step) in &steps {
            match step {
                Some((description, exclusion)) => {
                    insert(&mut grown, *doc, "job", description, &[], &[exclusion]);
                    last.insert(*doc, (description, exclusion));
                }
                None => {
                    grown.remove(*doc);
                    last.remove(doc);
                }
            }
        }
        let mut built = Index::new();
        for (doc, (description, exclusion)) in last.into_iter().rev() {
            insert(&mut built, doc, "job", description, &[], &[exclusion]);
        }
        prop_assert_eq!(search(&grown, &text), search(&built, &text));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let mut index = office();
        insert(&mut index, 7, &text, &text, &[&text], &[&text]);
        for found in search(&index, &text) {
            prop_assert!((0.0..=1.0).contains(&found.similarity));
        }
    }
}

/// A small labelled set of other trades than the ones that the weights were fitted on.
#[test]
fn the_labelled_set_is_served() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    #[expect(clippy::disallowed_methods, reason = "the set is a file; only the library may not read any")]
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let catalog: Vec<Value> = serde_json::from_str(&read("intent_catalog.json")).unwrap();
    let mut index = Index::new();
    for (doc, capability) in (0..).zip(&catalog) {
        let list = |key: &str| -> Vec<String> {
            capability[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
        };
        let parameters: Vec<String> =
            capability["input_schema"]["properties"].as_object().unwrap().keys().cloned().collect();
        let document = Document {
            name: capability["capability"].as_str().unwrap(),
            description: capability["description"].as_str().unwrap(),
            tags: &list("tags"),
            exclusions: &list("exclusions"),
            parameters: &parameters,
            ..Document::default()
        };
        index.insert(doc, &document);
    }
    let (mut lines, mut first, mut five, mut accepted, mut wrong) = (0, 0, 0, 0, 0);
    for line in (read("intent_queries.jsonl") + &read("intent_refusals.jsonl")).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let params = line["params"].as_object();
        let names: Vec<&str> = params.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let fits = |doc: u32| {
            params.is_none() || jsonschema::is_valid(&catalog[doc as usize]["input_schema"], &line["params"])
        };
        let intent = Intent { text: line["intent"].as_str().unwrap(), parameters: &names };
        let matches = index.search(&intent, fits, 5, &mut Scratch::default());
        let is_right = |found: &Match| {
            let capability = &catalog[found.doc as usize];
            let id =
                format!("{}/{}", capability["agent_id"].as_str().unwrap(), capability["capability"].as_str().unwrap());
            line["gold"].as_str() == Some(&id)
        };
        let first_is_right = matches.first().is_some_and(is_right);
        lines += usize::from(line["gold"].is_string());
        first += usize::from(first_is_right);
        five += usize::from(matches.iter().any(is_right));
        if matches!(decide(&matches, &Thresholds::default()), Verdict::Accept { .. }) {
            accepted += 1;
            wrong += usize::from(!first_is_right);
        }
    }
    assert!(first * 100 >= lines * 82, "first: {first} of {lines}");
    assert!(five * 100 >= lines * 90, "among five: {five} of {lines}");
    assert!(accepted >= 8, "accepted: {accepted}");
    assert!(wrong <= 1, "accepted and wrong: {wrong}");
}
