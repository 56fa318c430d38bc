//! Files that an image saved: the text of a zone up to a zero byte, then samples. Reading ends with records
//! within the zone, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_cog::saved::{SavedSamples, SavedZone, WordSize};
use vmscope_process::KeySource;
use vmscope_records::{ProcessKey, Record, TimeNs};

fuzz_target!(|input: &[u8]| {
    let cut = input.iter().position(|byte| *byte == 0);
    let (zone, samples) = input.split_at(cut.unwrap_or(input.len()));
    let Ok(zone) = SavedZone::parse(zone) else {
        return;
    };
    for record in zone.records(ProcessKey(1), TimeNs(7), &KeySource::new()) {
        if let Record::Constituent(one) = record {
            assert!(zone.start <= one.start && one.start < one.end && one.end <= zone.end);
        }
    }
    let samples = samples.get(1..).unwrap_or_default();
    for word in [None, Some(WordSize::Bits32), Some(WordSize::Bits64)] {
        let Ok(samples) = SavedSamples::new(samples, &zone, word) else {
            continue;
        };
        let times = samples.iter().map_while(|sample| sample.ok()?.time);
        assert!(times.is_sorted());
    }
});
