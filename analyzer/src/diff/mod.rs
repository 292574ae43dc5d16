//! Two sides of reports held against each other: what changed between two releases, and whether
//! a change is more than was allowed.
//!
//! ```text
//! JSON reports → figures → run → side → comparison → verdicts
//! ```
//!
//! Everything is compared in one form, the JSON report, so that a trace and a report that was
//! saved from it give the same answer. `flatten` turns one report into named figures, `sides`
//! makes a run of one or more reports and a side of one or more runs, `compare` puts the sides
//! beside each other, `headers` says where the runs were not made alike, and `gate` decides what
//! `--fail-on` asks. Nothing here reads a file or writes a text; `cli::diff` and `render::diff`
//! do.

pub mod compare;
pub mod figures;
pub mod flatten;
pub mod gate;
pub mod headers;
pub mod limit;
pub mod name;
mod near;
pub mod sides;

pub use compare::{Comparison, Found, Pair, Spread};
pub use figures::{Figures, Group, Unit};
pub use gate::{Gate, Verdict};
pub use name::Name;
pub use sides::{Run, Side};
