//! What the reader sees of a JVM's code, gathered for comparison.

use std::collections::HashMap;

use vmscope_hotspot::code::{Blob, CodeCache, Found, Frame, Nmethod};
use vmscope_hotspot::jvm::Jvm;
use vmscope_hotspot::method::MethodInfo;
use vmscope_hotspot::pages::Pages;
use vmscope_process::ProcessView;
use vmscope_records::{Avma, Pid};

/// A compiled method with its records decoded.
#[derive(Clone, Debug)]
pub struct Outside {
    pub nmethod: Nmethod,
    /// Machine pc and chain of each record, by pc.
    pub records: Vec<(u64, Vec<Frame>)>,
}

/// One reading of a JVM's code.
#[derive(Debug, Default)]
pub struct Zone {
    /// By where their instructions begin.
    pub nmethods: HashMap<u64, Outside>,
    /// Other blobs by address, with the VM's names.
    pub others: Vec<(Blob, String)>,
    /// Every method that a record or an nmethod names, where it can be read.
    pub methods: HashMap<Avma, MethodInfo>,
}

/// Reads a live JVM.
///
/// # Panics
/// Where anything can't be read: nothing changes in the JVMs of these tests.
pub fn read(pid: u32) -> Zone {
    let process = ProcessView::open(Pid(pid)).expect("our child");
    let pages = Pages::new(process.memory());
    let jvm = Jvm::open(&process, &pages).expect("its tables");
    assert_eq!(jvm.missing(), [""; 0], "all fields");
    let (layout, methods) = (&jvm.code, &jvm.methods);
    let mut cache = CodeCache::new(layout.clone());
    let mut zone = Zone::default();
    let heaps = cache.read(&pages, |found| match found {
        Found::Nmethod { blob, bytes, .. } => {
            let nmethod = layout
                .read_nmethod(blob, bytes, &pages)
                .expect("an nmethod");
            let begin = nmethod.blob.code_begin.0;
            let records = nmethod.pcs.iter().map(|desc| {
                let pc = begin.wrapping_add_signed(i64::from(desc.pc));
                (pc, nmethod.chain(desc.scope).expect("a chain"))
            });
            let records = records.collect();
            zone.nmethods.insert(begin, Outside { nmethod, records });
        }
        Found::Other { blob, name, .. } => zone.others.push((blob, name.to_owned())),
    });
    assert!(!heaps.expect("heaps").is_empty());
    assert_eq!(cache.malformed(), 0);
    let frames = zone.nmethods.values().flat_map(|outside| {
        let of_records = outside.records.iter().flat_map(|(_, chain)| chain);
        of_records
            .map(|frame| frame.method)
            .chain([outside.nmethod.method])
    });
    let mut named = HashMap::new();
    for method in frames {
        // Methods named by dead code may be gone.
        if !named.contains_key(&method)
            && let Ok(info) = methods.read(&pages, method)
        {
            named.insert(method, info);
        }
    }
    zone.methods = named;
    zone
}
