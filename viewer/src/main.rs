//! vmscope
fn main() {}
