//! What is told of a piece of code: its kind, tier and name.

use vmscope_records::{Avma, Constituent, ConstituentKind};
use vmscope_target::Look;

use super::methods::{Methods, Pinned};
use crate::code::{Blob, BlobKind, Nmethod, tier};
use crate::pages::Pages;
use crate::stubs::{Routine, cut};

/// The method that was compiled, by the debug records.
pub(super) fn outermost(nmethod: &Nmethod) -> Option<Avma> {
    let chain = nmethod.chain(nmethod.pcs.first()?.scope).ok()?;
    chain.last().map(|frame| frame.method)
}

/// Fills in what is known of a compiled method, all but its map. Returns the methods that
/// it is of, and whether these are all. Without `pages` they are those that were known
/// before classes were unloaded: they are not there any more.
pub(super) fn describe(
    nmethod: &Nmethod,
    constituent: &mut Constituent,
    pages: Option<&Pages<'_>>,
    methods: &mut Methods,
    look: &mut Look,
) -> (Vec<Pinned>, bool) {
    constituent.kind = ConstituentKind::Method;
    constituent.tier = tier(nmethod.level.into()).to_owned();
    // Of those that are inlined in it names are wanted when samples hit it: the classes
    // may be gone by then.
    let mut inlined: Vec<Avma> = Vec::new();
    let mut last = u32::MAX;
    for pc in &nmethod.pcs {
        if pc.scope != last {
            last = pc.scope;
            let chain = nmethod.chain(pc.scope).unwrap_or_default();
            inlined.extend(chain.iter().map(|frame| frame.method));
        }
    }
    inlined.push(nmethod.method);
    inlined.sort_unstable();
    inlined.dedup();
    if let Some(pages) = pages {
        for method in &inlined {
            methods.meet(pages, *method, look);
        }
    }
    // What else is known of a place is another's.
    let known = |methods: &Methods, method| match pages {
        Some(_) => methods.pin(method),
        None => methods.dead(method),
    };
    let own = known(methods, nmethod.method);
    let own = own.as_ref().map(|(_, own)| own);
    constituent.method = own.map(|own| Methods::tell(own, look));
    constituent.name = match own.map(|own| &own.info) {
        Some(info) if nmethod.is_osr() => {
            format!("{} (OSR at {})", info.full_name(), nmethod.entry_bci)
        }
        Some(info) => info.full_name(),
        None => format!(
            "(method without a name, compilation {})",
            nmethod.id.compile_id
        ),
    };
    let count = inlined.len();
    let pinned = inlined.into_iter();
    let pinned: Vec<Pinned> = pinned.filter_map(|one| known(methods, one)).collect();
    let are_all = pinned.len() == count;
    (pinned, are_all)
}

/// What a blob that is no compiled method is made of.
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
