//! Programs that can be read, told from others by their files.

use crate::common::nodes::nodes;
use vmscope_v8::launch::obstacle;

#[test]
fn known_releases_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for node in nodes() {
        assert_eq!(obstacle(&node.program), None, "{node:?}");
        let copy = folder.path().join("node");
        node.as_unknown_version(&copy);
        let why = obstacle(&copy).expect("an unknown version");
        assert!(why.contains("V8 99."), "{why}");
    }
}
