//! `--max-memory`: the bound of vmscope's own memory.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use vmscope_records::Module;
use vmscope_symbolizer::native::{Binaries, DebugFile, DebugFileRequest, FileBytes};
use vmscope_symbolizer::trace::memory_for;

/// Where the machine's memory is unknown, in bytes.
const USUAL_MEMORY: u64 = 4 << 30;

/// The option of all commands that read or make recordings.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct MemoryOption {
    /// Maximum memory of vmscope, such as 512M or 4G: beyond it, sampling ends, and the rest of a
    /// recording is not read; the report tells (default: half of this machine's; less for small
    /// recordings)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_memory: Option<u64>,
}

impl MemoryOption {
    /// The maximum, in bytes.
    pub fn max(self) -> u64 {
        self.max_memory.unwrap_or_else(|| machine_bytes() / 2)
    }

    /// The maximum for reading a recording of `file_bytes`, in bytes.
    pub fn max_for(self, file_bytes: u64) -> u64 {
        let usual = || (machine_bytes() / 2).min(memory_for(file_bytes));
        self.max_memory.unwrap_or_else(usual)
    }
}

/// A size of at least 1 MiB.
fn size(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(bytes) if bytes >= 1 << 20 => Ok(bytes),
        _ => Err("expected a size of at least 1M, such as 512M or 4G".to_owned()),
    }
}

/// A size in bytes, or with K, M or G: 1024 times as much each.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim_end_matches("iB").trim_end_matches('B');
    let (number, shift) = match text.chars().next_back() {
        Some('k' | 'K') => (&text[..text.len() - 1], 10),
        Some('m' | 'M') => (&text[..text.len() - 1], 20),
        Some('g' | 'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = number.parse::<u64>().ok();
    let bytes = bytes.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a size, such as 64K, 512M or 4G".to_owned())
}

/// Memory of the machine, or of the control group, in bytes.
fn machine_bytes() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let machine = total.map_or(USUAL_MEMORY, |kib| kib << 10);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let folder = Path::new("/sys/fs/cgroup").join(group.unwrap_or_default());
    let limit = |folder: &Path| std::fs::read_to_string(folder.join("memory.max")).ok();
    let limits = folder.ancestors().filter_map(limit);
    let limits = limits.filter_map(|limit| limit.trim().parse().ok());
    limits.fold(machine, u64::min)
}

/// Memory that vmscope has allocated, in bytes, without files; 0 if unknown.
pub fn own_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let anonymous = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = anonymous.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Binaries that are not opened once vmscope has used up its memory.
pub struct Bounded<'a> {
    pub binaries: &'a dyn Binaries,
    /// In bytes.
    pub max_memory: u64,
}

impl Bounded<'_> {
    fn has_room(&self) -> bool {
        own_bytes() < self.max_memory
    }
}

impl Binaries for Bounded<'_> {
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String> {
        match self.has_room() {
            true => self.binaries.module(module),
            false => Err("not read: --max-memory is used up".to_owned()),
        }
    }

    fn debug_file(&self, request: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        match self.has_room() {
            true => self.binaries.debug_file(request),
            false => Vec::new(),
        }
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        self.binaries.kernel_symbols().filter(|_| self.has_room())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("1048576", 1 << 20),
            ("2M", 2 << 20),
            ("1024k", 1 << 20),
            ("3G", 3 << 30),
            ("3GiB", 3 << 30),
            ("3GB", 3 << 30),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "M", "-1M", "1", "512K", "99999999999G", "1T", "1.5G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_machine_and_this_process_have_memory() {
        assert!(machine_bytes() > own_bytes());
        assert!(own_bytes() > 64 << 10);
    }

    #[test]
    fn a_small_recording_takes_little() {
        let usual = MemoryOption::default();
        assert_eq!(usual.max_for(0), 64 << 20);
        assert_eq!(usual.max_for(u64::MAX), usual.max());
        let asked = MemoryOption {
            max_memory: Some(5 << 20),
        };
        assert_eq!([asked.max(), asked.max_for(0)], [5 << 20; 2]);
    }
}
