//! Reading what a running VM keeps changing.

use std::time::Duration;

use crate::AdapterError;

/// How long to wait before the next attempt: longer than most of a VM's changes to
/// its code zone take, and short beside the pause between polls.
const PAUSE: Duration = Duration::from_micros(200);

/// Reads `what` so that it is of one piece, as far as the VM's own counters tell.
///
/// `stamp` reads what the VM counts whenever it changes the thing (Cog: compactions
/// and full collections); it answers [`AdapterError::Busy`] while a change is under
/// way. `read` does the bulk reading. When the stamps before and after are equal, the
/// result of `read` counts, also if it is an error: then it is no torn read, but what
/// the VM holds. Else all is done again, at most `attempts` times.
///
/// This is as good as the counters are: a change that is not counted, or whose count
/// is stored after it, goes unnoticed. Adapters check what they have read besides.
///
/// # Errors
///
/// [`AdapterError::Torn`] after the last attempt; whatever `stamp` fails with, but for
/// being busy; and what `read` fails with, when nothing changed meanwhile or it
/// [`AdapterError::is_final`].
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
