//! The header against these structs: a C compiler compares every size, offset and number.
#![allow(clippy::unwrap_used, reason = "a test that fails is to panic")]

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::process::{Command, Stdio};

use super::sampler::{CSamplerOptions, CSamplerStatus};
use super::structs::CSpace;
use super::*;
use crate::event::{
    Boundary, BoundaryRule, ChainFrame, CollectionScope, ConstituentKind, CounterMeaning, Cover,
    Exactness, InterpreterValue, LineEntry, ListingEntry, PositionKind, Region, SamplePlace,
};
use crate::sampler::{Priority, SamplerState};
use crate::{LifetimeUnit, layout};

/// Assertions about a struct: its size and field offsets.
macro_rules! compare {
    ($text:ident: $($type:ty = $c:literal { $($field:ident $(as $in_c:ident)?),* $(,)? })*) => {
        $(
            let size = size_of::<$type>();
            writeln!($text, "_Static_assert(sizeof({}) == {size}, \"size\");", $c).unwrap();
            $(
                let offset = offset_of!($type, $field);
                let field = [$(stringify!($in_c),)? stringify!($field)][0];
                writeln!(
                    $text,
                    "_Static_assert(offsetof({}, {field}) == {offset}, \"offset\");", $c
                )
                .unwrap();
            )*
        )*
    };
}

fn structs() -> String {
    let mut text = String::new();
    compare! { text:
        CText = "vmscope_text" { bytes, length }
        COptions = "vmscope_options" {
            size, name, version, stream_bytes, sample_bytes, snapshot_patience_ns
        }
        CCallbacks = "vmscope_callbacks" { size, context, describe, collect, lifetime_rate }
        CConstituent = "vmscope_constituent" {
            size, id, start, end, since, kind, map, kind_word, tier, name, method, cases,
            case_count, boundaries, boundary_count, boundary_rule, boundary_exactness, covers,
            cover_count, frames, frame_count
        }
        Boundary = "vmscope_boundary" { offset, bytecode }
        Cover = "vmscope_cover" { start, end, first, count, exactness }
        ChainFrame = "vmscope_chain_frame" { method, position, value }
        CCase = "vmscope_case" { class_name, method, target }
        CMethod = "vmscope_method" {
            size, id, class_name, name, file, lines, line_count, bytecodes, bytecode_count,
            listing, listing_count, listing_text, line, reserved
        }
        LineEntry = "vmscope_line" { bytecode, line }
        ListingEntry = "vmscope_listing" { bytecode, end }
        CCompilation = "vmscope_compilation" {
            size, number, method, name, tier, tid, osr_bytecode
        }
        CCollected = "vmscope_collected" {
            size, id, spaces, space_count, survived_bytes, tenured_bytes, survived_objects, cpu_ns,
        }
        CCollection = "vmscope_collection" {
            size, id, collector, kind, cause, spaces, space_count, scope, reserved
        }
        CSpace = "vmscope_space" { name, used, capacity }
        CPhase = "vmscope_phase" {
            size, collection, name, phase, within, stop_the_world, tid
        }
        SiteFrame = "vmscope_site_frame" { method, bytecode, reserved }
        Birth = "vmscope_birth" {
            time, object, class as class_id, site, bytes, allocated_bytes, weight
        }
        Survival = "vmscope_survival" { time, object, tenured, holder }
        Death = "vmscope_death" { time, object }
        SurvivalBucket = "vmscope_survival_bucket" {
            scavenges, fulls, objects, bytes, alive_objects, alive_bytes
        }
        CCounter = "vmscope_counter" { size, section, name, unit, value, meaning, reserved }
        AddressRange = "vmscope_range" { start, end }
        CSource = "vmscope_interpreter_source" { place, reg, offset, holds }
        AddressRange = "vmscope_stack" { start, end }
        CSamplerOptions = "vmscope_sampler_options" { size, period_ns, chains, keep_oldest }
        CSamplerStatus = "vmscope_sampler_status" {
            size, period_ns, ticks, late, refused, cpu_ns, state, priority, nice, reserved
        }
        CRegionRule = "vmscope_region_rule" {
            module, identifiers, prefix, contains, suffix, part, role, region, strip, reserved
        }
    }
    text
}

fn numbers() -> String {
    fn cases<T: Copy + std::fmt::Debug>(prefix: &str, all: &[T], number: fn(T) -> u32) -> String {
        let word = |case: &T| {
            // `ClosedPic` is CLOSED_PIC.
            let mut word = String::new();
            for letter in format!("{case:?}").chars() {
                if letter.is_uppercase() && !word.is_empty() {
                    word.push('_');
                }
                word.extend(letter.to_uppercase());
            }
            word.replace("REG_EXP", "REGEXP")
        };
        let line = |case: &T| {
            let (word, number) = (word(case), number(*case));
            format!("_Static_assert(VMSCOPE_{prefix}{word} == {number}, \"{word}\");\n")
        };
        all.iter().map(line).collect()
    }
    let mut text = [
        cases("", ConstituentKind::ALL, |case| case as u32),
        cases("", BoundaryRule::ALL, |case| case as u32),
        cases("", Exactness::ALL, |case| case as u32),
        cases("POSITION_", PositionKind::ALL, |case| case as u32),
        cases("GONE_", GoneReason::ALL, |case| case as u32),
        cases("THREAD_", ThreadRole::ALL, |case| case as u32),
        cases("", CollectionScope::ALL, |case| case as u32),
        cases("", CounterMeaning::ALL, |case| case as u32),
        cases("HOLDS_", InterpreterValue::ALL, |case| case as u32),
        cases("REGION_", Region::ALL, |case| case as u32),
        cases("", SamplerState::ALL, |case| case as u32),
        cases("PRIORITY_", Priority::ALL, |case| case as u32),
        cases("RATE_", LifetimeUnit::ALL, |case| case as u32),
    ]
    .concat();
    for (name, number) in [
        ("IN_REGISTER", SamplePlace::Register as u64),
        ("ON_STACK", SamplePlace::Stack as u64),
        ("MAP_NONE", 0),
        ("MAP_BOUNDARY", 1),
        ("MAP_COVERS", 2),
        ("MAJOR", layout::MAJOR.into()),
        ("MINOR", layout::MINOR.into()),
        ("MOST_CASES", lists::MOST_CASES as u64),
        ("MOST_SPACES", lists::MOST_SPACES as u64),
        ("NONE", structs::NONE.into()),
        ("UNKNOWN", UNKNOWN),
    ] {
        writeln!(
            text,
            "_Static_assert(VMSCOPE_{name} == {number}u, \"{name}\");"
        )
        .unwrap();
    }
    text
}

fn compile(language: &str, text: &str) -> String {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let mut compiler = Command::new("cc")
        .args(["-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic"])
        .args(["-fsyntax-only", "-Wno-missing-field-initializers"])
        .args(["-I", include, "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = compiler.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
    drop(input);
    let output = compiler.wait_with_output().unwrap();
    assert_eq!(output.status.success(), output.stderr.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_header_says_what_the_library_does() {
    let text = format!("#include <vmscope_publish.h>\n{}{}", structs(), numbers());
    assert_eq!(compile("c", &text), "");
    // The comparison itself works.
    let wrong = text.replace("== 13,", "== 14,");
    assert_ne!(text, wrong);
    assert!(compile("c", &wrong).contains("FREE"));
}

/// Every function of the header exists.
#[test]
fn the_header_declares_the_functions_that_exist() {
    let header = include_str!("../../include/vmscope_publish.h");
    let here = [include_str!("mod.rs"), include_str!("sampler.rs")].concat();
    let declared: Vec<&str> = (header.split("vmscope_").skip(1))
        .filter_map(|rest| rest.split_once('(').map(|(name, _)| name))
        .filter(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .filter(|&name| name != "str")
        .collect();
    assert!(declared.len() > 25, "{declared:?}");
    for name in declared {
        assert!(here.contains(&format!("vmscope_{name}(")), "{name}");
    }
}
