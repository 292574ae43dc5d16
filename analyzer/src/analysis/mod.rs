//! One question per file. An analysis reads the live set and the definitions, and answers in
//! ticks and ids; it sees no other analysis, no path and no clock.

pub mod calls;
pub mod chain;
pub mod held;
pub mod in_flight;
pub mod names;
pub mod objects;
