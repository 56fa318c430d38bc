//! The releases of Node.js on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::skipped;

/// The releases that `.ci/nodes` gets.
pub const RELEASES: [u32; 4] = [18, 20, 22, 24];

/// A program that runs JavaScript.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its path.
    pub program: PathBuf,
    /// 18, 20, …
    pub release: u32,
}

/// A release that `.ci/nodes` got; says SKIPPED if it is missing.
pub fn node(release: u32) -> Option<Node> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = ours
        .ancestors()
        .find(|folder| folder.join("Cargo.lock").is_file());
    let root = root.expect("a workspace");
    let program = root.join(format!("target/nodes/{release}/bin/node"));
    let found = program.is_file().then_some(Node { program, release });
    if found.is_none() {
        skipped(&format!(
            "there is no Node {release} here (.ci/nodes gets it)"
        ));
    }
    found
}

/// Those releases, and the `node` of PATH; says SKIPPED of each that is missing.
pub fn nodes() -> Vec<Node> {
    let installed = installed();
    if installed.is_none() {
        skipped("there is no `node` in PATH");
    }
    RELEASES
        .into_iter()
        .filter_map(node)
        .chain(installed)
        .collect()
}

/// The `node` of PATH.
fn installed() -> Option<Node> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join("node"));
    let program = files.find(|file| file.is_file())?;
    let version = Command::new(&program).arg("--version").output().ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let (release, _) = version.strip_prefix('v')?.split_once('.')?;
    let release = release.parse().ok()?;
    Some(Node { program, release })
}
