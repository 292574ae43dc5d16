//! The part of a log that is asked for.

use super::moment::{End, Moment};
use crate::Error;
use crate::input::Log;
use crate::live::Window;
use crate::units::Gpu;

/// Arguments of everything that can look at a part of a log.
#[derive(clap::Args)]
pub struct Within {
    /// Count from this moment on: 1.5s, 300ms, 2m, @TEXT for the first mark with that text,
    /// @peak, @peak.LEDGER or @end.
    #[arg(long, value_name = "TIME")]
    pub since: Option<Moment>,
    /// Count up to this moment.
    #[arg(long, value_name = "TIME")]
    pub until: Option<Moment>,
}

impl Within {
    /// The window of a log; `at` stands for `--until`. Peaks are those of `gpu`, if it is given.
    ///
    /// # Errors
    /// When the log has no such moment, or the window ends before it begins.
    pub fn of(&self, at: Option<&Moment>, log: &Log, gpu: Option<Gpu>) -> Result<Window, Error> {
        let stamp = |moment: Option<&Moment>, end| {
            moment.map(|moment| moment.stamp(log, end, gpu)).transpose()
        };
        let since = stamp(self.since.as_ref(), End::First)?;
        let until = stamp(at.or(self.until.as_ref()), End::Last)?;
        if since.zip(until).is_some_and(|(since, until)| since > until) {
            let path = log.path.display();
            return Err(Error::Said(format!("{path}: --since is later than --until")));
        }
        Ok(Window { since, until })
    }
}
