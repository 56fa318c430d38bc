//! Estimates of lifetimes from samples, and life tables.

use crate::recordings::lifetimes::{birth, heap};
use crate::recordings::{Draw, Recording};
use vmscope_records::{Birth, ClassKey, Fate};
use vmscope_symbolizer::lifetimes::Measure;
use vmscope_symbolizer::lifetimes::groups::{GroupKey, Grouping, groups};
use vmscope_symbolizer::lifetimes::life_table::life_tables;

/// Freireich et al. (Blood 1963), patients on 6-MP: weeks of remission, and whether it ended.
const REMISSIONS: [(u64, bool); 21] = [
    (6, true),
    (6, true),
    (6, true),
    (6, false),
    (7, true),
    (9, false),
    (10, true),
    (10, false),
    (11, false),
    (13, true),
    (16, true),
    (17, false),
    (19, false),
    (20, false),
    (22, true),
    (23, true),
    (25, false),
    (32, false),
    (32, false),
    (34, false),
    (35, false),
];

fn remissions(weight: f64) -> Recording {
    let mut recording = heap();
    for (&(weeks, is_dead), object) in REMISSIONS.iter().zip(1..) {
        let born = if is_dead { 50 } else { 100 - weeks };
        recording.births([Birth {
            weight,
            ..birth(object, born)
        }]);
        if is_dead {
            recording.fates(None, 50 + weeks, &[(object, Fate::Died)]);
        }
    }
    recording.end(100);
    recording
}

#[test]
fn life_tables_match_a_textbook() {
    // Kalbfleisch and Prentice, The Statistical Analysis of Failure Time Data, §1.
    let wanted = [
        (6.0, 21.0, 0.857),
        (7.0, 17.0, 0.807),
        (10.0, 15.0, 0.753),
        (13.0, 12.0, 0.690),
        (16.0, 11.0, 0.627),
        (22.0, 7.0, 0.538),
        (23.0, 6.0, 0.448),
    ];
    for weight in [1.0, 8.0] {
        let lifetimes = remissions(weight).lifetimes();
        let tables = life_tables(&lifetimes, Grouping::All, Measure::Time);
        let [(GroupKey::All, table)] = &tables[..] else {
            panic!("{tables:?}")
        };
        assert_eq!(table.steps.len(), wanted.len());
        for (step, (weeks, at_risk, survival)) in table.steps.iter().zip(wanted) {
            assert_eq!((step.lifetime, step.at_risk), (weeks, at_risk * weight));
            assert!((step.survival.value - survival).abs() < 5e-4, "{step:?}");
        }
        // The weight changes no error: the number of observed objects is the same.
        let last = table.survival_at(30.0);
        assert!((last.error / 1.96 - 0.1346).abs() < 1e-4, "{last:?}");
        let mean = table.restricted_mean;
        assert!((mean.value - 23.287).abs() < 1e-3 && (mean.error / 1.96 - 2.83).abs() < 0.01);
        assert_eq!((table.horizon, table.survival_at(0.0).value), (35.0, 1.0));
        assert_eq!(table.drawn(3).len(), 2);
    }
}

#[test]
fn intervals_of_samples_cover_the_truth() {
    // 4000 objects of three classes, of very different sizes and lifetimes.
    let mut draw = Draw(1);
    let population: Vec<_> = (0..4000)
        .map(|object| {
            let class = 1 + draw.below(3);
            let bytes = [16, 160, 1600][class as usize - 1] + 8 * draw.below(10);
            let death = object + 1 + draw.below(100 * class);
            (
                Birth {
                    class: ClassKey(class),
                    bytes,
                    ..birth(object, object)
                },
                death,
            )
        })
        .collect();
    let recording = |rate: u64, seed: u64| {
        let mut draw = Draw(seed);
        let mut recording = heap();
        for (one, death) in &population {
            if draw.below(rate) == 0 {
                recording.births([Birth {
                    weight: rate as f64,
                    ..*one
                }]);
                recording.fates(None, *death, &[(one.object.0, Fate::Died)]);
            }
        }
        recording.end(4300);
        recording.lifetimes()
    };
    let figures = |lifetimes: &_| {
        let mut groups = groups(lifetimes, Grouping::Class);
        groups.sort_by_key(|group| group.key);
        let figures = groups.iter().flat_map(|group| {
            let mean = group.mean_lifetime(Measure::Time).unwrap();
            let totals = [
                group.objects,
                group.bytes,
                group.share_of_objects,
                group.share_of_bytes,
            ];
            totals.into_iter().chain([group.mean_bytes, mean.to_end])
        });
        figures.collect::<Vec<_>>()
    };
    let truth = figures(&recording(1, 0));
    assert!(truth.iter().all(|one| one.error < 1e-6));
    let seeds = 60;
    let mut covered = vec![0; truth.len()];
    let mut sums = vec![0.0; truth.len()];
    let mut errors = vec![0.0; truth.len()];
    for seed in 1..=seeds {
        for (index, one) in figures(&recording(10, seed)).iter().enumerate() {
            covered[index] += u64::from((one.value - truth[index].value).abs() <= one.error);
            sums[index] += one.value;
            errors[index] += one.error;
        }
    }
    for (index, truth) in truth.iter().enumerate() {
        // Of 60 intervals of 95 %, 57 are expected, and 50 are more than four deviations fewer.
        assert!(covered[index] >= 50, "{index}: {}", covered[index]);
        let seeds = seeds as f64;
        let (mean, error) = (sums[index] / seeds, errors[index] / seeds);
        assert!(
            (mean - truth.value).abs() < 4.0 / 1.96 * error / seeds.sqrt(),
            "{index}: {mean} {truth:?}"
        );
    }
}

#[test]
fn censored_lifetimes_do_not_shorten_the_restricted_mean() {
    // Most objects live for 10 ns, every fifth for 0 to 598 ns, in a run of 1000 ns.
    let truth = 0.8 * 10.0 + 0.2 * 299.0;
    let (mut covered, mut sums) = (0, [0.0; 2]);
    let seeds = 60;
    for seed in 1..=seeds {
        let mut draw = Draw(seed);
        let mut recording = heap();
        for object in 0..1000 {
            let lifetime = match draw.below(5) {
                0 => 2 * draw.below(300),
                _ => 10,
            };
            if draw.below(2) == 0 {
                recording.births([Birth {
                    weight: 2.0,
                    ..birth(object, object)
                }]);
                if object + lifetime <= 1000 {
                    recording.fates(None, object + lifetime, &[(object, Fate::Died)]);
                }
            }
        }
        recording.end(1000);
        let groups = groups(&recording.lifetimes(), Grouping::All);
        let mean = groups[0].mean_lifetime(Measure::Time).unwrap();
        covered += i32::from((mean.restricted.value - truth).abs() <= mean.restricted.error);
        sums[0] += mean.restricted.value / seeds as f64;
        sums[1] += mean.to_end.value / seeds as f64;
    }
    assert!(covered >= 50, "{covered}");
    assert!((sums[0] - truth).abs() < 0.03 * truth, "{sums:?}");
    // The mean to the end of the run takes survivors for dead.
    assert!(sums[1] < 0.9 * truth, "{sums:?}");
}
