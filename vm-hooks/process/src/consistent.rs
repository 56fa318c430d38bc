//! Consistent reads of structures that a running VM changes.

use std::time::Duration;

use crate::AdapterError;

/// Pause before another attempt: longer than most changes of a code zone, short compared with the
/// pause between polls.
const PAUSE: Duration = Duration::from_micros(200);

/// Reads `what` without tearing, as far as the VM's change counters show.
///
/// `stamp` reads the counters (Cog: compactions and full collections) and fails with
/// [`AdapterError::Busy`] during a change; `read` does the bulk read. With equal stamps before and
/// after it, its result counts, errors included: they describe the VM's memory, not a torn read.
/// Otherwise both run again, at most `attempts` times.
///
/// Changes without a counter, or with a counter stored after the change, go unnoticed: adapters
/// still check their data.
///
/// # Errors
/// [`AdapterError::Torn`] after the last attempt; errors of `stamp` except [`AdapterError::Busy`];
/// errors of `read` with equal stamps, or if [`AdapterError::is_final`].
pub fn read_consistently<S: PartialEq, T>(
    what: &'static str,
    attempts: u32,
    mut stamp: impl FnMut() -> Result<S, AdapterError>,
    mut read: impl FnMut(&S) -> Result<T, AdapterError>,
) -> Result<T, AdapterError> {
    for attempt in 0..attempts {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        let before = match stamp() {
            Err(AdapterError::Busy { .. }) => continue,
            other => other?,
        };
        let result = read(&before);
        if result.as_ref().is_err_and(AdapterError::is_final) {
            return result;
        }
        let after = match stamp() {
            Err(AdapterError::Busy { .. }) => continue,
            other => other?,
        };
        if before == after && !matches!(result, Err(AdapterError::Busy { .. })) {
            return result;
        }
    }
    Err(AdapterError::Torn { what, attempts })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn busy() -> AdapterError {
        AdapterError::Busy { what: "zone" }
    }

    #[test]
    fn reads_again_until_nothing_changed() {
        let stamps = Cell::new(0);
        let changing_until = |last: u32| {
            stamps.set(stamps.get() + 1);
            Ok(stamps.get().min(last))
        };
        let mut reads = 0;
        let result = read_consistently(
            "zone",
            5,
            || changing_until(4),
            |_| {
                reads += 1;
                Ok(reads)
            },
        );
        // Stamps 1 2, 3 4, 4 4.
        assert_eq!(result.unwrap(), 3);
    }

    #[test]
    fn gives_up_and_says_so() {
        let mut stamp = 0;
        let changing = || {
            stamp += 1;
            Ok(stamp)
        };
        let result = read_consistently("zone", 3, changing, |_| Ok(()));
        assert!(matches!(
            result,
            Err(AdapterError::Torn { attempts: 3, .. })
        ));
        let result = read_consistently("zone", 3, || Err::<(), _>(busy()), |()| Ok(()));
        assert!(matches!(result, Err(AdapterError::Torn { .. })));
        let result = read_consistently("zone", 2, || Ok(1), |_| Err::<(), _>(busy()));
        assert!(matches!(result, Err(AdapterError::Torn { .. })));
    }

    #[test]
    fn an_error_counts_only_if_nothing_changed() {
        let implausible = || AdapterError::TooMany {
            what: "zone",
            cap: 1,
        };
        let result = read_consistently("zone", 3, || Ok(1), |_| Err::<(), _>(implausible()));
        assert!(matches!(result, Err(AdapterError::TooMany { .. })));
        let stamp = Cell::new(0);
        let result = read_consistently(
            "zone",
            3,
            || Ok(stamp.get()),
            |_| {
                stamp.set(1);
                if stamp.get() == 0 {
                    Ok(())
                } else {
                    Err(implausible())
                }
            },
        );
        // Changed in the first attempt, an error without a change in the second.
        assert!(matches!(result, Err(AdapterError::TooMany { .. })));
    }

    #[test]
    fn a_final_error_ends_it_at_once() {
        let pid = vmscope_records::Pid(1);
        let mut reads = 0;
        let result = read_consistently(
            "zone",
            9,
            || Ok(reads),
            |_| Err::<(), _>(AdapterError::Gone { pid }),
        );
        reads += 1;
        assert!(matches!(result, Err(AdapterError::Gone { .. })));
        assert_eq!(reads, 1);
    }
}
