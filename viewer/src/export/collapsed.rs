//! Collapsed stacks: one line for each, `frame;frame;frame count`.

use super::Export;
use super::tree::{LabelTree, Style};
use anyhow::Result;
use std::io::Write;

/// Writes every stack with its samples.
pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<()> {
    let tree = LabelTree::of(export, Style::Marks);
    tree.each_line(1, |stack, samples| writeln!(out, "{stack} {samples}"))?;
    Ok(())
}
