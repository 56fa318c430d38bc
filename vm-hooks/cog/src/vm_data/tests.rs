use vmscope_records::TimeNs;

use super::VmClock;

#[test]
fn times_of_the_vm_convert_both_ways() {
    let clock = VmClock::showing(5_000_000, TimeNs(2_000_000_000));
    assert_eq!(clock.time_of(5_000_001), Some(TimeNs(2_000_001_000)));
    assert_eq!(clock.time_of(4_999_999), Some(TimeNs(1_999_999_000)));
    assert_eq!(clock.time_of(2_999_999), None);
    assert_eq!(clock.time_of(u64::MAX), None);
    assert_eq!(VmClock::unknown().time_of(5_000_000), None);
}
