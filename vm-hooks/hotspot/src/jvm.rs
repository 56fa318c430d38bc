//! A JVM in a process: library, version, field offsets.

use vmscope_process::{AdapterError, LoadedModule, Memory, ProcessView};

use crate::code::CodeLayout;
use crate::layout::{Encodings, MARK, Missing, VmStructs};
use crate::method::MethodLayout;

/// File name of the VM's library.
pub const LIBRARY: &str = "libjvm.so";

/// Oldest and newest version with layouts verified against the JVM's own reports.
pub const TESTED: (u32, u32) = (11, 27);

/// Maximum length of a version string.
const MAX_VERSION: usize = 256;

/// A JVM with known layouts.
#[derive(Debug)]
pub struct Jvm {
    /// `libjvm.so`.
    pub library: LoadedModule,
    /// The VM's description of its own structures.
    pub structs: VmStructs,
    /// Its version.
    pub version: Version,
    /// Layout of its code cache.
    pub code: CodeLayout,
    /// Layout of its methods and classes.
    pub methods: MethodLayout,
}

/// The version of a JVM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Feature release (17).
    pub major: u32,
    /// Full version in the VM's form (`17.0.15+6-Debian-1deb12u1`).
    pub release: String,
}

impl Jvm {
    /// Reads the self-description of the JVM in `process`.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] during its start, [`AdapterError::MissingField`] without an
    /// essential field, errors of reads.
    pub fn open(process: &ProcessView, memory: &dyn Memory) -> Result<Self, AdapterError> {
        let library = library_of(process).ok_or(AdapterError::NotReady { what: "library" })?;
        let structs = VmStructs::read(process, &library, memory)?;
        let version = Version::read(&structs, memory)?;
        let encodings = Encodings::of(version.major);
        Ok(Jvm {
            code: CodeLayout::of(&structs, encodings)?,
            methods: MethodLayout::of(&structs, encodings)
                .unwrap_or_else(|error| MethodLayout::unknown(&error, encodings)),
            library,
            structs,
            version,
        })
    }

    /// Optional fields missing from its tables: one sentence per missing feature.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let all = self.code.missing.iter().chain(&self.methods.missing);
        Missing::told(&all.cloned().collect::<Vec<_>>())
    }

    /// Whether its version is verified against the JVM's own reports, or lies between two
    /// verified versions.
    #[must_use]
    pub fn is_tested(&self) -> bool {
        (TESTED.0..=TESTED.1).contains(&self.version.major)
    }
}

impl Version {
    /// Whether C2 gives wrong positions with `-XX:+DebugNonSafepoints`. After renumbering its
    /// nodes, C2 uses positions of unrelated code (JDK-8201516; fixed in 11.0.21, 17.0.8,
    /// 20.0.2 and 21).
    #[must_use]
    pub fn has_wrong_positions(&self) -> bool {
        let numbers = self.release.split(|c: char| !c.is_ascii_digit());
        let update = numbers.skip(2).map(|number| number.parse::<u32>()).next();
        let update = update.and_then(Result::ok).unwrap_or(0);
        match self.major {
            11 => update < 21,
            17 => update < 8,
            20 => update < 2,
            major => major < 21,
        }
    }

    /// From the VM's tables; some fields exist in newer or in older versions only.
    fn read(structs: &VmStructs, memory: &dyn Memory) -> Result<Self, AdapterError> {
        let reading = AdapterError::reading("version");
        let old = structs.optional_static("JDK_Version", "_current");
        let new = structs.optional_static("Abstract_VM_Version", "_vm_major_version");
        let old = old.map(|at| memory.read_u8(at).map(u32::from));
        let new = new.map(|at| memory.read_u32(at));
        let major = match (old, new) {
            (Some(Err(_)), Some(Ok(major))) | (Some(Ok(major)), _) => major,
            (Some(major), _) | (None, Some(major)) => major.map_err(&reading)?,
            (None, None) => {
                return Err(AdapterError::MissingField {
                    name: "JDK_Version._current".to_owned(),
                });
            }
        };
        if major == 0 {
            return Err(AdapterError::NotReady { what: "version" });
        }
        let release = structs
            .optional_static("Abstract_VM_Version", "_s_vm_release")
            .and_then(|at| memory.read_pointer(at).ok())
            .and_then(|at| memory.read_c_string(at, MAX_VERSION).ok())
            .map(|release| String::from_utf8_lossy(&release).into_owned());
        Ok(Version {
            major,
            release: release.unwrap_or_else(|| major.to_string()),
        })
    }
}

/// Library of a HotSpot JVM, if mapped with code, by file name and HotSpot's own export.
#[must_use]
pub fn library_of(process: &ProcessView) -> Option<LoadedModule> {
    let library = process.module(|name| name == LIBRARY)?;
    let is_hotspot = |library: &LoadedModule| {
        let found = process.symbols(library, &[MARK]);
        found.is_ok_and(|found| found.iter().any(Option::is_some))
    };
    (library.has_code() && is_hotspot(&library)).then_some(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_positions_by_version() {
        let of = |major, release: &str| {
            let release = release.to_owned();
            Version { major, release }.has_wrong_positions()
        };
        assert!(of(11, "11.0.13+8") && !of(11, "11.0.21+9"));
        assert!(of(17, "17.0.2+8-86") && !of(17, "17.0.15+6-Debian-1deb12u1"));
        assert!(of(17, "17+35") && of(19, "19.0.2+7") && of(20, "20.0.1+9"));
        assert!(!of(21, "21+35") && !of(25, "25.0.3+9-LTS"));
    }
}
