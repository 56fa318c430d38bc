//! Compares lines and inlined functions with binutils' addr2line at every instruction of optimised
//! programs.

use std::fmt::Write as _;
use std::path::Path;

use crate::native_support::{Disk, code_segments, module, offset_of, run};
use vmscope_records::{Exactness, FileOffset, NativeFunction, Symbols};
use vmscope_symbolizer::native::{ResolveOptions, resolve_module};

const CPP: &str = r"
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>
namespace shop {
struct Item { int price; std::string name; };
static inline __attribute__((always_inline)) int tax(int x) {
  return x * 19 / 100;
}
static inline __attribute__((always_inline)) int gross(const Item& item) {
  return item.price + tax(item.price);
}
__attribute__((noinline)) int total(const std::vector<Item>& items) {
  int sum = 0;
  for (const auto& item : items)
    sum += gross(item);
  return sum;
}
template <typename T> __attribute__((noinline)) T best(std::vector<T> v) {
  std::sort(v.begin(), v.end());
  return std::accumulate(v.begin(), v.end(), T{}) + v.back();
}
}
int main(int argc, char** argv) {
  std::vector<shop::Item> items;
  for (int i = 0; i < argc + 100; i++) items.push_back({i, argv[0]});
  return shop::total(items) + shop::best<long>({3, 1, 2, argc}) > 0 ? 0 : 1;
}
";

const RUST: &str = r#"
use std::collections::BTreeMap;
#[inline(always)]
fn square(x: u64) -> u64 {
    x.wrapping_mul(x)
}
#[inline(never)]
fn tally(words: &[String]) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word.as_str()).or_insert(0) += square(word.len() as u64);
    }
    counts
}
fn main() {
    let words: Vec<String> = std::env::args().collect();
    println!("{:?}", tally(&words));
}
"#;

/// A frame in addr2line's format: function, file:line.
type Frame = (String, String);

/// addr2line's answer for each address.
fn binutils(dir: &Path, file: &str, addresses: &[u64]) -> Option<Vec<Vec<Frame>>> {
    let mut list = String::new();
    for address in addresses {
        writeln!(list, "{address:#x}").unwrap();
    }
    std::fs::write(dir.join("addresses"), list).unwrap();
    let text = run(dir, &format!("addr2line -a -f -i -C -e {file} @addresses"))?;
    let mut all: Vec<Vec<Frame>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap();
        let place = place.split(" (discriminator").next().unwrap();
        all.last_mut()
            .unwrap()
            .push((line.to_owned(), place.to_owned()));
    }
    assert_eq!(all.len(), addresses.len());
    Some(all)
}

/// Our result in addr2line's format.
fn ours(symbols: &Symbols, hit: FileOffset) -> Option<(Vec<Frame>, Exactness)> {
    let holds = |f: &&NativeFunction| hit.0 >= f.start.0 && hit.0 < f.start.0 + f.size;
    let function = symbols.functions.iter().find(holds)?;
    let lines = function
        .lines
        .iter()
        .find(|lines| lines.start <= hit && hit < lines.end)?;
    let frame = |frame: &vmscope_records::NativeFrame| {
        let line = match frame.line {
            0 => "?".to_owned(),
            line => line.to_string(),
        };
        (frame.function.clone(), format!("{}:{line}", frame.file))
    };
    Some((lines.frames.iter().map(frame).collect(), lines.exactness))
}

/// Comparable part of frames: names without arguments and template arguments (spelling differs),
/// file name, line.
fn essence(frames: &[Frame]) -> Vec<Frame> {
    let short = |name: &str| {
        let mut depth = 0;
        let plain: String = name
            .split(" [clone")
            .next()
            .unwrap()
            .chars()
            .filter(|c| {
                match c {
                    '<' | '(' => depth += 1,
                    '>' | ')' => depth -= 1,
                    _ => return depth == 0,
                }
                false
            })
            .collect();
        // Template functions start with their return type.
        let last = plain.rsplit("::").next().unwrap();
        let last = last.rsplit(' ').next().unwrap();
        // Our last frame has the symbol's name, possibly of a split part.
        last.strip_suffix(".cold").unwrap_or(last).to_owned()
    };
    frames
        .iter()
        .map(|(name, place)| {
            let place = place.rsplit('/').next().unwrap().replace(":0", ":?");
            (short(name), place)
        })
        .collect()
}

/// Compares every instruction of functions whose names contain one of `wanted`.
fn compare(dir: &Path, file: &str, wanted: &[&str]) -> Option<()> {
    let text = run(dir, &format!("objdump -d --no-show-raw-insn {file}"))?;
    let mut addresses = Vec::new();
    let mut in_function = false;
    for line in text.lines() {
        if line.ends_with(">:") {
            in_function = wanted.iter().any(|name| line.contains(name));
        } else if let (true, Some((address, _))) = (in_function, line.split_once(":\t")) {
            addresses.push(u64::from_str_radix(address.trim(), 16).unwrap());
        }
    }
    assert!(
        addresses.len() > 100,
        "{file}: {} instructions",
        addresses.len()
    );
    let segments = code_segments(dir, file)?;
    let hits: Vec<FileOffset> = addresses
        .iter()
        .map(|address| offset_of(&segments, *address).unwrap())
        .collect();
    let path = dir.join(file);
    let options = ResolveOptions::default();
    let symbols = resolve_module(&module(&path), &hits, &Disk::default(), &options);
    assert_eq!(symbols.note, "", "{file}");
    let expected = binutils(dir, file, &addresses)?;
    let mut differences = Vec::new();
    let (mut inlined, mut slips) = (0, 0);
    for ((hit, address), expected) in hits.iter().zip(&addresses).zip(&expected) {
        let Some((frames, exactness)) = ours(&symbols, *hit) else {
            // In padding, binutils names the preceding symbol.
            if !expected[0].1.ends_with(":?") {
                differences.push(format!("{address:#x}: nothing, {expected:?}"));
            }
            continue;
        };
        inlined += usize::from(frames.len() > 1);
        let (left, right) = (essence(&frames), essence(expected));
        // binutils sometimes gives the innermost frame the outermost name and the innermost line:
        // `total` at the line of `gross`.
        let mut mended = right.clone();
        if let (Some(first), Some(ours)) = (mended.first_mut(), left.first())
            && right.last().is_some_and(|last| last.0 == first.0)
        {
            first.0.clone_from(&ours.0);
        }
        if left == mended && left != right {
            slips += 1;
        } else if left != right {
            differences.push(format!(
                "{address:#x} {exactness:?}:\n  {left:?}\n  {right:?}"
            ));
        }
    }
    eprintln!(
        "{file}: {} instructions, {inlined} of them inlined, {} differences",
        addresses.len(),
        differences.len()
    );
    assert!(inlined > 20, "{file}");
    assert!(slips * 50 < addresses.len(), "{file}: {slips} slips");
    let shown = differences.len().min(8);
    assert!(
        differences.is_empty(),
        "{file}: {} of {} differ:\n{}",
        differences.len(),
        addresses.len(),
        differences[..shown].join("\n")
    );
    agrees_with_addr2line(&path, &symbols, &hits, &addresses);
    Some(())
}

/// The addr2line crate must agree exactly, including linkage names.
fn agrees_with_addr2line(path: &Path, symbols: &Symbols, hits: &[FileOffset], addresses: &[u64]) {
    let loader = addr2line::Loader::new(path).unwrap();
    for (hit, address) in hits.iter().zip(addresses) {
        let mut expected = Vec::new();
        let mut frames = loader.find_frames(*address).unwrap();
        while let Some(frame) = frames.next().unwrap() {
            let name = frame
                .function
                .map(|name| name.demangle().unwrap().into_owned());
            let place = frame.location.map(|place| {
                let line = place.line.filter(|line| *line > 0);
                let line = line.map_or("?".to_owned(), |line| line.to_string());
                format!("{}:{line}", place.file.unwrap_or_default())
            });
            expected.push((name.unwrap_or_default(), place.unwrap_or_default()));
        }
        let (mut frames, _) = ours(symbols, *hit).unwrap_or_default();
        // Our last frame has the symbol's name without Rust's hash and possibly with `[clone
        // .cold]`.
        if let (Some(ours), Some(theirs)) = (frames.last_mut(), expected.last()) {
            let short = |name: &str| essence(&[(name.to_owned(), String::new())]);
            assert_eq!(short(&ours.0), short(&theirs.0), "{address:#x}");
            ours.0.clone_from(&theirs.0);
        }
        assert_eq!(frames, expected, "{address:#x} of {}", path.display());
    }
}

#[test]
fn cpp_agrees_with_binutils() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("shop.cc"), CPP).unwrap();
    for (file, flags) in [
        ("v5", "-gdwarf-5"),
        ("v4", "-gdwarf-4"),
        ("v3", "-gdwarf-3 -gstrict-dwarf"),
        ("zlib", "-g -gz=zlib"),
        ("fixed", "-g -no-pie"),
        ("unindexed", "-g"),
    ] {
        let line = format!("g++ -O2 {flags} -o {file} shop.cc");
        if run(dir, &line).is_none() {
            return;
        }
        // Some compilers write no address index.
        let line = format!("objcopy --remove-section=.debug_aranges {file}");
        if file == "unindexed" && run(dir, &line).is_none() {
            return;
        }
        if compare(dir, file, &["shop", "main"]).is_none() {
            return;
        }
    }
}

#[test]
fn rust_agrees_with_binutils() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("tally.rs"), RUST).unwrap();
    for flags in ["", "-C symbol-mangling-version=v0"] {
        let line = format!("rustc -O -g {flags} -o tally tally.rs");
        if run(dir, &line).is_none() || compare(dir, "tally", &["tally"]).is_none() {
            return;
        }
    }
}
