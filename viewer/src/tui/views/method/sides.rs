//! Versions side by side, worked out off the drawing thread: what each has at every place.

use super::items::Item;
use crate::present::numbers::ratio;
use crate::queries::method::{Machine, id_of_callee, id_of_spot, machine_of, mark_of};
use crate::tui::jobs::Stop;
use rustc_hash::FxHashMap;
use vmscope_symbolizer::annotate::{Located, Origin, Row, Taken, machine_code, sides};
use vmscope_symbolizer::{Filter, Profile};

/// What a version has at a place, or in a method that was inlined at one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Here {
    /// Samples there itself.
    pub own: u64,
    /// Those and the ones in what was inlined there.
    pub all: u64,
    /// `~` approximate, `?` place not known.
    pub mark: &'static str,
    /// 95 % half-width: of a place, of the share of `own`; of an inlined method, of `all`.
    pub error: Option<f64>,
}

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
    places: FxHashMap<u64, Here>,
    /// Its machine code by the number of the place.
    pub machine: Machine,
    /// Whether there are enough samples for errors.
    has_errors: bool,
}

/// What versions have at every place.
#[derive(Debug, Default)]
pub struct Sides {
    /// In the order they were asked for.
    pub all: Vec<Side>,
}

impl Sides {
    /// Works them out; `None` when `stop` was wished before it was done.
    pub fn of(
        profile: &Profile,
        filter: &Filter,
        located: &Located,
        origins: &[Origin],
        stop: &Stop,
    ) -> Option<Self> {
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
        Some(Sides {
            all: sides.collect(),
        })
    }
}

impl Side {
    /// As deep as it goes, which the annotation bounds.
    fn take(&mut self, rows: &[Row], parent: u64) {
        for row in rows {
            let id = id_of_spot(parent, &row.spot);
            let here = Here {
                own: row.own.samples(),
                all: row.samples(),
                mark: mark_of(&row.own),
                error: row.error,
            };
            self.most = self.most.max(here.own);
            self.places.insert(id, here);
            for inlined in &row.inlined {
                let inner = id_of_callee(id, &inlined.subject);
                let here = Here {
                    own: 0,
                    all: inlined.all.samples(),
                    mark: mark_of(&inlined.all),
                    error: inlined.error,
                };
                self.places.insert(inner, here);
                self.take(&inlined.rows, inner);
            }
        }
    }

    /// What it has at a line.
    pub fn here(&self, item: &Item) -> Here {
        let of = |id: u64| self.places.get(&id).copied();
        let mut here = of(item.id).unwrap_or_else(|| Here {
            error: self.none_of(item),
            ..Here::default()
        });
        if let Some(place) = item.place.filter(|&place| place != item.id) {
            let place = of(place).unwrap_or_default();
            (here.own, here.mark) = (place.own, place.mark);
        }
        here
    }

    /// How much of its samples may be at a line where none was seen: at most three in all, in
    /// nineteen of twenty cases (the rule of three).
    fn none_of(&self, item: &Item) -> Option<f64> {
        let is_known = self.has_errors && item.error.is_some() && self.samples > 0;
        is_known.then(|| ratio(3, self.samples))
    }
}
