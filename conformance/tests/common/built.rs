//! Files of the project, and a Python with packages from PyPI.

// The same helper as the gateway's tests have.
#[path = "../../../gateway/tests/common/python.rs"]
pub(crate) mod python;

/// A file of the project.
pub(crate) fn project(path: &str) -> String {
    format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))
}
