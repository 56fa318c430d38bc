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
use super::modules::{FileState, ModuleRow};
use super::verdict::Verdict;
use super::verdict::row::{Group, Mark, Row};
use crate::present::text::harmless;
use vmscope_symbolizer::native::DwarfPlace;

const WIDTH: usize = 80;

/// Indentation below a mark.
const MARGIN: &str = "        ";

/// Widths of mark, what and found, each with its final blank.
const COLUMNS: [usize; 3] = [8, 21, 15];

/// The whole table, with a newline at its end.
pub fn render(facts: &Facts, verdict: &Verdict) -> String {
    let mut out = String::from("This machine\n");
    let rows_of = |group| verdict.rows.iter().filter(move |row| row.group == group);
    for row in rows_of(Group::Machine) {
        table_row(&mut out, row);
    }
    if let Some(process) = &facts.process {
        out.push_str(&format!("\nProcess {}\n", process.pid));
        for row in rows_of(Group::Process) {
            table_row(&mut out, row);
        }
        vm::section(&mut out, process, facts.process_perf);
        if !process.modules.is_empty() {
            modules(&mut out, &process.modules, process.modules_left_out);
        }
    }
    out.push('\n');
    push_wrapped(&mut out, &verdict.summary, "", "");
    out
}

/// Grade of a module's names.
pub fn module_mark(module: &ModuleRow) -> Mark {
    let survey = &module.survey;
    let lines = survey.dwarf != DwarfPlace::None;
    let symbols = survey.symtab || survey.dynsym || survey.mini_debuginfo;
    match module.opened {
        true if survey.symtab && lines => Mark::Ok,
        true if symbols || lines => Mark::Limited,
        _ => Mark::No,
    }
}

fn table_row(out: &mut String, row: &Row) {
    let [mark, what, found] = COLUMNS;
    let meaning = WIDTH - mark - what - found;
    let finding = &row.finding;
    let cells = [
        (mark, wrapped(finding.mark.name(), mark - 1)),
        (what, wrapped(&row.what, what - 1)),
        (found, wrapped(&finding.found, found - 1)),
        (meaning, wrapped(&finding.meaning, meaning)),
    ];
    let heights = cells.iter().map(|(_, lines)| lines.len());
    for at in 0..heights.max().unwrap_or(0) {
        let mut line = String::new();
        for (width, lines) in &cells {
            let text = lines.get(at).map_or("", String::as_str);
            line.push_str(text);
            line.push_str(&" ".repeat(width.saturating_sub(display_width(text))));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    remedy(out, finding.todo.as_deref().unwrap_or_default());
}

/// The line of a remedy, unless empty.
fn remedy(out: &mut String, text: &str) {
    if !text.is_empty() {
        push_wrapped(out, text, "        do: ", "            ");
    }
}

fn modules(out: &mut String, modules: &[ModuleRow], left_out: usize) {
    out.push_str("\nModules and their symbols\n");
    let may_be_elf = || modules.iter().filter(|module| module.may_be_elf());
    for module in may_be_elf() {
        marked(out, module_mark(module), &module.path.to_string_lossy());
        push_wrapped(out, &module_text(module), MARGIN, MARGIN);
        let id = module.survey.build_id.as_ref();
        let id = id.map_or_else(|| "none".to_owned(), ToString::to_string);
        push_wrapped(out, &format!("build-id {id}"), MARGIN, MARGIN);
    }
    // A VM's precompiled code: .NET maps its assemblies.
    let others = modules.len() - may_be_elf().count();
    if others > 0 {
        let _ = writeln!(
            out,
            "{MARGIN}{others} more with code in other formats than ELF: no functions, no lines"
        );
    }
    if left_out > 0 {
        let _ = writeln!(out, "{MARGIN}{left_out} more modules not examined");
    }
    remedy(out, modules_remedy(modules));
}

/// A paragraph behind a mark.
fn marked(out: &mut String, mark: Mark, text: &str) {
    push_wrapped(out, text, &format!("{:<8}", mark.name()), MARGIN);
}

/// One remedy for all modules: package names differ between distributions, build-ids do not.
fn modules_remedy(modules: &[ModuleRow]) -> &'static str {
    let poor = |module: &&ModuleRow| {
        module.opened && module.may_be_elf() && module_mark(module) != Mark::Ok
    };
    let gone = |module: &ModuleRow| {
        !module.opened && matches!(module.state, FileState::Replaced | FileState::Deleted)
    };
    let mut poor = modules.iter().filter(poor).peekable();
    if modules.iter().any(gone) {
        "run doctor as root, or restart the program: some of its files were deleted or replaced"
    } else if poor.peek().is_none() {
        ""
    } else if poor.any(|module| module.survey.build_id.is_some()) {
        "install debug files by build-id under /usr/lib/debug/.build-id (-dbg, -dbgsym or \
         -debuginfo packages); build your own programs with -g, unstripped"
    } else {
        "build it with -g, unstripped"
    }
}

fn module_text(module: &ModuleRow) -> String {
    let state = match &module.state {
        FileState::Same => String::new(),
        FileState::Replaced => "replaced by another file".to_owned(),
        FileState::Deleted => "deleted from disk".to_owned(),
        FileState::Unreadable(why) => format!("cannot be opened: {why}"),
        FileState::NotElf => "not an ELF file".to_owned(),
    };
    if !module.opened {
        return state;
    }
    let symbols = match &module.survey {
        survey if survey.symtab => "all functions",
        survey if survey.mini_debuginfo => "functions (mini debuginfo)",
        survey if survey.dynsym => "exported functions only",
        _ => "no functions",
    };
    let dwarf = match &module.survey.dwarf {
        DwarfPlace::Embedded => "lines".to_owned(),
        DwarfPlace::Separate(path) => format!("lines in {path}"),
        DwarfPlace::None => "no lines".to_owned(),
    };
    match module.state {
        FileState::Same => format!("{symbols}, {dwarf}"),
        _ => format!("{state}; the running file has {symbols}, {dwarf}"),
    }
}

fn push_wrapped(out: &mut String, text: &str, first: &str, rest: &str) {
    let options = options(WIDTH).initial_indent(first).subsequent_indent(rest);
    for line in wrap(&harmless(text), options) {
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let clean = harmless(text);
    let lines = wrap(&clean, options(width)).into_iter();
    lines.map(|line| line.into_owned()).collect()
}

/// Users copy commands: no splits at hyphens.
fn options(width: usize) -> Options<'static> {
    Options::new(width).word_splitter(WordSplitter::NoHyphenation)
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{decide, tests as made_up};
    use super::*;
    use vmscope_records::BuildId;
    use vmscope_symbolizer::native::Survey;

    #[test]
    fn no_line_is_wider_than_80_columns() {
        let mut facts = made_up::user();
        let mut process = made_up::process();
        process.name = "x\u{1b}[2J".to_owned();
        process.modules = vec![ModuleRow {
            path: format!("/{}", "long/".repeat(40)).into(),
            state: FileState::Same,
            opened: true,
            survey: Survey {
                build_id: BuildId::new(&[0xab; BuildId::MAX_BYTES]),
                ..Survey::default()
            },
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
