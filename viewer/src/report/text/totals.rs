//! Seconds, frequency, and how the samples divide.

use super::Page;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text::wrap;
use anyhow::Result;
use std::io::Write;
use vmscope_records::SampleClock;
use vmscope_symbolizer::Region;

impl Page<'_> {
    /// Seconds and frequency achieved, samples in the VM and in the program, and the
    /// regions that have any.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are far below 2^52 and not negative"
    )]
    pub(super) fn totals(&self, out: &mut dyn Write) -> Result<()> {
        let summary = self.summary;
        let seconds = summary.window.1.since(summary.window.0).as_secs_f64();
        let frequency = if seconds > 0.0 {
            summary.total as f64 / seconds
        } else {
            0.0
        };
        writeln!(out)?;
        writeln!(
            out,
            "{seconds:.3} seconds; sampling frequency {frequency:.0} hz"
        )?;
        if let Some(promised) = summary.promised {
            let delivered = if promised > 0.0 {
                summary.total as f64 / promised
            } else {
                1.0
            };
            let period = self
                .profile
                .trace
                .session
                .as_ref()
                .map_or(0, |session| session.period.0);
            let line = format!(
                "{} of {} promised samples delivered ({}), {} lost; one every {} ns of a thread's {}",
                count(summary.total),
                count(promised.round() as u64),
                percent(delivered),
                count(summary.lost),
                count(period),
                match self
                    .profile
                    .trace
                    .session
                    .as_ref()
                    .map(|session| session.clock)
                {
                    Some(SampleClock::Wall) => "life",
                    _ => "CPU time",
                },
            );
            writeln!(out, "{}", wrap(&line, self.width, 2))?;
        }
        let native = self.profile.is_native();
        let what = if native {
            "the program's own code"
        } else {
            "the VM"
        };
        let line = format!(
            "{} samples in {what} ({} samples in the entire program) {} of total",
            count(summary.vm),
            count(summary.total),
            percent(summary.share(summary.vm)),
        );
        writeln!(out, "{}", wrap(&line, self.width, 2))?;
        if !native {
            writeln!(out)?;
            let generated = summary.regions[Region::Generated as usize];
            for (number, name) in [
                (generated, "generated vm code"),
                (summary.vm - generated, "vanilla vm code"),
            ] {
                let line = format!(
                    "{} samples in {name} {} of entire vm ({} of total)",
                    count(number),
                    percent(ratio(number, summary.vm)),
                    percent(summary.share(number)),
                );
                writeln!(out, "{}", wrap(&line, self.width, 2))?;
            }
        }
        self.regions(native, out)
    }

    /// The regions that were not told of yet.
    fn regions(&self, native: bool, out: &mut dyn Write) -> Result<()> {
        let summary = self.summary;
        let of = |region: Region| summary.regions[region as usize];
        // Where the VM's own code is not divided, it was told of as a whole.
        let divided = of(Region::Vm) < summary.vm - of(Region::Generated);
        for (region, number) in Region::ALL.iter().zip(summary.regions) {
            let name = match region {
                Region::Generated if native => "generated code",
                Region::Generated => continue,
                Region::Vm if native || !divided => continue,
                Region::Vm => "the rest of the VM",
                Region::Library => "shared libraries",
                Region::Kernel => "the kernel",
                Region::Gc => "the garbage collector",
                Region::Interpreter => "the interpreter",
                Region::Compiler => "JIT compilers",
                Region::Idle => "waiting",
                Region::Unknown => "nothing that is known",
            };
            if number > 0 {
                let share = percent(summary.share(number));
                let samples = some(number, "sample", "samples");
                writeln!(out, "{samples} in {name} {share} of total")?;
            }
        }
        Ok(())
    }
}
