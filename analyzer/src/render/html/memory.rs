//! Tables of memory: ledgers, what is live, what the peak was made of, fragmentation.

use super::table::{Cell, Table, note, section, sub};
use crate::input::WriterState;
use crate::live::{NOT_COUNTED, Sum};
use crate::render::picture::{site_words, size_words};
use crate::report::{
    BlocksReport, Composition, HeldReport, Report, Scope, ScopeReport, SizeClassReport, VmmReport,
};
use crate::units::{Bytes, Nanos};

/// The sections, in HTML.
pub fn sections(report: &Report) -> String {
    let mut out = String::new();
    ledgers(report, &mut out);
    by_gpu(report, &mut out);
    let (heading, about) = match report.trace.state {
        WriterState::Running => ("Live so far", ""),
        _ => ("Live at the end", "Live at the end is not a leak by itself."),
    };
    section(&mut out, "live", heading, about);
    held(&report.total.live_at_end, &mut out);
    for sum in &report.total.sums {
        let Some(at) = sum.peak_at else { continue };
        let (id, what) = match sum.sum {
            Sum::Gpu => ("peak-gpu", "GPU memory"),
            Sum::Host => ("peak-host", "host memory"),
        };
        let about = format!("{} at {at}, by who held it.", sum.peak);
        section(&mut out, id, &format!("What the peak of {what} was made of"), &about);
        composition(&sum.at_peak, &mut out);
    }
    fragmentation(report, &mut out);
    out
}

const LEDGER: [&str; 11] = [
    "ledger",
    "#allocs",
    "#frees",
    "#implicit",
    "#failed",
    "#allocated",
    "#live",
    "#live bytes",
    "#exactly",
    "#peak",
    "#peak at",
];

fn ledger_table(scope: &ScopeReport) -> Table {
    let used = scope.ledgers.iter().filter(|ledger| ledger.tally.is_used());
    Table::of(&LEDGER, used, |ledger| {
        let tally = &ledger.tally;
        vec![
            Cell::words(ledger.ledger.name()),
            Cell::count(tally.allocs),
            Cell::count(tally.frees),
            Cell::count(tally.implicit_frees),
            Cell::count(tally.failed),
            Cell::bytes(Bytes(tally.alloc_bytes)),
            Cell::count(tally.live_count),
            Cell::bytes(Bytes(tally.live_bytes)),
            Cell::exact(Bytes(tally.live_bytes)),
            Cell::bytes(Bytes(tally.peak_bytes)),
            Cell::known(ledger.peak_at, Cell::time),
        ]
    })
}

fn ledgers(report: &Report, out: &mut String) {
    let bound = format!("Live and peak figures are bounds: {}.", report.doubt.words());
    section(out, "ledgers", "Ledgers", if report.bound { &bound } else { "" });
    let table = ledger_table(&report.total);
    match table.is_empty() {
        true => note(out, "No call that takes or gives memory was seen."),
        false => table.write(out),
    }
    let missing = NOT_COUNTED.join(", ");
    if !missing.is_empty() {
        note(out, format!("Not counted by this version: {missing}."));
    }
}

fn scope_name(scope: Scope) -> String {
    match scope {
        Scope::All => "All devices".to_owned(),
        Scope::On(Some(gpu)) => format!("GPU {}", gpu.0),
        Scope::On(None) => "No device, or one that is not known".to_owned(),
    }
}

fn by_gpu(report: &Report, out: &mut String) {
    if report.by_gpu.len() < 2 {
        return;
    }
    section(out, "devices", "By device", "");
    for scope in &report.by_gpu {
        let table = ledger_table(scope);
        if !table.is_empty() {
            sub(out, &scope_name(scope.scope));
            table.write(out);
        }
    }
}

fn held(all: &[HeldReport], out: &mut String) {
    if all.is_empty() {
        return note(out, "Nothing.");
    }
    // At a peak nobody is asked for the oldest.
    let dated = all.iter().any(|held| held.oldest.is_some());
    let mut head = vec!["#bytes", "#exactly", "#blocks", "ledger", "call and library", "path"];
    head.extend(dated.then_some("#oldest at"));
    let table = Table::of(&head, all, |held| {
        let mut row = vec![
            Cell::bytes(held.bytes),
            Cell::exact(held.bytes),
            Cell::count(held.count),
            Cell::words(held.ledger.name()),
            Cell::words(&site_words(&held.site)),
            Cell::words(held.site.library.as_deref().unwrap_or("unknown")),
        ];
        row.extend(dated.then(|| Cell::known(held.oldest, Cell::time)));
        row
    });
    table.write(out);
}

fn composition(made: &Composition, out: &mut String) {
    held(&made.held, out);
    if !made.by_size.is_empty() {
        sub(out, "By size of the block");
        sizes("#blocks", &made.by_size).write(out);
    }
    if !made.by_age.is_empty() {
        sub(out, "By time of the allocation");
        let head = ["#made from", "#to", "#blocks", "#bytes", "#exactly"];
        let table = Table::of(&head, &made.by_age, |age| {
            vec![
                Cell::time(age.from),
                Cell::time(age.to),
                Cell::count(age.count),
                Cell::bytes(age.bytes),
                Cell::exact(age.bytes),
            ]
        });
        table.write(out);
    }
}

/// Classes of sizes.
pub fn sizes(counted: &'static str, classes: &[SizeClassReport]) -> Table {
    Table::of(&["size", "#from", counted, "#bytes", "#exactly"], classes, |class| {
        vec![
            Cell::words(&size_words(class)),
            Cell::exact(class.from),
            Cell::count(class.count),
            Cell::bytes(class.bytes),
            Cell::exact(class.bytes),
        ]
    })
}

fn fragmentation(report: &Report, out: &mut String) {
    let found = &report.total.fragmentation;
    let about = "Memory that is taken and of no use. The driver gives device memory in blocks of \
                 2 MiB, which stay as long as anything lies in them; sparse are those of which \
                 less than a tenth is used.";
    section(out, "fragmentation-figures", "Fragmentation", about);
    let end = [("at the end".to_owned(), None, found.device)];
    let worst = found.device_worst.map(|(at, blocks)| ("at worst".to_owned(), Some(at), blocks));
    let head = [
        "",
        "#at",
        "#requested",
        "#in blocks",
        "#kept from use",
        "#sparse blocks",
        "#used in those",
    ];
    let row = |(words, at, blocks): (String, Option<Nanos>, BlocksReport)| {
        vec![
            Cell::words(&words),
            Cell::known(at, Cell::time),
            Cell::bytes(blocks.requested),
            Cell::bytes(blocks.touched),
            Cell::bytes(blocks.waste()),
            Cell::count(blocks.sparse),
            Cell::bytes(blocks.sparse_used),
        ]
    };
    Table::of(&head, end.into_iter().chain(worst), row).write(out);
    if !found.pins.is_empty() {
        let at = found.pins_at.map(|at| format!(" at {at}")).unwrap_or_default();
        sub(out, &format!("Who kept sparse blocks{at}"));
        let table =
            Table::of(&["#blocks", "#used in them", "call and library"], &found.pins, |pin| {
                let site = Cell::words(&site_words(&pin.site));
                vec![Cell::count(pin.blocks), Cell::bytes(pin.used), site]
            });
        table.write(out);
    }
    if let Some(vmm) = found.vmm.as_ref().filter(|vmm| vmm.ranges > 0) {
        sub(out, "Address ranges at the end");
        ranges(vmm, out);
    }
    if let Some((at, vmm)) = found.vmm_worst.as_ref().filter(|(_, vmm)| vmm.ranges > 0) {
        sub(out, &format!("Address ranges at their worst, {at}"));
        ranges(vmm, out);
    }
}

fn ranges(vmm: &VmmReport, out: &mut String) {
    note(
        out,
        format!(
            "{} ranges: {} mapped of {} reserved; {} of physical memory mapped nowhere.",
            vmm.ranges, vmm.mapped, vmm.reserved, vmm.unmapped_physical,
        ),
    );
    let head = ["#address", "#reserved", "#mapped", "#in holes", "#largest hole", "#pinned by"];
    let table = Table::of(&head, &vmm.worst, |range| {
        vec![
            Cell::address(range.address),
            Cell::bytes(range.bytes),
            Cell::bytes(range.mapped),
            Cell::bytes(range.free),
            Cell::bytes(range.largest),
            Cell::known(range.pin, |(address, _)| Cell::address(address)),
        ]
    });
    table.write(out);
}
