//! `vmscope annotate`: a method's bytecodes or source lines with samples in the margin.

mod json;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod source;
mod text;

use crate::memory::MemoryOption;
use crate::present::numbers::count;
use crate::print::{ListError, Printer};
use crate::record::DEFAULT_OUTPUT;
use crate::report::{NarrowOptions, load_profile, open_recording, percent, seconds};
use anyhow::{Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use vmscope_symbolizer::annotate::{
    Annotation, ByMethod, Calls, Candidate, Choice, Located, Subject, Taken, annotate, calls,
    candidates, choose,
};
use vmscope_symbolizer::{Filter, Profile, Stop, Summary};

#[derive(Args, Clone, Debug)]
pub struct AnnotateArgs {
    /// The recording (a single argument that is not a recording is METHOD)
    #[arg(value_name = "FILE")]
    first: Option<String>,
    /// The method: its full name, or an unambiguous part
    #[arg(value_name = "METHOD")]
    second: Option<String>,
    /// The recording; the other argument is METHOD
    #[arg(long, short, value_name = "FILE", conflicts_with = "second")]
    input: Option<PathBuf>,
    /// Print JSON (a documented schema: docs/annotate-json.md) instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    narrow: NarrowOptions,
    #[command(flatten)]
    memory: MemoryOption,
    /// Only samples before this second of the recording
    #[arg(long, visible_alias = "until", value_name = "SECS", value_parser = seconds,
          allow_negative_numbers = true)]
    to: Option<f64>,
    /// Read source files from this folder only (may be repeated)
    #[arg(long, value_name = "DIR")]
    source: Vec<PathBuf>,
    /// Print no source text
    #[arg(long, conflicts_with = "source")]
    no_source: bool,
    /// Number of bytecodes or lines shown around those with samples
    #[arg(long, value_name = "ROWS", default_value_t = 3)]
    context: usize,
    /// Fold lines with a smaller share of the method
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1, value_parser = percent,
          allow_negative_numbers = true)]
    min_share: f64,
    /// Width of the text in columns (default: the terminal's, else 100)
    #[arg(long, value_name = "COLUMNS")]
    width: Option<u16>,
}

impl AnnotateArgs {
    /// Recording and method. A single argument is FILE if it is a recording, else METHOD.
    fn chosen(&self) -> (PathBuf, Option<&str>) {
        let default = || self.input.clone().unwrap_or_else(|| DEFAULT_OUTPUT.into());
        match (&self.first, &self.second) {
            (Some(file), Some(method)) => (file.into(), Some(method)),
            (Some(one), None) if self.input.is_none() && is_recording(one) => (one.into(), None),
            (one, _) => (default(), one.as_deref()),
        }
    }
}

/// Whether an argument names a recording, perhaps a missing one.
fn is_recording(argument: &str) -> bool {
    let path = Path::new(argument);
    let named_so = path.extension().is_some_and(|end| end == "vmscope");
    named_so || (path.is_file() && open_recording(path).is_ok())
}

/// Writes the annotated method to `out`.
///
/// # Errors
/// An unreadable recording, an unknown or ambiguous method, unknown threads or times, a failed
/// write.
pub fn run(args: &AnnotateArgs, out: &mut Printer<'_>) -> Result<()> {
    let (path, wanted) = args.chosen();
    let profile = load_profile(&path, false, args.memory)?;
    let filter: Filter = args.narrow.filter(&profile, args.to)?;
    let all = candidates(&profile, &filter);
    let subject = match choose(&profile, &all, wanted) {
        Choice::One(subject) => subject,
        Choice::Several(several) => {
            let (wanted, number) = (wanted.unwrap_or_default(), count(several.len() as u64));
            let message = format!("`{wanted}` matches {number} methods; be more specific:");
            return Err(listed(message, &several).into());
        }
        Choice::None if wanted.is_none() || all.is_empty() => {
            bail!("no samples in named methods")
        }
        Choice::None => {
            let wanted = wanted.unwrap_or_default();
            let message = format!("no method with samples matches `{wanted}`; the hottest are:");
            return Err(listed(message, &all).into());
        }
    };
    let (annotation, calls) = annotated(&profile, &filter, &subject);
    if args.json {
        return out.json(&json::json(&profile, &annotation, calls.as_ref()));
    }
    let summary = Summary::with_errors(&profile, &filter);
    let shown = (&annotation, calls.as_ref());
    Ok(out.text(&text::text(&profile, &summary, &filter, shown, args))?)
}

/// The method with its call sites, and its calls if stacks were recorded.
fn annotated(profile: &Profile, filter: &Filter, subject: &Subject) -> (Annotation, Option<Calls>) {
    let located = Located::of(profile, &ByMethod::of(profile), subject);
    let (taken, stop) = (Taken::of(profile, filter), Stop::new());
    let annotation = annotate(&taken, &located, None, &stop);
    let mut annotation = annotation.unwrap_or_default();
    let has_stacks = !profile.trace.chains.is_empty();
    let calls = has_stacks.then(|| calls(profile, filter, &located, &stop));
    let calls = calls.flatten();
    if let Some(calls) = &calls {
        annotation.put_calls(calls);
    }
    (annotation, calls)
}

/// An error with candidates and their samples. If no candidate has samples, the list shows samples of
/// the code that candidates called.
fn listed(message: String, candidates: &[Candidate]) -> ListError {
    let sampled = candidates.iter().filter(|c| c.all > 0);
    let mut listed: Vec<(u64, &str)> = sampled.map(|c| (c.own, &*c.label)).collect();
    let mut heading = "samples";
    if listed.is_empty() {
        listed = candidates.iter().map(|c| (c.called, &*c.label)).collect();
        heading = "inclusive";
    }
    ListError::of_names(message, [heading, "method"], &listed)
}
