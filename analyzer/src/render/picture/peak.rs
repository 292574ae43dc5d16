//! What the peak was made of: by call site, by size of the blocks, by their age.

use std::path::Path;

use super::axis::Unit;
use super::bars::{self, Bar, Names};
use super::ink::Ink;
use super::scene::{Area, Hover, Scene, Size};
use super::sketch::{Key, Sketch};
use super::subject::Facts;
use crate::analysis::names::SiteName;
use crate::live::{Ledger, Sum};
use crate::render::{counted, grouped};
use crate::report::{Composition, HeldReport, SizeClassReport, SumReport};
use crate::units::{Bytes, Nanos};

/// Draws the picture.
#[must_use]
pub fn scene(facts: &Facts<'_>, size: Size) -> Scene {
    let found = [Sum::Gpu, Sum::Host]
        .into_iter()
        .find_map(|sum| facts.total.sum(sum).filter(|report| report.peak_at.is_some()));
    let Some(report) = found else {
        let mut sketch = Sketch::new(size, "The peak of GPU memory", "", facts.subject);
        sketch.nothing("No GPU memory was allocated.");
        return sketch.finish();
    };
    let mut sketch = Sketch::new(size, &title(report), &detail(report), facts.subject);
    let held = &report.at_peak;
    let mut ledgers: Vec<Ledger> = held.held.iter().map(|held| held.ledger).collect();
    ledgers.sort_unstable();
    ledgers.dedup();
    let keys = ledgers.iter().map(|&ledger| Key::area(Ink::of(ledger), ledger.name()));
    sketch.legend(&keys.collect::<Vec<Key>>());
    let (sites, sizes, ages) = places(&sketch);
    let rest =
        |count: usize, bytes: u64| format!("and {} more: {}", grouped(count as u64), Bytes(bytes));
    // A row of other sites is always behind those that there is room for.
    let hidden = held.held.iter().map(|held| held.site.others.saturating_sub(1)).sum::<u64>();
    let more = |count: usize, bytes| rest(count.saturating_add(hidden as usize), bytes);
    bars::draw(&mut sketch, sites, "by call and library", Names::Above, &by_site(held), more);
    let sizes_heading = "by size of the block";
    bars::draw(&mut sketch, sizes, sizes_heading, Names::Left, &by_size(&held.by_size), rest);
    by_age(&mut sketch, ages, report);
    sketch.finish()
}

fn title(report: &SumReport) -> String {
    let what = match report.sum {
        Sum::Gpu => "GPU memory",
        Sum::Host => "host memory",
    };
    let at = report.peak_at.map(|at| format!(" at {at}")).unwrap_or_default();
    format!("What the peak of {what} was made of: {}{at}", report.peak)
}

fn detail(report: &SumReport) -> String {
    let blocks =
        report.at_peak.held.iter().fold(0, |sum: u64, held| sum.saturating_add(held.count));
    let sites = report.at_peak.held.iter().map(|held| held.site.others.max(1)).sum();
    let blocks = counted(blocks, "block", "blocks");
    format!("{blocks} of {}.", counted(sites, "call site", "call sites"))
}

/// Sites left, sizes and ages right; one above the other where the picture is narrow.
fn places(sketch: &Sketch) -> (Area, Area, Area) {
    let (all, gap) = (sketch.free, sketch.px(30.0));
    let none = Area { height: 0, ..all };
    if all.width < sketch.px(720.0) {
        if all.height < sketch.px(420.0) {
            return (all, none, none);
        }
        let height = all.height / 4;
        let sites = Area { height: all.height - 2 * height, ..all };
        let sizes = Area { y: sites.bottom(), height, ..all };
        return (sites, sizes, Area { y: sizes.bottom(), height, ..all });
    }
    let right = all.width * 2 / 5;
    let sites = Area { width: all.width - right - gap, ..all };
    let sizes = Area { x: sites.right() + gap, width: right, ..all };
    if all.height < sketch.px(240.0) {
        return (sites, sizes, none);
    }
    let sizes = Area { height: all.height / 2, ..sizes };
    let ages = Area { y: sizes.bottom(), height: all.height - sizes.height, ..sizes };
    (sites, sizes, ages)
}

/// A site in a line: the call, what it made of the driver, and who called.
#[must_use]
pub fn site_words(site: &SiteName) -> String {
    if site.others > 0 {
        return counted(site.others, "other site", "other sites");
    }
    let api = site.api.as_deref().unwrap_or("unknown call");
    let call =
        site.call.as_deref().map_or_else(|| api.to_owned(), |call| format!("{call} > {api}"));
    if let Some(caller) = &site.caller {
        return format!("{call}, {caller}");
    }
    let library = site.library.as_deref().map(|path| {
        let name = Path::new(path).file_name();
        name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
    });
    format!("{call}, {}", library.as_deref().unwrap_or("unknown library"))
}

fn amount(bytes: Bytes, count: u64) -> String {
    let blocks = if count == 1 { "block" } else { "blocks" };
    format!("{bytes} in {} {blocks}", grouped(count))
}

fn by_site(held: &Composition) -> Vec<Bar> {
    let bar = |held: &HeldReport| {
        let (ink, bytes) = (Ink::of(held.ledger), held.bytes);
        Bar::new(site_words(&held.site), ink, bytes.0, amount(bytes, held.count))
    };
    held.held.iter().map(bar).collect()
}

fn by_size(classes: &[SizeClassReport]) -> Vec<Bar> {
    let bar = |class: &SizeClassReport| {
        Bar::new(size_words(class), Ink::Other, class.bytes.0, amount(class.bytes, class.count))
    };
    classes.iter().map(bar).collect()
}

/// A class of sizes in words.
#[must_use]
pub fn size_words(class: &SizeClassReport) -> String {
    if class.from == class.to {
        return class.from.to_string();
    }
    // What ends just below a power of two is said by that power.
    let end = Bytes(class.to.0.saturating_add(1));
    match end.0.is_power_of_two() {
        true => format!("{} to {}", round(class.from), round(end)),
        false => format!("{} to {}", class.from, class.to),
    }
}

/// Bytes without the decimals that say nothing.
fn round(bytes: Bytes) -> String {
    bytes.to_string().replace(".00", "")
}

/// The bytes of the peak over the time that they were made in.
fn by_age(sketch: &mut Sketch, place: Area, report: &SumReport) {
    if place.height < sketch.px(90.0) {
        return;
    }
    let ages = &report.at_peak.by_age;
    let (Some(first), Some(last)) = (ages.first(), ages.last()) else { return };
    let most = ages.iter().map(|age| age.bytes.0).max().unwrap_or(0);
    let heading = ("by time of the allocation", 0);
    let begin = first.from.min(Nanos(0));
    let figure = sketch.axes(place, heading, (begin, last.to), (Unit::Bytes, most));
    let mut rows = Vec::new();
    for age in ages {
        let (x, end) = (figure.time.x(age.from), figure.area.x + figure.time.after(age.to));
        let y = figure.bytes.y(age.bytes.0);
        let gap = i32::from(end - x > 4);
        let width = (end - x - gap).max(1);
        let column = Area { x, y, width, height: figure.area.bottom() - 1 - y };
        sketch.fill(column, Ink::Other, 0.9);
        let words = format!("made {} to {}: {}", age.from, age.to, amount(age.bytes, age.count));
        rows.push((x, end - x, words));
    }
    sketch.hover(figure.area, Hover::Columns(rows));
}
