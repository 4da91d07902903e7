//! A crate of payload types alone: what it makes its users compile.

use std::process::Command;

/// The crates that the example's payloads are built with, without those of their tests.
fn dependencies() -> Vec<String> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs this");
    let arguments = ["tree", "--offline", "--package", "webhook-events", "--edges", "normal,build"];
    let format = ["--prefix", "none", "--format", "{lib}"];
    let output = Command::new(cargo).args(arguments).args(format).output().expect("cargo starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn payloads_alone_bring_no_database_and_no_runtime() {
    let dependencies = dependencies();
    for present in ["outbox", "schemars", "serde_json"] {
        assert!(dependencies.iter().any(|name| name == present), "{present} is not in {dependencies:?}");
    }
    // Of tokio there is what a handler's context waits with.
    for absent in ["sqlx", "libsqlite3", "mio", "tokio_", "tracing", "ring", "rustls", "openssl"] {
        let found = dependencies.iter().find(|name| name.starts_with(absent));
        assert_eq!(found, None, "in {dependencies:?}");
    }
}
