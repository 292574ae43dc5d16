//! Numbers for keys, without a lock: a key has one number for as long as the session lives.

use core::sync::atomic::{AtomicU64, Ordering};

/// Cells tried before the table counts as full.
const TRIES: usize = 64;

/// Keys by their number. All zeros is empty. `N` is a power of two.
pub struct Table<const N: usize> {
    keys: [AtomicU64; N],
}

/// What a table says of a key. Numbers go from 1 to `N`.
pub enum Place {
    /// It is there.
    Known(u32),
    /// It was not there before, and whoever hears this is to define it.
    New(u32),
    /// No cell is left for it.
    Full,
}

impl<const N: usize> Table<N> {
    /// The number of a key that is not 0.
    #[inline(always)]
    pub fn find(&self, key: u64) -> Place {
        let index = Self::first(key);
        match self.keys.get(index) {
            Some(cell) if cell.load(Ordering::Relaxed) == key => Place::Known(index as u32 + 1),
            _ => self.search(key),
        }
    }

    #[inline(always)]
    const fn first(key: u64) -> usize {
        let mixed = (key ^ key >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (N - 1)
    }

    #[cold]
    #[inline(never)]
    fn search(&self, key: u64) -> Place {
        for step in 0..TRIES {
            let index = (Self::first(key) + step) & (N - 1);
            let Some(cell) = self.keys.get(index) else { break };
            let id = index as u32 + 1;
            match cell.load(Ordering::Relaxed) {
                0 => match cell.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Place::New(id),
                    Err(other) if other == key => return Place::Known(id),
                    Err(_) => {}
                },
                found if found == key => return Place::Known(id),
                _ => {}
            }
        }
        Place::Full
    }
}
