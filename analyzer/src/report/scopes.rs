//! From the live set to what is said of all devices and of each.

use std::borrow::Cow;

use super::build::{Builder, gpu};
use super::{
    AgeReport, BlocksReport, Composition, FragmentationReport, HeldReport, LedgerReport,
    MovedReport, PinReport, Scope, ScopeReport, SizeClassReport, StuckReport, SumReport, VmmReport,
    pools,
};
use crate::analysis::held::{self, Cut, Holding};
use crate::live::{
    AGE_SHIFT, Gaps, GpuSlot, Granules, Ledger, Share, Sum, Transfers, View, sizes_of_class,
};
use crate::units::{Bytes, Nanos};

/// All devices together.
pub(super) fn total(builder: &Builder<'_>) -> ScopeReport {
    let view = &builder.live.views.all;
    let scope = Scoped { builder, view, slot: None };
    scope.report(Scope::All, scope.looked_at())
}

/// Each device that was used.
pub(super) fn by_gpu(builder: &Builder<'_>) -> Vec<ScopeReport> {
    let used = builder.live.views.by_gpu();
    let one = |(slot, view): &(GpuSlot, Cow<'_, View>)| {
        let scope = Scoped { builder, view, slot: Some(*slot) };
        scope.report(Scope::On(gpu(*slot)), scope.blocks_only())
    };
    used.iter().map(one).collect()
}

struct Scoped<'a> {
    builder: &'a Builder<'a>,
    view: &'a View,
    slot: Option<GpuSlot>,
}

impl Scoped<'_> {
    fn report(&self, scope: Scope, fragmentation: FragmentationReport) -> ScopeReport {
        let ends = held::now(self.builder.live, &self.builder.names, self.slot);
        let everything = held::together(ends.iter().map(|(_, cut)| cut));
        let traffic = &self.view.traffic;
        let copies = traffic.copies().map(|(key, transfers)| (key, self.moved(transfers)));
        ScopeReport {
            scope,
            sums: Sum::ALL.iter().map(|&sum| self.sum(sum, &ends)).collect(),
            ledgers: ends.iter().map(|(ledger, end)| self.ledger(*ledger, end)).collect(),
            live_at_end: self.held(everything.held),
            copies: copies.collect(),
            sets: self.moved(&traffic.sets),
            fragmentation,
        }
    }

    fn ledger(&self, ledger: Ledger, end: &Cut) -> LedgerReport {
        let tally = self.view.books.book(ledger).tally;
        let at_peak = held::at_peak(&self.builder.names, &self.view.books, ledger);
        LedgerReport {
            ledger,
            tally,
            peak_at: (tally.peak_bytes > 0).then(|| self.builder.clock.at(tally.peak_at)),
            at_peak: self.composition(at_peak),
            at_end: self.composition(end.clone()),
        }
    }

    fn sum(&self, sum: Sum, ends: &[(Ledger, Cut)]) -> SumReport {
        let book = self.view.books.sum(sum);
        let at_peak = held::at_sum_peak(&self.builder.names, &self.view.books, sum);
        let added = ends.iter().filter(|(ledger, _)| ledger.sum() == Some(sum));
        SumReport {
            sum,
            live: Bytes(book.live_bytes),
            peak: Bytes(book.peak_bytes),
            peak_at: (book.peak_bytes > 0).then(|| self.builder.clock.at(book.peak_at)),
            at_peak: self.composition(at_peak),
            at_end: self.composition(held::together(added.map(|(_, cut)| cut))),
        }
    }

    fn composition(&self, cut: Cut) -> Composition {
        let sizes = cut.sizes.into_iter().map(|(class, share)| size(class, share));
        let ages = cut.ages.into_iter().map(|(bucket, share)| self.age(bucket, share));
        let (by_size, by_age) = (sizes.collect(), ages.collect());
        Composition { held: self.held(cut.held), by_size, by_age }
    }

    fn age(&self, bucket: usize, share: Share) -> AgeReport {
        let at = |bucket: usize| self.builder.clock.at(self.builder.live.axis.start(bucket));
        AgeReport {
            from: at(bucket << AGE_SHIFT),
            to: at((bucket + 1) << AGE_SHIFT),
            count: share.count,
            bytes: Bytes(share.bytes),
        }
    }

    fn held(&self, holdings: Vec<Holding>) -> Vec<HeldReport> {
        let one = |holding: Holding| HeldReport {
            ledger: holding.ledger,
            site: self.builder.in_words(holding.site),
            count: holding.count,
            bytes: holding.bytes,
            oldest: holding.oldest.map(|at| self.builder.clock.at(at)),
        };
        holdings.into_iter().map(one).collect()
    }

    fn moved(&self, transfers: &Transfers) -> MovedReport {
        let sizes = transfers.sizes.iter().enumerate().filter(|(_, share)| share.count > 0);
        MovedReport {
            moved: transfers.moved,
            total: self.builder.clock.length(transfers.total),
            max: self.builder.clock.length(transfers.max),
            by_size: sizes.map(|(class, &share)| size(class, share)).collect(),
        }
    }

    /// Blocks; who pins them and ranges are looked at for all devices together.
    fn blocks_only(&self) -> FragmentationReport {
        let kept = &self.view.kept;
        let worst = kept.worst.map(|(at, granules)| (self.builder.clock.at(at), blocks(granules)));
        FragmentationReport {
            device: blocks(kept.now),
            device_worst: worst,
            pins: Vec::new(),
            pins_at: None,
            vmm: None,
            vmm_worst: None,
            stuck: None,
            pool: pools::waste(self.builder, self.slot),
            looked: 0,
        }
    }

    fn looked_at(&self) -> FragmentationReport {
        let looks = &self.builder.live.looks;
        let at = |at| self.builder.clock.at(at);
        let pins = looks.pins.as_ref();
        let named = pins.iter().flat_map(|(_, pins)| pins).map(|pin| PinReport {
            site: self.builder.site(pin.site),
            blocks: pin.blocks,
            used: Bytes(pin.used),
        });
        FragmentationReport {
            pins: named.collect(),
            pins_at: pins.map(|(moment, _)| at(*moment)),
            vmm: Some(vmm(self.builder.live.gaps())),
            vmm_worst: looks.gaps.as_ref().map(|(moment, gaps)| worst(at(*moment), gaps)),
            stuck: Some(self.stuck()),
            looked: looks.count,
            ..self.blocks_only()
        }
    }
}

impl Scoped<'_> {
    fn stuck(&self) -> StuckReport {
        let stuck = self.builder.live.stuck();
        let largest = stuck.largest.iter().map(|(address, piece)| {
            (address.0, piece.bytes, self.builder.site(piece.account.site))
        });
        StuckReport {
            mappings: stuck.mappings,
            bytes: stuck.bytes,
            largest: largest.collect(),
            unreferenced: stuck.unreferenced,
        }
    }
}

fn worst(at: Nanos, gaps: &Gaps) -> (Nanos, VmmReport) {
    (at, vmm(gaps.clone()))
}

fn size(class: usize, share: Share) -> SizeClassReport {
    let (from, to) = sizes_of_class(class);
    SizeClassReport { from, to, count: share.count, bytes: Bytes(share.bytes) }
}

fn blocks(granules: Granules) -> BlocksReport {
    BlocksReport {
        requested: Bytes(granules.requested),
        touched: Bytes(granules.bytes()),
        sparse: granules.sparse,
        sparse_used: Bytes(granules.sparse_used),
    }
}

fn vmm(gaps: Gaps) -> VmmReport {
    VmmReport {
        ranges: gaps.ranges,
        reserved: gaps.reserved,
        mapped: gaps.mapped,
        free: gaps.free,
        unmapped_physical: gaps.unmapped_physical,
        worst: gaps.worst,
    }
}
