//! The front is held to the vectors of `schemas/vectors/jsonrpc.json`.

#[path = "../../../tests/common/vectors.rs"]
mod reader;

use super::super::Limits;
use super::answer_now;

#[test]
fn every_vector_is_met() {
    let missed = reader::vectors().into_iter().filter_map(|vector| {
        let answer = answer_now(&vector.frame(), &Limits::default());
        let answer = answer.as_deref().map(|bytes| std::str::from_utf8(bytes).unwrap());
        (!vector.is_met_by(answer)).then(|| format!("{}: {}", vector.name, answer.unwrap_or("nothing")))
    });
    let missed = missed.collect::<Vec<_>>();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
