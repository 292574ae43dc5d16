//! Everything that is kept apart for each device, once for all of them together and once for
//! each. As long as only one device was used, all of them together are that one: the view of a
//! device begins as a copy when a second one is used.

use std::borrow::Cow;

use super::books::{Account, Books};
use super::composition::Traits;
use super::granules::Kept;
use super::ledger::{GpuSlot, Ledger, Why};
use super::traffic::{CopyKey, Traffic, Transfer};
use crate::units::{Address, Bytes, Ticks};

/// One scope.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Ledgers and sums.
    pub books: Books,
    /// 2 MiB blocks.
    pub kept: Kept,
    /// Copies and sets.
    pub traffic: Traffic,
}

/// Every scope.
#[derive(Debug, Default)]
pub struct Views {
    /// All devices, and host memory.
    pub all: View,
    /// The only device that was used so far.
    only: Option<GpuSlot>,
    /// By device slot, when there are several; the first is for devices that are not known.
    gpus: Vec<View>,
}

impl Views {
    /// The devices that anything was on.
    #[must_use]
    pub fn by_gpu(&self) -> Vec<(GpuSlot, Cow<'_, View>)> {
        if let Some(only) = self.only {
            let view = self.all.of_devices();
            return if view.is_used() { vec![(only, Cow::Owned(view))] } else { Vec::new() };
        }
        let slots = (0..=u8::MAX).map(GpuSlot);
        let used = slots.zip(&self.gpus).filter(|(_, view)| view.is_used());
        used.map(|(slot, view)| (slot, Cow::Borrowed(view))).collect()
    }

    /// The view of a device that has one of its own.
    #[inline]
    fn gpu(&mut self, gpu: GpuSlot) -> Option<&mut View> {
        if self.only == Some(gpu) {
            return None;
        }
        if gpu == GpuSlot::NONE {
            self.split();
            return None;
        }
        self.apart(gpu)
    }

    #[inline(never)]
    fn apart(&mut self, gpu: GpuSlot) -> Option<&mut View> {
        if self.only.is_none() && self.gpus.is_empty() {
            self.only = Some(gpu);
            return None;
        }
        self.split();
        self.slot(gpu)
    }

    /// From here on all of them together are not the only one.
    fn split(&mut self) {
        let only = self.only.take();
        let view = only.map(|_| self.all.of_devices());
        if let Some(slot) = self.slot(only.unwrap_or_default())
            && let Some(view) = view
        {
            *slot = view;
        }
    }

    fn slot(&mut self, gpu: GpuSlot) -> Option<&mut View> {
        let index = usize::from(gpu.0);
        if index >= self.gpus.len() {
            self.gpus.resize_with(index + 1, View::of_another_device);
        }
        self.gpus.get_mut(index)
    }

    fn each(&mut self) -> impl Iterator<Item = &mut View> {
        std::iter::once(&mut self.all).chain(&mut self.gpus)
    }

    /// Books a new block. `now` is the bucket of the time axis.
    #[inline]
    pub fn add(&mut self, account: Account, block: Traits, at: Ticks, now: usize) {
        if account.ledger.on_device()
            && let Some(view) = self.gpu(account.gpu)
        {
            view.books.add(account.ledger, block, at, now);
        }
        self.all.books.add(account.ledger, block, at, now);
    }

    /// Books that a block is gone.
    #[inline]
    pub fn take(&mut self, account: Account, block: Traits, why: Why, now: usize) {
        if account.ledger.on_device()
            && let Some(view) = self.gpu(account.gpu)
        {
            view.books.take(account.ledger, block, why, now);
        }
        self.all.books.take(account.ledger, block, why, now);
    }

    /// Books a call that failed.
    pub fn fail(&mut self, ledger: Ledger, gpu: GpuSlot) {
        if ledger.on_device()
            && let Some(view) = self.gpu(gpu)
        {
            view.books.fail(ledger);
        }
        self.all.books.fail(ledger);
    }

    /// Books 2 MiB blocks of a new allocation.
    #[inline]
    pub fn keep(&mut self, gpu: GpuSlot, address: Address, bytes: Bytes) {
        if let Some(view) = self.gpu(gpu) {
            view.kept.add(address, bytes);
        }
        self.all.kept.add(address, bytes);
    }

    /// Books that the blocks of an allocation are no longer kept by it.
    #[inline]
    pub fn leave(&mut self, gpu: GpuSlot, address: Address, bytes: Bytes) {
        if let Some(view) = self.gpu(gpu) {
            view.kept.take(address, bytes);
        }
        self.all.kept.take(address, bytes);
    }

    /// Everything that one event does is done.
    #[inline]
    pub fn settle(&mut self, at: Ticks, now: usize) {
        for view in self.each() {
            view.books.settle(now);
            view.kept.settle(at, now);
        }
    }

    /// Counts a copy, on each of the devices at its ends.
    #[inline]
    pub fn copied(&mut self, key: CopyKey, call: Transfer, gpus: [Option<GpuSlot>; 2]) {
        let [first, second] = gpus;
        let second = second.filter(|_| second != first);
        for gpu in [first, second].into_iter().flatten() {
            if let Some(view) = self.gpu(gpu) {
                view.traffic.copied(key, call);
            }
        }
        self.all.traffic.copied(key, call);
    }

    /// Counts a set.
    #[inline]
    pub fn set(&mut self, call: Transfer, gpu: GpuSlot) {
        if let Some(view) = self.gpu(gpu) {
            view.traffic.set(call);
        }
        self.all.traffic.set(call);
    }

    /// The time axis has doubled its buckets.
    pub fn halve(&mut self) {
        for view in self.each() {
            view.books.halve();
            view.kept.series.halve();
        }
    }

    /// Begins to count anew at a moment that is the first of the time axis.
    pub fn begin(&mut self, at: Ticks) {
        for view in self.each() {
            view.books.begin(at);
            view.kept.begin(at);
            view.traffic = Traffic::default();
        }
    }
}

impl View {
    fn of_another_device() -> Self {
        Self { books: Books::of_another_device(), ..Self::default() }
    }

    /// The same without what lies on no device.
    fn of_devices(&self) -> Self {
        let (books, traffic) = (self.books.of_devices(), self.traffic.of_devices());
        Self { books, kept: self.kept.clone(), traffic }
    }

    fn is_used(&self) -> bool {
        self.books.is_used() || self.traffic.is_used()
    }
}
