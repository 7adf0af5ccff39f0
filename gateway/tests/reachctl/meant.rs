//! A command line that is wrong, and what is said of what was meant.

use super::run;

#[test]
fn what_was_meant_by_a_command_line_that_is_wrong_is_said() {
    for (args, meant) in [
        (&["tasks"] as &[&str], "did you mean `reachctl get tasks`"),
        (&["redrive", "--all"], "`reachctl dead-letters redrive`"),
        (&["sumbit", "--intent", "x"], "`reachctl submit`"),
        (&["--url", "127.0.0.1:7340", "get", "agents"], "did you mean `--url http://127.0.0.1:7340`"),
        (&["--url", "localhost:7340", "status"], "`--url http://localhost:7340`"),
        (&["submit", "--intent", "x", "--params", "one two"], r#"did you mean the text --params '"one two"'?"#),
        (&["submit", "--intent", "x", "--params", "{text: one}"], r#"in double quotes, and all of it in single ones"#),
    ] {
        let ran = run("http://127.0.0.1:1", args);
        assert_eq!(ran.exit, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(meant), "{meant}: {}", ran.stderr);
    }
}
