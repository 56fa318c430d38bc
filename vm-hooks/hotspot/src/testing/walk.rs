//! Reads all that this crate reads of a JVM: the code cache, debug records, methods,
//! their lines and bytecodes.

use std::collections::BTreeMap;

use vmscope_process::{AdapterError, Memory, ProcessView};
use vmscope_records::Avma;

use crate::bytecode::{ConstantPoolView, PoolLayout, listing};
use crate::code::{CodeCache, Found, Frame, HeapBounds, Nmethod, ScopeError};
use crate::jvm::Jvm;
use crate::method::MethodInfo;
use crate::pages::Pages;

/// Records of an nmethod that are followed; the others are only counted.
const MAX_CHAINS: usize = 1 << 16;

/// What was found.
#[derive(Debug, Default)]
pub struct Walk {
    /// The VM's version: 11, 17 …; 11 where it does not tell.
    pub major: u32,
    /// The code heaps.
    pub heaps: Vec<HeapBounds>,
    /// The compiled methods, by address.
    pub nmethods: Vec<WalkedNmethod>,
    /// Names of the other blobs, by address.
    pub others: BTreeMap<Avma, String>,
    /// nmethods that could not be read.
    pub failed: u64,
    /// Blobs and heaps that made no sense.
    pub malformed: u64,
    /// The methods that are compiled or inlined: `None` where they could not be read.
    pub methods: BTreeMap<Avma, Option<WalkedMethod>>,
}

/// A method and its listing.
pub type WalkedMethod = (MethodInfo, Vec<String>);

/// An nmethod, and the chain of each of its debug records.
#[derive(Debug)]
pub struct WalkedNmethod {
    /// The nmethod.
    pub nmethod: Nmethod,
    /// What each of its debug records stands for, innermost first.
    pub chains: Vec<Result<Vec<Frame>, ScopeError>>,
}

/// Reads it all: `memory` is the process's, perhaps through pages that are kept.
///
/// # Errors
///
/// Where the VM does not describe itself, or has no code cache. What is wrong within
/// is counted.
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
