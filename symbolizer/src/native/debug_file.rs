//! Search for separate debug files, with checks of their identity.

use goblin::elf::section_header::SHT_NOBITS;
use vmscope_records::BuildId;

use super::bytes::{Binaries, DebugFile, DebugFileKind, DebugFileRequest, FileBytes};
use super::dwarf::Sections;
use super::elf::Elf;
use super::{limits, notes};

/// The debug file of `elf`; `note` receives remarks.
pub(crate) fn separate(
    path: &str,
    elf: &Elf<'_>,
    binaries: &dyn Binaries,
    note: &mut Vec<String>,
) -> Option<DebugFile> {
    let build_id = notes::build_id(elf);
    let link = notes::debug_link(elf);
    if build_id.is_none() && link.is_none() {
        return None;
    }
    let candidates = binaries.debug_file(&DebugFileRequest {
        path,
        kind: DebugFileKind::Separate,
        build_id: build_id.as_ref(),
        name: link.as_ref().map(|link| &*link.name),
    });
    for candidate in candidates.into_iter().take(limits::DEBUG_FILE_CANDIDATES) {
        let Some(found) = is_useful(&candidate) else {
            continue;
        };
        // The CRC needs the whole file: compute it only without build-ids.
        let (belongs, how) = match (&build_id, &link) {
            (Some(expected), _) => (found.as_ref() == Some(expected), "build-id"),
            (None, Some(link)) => (crc32(&*candidate.bytes) == Some(link.crc), "debug link"),
            (None, None) => (false, ""),
        };
        if belongs {
            note.push(format!("debug file by {how}: {}", candidate.path));
            return Some(candidate);
        }
        note.push(format!("debug file of another build: {}", candidate.path));
    }
    None
}

/// The build-id of a candidate with symbols or DWARF; `None` without both.
fn is_useful(candidate: &DebugFile) -> Option<Option<BuildId>> {
    let elf = Elf::open(&*candidate.bytes).ok()?;
    let symbols = elf.section(".symtab");
    let has_symbols = symbols.is_some_and(|index| elf.sections[index].kind != SHT_NOBITS);
    (has_symbols || Sections::are_in(&elf)).then(|| notes::build_id(&elf))
}

/// The file with the parts of `elf` (at `path`) that dwz moved.
pub(crate) fn alternate(
    path: &str,
    elf: &Elf<'_>,
    binaries: &dyn Binaries,
    note: &mut Vec<String>,
) -> Option<DebugFile> {
    let link = notes::alt_link(elf)?;
    let candidates = binaries.debug_file(&DebugFileRequest {
        path,
        kind: DebugFileKind::Alternate,
        build_id: link.build_id.as_ref(),
        name: Some(&link.path),
    });
    let found = candidates
        .into_iter()
        .take(limits::DEBUG_FILE_CANDIDATES)
        .find(|candidate| {
            Elf::open(&*candidate.bytes)
                .is_ok_and(|elf| link.build_id.is_some() && notes::build_id(&elf) == link.build_id)
        });
    if found.is_none() {
        note.push(format!("some names are missing: no file {}", link.path));
    }
    found
}

/// The CRC32 of a whole file, for `.gnu_debuglink`.
fn crc32(file: &dyn FileBytes) -> Option<u32> {
    const AT_A_TIME: u64 = 1 << 20;
    let len = file.len();
    if len > limits::CRC_BYTES {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut offset = 0;
    while offset < len {
        let now = AT_A_TIME.min(len - offset);
        hasher.update(&file.read_at(offset, usize::try_from(now).ok()?).ok()?);
        offset += now;
    }
    Some(hasher.finalize())
}
