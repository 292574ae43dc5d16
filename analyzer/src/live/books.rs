//! All ledgers and sums of one scope: what was counted, how it went over time, and what the
//! peaks were made of.

use super::composition::{Epochs, Holdings, Traits};
use super::ledger::{GpuSlot, LEDGERS, Ledger, SUMS, Sum, Tally, Why};
use super::series::{Level, Series};
use super::sites::SiteIndex;
use crate::units::Ticks;

/// One ledger.
#[derive(Clone, Debug)]
pub struct Book {
    /// What was counted.
    pub tally: Tally,
    /// Its live bytes over time.
    pub series: Series,
    holdings: Holdings,
    epoch: u64,
}

impl Default for Book {
    fn default() -> Self {
        let (tally, series) = (Tally::default(), Series::default());
        Self { tally, series, holdings: Holdings::default(), epoch: 1 }
    }
}

impl Book {
    /// The same, kept in less memory: most sites hold nothing on most devices.
    fn of_one_device(&self) -> Self {
        let holdings = self.holdings.sparse();
        Self { tally: self.tally, series: self.series.clone(), holdings, epoch: self.epoch }
    }
}

/// A sum of ledgers.
#[derive(Clone, Debug)]
pub struct SumBook {
    /// Bytes live now.
    pub live_bytes: u64,
    /// The greatest number of them.
    pub peak_bytes: u64,
    /// When it was first reached.
    pub peak_at: Ticks,
    /// Its live bytes over time.
    pub series: Series,
    /// What its ledgers held at the moment of each bucket's greatest value.
    pub parts: Vec<[u64; LEDGERS]>,
    epoch: u64,
}

impl Default for SumBook {
    fn default() -> Self {
        Self {
            live_bytes: 0,
            peak_bytes: 0,
            peak_at: Ticks(0),
            series: Series::default(),
            parts: Vec::new(),
            epoch: 1,
        }
    }
}

/// Every ledger, and their sums.
#[derive(Clone, Debug, Default)]
pub struct Books {
    books: [Book; LEDGERS],
    sums: [SumBook; SUMS],
    /// Bytes live now of each ledger.
    live: [u64; LEDGERS],
    /// The ledgers that the event which is being applied has changed, a bit each.
    changed: u32,
}

/// Where a block is booked.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// In which ledger.
    pub ledger: Ledger,
    /// On which device.
    pub gpu: GpuSlot,
    /// Under which site.
    pub site: SiteIndex,
}

impl Books {
    /// One ledger.
    #[must_use]
    #[inline]
    pub fn book(&self, ledger: Ledger) -> &Book {
        &self.books[ledger as usize]
    }

    /// One sum.
    #[must_use]
    pub fn sum(&self, sum: Sum) -> &SumBook {
        &self.sums[sum as usize]
    }

    /// The holdings of a ledger, with the numbers to read them by.
    #[must_use]
    pub fn holdings(&self, ledger: Ledger) -> (&Holdings, Epochs) {
        (&self.book(ledger).holdings, self.epochs(ledger))
    }

    #[inline]
    fn epochs(&self, ledger: Ledger) -> Epochs {
        let sum = ledger.sum().map_or(0, |sum| self.sums[sum as usize].epoch);
        Epochs { own: self.book(ledger).epoch, sum }
    }

    /// Books a new block. `now` is the bucket of the time axis.
    #[inline]
    pub fn add(&mut self, ledger: Ledger, block: Traits, at: Ticks, now: usize) {
        self.reach(ledger, now);
        let epochs = self.epochs(ledger);
        let book = &mut self.books[ledger as usize];
        book.holdings.add(block, epochs);
        if book.tally.add(block.bytes, at) {
            book.epoch += 1;
        }
        self.live[ledger as usize] = book.tally.live_bytes;
        if let Some(sum) = ledger.sum() {
            let book = &mut self.sums[sum as usize];
            book.live_bytes = book.live_bytes.saturating_add(block.bytes.0);
            if book.live_bytes > book.peak_bytes {
                book.peak_bytes = book.live_bytes;
                book.peak_at = at;
                book.epoch += 1;
            }
        }
    }

    /// Books that a block is gone.
    #[inline]
    pub fn take(&mut self, ledger: Ledger, block: Traits, why: Why, now: usize) {
        self.reach(ledger, now);
        let epochs = self.epochs(ledger);
        let book = &mut self.books[ledger as usize];
        book.holdings.take(block, epochs);
        book.tally.take(block.bytes, why);
        self.live[ledger as usize] = book.tally.live_bytes;
        if let Some(sum) = ledger.sum() {
            let book = &mut self.sums[sum as usize];
            book.live_bytes = book.live_bytes.saturating_sub(block.bytes.0);
        }
    }

    /// Everything that one event does is done: what is live now is shown over time.
    #[inline]
    pub fn settle(&mut self, now: usize) {
        if self.changed == 0 {
            return;
        }
        let (mut changed, mut sums) = (std::mem::take(&mut self.changed), 0_u8);
        while changed != 0 {
            let index = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            let Some(&ledger) = Ledger::ALL.get(index) else { continue };
            self.books[index].series.set(now, self.live[index]);
            sums |= ledger.sum().map_or(0, |sum| 1 << sum as u8);
        }
        for (index, book) in self.sums.iter_mut().enumerate() {
            if sums & 1 << index == 0 {
                continue;
            }
            let before = book.series.levels().last().map_or(0, |level| level.max);
            book.series.set(now, book.live_bytes);
            if let Some(last) = book.parts.last_mut().filter(|_| book.live_bytes > before) {
                *last = self.live;
            }
        }
    }

    /// Before anything changes: what a sum is made of now is what a new bucket begins with.
    #[inline]
    fn reach(&mut self, ledger: Ledger, now: usize) {
        self.changed |= 1 << ledger as u32;
        if let Some(sum) = ledger.sum().filter(|&sum| self.sums[sum as usize].parts.len() <= now) {
            let book = &mut self.sums[sum as usize];
            book.series.extend(now);
            book.parts.resize(now + 1, self.live);
        }
    }

    /// Whether anything was ever counted.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.books.iter().any(|book| book.tally.is_used())
    }

    /// Books of one device among several.
    #[must_use]
    pub fn of_another_device() -> Self {
        let mut books = Self::default();
        for book in &mut books.books {
            book.holdings = Holdings::default().sparse();
        }
        books
    }

    /// The same books without the memory that lies on no device.
    #[must_use]
    pub fn of_devices(&self) -> Self {
        let mut books = Self { sums: self.sums.clone(), live: self.live, ..Self::default() };
        for &ledger in Ledger::ALL {
            if ledger.on_device() {
                books.books[ledger as usize] = self.books[ledger as usize].of_one_device();
                books.changed |= self.changed & 1 << ledger as u32;
            } else {
                books.live[ledger as usize] = 0;
            }
        }
        books.sums[Sum::Host as usize] = SumBook::default();
        for parts in &mut books.sums[Sum::Gpu as usize].parts {
            for &ledger in Ledger::ALL.iter().filter(|ledger| !ledger.on_device()) {
                parts[ledger as usize] = 0;
            }
        }
        books
    }

    /// Books a call that failed.
    pub fn fail(&mut self, ledger: Ledger) {
        self.books[ledger as usize].tally.failed += 1;
    }

    /// The time axis has doubled its buckets.
    pub fn halve(&mut self) {
        for &ledger in Ledger::ALL {
            let epochs = self.epochs(ledger);
            let book = &mut self.books[ledger as usize];
            book.series.halve();
            book.holdings.halve(epochs);
        }
        for book in &mut self.sums {
            // The pair's greatest value is the first's, unless the second's is higher.
            let levels = book.series.levels().chunks(2);
            let later = |pair: &[Level]| match pair {
                [first, second] => second.max > first.max,
                _ => false,
            };
            let choices: Vec<usize> = levels.map(|pair| usize::from(later(pair))).collect();
            let chosen = choices.iter().enumerate().map(|(pair, choice)| pair * 2 + choice);
            let parts = chosen.filter_map(|place| book.parts.get(place).copied());
            book.parts = parts.collect();
            book.series.halve();
        }
    }

    /// Begins to count anew at a moment that is the first of the time axis. What is live stays.
    pub fn begin(&mut self, at: Ticks) {
        for &ledger in Ledger::ALL {
            let epochs = self.epochs(ledger);
            let book = &mut self.books[ledger as usize];
            book.tally.begin(at);
            book.series.begin(book.tally.live_bytes);
            book.holdings.begin(epochs);
            book.epoch += 1;
        }
        for book in &mut self.sums {
            book.peak_bytes = book.live_bytes;
            book.peak_at = at;
            book.series.begin(book.live_bytes);
            book.parts = vec![self.live];
            book.epoch += 1;
        }
    }
}
