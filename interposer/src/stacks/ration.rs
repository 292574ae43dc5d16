//! How much of a thread's time reading stacks may take: a 512th, and a millisecond in one go.

/// The share, as a shift.
const SHARE: u32 = 9;
/// The most that is saved up, in ticks: a millisecond at two gigahertz, two if ticks are nanoseconds.
const MOST: i64 = 1 << 21;
/// What one stack may be charged with; the rest was something else's.
const LONGEST: i64 = 1 << 17;
/// Blocks from this size on are read for as long as there is anything left; smaller ones leave them
/// half of it.
const LARGE: u64 = 1 << 20;

/// Time that is left. All zeros is a thread that has read nothing.
pub struct Ration {
    left: i64,
    /// When it was last looked at.
    at: u64,
}

impl Ration {
    /// Whether a stack may be read now.
    #[inline(always)]
    pub fn allows(&mut self, now: u64, bytes: u64) -> bool {
        // A stamp may be older than the one before.
        let passed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let more = i64::try_from(passed >> SHARE).unwrap_or(i64::MAX);
        self.left = self.left.saturating_add(more).min(MOST);
        self.left > if bytes >= LARGE { 0 } else { MOST / 2 }
    }

    /// Takes off what it took.
    #[inline(always)]
    pub fn pay(&mut self, took: u64) {
        self.left -= i64::try_from(took).unwrap_or(0).clamp(0, LONGEST);
    }
}
