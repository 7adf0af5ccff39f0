//! Which package of the workspace may depend on which. Development dependencies are free.

use crate::source::{File, Tree, code};

/// Each package of the workspace: its manifest, its name, and the packages of the workspace that it may depend on.
const PACKAGES: &[(&str, &str, &[&str])] = &[
    ("schemas/Cargo.toml", "reach-schemas", &[]),
    ("gateway/core/Cargo.toml", "reach-core", &["reach-schemas"]),
    ("gateway/Cargo.toml", "reach-gateway", &["reach-schemas", "reach-core", "agent-reach-sdk"]),
    ("sdk/Cargo.toml", "agent-reach-sdk", &["reach-schemas"]),
    ("bindings/Cargo.toml", "reach-bindings", &["agent-reach-sdk", "reach-gateway"]),
    ("conformance/Cargo.toml", "reach-conformance", &["reach-schemas"]),
    ("examples/Cargo.toml", "reach-examples", &["agent-reach-sdk"]),
];

/// Where in the gateway the SDK may be named: the command line and the demonstration are its users.
const SDK_USERS: &[&str] = &["gateway/src/bin/", "gateway/src/cli", "gateway/src/demo"];

/// Where in the bindings the gateway may be named: it is there for users' tests.
const GATEWAY_USERS: &[&str] = &["bindings/src/gateway.rs"];

/// Manifests without a row, rows without a manifest, and dependencies that are not in the row.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (manifest, name, allowed) in PACKAGES {
        match tree.0.iter().find(|file| file.path == *manifest) {
            Some(file) => complaints.extend(manifest_complaints(file, name, allowed)),
            None => complaints.push(format!("{manifest} is gone; strike it out in gateway/tests/tidy/packages.rs")),
        }
    }
    let is_package = |file: &&File| file.path.ends_with("/Cargo.toml");
    let has_row = |file: &&File| PACKAGES.iter().any(|(manifest, ..)| *manifest == file.path);
    let unknown = tree.0.iter().filter(is_package).filter(|file| !has_row(file));
    complaints.extend(unknown.map(|file| format!("{} has no row in gateway/tests/tidy/packages.rs", file.path)));
    complaints
}

fn manifest_complaints(file: &File, name: &str, allowed: &[&str]) -> Vec<String> {
    let is_ours = |dependency: &String| PACKAGES.iter().any(|(_, package, _)| package == dependency);
    let wrong = dependencies(&file.text).into_iter().filter(is_ours).filter(|found| !allowed.contains(&found.as_str()));
    wrong.map(|found| format!("{}: {name} may not depend on {found}", file.path)).collect()
}

/// The names in every table of dependencies but those for development.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').trim();
            // `[dependencies.name]` is a table of its own.
            let single = section.rsplit_once("dependencies.").filter(|(before, _)| !before.ends_with("dev-"));
            found.extend(single.map(|(_, name)| name.trim_matches('"').to_owned()));
        } else if section.ends_with("dependencies") && !section.ends_with("dev-dependencies") && !line.starts_with('#')
        {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default().trim_matches('"');
            found.extend((!name.is_empty()).then(|| name.to_owned()));
        }
    }
    found
}

/// Files of the gateway that name the SDK without being its users.
pub(crate) fn sdk_complaints(tree: &Tree) -> Vec<String> {
    let is_user = |file: &&File| SDK_USERS.iter().any(|user| file.path.starts_with(user));
    let wrong = tree.rust().filter(|file| !is_user(file)).filter(|file| code(&file.text).contains("agent_reach_sdk"));
    wrong.map(|file| format!("{}: only the command line and the demonstration use the SDK", file.path)).collect()
}

/// Files of the bindings that name the gateway without being its users.
pub(crate) fn gateway_complaints(tree: &Tree) -> Vec<String> {
    let is_user = |file: &&File| GATEWAY_USERS.contains(&file.path.as_str());
    let wrong = tree.rust().filter(|file| !is_user(file)).filter(|file| code(&file.text).contains("reach_gateway"));
    wrong.map(|file| format!("{}: only the gateway for users' tests uses the gateway", file.path)).collect()
}

#[test]
fn a_forbidden_dependency_is_noticed_in_every_form() {
    let check = |text: &str, expected: &[&str]| {
        let file = File::new("sdk/Cargo.toml", text);
        assert_eq!(manifest_complaints(&file, "agent-reach-sdk", &["reach-schemas"]), expected, "{text}");
    };
    let wrong = "sdk/Cargo.toml: agent-reach-sdk may not depend on reach-core";
    check("[dependencies]\nreach-schemas.workspace = true\nserde = \"1\"\n", &[]);
    check("[dependencies]\nreach-core.workspace = true\n", &[wrong]);
    check("[dependencies]\nreach-core = { path = \"x\" }\n", &[wrong]);
    check("[dependencies.reach-core]\npath = \"x\"\n", &[wrong]);
    check("[target.'cfg(unix)'.dependencies]\nreach-core = \"1\"\n", &[wrong]);
    check("[dev-dependencies]\nreach-core.workspace = true\n", &[]);
    check("[dev-dependencies.reach-core]\npath = \"x\"\n", &[]);
}

#[test]
fn a_package_without_a_row_is_noticed() {
    let tree = Tree(vec![File::new("extra/Cargo.toml", "")]);
    assert!(complaints(&tree).contains(&"extra/Cargo.toml has no row in gateway/tests/tidy/packages.rs".to_owned()));
}

#[test]
fn the_sdk_is_named_by_its_users_only() {
    let tree = Tree(vec![
        File::new("gateway/src/bin/reachctl/main.rs", "use agent_reach_sdk::Client;"),
        File::new("gateway/src/ops/submit.rs", "use agent_reach_sdk::Client;"),
        File::new("gateway/src/ops/wait.rs", "// as agent_reach_sdk does"),
    ]);
    assert_eq!(
        sdk_complaints(&tree),
        ["gateway/src/ops/submit.rs: only the command line and the demonstration use the SDK"]
    );
}

#[test]
fn the_gateway_is_named_for_users_tests_only() {
    let tree = Tree(vec![
        File::new("bindings/src/gateway.rs", "use reach_gateway::embed::Embedded;"),
        File::new("bindings/src/client.rs", "use reach_gateway::config::Config;"),
    ]);
    assert_eq!(
        gateway_complaints(&tree),
        ["bindings/src/client.rs: only the gateway for users' tests uses the gateway"]
    );
}
