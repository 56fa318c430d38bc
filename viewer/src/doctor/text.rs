//! The table as text, 80 columns wide.
//!
//! ```text
//! mark    what                 found         meaning
//! ok      perf_event_open      works         your processes can be sampled
//! limited perf_event_paranoid  2             your processes, without the kernel
//!         do: sudo sysctl kernel.perf_event_paranoid=1
//! ```

mod vm;

use std::fmt::Write;

use textwrap::core::display_width;
use textwrap::{Options, WordSplitter, wrap};

use super::facts::Facts;
use super::modules::{Dwarf, FileState, ModuleRow};
use super::verdict::Verdict;
use super::verdict::row::{Group, Mark, Row};

const WIDTH: usize = 80;
/// Columns of mark, what and found, each with the blank that ends it.
const COLUMNS: [usize; 3] = [8, 21, 15];

/// Renders everything, with a newline at the end.
pub fn render(facts: &Facts, verdict: &Verdict) -> String {
    let mut out = String::new();
    heading(&mut out, "This machine");
    for row in verdict
        .rows
        .iter()
        .filter(|row| row.group == Group::Machine)
    {
        table_row(&mut out, row);
    }
    if let Some(process) = &facts.process {
        out.push('\n');
        heading(&mut out, &format!("Process {}", process.pid));
        for row in verdict
            .rows
            .iter()
            .filter(|row| row.group == Group::Process)
        {
            table_row(&mut out, row);
        }
        vm::section(&mut out, process, facts.process_perf);
        if !process.modules.is_empty() {
            out.push('\n');
            modules(&mut out, &process.modules, process.modules_left_out);
        }
    }
    out.push('\n');
    push_wrapped(&mut out, &verdict.summary, "", "");
    out
}

/// The word for a mark, in text and in JSON.
pub fn mark_word(mark: Mark) -> &'static str {
    match mark {
        Mark::Ok => "ok",
        Mark::Limited => "limited",
        Mark::No => "no",
    }
}

/// How well a module's code can be named.
pub fn module_mark(module: &ModuleRow) -> Mark {
    let lines = module.dwarf != Dwarf::None;
    match module.opened {
        true if module.symbols.symtab && lines => Mark::Ok,
        true if has_symbols(module) || lines => Mark::Limited,
        _ => Mark::No,
    }
}

fn has_symbols(module: &ModuleRow) -> bool {
    module.symbols.symtab || module.symbols.dynsym || module.symbols.mini_debuginfo
}

fn heading(out: &mut String, title: &str) {
    let _ = writeln!(out, "{title}");
}

fn table_row(out: &mut String, row: &Row) {
    let [mark, what, found] = COLUMNS;
    let meaning = WIDTH - mark - what - found;
    let cells = [
        (mark, wrapped(mark_word(row.mark), mark - 1)),
        (what, wrapped(&row.what, what - 1)),
        (found, wrapped(&row.found, found - 1)),
        (meaning, wrapped(&row.meaning, meaning)),
    ];
    let height = cells
        .iter()
        .map(|(_, lines)| lines.len())
        .max()
        .unwrap_or(0);
    for at in 0..height {
        let mut line = String::new();
        for (width, lines) in &cells {
            let text = lines.get(at).map_or("", String::as_str);
            line.push_str(text);
            line.extend(std::iter::repeat_n(
                ' ',
                width.saturating_sub(display_width(text)),
            ));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if let Some(todo) = &row.todo {
        push_wrapped(out, todo, "        do: ", "            ");
    }
}

fn modules(out: &mut String, modules: &[ModuleRow], left_out: usize) {
    heading(out, "Its modules: can their code be named?");
    for module in modules {
        let mark = module_mark(module);
        let first = format!("{:<8}", mark_word(mark));
        push_wrapped(out, &module.path.to_string_lossy(), &first, "        ");
        push_wrapped(out, &module_text(module), "        ", "        ");
        let id = module.build_id.as_deref().unwrap_or("none");
        push_wrapped(out, &format!("build-id {id}"), "        ", "        ");
    }
    if left_out > 0 {
        let _ = writeln!(out, "        and {left_out} more, not looked at");
    }
    if let Some(todo) = modules_todo(modules) {
        push_wrapped(out, &todo, "        do: ", "            ");
    }
}

/// One advice for all: the packages' names differ from one distribution to the next, the
/// build-id does not.
fn modules_todo(modules: &[ModuleRow]) -> Option<String> {
    let poor = modules
        .iter()
        .filter(|module| module.opened && module_mark(module) != Mark::Ok);
    let (mut with_id, mut without) = (false, false);
    for module in poor {
        with_id |= module.build_id.is_some();
        without |= module.build_id.is_none();
    }
    let gone = |module: &ModuleRow| {
        !module.opened && matches!(module.state, FileState::Replaced | FileState::Deleted)
    };
    if modules.iter().any(gone) {
        return Some("as root, or restart the program: files of it are gone from disk".to_owned());
    }
    match (with_id, without) {
        (true, _) => Some(
            "install the debug files, by build-id, under /usr/lib/debug/.build-id \
             (-dbg, -dbgsym or -debuginfo packages); what you build yourself: with -g, unstripped"
                .to_owned(),
        ),
        (false, true) => Some("build it with -g, unstripped".to_owned()),
        (false, false) => None,
    }
}

fn module_text(module: &ModuleRow) -> String {
    let state = match &module.state {
        FileState::Same => String::new(),
        FileState::Replaced => "another file has its name now".to_owned(),
        FileState::Deleted => "the file is gone from disk".to_owned(),
        FileState::Unreadable(why) => format!("can't be opened: {why}"),
        FileState::NotElf => "not an ELF file".to_owned(),
    };
    if !module.opened {
        return state;
    }
    let symbols = match module.symbols {
        symbols if symbols.symtab => "all functions",
        symbols if symbols.mini_debuginfo => "functions (mini debuginfo)",
        symbols if symbols.dynsym => "exported functions alone",
        _ => "no functions",
    };
    let dwarf = match &module.dwarf {
        Dwarf::Embedded => "lines".to_owned(),
        Dwarf::Separate(path) => format!("lines in {}", path.display()),
        Dwarf::None => "no lines".to_owned(),
    };
    match module.state {
        FileState::Same => format!("{symbols}, {dwarf}"),
        _ => format!("{state}; the one that runs has {symbols}, {dwarf}"),
    }
}

fn push_wrapped(out: &mut String, text: &str, first: &str, rest: &str) {
    let clean = printable(text);
    for line in wrap(
        &clean,
        options(WIDTH).initial_indent(first).subsequent_indent(rest),
    ) {
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    wrap(&printable(text), options(width))
        .into_iter()
        .map(|line| line.into_owned())
        .collect()
}

/// Commands are copied from here: words are not split at hyphens.
fn options(width: usize) -> Options<'static> {
    Options::new(width).word_splitter(WordSplitter::NoHyphenation)
}

/// A process chooses its own name and paths: what could steer a terminal is shown as `?`.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{decide, tests as made_up};
    use super::*;

    #[test]
    fn no_line_is_wider_than_80_columns() {
        let mut facts = made_up::user();
        let mut process = made_up::process();
        process.name = "x\u{1b}[2J".to_owned();
        process.modules = vec![ModuleRow {
            path: format!("/{}", "long/".repeat(40)).into(),
            build_id: Some("ab".repeat(64)),
            symbols: super::super::modules::Symbols::default(),
            dwarf: Dwarf::None,
            state: FileState::Same,
            opened: true,
        }];
        facts.process = Some(process);
        let text = render(&facts, &decide(&facts));
        for line in text.lines() {
            assert!(display_width(line) <= 80, "{line}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(text.contains("limited perf_event_paranoid  2 "), "{text}");
        assert!(
            text.contains("\n        do: sudo sysctl kernel.perf_event_paranoid=1\n"),
            "{text}"
        );
    }
}
