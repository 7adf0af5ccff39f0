//! The capabilities that the example agents declare.

use agent_reach_sdk::{Capability, Effect, RawJson, Result, Tier, capability};

fn schema(text: &str) -> Option<RawJson> {
    RawJson::parse(text).ok()
}

const FILE: &str = r#"{"type":"object","properties":{"path":{"type":"string","description":"the file to read"},"pace_ms":{"type":"integer","minimum":0,"maximum":1000,"description":"how long to dwell on each sentence"}},"required":["path"],"additionalProperties":false}"#;
const SUMMARY: &str = r#"{"type":"object","required":["title","words","summary"],"properties":{"title":{"type":"string"},"words":{"type":"integer"},"summary":{"type":"array","items":{"type":"string"}}}}"#;

/// `summarize_document`: a file in, its leading thoughts out.
///
/// # Errors
/// Never: the name is a good one.
pub fn summarize(weight: u8) -> Result<Capability> {
    Ok(Capability {
        description: "Reads a document and gives a short summary of its main points. 阅读文档并给出要点摘要。"
            .to_owned(),
        tags: words(&["summary", "summarize", "document", "text", "摘要", "总结", "文档"]),
        exclusions: words(&["does not translate", "does not count log errors"]),
        input_schema: schema(FILE),
        output_schema: schema(SUMMARY),
        routing_weight: weight,
        tier: Tier::Normal,
        effect: Effect::Read,
        cancellable: true,
        ..capability("summarize_document")?
    })
}

/// `stamp_document`: a `write`: it adds one line to a register and must never do so twice.
///
/// # Errors
/// Never: the name is a good one.
pub fn stamp() -> Result<Capability> {
    Ok(Capability {
        description: "Enters a document into the register under the next number. 登记文档并编号。".to_owned(),
        tags: words(&["register", "stamp", "number", "登记", "编号"]),
        input_schema: schema(FILE),
        tier: Tier::Fast,
        effect: Effect::Write,
        ..capability("stamp_document")?
    })
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}
