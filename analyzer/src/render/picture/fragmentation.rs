//! Memory that is taken and of no use: over time in the driver's blocks, and in address ranges.

use super::axis::Unit;
use super::bars::{self, Bar, Names};
use super::columns::greatest;
use super::figure::Figure;
use super::ink::Ink;
use super::scene::{Area, Hover, Item, Scene, Size};
use super::sketch::{Key, Sketch};
use super::subject::Facts;
use crate::live::{Ledger, RangeGaps};
use crate::render::{grouped, share};
use crate::report::{self as model, BlocksReport, Scope, SeriesReport, VmmReport};
use crate::units::{Bytes, Nanos};

/// Draws the picture.
#[must_use]
pub fn scene(facts: &Facts<'_>, size: Size) -> Scene {
    let found = &facts.total.fragmentation;
    let title = "Fragmentation of device memory";
    let mut sketch =
        Sketch::new(size, title, &detail(&found.device, found.vmm.as_ref()), facts.subject);
    let timeline = facts.timeline;
    let series = |figure| timeline.series(figure, Scope::All);
    let requested = series(model::Figure::Ledger(Ledger::Device));
    let touched = series(model::Figure::Touched);
    // Of the worst moment and the end that with more in holes; the worst may be one before
    // anything was mapped.
    let worst_vmm = found.vmm_worst.as_ref().map(|(at, worst)| (Some(*at), worst));
    let end = found.vmm.as_ref().map(|end| (None, end));
    let vmm = end.into_iter().chain(worst_vmm).filter(|(_, vmm)| vmm.ranges > 0);
    let vmm = vmm.reduce(|one, other| if other.1.free > one.1.free { other } else { one });
    let edges = (timeline.edges.first(), timeline.edges.last());
    let times = edges.0.copied().zip(edges.1.copied());
    let blocks = requested.zip(touched).zip(times);
    if blocks.is_none() && vmm.is_none() {
        sketch.nothing("No device memory was allocated that could be fragmented.");
        return sketch.finish();
    }
    if blocks.is_some() {
        sketch.legend(&[
            Key::area(Ink::Device, "requested (device)"),
            Key::area(Ink::Waste, "kept from use in the 2 MiB blocks behind it"),
        ]);
    }
    let height = vmm.map_or(0, |(_, vmm)| ranges_height(&sketch, vmm, blocks.is_none()));
    let above = sketch.take_top(sketch.free.height - height);
    if let Some(((requested, touched), times)) = blocks {
        let most = touched.levels.iter().map(|level| level.max).max().unwrap_or(0);
        let figure =
            sketch.axes(above, ("requested, and blocks behind it", 0), times, (Unit::Bytes, most));
        blocks_over_time(&mut sketch, &figure, timeline, requested, touched);
        worst(&mut sketch, &figure, found.device_worst);
        let all = &timeline.series;
        let shown = |wanted: &SeriesReport| all.iter().position(|one| std::ptr::eq(one, wanted));
        let series = [touched, requested].into_iter().filter_map(shown).collect();
        let (from, to) = (Nanos(figure.time.from), Nanos(figure.time.to));
        sketch.hover(figure.area, Hover::Time { from, to, series });
    }
    if let Some((at, vmm)) = vmm.filter(|_| height > 0) {
        let place = sketch.free;
        ranges(&mut sketch, place, vmm, at);
    }
    sketch.finish()
}

fn detail(end: &BlocksReport, vmm: Option<&VmmReport>) -> String {
    let nowhere = vmm.map(|vmm| vmm.unmapped_physical).filter(|&bytes| bytes > Bytes(0));
    let nowhere = nowhere.map(|bytes| format!(" {bytes} of physical memory is mapped nowhere."));
    blocks_words(end) + nowhere.as_deref().unwrap_or_default()
}

fn blocks_words(end: &BlocksReport) -> String {
    if end.touched == Bytes(0) {
        return "At the end no block is held.".to_owned();
    }
    let waste = end.waste();
    let share = share(waste.0, end.touched.0);
    format!("At the end {waste} of {} in 2 MiB blocks is kept from use ({share}).", end.touched)
}

/// What was requested, and upon it what is kept from use, up to the blocks touched.
fn blocks_over_time(
    sketch: &mut Sketch,
    figure: &Figure,
    timeline: &model::TimelineReport,
    requested: &SeriesReport,
    touched: &SeriesReport,
) {
    let value = |bucket: usize| touched.levels.get(bucket).map_or(0, |level| level.max);
    let columns = greatest(timeline, &figure.time, figure.area.width, value);
    let mut used = Vec::with_capacity(columns.len());
    let mut waste = Vec::with_capacity(columns.len());
    for bucket in columns {
        let most = |series: &SeriesReport| {
            bucket.and_then(|bucket| series.levels.get(bucket)).map_or(0, |level| level.max)
        };
        let (asked, held) = (figure.bytes.y(most(requested)), figure.bytes.y(most(touched)));
        used.push((asked, figure.bytes.y(0)));
        waste.push((held.min(asked), asked));
    }
    let x = figure.area.x;
    sketch.item(Item::Columns { x, edges: used, ink: Ink::Device, opacity: 0.85 });
    sketch.item(Item::Columns { x, edges: waste, ink: Ink::Waste, opacity: 0.9 });
}

fn worst(sketch: &mut Sketch, figure: &Figure, worst: Option<(Nanos, BlocksReport)>) {
    let Some((at, blocks)) = worst.filter(|(_, blocks)| blocks.waste() > Bytes(0)) else { return };
    let (x, y) = (figure.time.x(at), figure.bytes.y(blocks.touched.0));
    let share = share(blocks.waste().0, blocks.touched.0);
    let words = format!("worst: {} ({share}) at {at}", blocks.waste());
    sketch.point(figure, x, y, Ink::Alarm, &words);
}

fn ranges_height(sketch: &Sketch, vmm: &VmmReport, alone: bool) -> i32 {
    let all = sketch.free.height;
    if alone {
        return all;
    }
    let rows = i32::try_from(vmm.worst.len()).unwrap_or(i32::MAX).clamp(1, 6);
    let height = (sketch.px(52.0) + rows * sketch.px(36.0)).min(all / 2);
    if all - height < sketch.px(110.0) { 0 } else { height }
}

fn ranges(sketch: &mut Sketch, place: Area, vmm: &VmmReport, at: Option<Nanos>) {
    let when = at.map_or_else(|| "at the end".to_owned(), |at| format!("at their worst, {at}"));
    let ranges = if vmm.ranges == 1 { "address range" } else { "address ranges" };
    let heading = format!(
        "{} {ranges} {when}: {} mapped of {} reserved",
        grouped(vmm.ranges),
        vmm.mapped,
        vmm.reserved,
    );
    let bars: Vec<Bar> = vmm.worst.iter().map(range).collect();
    let top =
        Area { y: place.y + sketch.px(10.0), height: place.height - sketch.px(10.0), ..place };
    bars::draw(sketch, top, &heading, Names::Above, &bars, |count, bytes| {
        format!("and {} more: {}", grouped(count as u64), Bytes(bytes))
    });
}

fn range(gaps: &RangeGaps) -> Bar {
    let holes = match gaps.free.0 {
        0 => "no hole".to_owned(),
        _ => format!("{} in holes, the largest {}", gaps.free, gaps.largest),
    };
    Bar {
        name: format!("{:#x}, {} reserved", gaps.address, gaps.bytes),
        pieces: vec![(Ink::VmmMapped, gaps.mapped.0), (Ink::Waste, gaps.free.0)],
        amount: format!("{} mapped, {holes}", gaps.mapped),
    }
}
