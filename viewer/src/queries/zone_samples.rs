//! Samples by address, of modules and of code zones: the input of the zone map and of the plot.

use std::sync::Arc;
use vmscope_symbolizer::addresses::{Addresses, Layout, Owner, Stretch};
use vmscope_symbolizer::zone::{Residency, ZoneRange};

/// A profile's address ranges with the samples of a filter.
#[derive(Clone, Debug)]
pub struct ZoneSamples {
    /// Address ranges of modules and code zones, with the residencies of code.
    pub layout: Arc<Layout>,
    /// Samples by address.
    pub addresses: Arc<Addresses>,
    /// Number of the answer; answers derived from this one repeat the number.
    pub number: u64,
}

impl ZoneSamples {
    fn stretch_of(&self, zone: &ZoneRange) -> Option<&Stretch> {
        let owner = Owner::Zone(zone.process, zone.start);
        let mut stretches = self.addresses.stretches.iter();
        stretches.find(|stretch| stretch.owner == owner)
    }

    /// Samples in a zone. A zone without samples has no stretch.
    pub fn in_zone(&self, zone: &ZoneRange) -> u64 {
        self.stretch_of(zone).map_or(0, Stretch::samples)
    }

    /// Samples of a constituent during one residency.
    pub fn in_residency(&self, zone: &ZoneRange, residency: &Residency) -> u64 {
        let Some(stretch) = self.stretch_of(zone) else {
            return 0;
        };
        let points = stretch.points(residency.start..residency.end).iter();
        let own = points.filter(|point| point.code() == Some(residency.code));
        own.map(|point| point.samples).sum()
    }

    /// The zone with most samples; among equals, the largest.
    pub fn hottest_zone(&self) -> Option<&ZoneRange> {
        let zones = self.layout.residencies.zones().iter();
        zones.max_by_key(|zone| (self.in_zone(zone), zone.end - zone.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::zone_cells::{Cells, Wanted};
    use crate::recordings::{PROCESS, Recording, THREAD, code};
    use vmscope_records::TimeNs;
    use vmscope_symbolizer::zone::Residencies;
    use vmscope_symbolizer::{Filter, Stop};

    const ZONE: u64 = 0x7f00_0000_0000;

    #[test]
    fn samples_belong_to_a_zone_and_to_a_residency() {
        let mut recording = Recording::of("cog");
        recording.map(PROCESS, 0, ZONE, ZONE + 0x1_0000, 0, None);
        recording.constituent(code(1, 0, ZONE, ZONE + 0x1000));
        recording.constituent(code(2, 0, ZONE + 0x8000, ZONE + 0x8800));
        recording.constituent(code(3, 0, ZONE + 0x1000_0000, ZONE + 0x1000_1000));
        recording.moved(1, 59_000, 60_000, ZONE + 0xc000);
        // No sample between the last sight of the old place and the first of the new one.
        for time in (0..50).chain(60..100) {
            let pc = match time {
                0..50 => ZONE + 0x10,
                60..90 => ZONE + 0xc010,
                _ => ZONE + 0x1000_0010,
            };
            recording.sample(time * 1000, THREAD, pc);
        }
        recording.end(100_000);
        let profile = recording.profile();
        let stop = Stop::new();
        let layout = Layout::of(&profile, Residencies::of(&profile.trace));
        let addresses = Addresses::of(&profile, &Filter::default(), &layout, &stop).unwrap();
        let samples = ZoneSamples {
            layout: Arc::new(layout),
            addresses: Arc::new(addresses),
            number: 1,
        };
        let residencies = &samples.layout.residencies;
        let zones = residencies.zones();
        let by_zone: Vec<u64> = zones.iter().map(|zone| samples.in_zone(zone)).collect();
        assert_eq!(by_zone, [80, 10]);
        let zone = samples.hottest_zone().unwrap();
        assert_eq!(zone.start, ZONE);
        let of_zone = residencies.in_zone(zone).iter();
        let mut by_place: Vec<(u64, u64)> = of_zone
            .map(|one| (one.start - ZONE, samples.in_residency(zone, one)))
            .collect();
        by_place.sort_unstable();
        assert_eq!(by_place, [(0, 50), (0x8000, 0), (0xc000, 30)]);

        let wanted = Wanted {
            ground: 1,
            zone: (zone.process, zone.start),
            time: TimeNs(99_000),
            before: None,
            first: zone.start,
            bytes: 0x1000,
            cells: 16,
            line: (TimeNs(0), TimeNs(100_000), 10),
        };
        let cells = Cells::of(&profile, &samples, &wanted, &stop).unwrap();
        let (code, unused): (Vec<_>, Vec<_>) =
            cells.legend().partition(|row| row.samples.is_some());
        assert_eq!(code.iter().map(|row| row.bytes).sum::<u64>(), cells.used);
        assert_eq!(code.iter().map(|row| row.count).sum::<u64>(), 2);
        // Samples in the earlier residency are not among them.
        assert_eq!(code.iter().filter_map(|row| row.samples).sum::<u64>(), 30);
        let unused: Vec<(&str, u64)> = unused
            .iter()
            .map(|row| (row.name.as_str(), row.bytes))
            .collect();
        assert_eq!(
            unused,
            [("not reported", zone.end - zone.start - cells.used)]
        );
    }
}
