//! All ledgers together, and who held what at the peaks.
//!
//! What a peak was made of is kept copy-on-write: each site has its bytes now, and its bytes as
//! they were at the last peak if they have changed since. A peak only raises a number, its epoch,
//! so a new maximum costs nothing however many sites there are:
//!
//! ```text
//! peak         epoch += 1                       saved values of older epochs are void
//! change       saved.epoch != epoch → save      at most one copy per site and peak
//! at the end   saved.epoch == epoch ? saved : now
//! ```

use super::ledger::{GpuSlot, LEDGERS, Ledger, Tally, Why};
use super::sites::SiteIndex;
use crate::units::{Bytes, Ticks};

/// Bytes and blocks of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Their bytes.
    pub bytes: u64,
    /// How many.
    pub count: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Saved {
    epoch: u64,
    share: Share,
}

impl Saved {
    #[inline]
    fn keep(&mut self, epoch: u64, now: Share) {
        if self.epoch != epoch {
            *self = Self { epoch, share: now };
        }
    }

    fn at_peak(&self, epoch: u64, now: Share) -> Share {
        if self.epoch == epoch { self.share } else { now }
    }
}

/// What one site holds of one ledger.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    now: Share,
    /// At the ledger's own peak.
    own: Saved,
    /// At the peak of the sum `gpu`.
    sum: Saved,
}

/// One ledger.
#[derive(Debug)]
pub struct Book {
    /// Over all devices.
    pub total: Tally,
    /// By device slot.
    gpus: Vec<Tally>,
    held: Vec<Held>,
    epoch: u64,
}

impl Default for Book {
    fn default() -> Self {
        Self { total: Tally::default(), gpus: Vec::new(), held: Vec::new(), epoch: 1 }
    }
}

impl Book {
    /// The devices that it was used on.
    pub fn by_gpu(&self) -> impl Iterator<Item = (GpuSlot, &Tally)> {
        let slots = (0..=u8::MAX).map(GpuSlot);
        slots.zip(&self.gpus).filter(|(_, tally)| tally.is_used())
    }

    #[inline]
    fn gpu(&mut self, gpu: GpuSlot) -> Option<&mut Tally> {
        let index = usize::from(gpu.0);
        if index >= self.gpus.len() {
            self.gpus.resize(index + 1, Tally::default());
        }
        self.gpus.get_mut(index)
    }

    /// The site's entry, with what it held saved before it changes.
    #[inline]
    fn held(&mut self, site: SiteIndex, sum_epoch: u64) -> Option<&mut Held> {
        let index = site.0 as usize;
        if index >= self.held.len() {
            self.held.resize(index + 1, Held::default());
        }
        let held = self.held.get_mut(index)?;
        held.own.keep(self.epoch, held.now);
        held.sum.keep(sum_epoch, held.now);
        Some(held)
    }
}

/// The sum `gpu` over the ledgers of [`Ledger::in_gpu_sum`].
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Bytes live now.
    pub live_bytes: u64,
    /// The greatest number of them.
    pub peak_bytes: u64,
    /// When it was first reached.
    pub peak_at: Ticks,
    epoch: u64,
}

/// Every ledger, and their sum.
#[derive(Debug)]
pub struct Books {
    books: [Book; LEDGERS],
    /// See [`Sum`].
    pub sum: Sum,
}

impl Default for Books {
    fn default() -> Self {
        let sum = Sum { live_bytes: 0, peak_bytes: 0, peak_at: Ticks(0), epoch: 1 };
        Self { books: Default::default(), sum }
    }
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

    /// Books a new block.
    #[inline]
    pub fn add(&mut self, account: Account, bytes: Bytes, at: Ticks) {
        let book = &mut self.books[account.ledger as usize];
        if let Some(held) = book.held(account.site, self.sum.epoch) {
            held.now.bytes = held.now.bytes.saturating_add(bytes.0);
            held.now.count += 1;
        }
        if book.total.add(bytes, at) {
            book.epoch += 1;
        }
        if let Some(gpu) = book.gpu(account.gpu) {
            gpu.add(bytes, at);
        }
        if account.ledger.in_gpu_sum() {
            self.sum.add(bytes, at);
        }
    }

    /// Books that a block is gone.
    #[inline]
    pub fn take(&mut self, account: Account, bytes: Bytes, why: Why) {
        let book = &mut self.books[account.ledger as usize];
        if let Some(held) = book.held(account.site, self.sum.epoch) {
            held.now.bytes = held.now.bytes.saturating_sub(bytes.0);
            held.now.count = held.now.count.saturating_sub(1);
        }
        book.total.take(bytes, why);
        if let Some(gpu) = book.gpu(account.gpu) {
            gpu.take(bytes, why);
        }
        if account.ledger.in_gpu_sum() {
            self.sum.live_bytes = self.sum.live_bytes.saturating_sub(bytes.0);
        }
    }

    /// Books a call that failed.
    pub fn fail(&mut self, ledger: Ledger, gpu: GpuSlot) {
        let book = &mut self.books[ledger as usize];
        book.total.failed += 1;
        if let Some(gpu) = book.gpu(gpu) {
            gpu.failed += 1;
        }
    }

    /// What every site held at the ledger's peak.
    pub fn at_peak(&self, ledger: Ledger) -> impl Iterator<Item = (SiteIndex, Share)> {
        let book = self.book(ledger);
        shares(book, move |held| held.own.at_peak(book.epoch, held.now))
    }

    /// What every site held of the ledger at the peak of the sum `gpu`.
    pub fn at_sum_peak(&self, ledger: Ledger) -> impl Iterator<Item = (SiteIndex, Share)> {
        let epoch = self.sum.epoch;
        shares(self.book(ledger), move |held| held.sum.at_peak(epoch, held.now))
    }
}

fn shares<'a>(
    book: &'a Book,
    share: impl Fn(&Held) -> Share + 'a,
) -> impl Iterator<Item = (SiteIndex, Share)> + 'a {
    let sites = (0..).map(SiteIndex);
    let all = sites.zip(&book.held).map(move |(site, held)| (site, share(held)));
    all.filter(|(_, share)| share.count > 0)
}

impl Sum {
    #[inline]
    fn add(&mut self, bytes: Bytes, at: Ticks) {
        self.live_bytes = self.live_bytes.saturating_add(bytes.0);
        if self.live_bytes > self.peak_bytes {
            self.peak_bytes = self.live_bytes;
            self.peak_at = at;
            self.epoch += 1;
        }
    }
}
