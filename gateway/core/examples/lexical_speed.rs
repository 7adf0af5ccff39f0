//! Measures searching and changing the lexical index at three sizes of fleet, on made-up
//! capabilities whose words follow Zipf's law: `lexical_speed [SIZE...]`.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a measurement reads the clock and prints; only the library may not"
)]

use std::time::Instant;

use reach_core::lexical::{Document, Index, Intent, Scratch};

const VERBS: &[&str] = &["search", "get", "list", "create", "update", "delete", "check", "send", "report", "plan"];
const GLUE: &[&str] = &["the", "of", "a", "for", "and", "with"];

/// A vocabulary: word number `n` is drawn with a chance near 1 / n.
struct Words {
    english: Vec<String>,
    chinese: Vec<String>,
    rng: fastrand::Rng,
}

impl Words {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let english = (0..30_000).map(|_| (0..rng.usize(3..6)).map(|_| syllable(&mut rng)).collect()).collect();
        let character = |rng: &mut fastrand::Rng| {
            // Characters are skewed as well: a few hundred make up most of a text.
            let rank = zipf(rng, 3_000) as u32;
            char::from_u32(0x4e00 + rank * 6).unwrap_or('字')
        };
        let chinese = (0..30_000).map(|_| (0..2).map(|_| character(&mut rng)).collect()).collect();
        Words { english, chinese, rng }
    }

    fn english(&mut self, count: usize) -> String {
        let mut out = String::new();
        for i in 0..count {
            let at = zipf(&mut self.rng, self.english.len());
            let word = if i % 3 == 2 { GLUE[at % GLUE.len()] } else { &self.english[at] };
            out.extend([word, " "]);
        }
        out
    }

    fn chinese(&mut self, count: usize) -> String {
        (0..count).map(|_| self.chinese[zipf(&mut self.rng, self.chinese.len())].as_str()).collect()
    }

    fn name(&mut self) -> String {
        format!("{}_{}", VERBS[zipf(&mut self.rng, VERBS.len())], self.english(1).trim())
    }

    fn insert(&mut self, index: &mut Index, doc: u32) {
        let is_chinese = doc % 2 == 1;
        let description = if is_chinese { self.chinese(14) } else { self.english(16) };
        let tags = [self.english(1), self.chinese(1), self.chinese(1)];
        let exclusions =
            [if is_chinese { format!("不{}", self.chinese(3)) } else { format!("does not {}", self.english(3)) }];
        let parameters = [self.english(1).trim().to_owned(), self.english(1).trim().to_owned()];
        let name = self.name();
        let document = Document {
            name: &name,
            description: &description,
            tags: &tags,
            exclusions: &exclusions,
            parameters: &parameters,
            agent: "",
            agent_tags: &[],
        };
        index.insert(doc, &document);
    }

    fn request(&mut self, at: usize) -> String {
        if at.is_multiple_of(2) {
            format!("please find {}", self.english(9))
        } else {
            format!("请查一下{}", self.chinese(8))
        }
    }
}

fn syllable(rng: &mut fastrand::Rng) -> String {
    let consonants = b"bdfgklmnprstvz";
    let vowels = b"aeiou";
    let pick = |rng: &mut fastrand::Rng, letters: &[u8]| char::from(letters[rng.usize(..letters.len())]);
    [pick(rng, consonants), pick(rng, vowels)].iter().collect()
}

/// A rank below `most` with a chance near 1 / rank.
fn zipf(rng: &mut fastrand::Rng, most: usize) -> usize {
    let rank = ((most as f64).ln() * rng.f64()).exp();
    (rank as usize).saturating_sub(1).min(most - 1)
}

fn quantiles(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize];
    format!("median {:>7.1} us, 99th {:>7.1} us, worst {:>7.1} us", at(0.5), at(0.99), at(1.0))
}

/// How often a bounded scan answers as one without bound.
fn agreement(index: &Index, words: &mut Words, scratch: &mut Scratch) -> String {
    let mut unbounded = Scratch::with_scanned_max(usize::MAX);
    let (mut first, mut five, mut all) = (0, 0, 0);
    for at in 0..400 {
        let text = words.request(at);
        let intent = Intent::from(text.as_str());
        let docs = |scratch: &mut Scratch| -> Vec<u32> {
            index.search(&intent, |_| true, 5, scratch).iter().map(|found| found.doc).collect()
        };
        let (quick, whole) = (docs(scratch), docs(&mut unbounded));
        first += usize::from(quick.first() == whole.first());
        all += whole.len();
        five += quick.iter().filter(|doc| whole.contains(doc)).count();
    }
    format!("as without bound: first {:.1} %, of five {:.1} %", first as f64 / 4.0, 100.0 * five as f64 / all as f64)
}

fn main() {
    let mut sizes: Vec<u32> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![10, 1_000, 100_000];
    }
    for size in sizes {
        let mut words = Words::new(7);
        let mut index = Index::new();
        let start = Instant::now();
        for doc in 0..size {
            words.insert(&mut index, doc);
        }
        println!("{size} documents, built in {:.2} s", start.elapsed().as_secs_f64());
        let mut scratch = Scratch::default();
        let (mut times, mut found) = (Vec::new(), 0);
        for at in 0..2_000 {
            let text = words.request(at);
            let mut time = || {
                let start = Instant::now();
                found += index.search(&Intent::from(text.as_str()), |doc| doc % 16 != 0, 5, &mut scratch).len();
                start.elapsed().as_secs_f64() * 1e6
            };
            // The best of five tells the work from the neighbours on a shared machine.
            times.push((0..5).map(|_| time()).fold(f64::INFINITY, f64::min));
        }
        println!("  search  {} ({found} found)", quantiles(&mut times));
        println!("  {}", agreement(&index, &mut words, &mut scratch));
        let (mut inserts, mut removes) = (Vec::new(), Vec::new());
        for _ in 0..500 {
            let doc = words.rng.u32(..size);
            let start = Instant::now();
            index.remove(doc);
            removes.push(start.elapsed().as_secs_f64() * 1e6);
            let start = Instant::now();
            words.insert(&mut index, doc);
            inserts.push(start.elapsed().as_secs_f64() * 1e6);
        }
        println!("  insert  {}", quantiles(&mut inserts));
        println!("  remove  {}", quantiles(&mut removes));
    }
}
