//! Names new places, and names known places again after new records.

use super::Live;
use crate::build::name_places;
use crate::ids::{Id, PlaceId};
use crate::profile::Profile;
use crate::trace::Place;
use vmscope_records::{FileOffset, SymbolOwner, Symbols};

/// The native address of a place.
fn native_of(place: Place) -> Option<(SymbolOwner, FileOffset)> {
    match place {
        Place::Native(module, offset, _) => Some((SymbolOwner::Module(module), offset)),
        Place::Kernel(address) => Some((SymbolOwner::Kernel, FileOffset(address.0))),
        _ => None,
    }
}

impl Live {
    /// Names new and stale places. Returns the number of known places with new sites.
    pub(super) fn name(&mut self, profile: &mut Profile) -> u64 {
        let known = profile.site_of_place.len();
        let all = profile.trace.places.enumerated().skip(known);
        let fresh: Vec<(PlaceId, Place)> = all.map(|(id, place)| (id, *place)).collect();
        for (place, what) in &fresh {
            self.index.dropped_of_place.push(0);
            self.index(*place, *what);
        }
        let stale = self.take_stale(profile);
        let shown_anew = std::mem::take(&mut self.is_shown_anew);
        if fresh.is_empty() && stale.is_empty() && !shown_anew {
            return 0;
        }
        let separator = self.separator.as_deref().unwrap_or(".");
        let natives = &mut self.natives;
        let sites = name_places(profile, &mut self.names, separator, |builder| {
            let all = fresh.iter().chain(&stale);
            let named = all.map(|&(place, what)| {
                if let Some((owner, at)) = native_of(what)
                    && !builder.is_resolved(owner, at, natives.lines)
                {
                    natives.want(owner, at);
                }
                (place, builder.site(what))
            });
            named.collect::<Vec<_>>()
        });
        let mut changed: Vec<PlaceId> = Vec::new();
        for (place, site) in sites {
            if place.index() >= known {
                profile.site_of_place.push(site);
            } else if std::mem::replace(&mut profile.site_of_place[place], site) != site {
                changed.push(place);
            }
        }
        if shown_anew {
            changed = profile.site_of_place.ids().take(known).collect();
        }
        let (trace, sites, time_buckets) = profile.to_sum_up();
        let renamed = time_buckets.rename(trace, sites, changed.into_iter());
        for &place in &renamed {
            self.omitted.misnamed += u64::from(self.index.dropped_of_place[place]);
        }
        renamed.len() as u64
    }

    /// Adds a place to the indices by code and by native owner.
    pub(super) fn index(&mut self, place: PlaceId, what: Place) {
        let mut of_code = |code| {
            let places = self.index.places_of_code.entry(code).or_default();
            places.push(place);
        };
        match what {
            Place::Code(code, _) => of_code(code),
            Place::Interpreted {
                handler, bytecodes, ..
            } => {
                of_code(handler);
                of_code(bytecodes);
            }
            Place::Entering { handler, method } => {
                of_code(handler);
                of_code(method);
            }
            Place::Called { code, caller, .. } => {
                of_code(code);
                of_code(caller);
            }
            _ => {
                if let Some((owner, _)) = native_of(what) {
                    let places = self.index.places_of_native.entry(owner).or_default();
                    places.push(place);
                }
            }
        }
    }

    /// Takes the known places with stale names.
    fn take_stale(&mut self, profile: &Profile) -> Vec<(PlaceId, Place)> {
        let known = profile.site_of_place.len();
        let places = &profile.trace.places;
        let stripped = &self.stripped;
        let keeps_name = |place: &Place| match place {
            Place::Code(code, _)
            | Place::Interpreted {
                bytecodes: code, ..
            }
            | Place::Entering { method: code, .. }
            | Place::Called { caller: code, .. } => stripped.contains(code),
            _ => false,
        };
        let codes = std::mem::take(&mut self.stale_code);
        let owners = std::mem::take(&mut self.stale_natives);
        if std::mem::take(&mut self.is_all_stale) {
            self.names.forget();
            let all = places.enumerated().take(known);
            let all = all.filter(|(_, place)| !keeps_name(place));
            return all.map(|(id, place)| (id, *place)).collect();
        }
        let of_codes = codes
            .iter()
            .filter_map(|code| self.index.places_of_code.get(code));
        let of_owners = owners
            .iter()
            .filter_map(|one| self.index.places_of_native.get(one));
        let stale = of_codes.chain(of_owners).flatten();
        let stale = stale.filter(|place| place.index() < known);
        let stale = stale.map(|&place| (place, places[place]));
        stale.filter(|(_, place)| !keeps_name(place)).collect()
    }

    /// Takes symbols that were found in files.
    pub(super) fn put_symbols(&mut self, profile: &mut Profile, found: Vec<Symbols>) {
        for symbols in found {
            self.stale_natives.insert(symbols.owner);
            self.names.forget_native();
            let all = &mut profile.resolved_now;
            match all.iter_mut().find(|known| known.owner == symbols.owner) {
                Some(known) => {
                    known.note = symbols.note;
                    known.functions.extend(symbols.functions);
                    known.functions.sort_by_key(|function| function.start);
                    known.functions.dedup_by(|later, kept| {
                        let same = later.start == kept.start;
                        if same {
                            kept.size = kept.size.max(later.size);
                            kept.lines.append(&mut later.lines);
                            kept.lines.sort_by_key(|piece| piece.start);
                            kept.lines.dedup_by_key(|piece| piece.start);
                        }
                        same
                    });
                }
                None => all.push(symbols),
            }
        }
    }
}
