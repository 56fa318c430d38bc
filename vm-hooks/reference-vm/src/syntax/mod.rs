//! From source text to a syntax tree.
