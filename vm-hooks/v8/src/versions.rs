//! Versions with a known layout.

/// Main version and release of V8: `(12, 4)` for 12.4.254.
pub type Version = (u32, u32);

/// Whether the layout of this version is known.
#[must_use]
pub fn is_known(version: Version) -> bool {
    matches!(version, (10, 2) | (11, 3) | (12, 4) | (13, 6))
}

/// Whether vmscope reads the V8 of this main version of Node.js.
#[must_use]
pub fn reads_node(major: u32) -> bool {
    matches!(major, 18 | 20 | 22 | 24)
}
