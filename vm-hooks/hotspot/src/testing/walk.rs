//! Reads all data of a JVM that this crate can read: code cache, debug records, methods, lines,
//! bytecodes.

use std::collections::BTreeMap;

use vmscope_process::{AdapterError, Memory, ProcessView};
use vmscope_records::Avma;

use crate::bytecode::{ConstantPoolView, PoolLayout, listing};
use crate::code::{CodeCache, Found, Frame, HeapBounds, Nmethod, ScopeError};
use crate::jvm::Jvm;
use crate::method::MethodInfo;
use crate::pages::Pages;

/// Maximum number of decoded records per nmethod; the others are only counted.
const MAX_CHAINS: usize = 1 << 16;

/// Results of the walk.
#[derive(Debug, Default)]
pub struct Walk {
    /// The VM's version: 11, 17 …; 11 if unknown.
    pub major: u32,
    /// The code heaps.
    pub heaps: Vec<HeapBounds>,
    /// Nmethods, by address.
    pub nmethods: Vec<WalkedNmethod>,
    /// Names of other blobs, by address.
    pub others: BTreeMap<Avma, String>,
    /// Number of unreadable nmethods.
    pub failed: u64,
    /// Number of implausible blobs and heaps.
    pub malformed: u64,
    /// Compiled or inlined methods; `None` for unreadable ones.
    pub methods: BTreeMap<Avma, Option<WalkedMethod>>,
}

/// A method and its listing.
pub type WalkedMethod = (MethodInfo, Vec<String>);

/// An nmethod, and the chains of its debug records.
#[derive(Debug)]
pub struct WalkedNmethod {
    /// The nmethod.
    pub nmethod: Nmethod,
    /// Chain of each debug record, innermost method first.
    pub chains: Vec<Result<Vec<Frame>, ScopeError>>,
}

/// Reads all data; `memory` is the process's, perhaps with a page cache.
///
/// # Errors
/// Missing self-description, or no code cache. Other errors are counted.
pub fn walk(process: &ProcessView, memory: &dyn Memory) -> Result<Walk, AdapterError> {
    let jvm = Jvm::open(process, memory)?;
    let (layout, methods) = (&jvm.code, &jvm.methods);
    let mut cache = CodeCache::new(layout.clone());
    let mut walk = Walk {
        major: jvm.version.major,
        ..Walk::default()
    };
    walk.heaps = cache.read(&Pages::new(memory), |found| match found {
        Found::Nmethod { blob, bytes, .. } => match layout.read_nmethod(blob, bytes, memory) {
            Ok(nmethod) => {
                let pcs = nmethod.pcs.iter().take(MAX_CHAINS);
                let chains = pcs.map(|pc| nmethod.chain(pc.scope)).collect();
                walk.nmethods.push(WalkedNmethod { nmethod, chains });
            }
            Err(_) => walk.failed += 1,
        },
        Found::Other { blob, name, .. } => {
            walk.others.insert(blob.at, name.to_owned());
        }
    })?;
    walk.malformed = cache.malformed();
    let pools = PoolLayout::of(&jvm.structs, methods.clone())?;
    for WalkedNmethod { nmethod, chains } in &walk.nmethods {
        let inlined = chains.iter().flatten().flatten().map(|frame| frame.method);
        for method in inlined.chain([nmethod.method]) {
            let read = || {
                let info = methods.read(memory, method).ok()?;
                let pool = ConstantPoolView::read(&pools, memory, info.constants).ok()?;
                let lines = listing(&info, &pool);
                let lines = lines.iter().map(|(bci, text)| format!("{bci}: {text}"));
                let lines = lines.collect();
                Some((info, lines))
            };
            walk.methods.entry(method).or_insert_with(read);
        }
    }
    Ok(walk)
}
