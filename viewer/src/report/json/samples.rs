//! How many samples there are, and what they are worth.

use crate::queries::truth::unnamed_generated;
use serde::Serialize;
use vmscope_symbolizer::summary::Quality;
use vmscope_symbolizer::{Profile, Summary};

#[derive(Serialize)]
pub(super) struct SamplesPart {
    total: u64,
    vm: u64,
    promised: Option<f64>,
    lost: u64,
    unresolved: u64,
    unnamed_generated: u64,
    doubtful: u64,
    approximate: u64,
    method_only: u64,
    exact: u64,
    /// Of the VM's generated and interpreted code alone.
    code: CodePart,
}

#[derive(Serialize)]
struct CodePart {
    total: u64,
    exact: u64,
    approximate: u64,
    method_only: u64,
    unresolved: u64,
    doubtful: u64,
}

pub(super) fn samples_part(profile: &Profile, summary: &Summary) -> SamplesPart {
    let quality = &summary.quality;
    SamplesPart {
        total: summary.total,
        vm: summary.vm,
        promised: summary.promised,
        lost: summary.lost,
        unresolved: quality.unresolved,
        unnamed_generated: unnamed_generated(profile, summary),
        doubtful: quality.doubtful,
        approximate: quality.approximate,
        method_only: quality.method_only,
        exact: quality.exact,
        code: code_part(&summary.of_code),
    }
}

fn code_part(code: &Quality) -> CodePart {
    CodePart {
        total: code.total(),
        exact: code.exact,
        approximate: code.approximate,
        method_only: code.method_only,
        unresolved: code.unresolved,
        doubtful: code.doubtful,
    }
}
