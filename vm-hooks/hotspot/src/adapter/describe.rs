//! Description of a piece of code: kind, tier, name.

use rustc_hash::FxHashSet;
use vmscope_process::Poll;
use vmscope_records::{Avma, Constituent, ConstituentKind};

use super::kept::Kept;
use super::methods::{Methods, Pinned};
use crate::code::{Blob, BlobKind, Nmethod, Scope, tier};
use crate::pages::Pages;
use crate::stubs::{Routine, cut};

/// The compiled method itself, by the debug records.
pub(super) fn outermost(nmethod: &Nmethod) -> Option<Avma> {
    let chain = nmethod.chain(nmethod.pcs.first()?.scope).ok()?;
    chain.last().map(|frame| frame.method)
}

/// Source of knowledge about an nmethod's methods.
#[derive(Clone, Copy, Debug)]
pub(super) enum KnownFrom<'p, 'm> {
    /// Methods present in the VM.
    Memory(&'p Pages<'m>),
    /// Methods known before an unloading of classes.
    Before,
    /// Unloaded methods of uncertain identity.
    Nothing,
}

/// Fills in the description of a compiled method, except its map, and keeps the constituent and the
/// known methods among its own and the inlined ones. Without a known own method, the
/// code gets no name.
pub(super) fn describe(
    kept: &mut Kept,
    constituent: &mut Constituent,
    from: KnownFrom<'_, '_>,
    methods: &mut Methods,
    poll: &mut Poll,
) {
    let nmethod = &kept.nmethod;
    constituent.kind = ConstituentKind::Method;
    constituent.tier = tier(nmethod.level.into()).to_owned();
    // Names of inlined methods can wait until samples hit the code, unless the classes may be
    // gone by then.
    let is_own_enough = matches!(from, KnownFrom::Memory(_)) && !methods.have_gone_lately();
    let wanted = if is_own_enough {
        vec![nmethod.method]
    } else {
        methods_of(nmethod)
    };
    if let KnownFrom::Memory(pages) = from {
        methods.meet_anew(pages, nmethod.method, poll);
    }
    let pinned = pinned(&wanted, from, methods, poll);
    let own = pinned.iter().find(|(method, _)| *method == nmethod.method);
    let own = own.map(|(_, own)| own);
    constituent.method = own.map(|own| Methods::tell(own, poll));
    constituent.name = match own.map(|own| &own.info) {
        Some(info) if nmethod.is_osr() => {
            format!("{} (OSR at {})", info.full_name(), nmethod.entry_bci)
        }
        Some(info) => info.full_name(),
        None => String::new(),
    };
    kept.are_all = !is_own_enough && pinned.len() == wanted.len();
    kept.methods = pinned;
    kept.constituent = Some(constituent.clone());
}

/// The compiled method and its inlined methods, as present in the VM, and whether all were
/// readable.
pub(super) fn present(
    nmethod: &Nmethod,
    pages: &Pages<'_>,
    methods: &mut Methods,
    poll: &mut Poll,
) -> (Vec<Pinned>, bool) {
    let wanted = methods_of(nmethod);
    let pinned = pinned(&wanted, KnownFrom::Memory(pages), methods, poll);
    let are_all = pinned.len() == wanted.len();
    (pinned, are_all)
}

/// The `wanted` methods, as far as known.
fn pinned(
    wanted: &[Avma],
    from: KnownFrom<'_, '_>,
    methods: &mut Methods,
    poll: &mut Poll,
) -> Vec<Pinned> {
    let pin = |method: &Avma| match from {
        // Data known before belong to another method.
        KnownFrom::Memory(pages) => {
            methods.meet(pages, *method, poll);
            methods.pin(*method)
        }
        KnownFrom::Before => methods.dead(*method),
        KnownFrom::Nothing => None,
    };
    wanted.iter().filter_map(pin).collect()
}

/// The compiled method and its inlined methods, each once, ascending.
fn methods_of(nmethod: &Nmethod) -> Vec<Avma> {
    let scopes = nmethod.pcs.iter().map(|pc| pc.scope);
    let mut all = methods_in(scopes, nmethod.scopes.len(), |at| nmethod.scope(at).ok());
    all.insert(nmethod.method);
    let mut all: Vec<Avma> = all.into_iter().collect();
    all.sort_unstable();
    all
}

/// Methods named by the scopes at `offsets`, below `end`, and by their senders. Each scope is
/// read once: a damaged or hostile nmethod may have millions of records with hundreds of scopes
/// each.
fn methods_in(
    offsets: impl Iterator<Item = u32>,
    end: usize,
    read: impl Fn(u32) -> Option<Scope>,
) -> FxHashSet<Avma> {
    let mut is_new = vec![true; end];
    let mut methods = FxHashSet::default();
    for offset in offsets {
        let mut at = offset;
        // Offset 0 means no scope.
        while at != 0
            && let Some(is_new) = is_new.get_mut(at as usize)
            && std::mem::take(is_new)
            && let Some(scope) = read(at)
        {
            methods.insert(scope.frame.method);
            at = scope.sender;
        }
    }
    methods
}

/// Pieces of stub, adapter and interpreter blobs.
pub(super) fn routines_of(
    blob: &Blob,
    kind: BlobKind,
    name: &str,
    codelets: &[Routine],
    stubs: &[(Avma, String)],
) -> Vec<(ConstituentKind, Routine)> {
    let (start, end) = (blob.code_begin, blob.code_end);
    let whole = || Routine {
        start,
        end,
        name: name.to_owned(),
    };
    if kind == BlobKind::Interpreter {
        let parts = if codelets.is_empty() {
            vec![whole()]
        } else {
            codelets.to_vec()
        };
        let kind = |routine| (ConstituentKind::Interpreter, routine);
        return parts.into_iter().map(kind).collect();
    }
    let kind = if name.contains("adapters") || name.contains("Adapter") {
        ConstituentKind::Adapter
    } else {
        ConstituentKind::Stub
    };
    cut(start, end, name, stubs)
        .into_iter()
        .map(|routine| (kind.clone(), routine))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::code::Frame;

    /// A chain of 500 scopes; a scope at 511 joins the chain.
    fn scope(at: u32) -> Option<Scope> {
        (at < 512).then(|| Scope {
            sender: if at == 511 { 499 } else { at - 1 },
            frame: Frame {
                method: Avma(u64::from(at / 10)),
                bci: 0,
            },
            values: [0; 3],
        })
    }

    #[test]
    fn each_scope_is_read_once_however_many_records_lead_to_it() {
        let reads = Cell::new(0);
        let read = |at| {
            reads.set(reads.get() + 1);
            scope(at)
        };
        let records = (0..100_000).map(|number| [500, 511, 0, 700, 100_000][number % 5]);
        let methods = methods_in(records, 600, read);
        assert_eq!(reads.get(), 501);
        let mut methods: Vec<u64> = methods.into_iter().map(|method| method.0).collect();
        methods.sort_unstable();
        assert_eq!(methods, (0..=51).collect::<Vec<_>>());
    }
}
