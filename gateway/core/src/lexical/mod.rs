//! Matches an intent with capabilities by their words alone: English and Chinese, no model, no
//! network. BM25 over fields with pairs of characters for scripts without spaces, stems for
//! English, a small dictionary of general words between the two, exclusions that push down, and
//! a similarity that says how sure the match is. It never guesses: [`decide`] abstains.

mod candidates;
mod document;
mod index;
mod intent;
mod lexicon;
mod rarity;
mod reading;
mod search;
mod spelling;
mod stance;
mod stop;
mod text;
mod tuning;
mod unit;
mod verdict;

pub use candidates::{SCANNED_MAX, Scratch};
pub use document::Document;
pub use index::Index;
pub use intent::Intent;
pub use reading::Reading;
pub use search::{Match, MatchedTerm, TERMS_MAX};
pub use tuning::Tuning;
pub use verdict::{Doubt, Evidence, Thresholds, Verdict, decide};
