//! A crate that nothing names is not linked, and its handlers are not there: what a program gets to hear of it.

use std::process::{Command, Output};

fn run(program: &str) -> (Output, String) {
    let output = Command::new(program).output().expect("the program starts");
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    (output, String::from_utf8(text).expect("UTF-8"))
}

#[test]
fn a_crate_that_is_named_brings_its_handlers() {
    let (output, text) = run(env!("CARGO_BIN_EXE_handlers-linked"));
    assert!(output.status.success(), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        matches!(lines[..], [push, refund]
            if push.starts_with("`outbox_ui_handlers::push` for `ui.invoice` (tests/ui/handlers/src/lib.rs:")
            && refund.starts_with("`outbox_ui_handlers::refund` for `ui.refund` (tests/ui/handlers/src/lib.rs:")),
        "{text}"
    );
}

#[test]
fn a_program_without_handlers_says_how_to_link_them() {
    let (output, text) = run(env!("CARGO_BIN_EXE_handlers-forgotten"));
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("no handler is linked into this program"), "{text}");
    assert!(text.contains("`use that_crate as _;`"), "{text}");
}

#[test]
fn handlers_that_are_expected_and_missing_are_named() {
    let (output, text) = run(env!("CARGO_BIN_EXE_handlers-expected"));
    assert!(!output.status.success(), "{text}");
    assert!(
        text.contains("no handler is linked for the expected event type `ui.invoice`, `ui.refund`"),
        "{text}"
    );
    assert!(text.contains("`use that_crate as _;`"), "{text}");
}
