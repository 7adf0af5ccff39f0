//! The layers of the gateway: each module has one, and names nothing above it. Edges (concrete stores, buses and
//! adapters) are named by assembly alone.

use std::collections::BTreeSet;

use crate::paths;
use crate::source::{File, Tree, code, without_tests};

/// The layers, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// L2: traits, and the plain words between layers.
    Port,
    /// L3: a concrete store, bus or adapter.
    Edge,
    /// L4: what the gateway does.
    UseCase,
    /// L5: text or typed request in, answer out.
    Dialect,
    /// L6: moves bytes.
    Transport,
    /// L7: puts it all together.
    Assembly,
}

/// Which module belongs to which layer; the longest path that fits counts. A new module gets its line here.
const LAYERS: &[(&str, Layer)] = &[
    ("store", Layer::Port),
    ("audit", Layer::Port),
    ("bus", Layer::Port),
    ("adapter", Layer::Port),
    ("clock", Layer::Port),
    ("envelope", Layer::Port),
    ("sessions", Layer::Port),
    ("metrics", Layer::Port),
    ("outbound", Layer::Port),
    ("spans", Layer::Port),
    ("webhook", Layer::Port),
    ("child", Layer::Port),
    ("outbound", Layer::Port),
    ("upstream", Layer::Port),
    ("mcp::wire", Layer::Port),
    ("store::sqlite", Layer::Edge),
    ("store::memory", Layer::Edge),
    ("store::postgres", Layer::Edge),
    ("bus::local", Layer::Edge),
    ("bus::redis", Layer::Edge),
    ("bus::nats", Layer::Edge),
    ("adapter::http", Layer::Edge),
    ("adapter::process", Layer::Edge),
    ("adapter::session", Layer::Edge),
    ("adapter::mcp", Layer::Edge),
    ("telemetry", Layer::Edge),
    ("gateway", Layer::UseCase),
    ("identity", Layer::UseCase),
    ("stores", Layer::UseCase),
    ("turns", Layer::UseCase),
    ("rates", Layer::UseCase),
    ("open_tasks", Layer::UseCase),
    ("effects", Layer::UseCase),
    ("outbox", Layer::UseCase),
    ("waiters", Layer::UseCase),
    ("ops", Layer::UseCase),
    ("worker", Layer::UseCase),
    ("rpc", Layer::Dialect),
    ("rest", Layer::Dialect),
    ("mcp", Layer::Dialect),
    ("oauth", Layer::Dialect),
    ("transport", Layer::Transport),
    ("boot", Layer::Assembly),
    ("config", Layer::Assembly),
    ("reload", Layer::Assembly),
    ("cli", Layer::Assembly),
    ("demo", Layer::Assembly),
    ("embed", Layer::Assembly),
    ("main", Layer::Assembly),
    ("bin", Layer::Assembly),
];

const WHERE: &str = "gateway/tests/tidy/layers.rs";

/// The entry of the table that a path falls under.
fn entry(path: &[String]) -> Option<(&'static str, Layer)> {
    let fits = |name: &str| {
        name.split("::").zip(path.iter().map(String::as_str).chain(std::iter::repeat(""))).all(|(a, b)| a == b)
    };
    LAYERS.iter().copied().filter(|(name, _)| fits(name)).max_by_key(|(name, _)| name.len())
}

/// `gateway/src/ops/submit.rs` is `ops::submit`, `gateway/src/store/mod.rs` is `store`, and `lib.rs` is the root.
fn module(file: &File) -> Vec<String> {
    let inner = file.path.trim_start_matches("gateway/src/").trim_end_matches(".rs");
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    let last = parts.last().map_or("", String::as_str);
    if last == "mod" || (parts.len() == 1 && last == "lib") {
        parts.pop();
    }
    parts
}

/// Everything that is wrong with who names whom in `gateway/src/`.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let files: Vec<&File> = tree.rust().filter(|file| !file.is_test()).collect();
    let modules: BTreeSet<Vec<String>> = files.iter().map(|file| module(file)).collect();
    files.iter().flat_map(|file| file_complaints(file, &modules)).collect()
}

fn file_complaints(file: &File, modules: &BTreeSet<Vec<String>>) -> Vec<String> {
    let module = module(file);
    let own = entry(&module);
    if own.is_none() && !module.is_empty() {
        return vec![format!("{}: the module has no layer; give it one in {WHERE}", file.path)];
    }
    let has_child = |name: &str| {
        let child = [module.clone(), vec![name.to_owned()]].concat();
        modules.iter().any(|other| other.starts_with(&child))
    };
    let named = paths::named(&without_tests(&code(&file.text)), &module, has_child);
    let targets: BTreeSet<_> = named.iter().filter_map(|path| entry(path).map(|to| (path.join("::"), to))).collect();
    targets
        .into_iter()
        .filter_map(|(path, to)| refusal(own, to).map(|why| format!("{}: {path}: {why}", file.path)))
        .collect()
}

/// Why a module may not name another, if so. `own` is nothing for the crate's root, which names all but edges.
fn refusal(own: Option<(&str, Layer)>, (name, layer): (&str, Layer)) -> Option<String> {
    if own.is_some_and(|(from, from_layer)| from == name || from_layer == Layer::Assembly) {
        return None;
    }
    if layer == Layer::Edge {
        return Some("only assembly names a concrete store, bus or adapter; name the trait".to_owned());
    }
    let (_, from) = own?;
    (layer > from).then(|| format!("{from:?} may not name {layer:?}, which is above it"))
}

#[cfg(test)]
#[track_caller]
fn check(path: &str, text: &str, expected: &str) {
    let tree = Tree(vec![
        File::new(path, text),
        File::new("gateway/src/store/sqlite/mod.rs", ""),
        File::new("gateway/src/ops/mod.rs", ""),
    ]);
    assert_eq!(complaints(&tree).join("\n"), expected, "{path}");
}

#[test]
fn a_use_case_names_ports_but_no_edge_and_nothing_above() {
    check("gateway/src/ops/submit.rs", "use crate::{store::Store, gateway::Gateway};", "");
    check(
        "gateway/src/ops/submit.rs",
        "use crate::store::{Store, sqlite::Sqlite};",
        "gateway/src/ops/submit.rs: store::sqlite::Sqlite: only assembly names a concrete store, bus or adapter; name the trait",
    );
    check(
        "gateway/src/ops/submit.rs",
        "fn f() { crate::rpc::answer() }",
        "gateway/src/ops/submit.rs: rpc::answer: UseCase may not name Dialect, which is above it",
    );
    check("gateway/src/ops/submit.rs", "#[cfg(test)]\nmod tests { use crate::store::sqlite::Sqlite; }", "");
    check("gateway/src/ops/submit.rs", "// crate::rpc::answer", "");
}

#[test]
fn a_port_does_not_show_its_edges_and_an_edge_does_not_name_another() {
    let why = "only assembly names a concrete store, bus or adapter; name the trait";
    let sqlite = "store::sqlite::Sqlite";
    check(
        "gateway/src/store/mod.rs",
        "pub mod sqlite; pub use sqlite::Sqlite;",
        &format!("gateway/src/store/mod.rs: {sqlite}: {why}"),
    );
    check("gateway/src/lib.rs", "pub use store::sqlite::Sqlite;", &format!("gateway/src/lib.rs: {sqlite}: {why}"));
    check("gateway/src/lib.rs", "pub mod ops; pub use crate::ops::submit;", "");
    check(
        "gateway/src/store/memory.rs",
        "use super::sqlite::Sqlite;",
        &format!("gateway/src/store/memory.rs: {sqlite}: {why}"),
    );
    check("gateway/src/store/sqlite/read.rs", "use super::Sqlite; use crate::store::Store;", "");
    check("gateway/src/boot.rs", "use crate::store::sqlite::Sqlite;", "");
}

#[test]
fn a_module_without_a_layer_is_noticed() {
    check(
        "gateway/src/extra.rs",
        "",
        "gateway/src/extra.rs: the module has no layer; give it one in gateway/tests/tidy/layers.rs",
    );
}
