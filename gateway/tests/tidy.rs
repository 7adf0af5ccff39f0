//! Holds the walls of the house: which layer may name which, which package may depend on which, how long files and
//! functions may be, and what the core must never touch. It reads the source as text, so it needs no build of it.

#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/packages.rs"]
mod packages;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/words.rs"]
mod words;

use source::Tree;

/// Fails with every complaint at once.
#[track_caller]
fn none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn no_layer_of_the_gateway_names_a_higher_one_and_only_assembly_names_edges() {
    none(layers::complaints(&Tree::read().under("gateway/src/")));
}

#[test]
fn no_package_depends_on_one_it_may_not_see() {
    none(packages::complaints(&Tree::read()));
    none(packages::sdk_complaints(&Tree::read().under("gateway/src/")));
    none(packages::gateway_complaints(&Tree::read().under("bindings/src/")));
}

#[test]
fn no_file_and_no_function_outgrows_its_limit() {
    let tree = Tree::read();
    none(sizes::file_complaints(&tree));
    none(sizes::function_complaints(&tree));
}

#[test]
fn the_core_touches_no_clock_no_chance_no_log_and_never_waits() {
    none(words::core_complaints(&Tree::read().under("gateway/core/src/")));
}

#[test]
fn every_rust_file_opens_with_what_it_is_for() {
    none(words::opening_complaints(&Tree::read()));
}

#[test]
fn no_tracked_file_names_a_place_on_one_machine() {
    none(words::machine_complaints(&Tree::read()));
}

#[test]
fn no_tracked_file_holds_what_a_merge_left_behind() {
    none(words::merge_complaints(&Tree::read()));
}
