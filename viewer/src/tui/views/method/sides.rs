//! Versions side by side, worked out off the drawing thread: what each has at every place.

use super::items::{Counts, Item};
use crate::present::numbers::ratio;
use crate::queries::method::{Machine, id_of_callee, id_of_spot, machine_of};
use crate::tui::jobs::Stop;
use rustc_hash::FxHashMap;
use vmscope_symbolizer::annotate::{Located, Origin, Row, Taken, machine_code, sides};
use vmscope_symbolizer::{Filter, Profile};

/// A version.
#[derive(Debug)]
pub struct Side {
    /// Which.
    pub origin: Origin,
    /// Its samples: what its shares are of.
    pub samples: u64,
    /// Most samples of one place.
    pub most: u64,
    /// By the number of the place.
    places: FxHashMap<u64, Counts>,
    /// Its machine code by the number of the place.
    pub machine: Machine,
    /// Whether there are enough samples for errors.
    has_errors: bool,
}

impl Side {
    /// Counts of versions, in the order of `origins`; `None` after a stop.
    pub fn all(
        profile: &Profile,
        filter: &Filter,
        located: &Located,
        origins: &[Origin],
        stop: &Stop,
    ) -> Option<Vec<Side>> {
        let annotations = sides(&Taken::of(profile, filter), located, origins, stop)?;
        let code = |origin: &Origin| match origin {
            Origin::Code(code) => Some(*code),
            _ => None,
        };
        let codes: Vec<_> = origins.iter().filter_map(code).collect();
        let mut machines = machine_code(profile, located.subject(), &codes).into_iter();
        let sides = origins.iter().zip(annotations).map(|(origin, annotation)| {
            let machine = code(origin).and_then(|_| machines.next());
            let mut side = Side {
                origin: *origin,
                samples: annotation.all.samples(),
                most: 0,
                places: FxHashMap::default(),
                machine: machine_of(&machine.unwrap_or_default()),
                has_errors: annotation.rows.iter().any(|row| row.error.is_some()),
            };
            side.take(&annotation.rows, 0);
            side
        });
        Some(sides.collect())
    }

    /// Adds places, as deep as the annotation bounds them.
    fn take(&mut self, rows: &[Row], parent: u64) {
        for row in rows {
            let id = id_of_spot(parent, &row.spot);
            let counts = Counts::of_row(row);
            self.most = self.most.max(counts.own);
            self.places.insert(id, counts);
            for inlined in &row.inlined {
                let inner = id_of_callee(id, &inlined.subject);
                self.places.insert(inner, Counts::of_callee(inlined));
                self.take(&inlined.rows, inner);
            }
        }
    }

    /// Counts at a line. For a line without a sample the error is the rule of three: at most three
    /// samples in nineteen of twenty cases.
    pub fn counts(&self, item: &Item) -> Counts {
        let of = |id: u64| self.places.get(&id).copied();
        let is_known = self.has_errors && item.counts.error.is_some() && self.samples > 0;
        let mut counts = of(item.id).unwrap_or_else(|| Counts {
            error: is_known.then(|| ratio(3, self.samples)),
            ..Counts::default()
        });
        if let Some(place) = item.place.filter(|&place| place != item.id) {
            let place = of(place).unwrap_or_default();
            (counts.own, counts.mark) = (place.own, place.mark);
        }
        counts
    }
}
