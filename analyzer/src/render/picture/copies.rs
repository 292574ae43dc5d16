//! What was copied: from where to where, in which manner, and in what sizes.

use super::axis::Unit;
use super::bars::{self, Bar, Names};
use super::columns::{greatest, in_bucket};
use super::ink::Ink;
use super::peak::size_words;
use super::scene::{Area, Hover, Item, Scene, Size};
use super::sketch::{Key, Sketch};
use super::subject::{Facts, Subject};
use crate::live::{CopyKey, HostMemory};
use crate::render::{counted, grouped};
use crate::report::{MovedReport, SizeClassReport};
use crate::units::Bytes;

/// Draws the picture.
#[must_use]
pub fn scene(facts: &Facts<'_>, size: Size) -> Scene {
    let total = facts.total;
    let mut kinds: Vec<(String, Ink, &MovedReport)> =
        total.copies.iter().map(|(key, moved)| (copy_words(key), ink(key.host), moved)).collect();
    if total.sets.moved.count > 0 {
        kinds.push(("set".to_owned(), Ink::Other, &total.sets));
    }
    kinds.retain(|(_, _, moved)| moved.moved.count > 0);
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.2.moved.bytes));
    let bytes = kinds.iter().fold(0, |sum: u64, kind| sum.saturating_add(kind.2.moved.bytes));
    let count = kinds.iter().fold(0, |sum: u64, kind| sum.saturating_add(kind.2.moved.count));
    let title = format!("Copies and sets: {} in {}", Bytes(bytes), counted(count, "call", "calls"));
    let detail = "Time is that of the calls; an asynchronous copy goes on after its call.";
    let bound = facts.subject.bound || facts.subject.copies_bound;
    let subject = Subject { bound, ..facts.subject.clone() };
    let mut sketch = Sketch::new(size, &title, detail, &subject);
    if kinds.is_empty() {
        sketch.nothing("Nothing was copied or set.");
        return sketch.finish();
    }
    sketch.legend(&legend(total.copies.iter().map(|(key, _)| key.host), total.sets.moved.count));
    let (left, right) = places(&sketch);
    let all: Vec<Bar> = kinds.iter().map(bar).collect();
    let left = time_in_calls(&mut sketch, facts, left, all.len());
    let rest =
        |count: usize, bytes: u64| format!("and {} more: {}", grouped(count as u64), Bytes(bytes));
    bars::draw(&mut sketch, left, "by direction and manner", Names::Above, &all, rest);
    let sizes = by_size(kinds.iter().map(|kind| kind.2));
    bars::draw(&mut sketch, right, "by size", Names::Left, &sizes, rest);
    sketch.finish()
}

fn ink(host: Option<HostMemory>) -> Ink {
    match host {
        Some(HostMemory::Pinned) => Ink::Pinned,
        Some(HostMemory::Registered) => Ink::Registered,
        Some(HostMemory::Pageable) => Ink::Waste,
        None => Ink::Device,
    }
}

fn legend(hosts: impl Iterator<Item = Option<HostMemory>>, sets: u64) -> Vec<Key> {
    let mut hosts: Vec<Option<HostMemory>> = hosts.collect();
    hosts.sort_unstable();
    hosts.dedup();
    let name = |host: Option<HostMemory>| match host {
        Some(host) => format!("{} host memory", host.name()),
        None => "between devices or within one".to_owned(),
    };
    let mut keys: Vec<Key> =
        hosts.into_iter().map(|host| Key::area(ink(host), name(host))).collect();
    if sets > 0 {
        keys.push(Key::area(Ink::Other, "sets"));
    }
    keys
}

/// A kind of copy in words.
#[must_use]
pub fn copy_words(key: &CopyKey) -> String {
    let manner = if key.asynchronous { "asynchronous" } else { "synchronous" };
    let host = key.host.map(|host| format!(", {}", host.name())).unwrap_or_default();
    format!("{}, {manner}{host}", key.direction.name().replace('_', " "))
}

fn bar((name, ink, report): &(String, Ink, &MovedReport)) -> Bar {
    let moved = report.moved;
    let calls = if moved.count == 1 { "call" } else { "calls" };
    let amount = format!(
        "{} in {} {calls}, {}, longest {}",
        Bytes(moved.bytes),
        grouped(moved.count),
        report.total,
        report.max,
    );
    Bar::new(name.clone(), *ink, moved.bytes, amount)
}

fn by_size<'a>(all: impl Iterator<Item = &'a MovedReport>) -> Vec<Bar> {
    let mut classes: Vec<SizeClassReport> = Vec::new();
    for class in all.flat_map(|moved| &moved.by_size) {
        match classes.iter_mut().find(|other| (other.from, other.to) == (class.from, class.to)) {
            Some(other) => {
                other.count = other.count.saturating_add(class.count);
                other.bytes = Bytes(other.bytes.0.saturating_add(class.bytes.0));
            }
            None => classes.push(*class),
        }
    }
    classes.sort_by_key(|class| class.from);
    let bar = |class: &SizeClassReport| {
        let amount = format!("{} in {}", class.bytes, counted(class.count, "call", "calls"));
        Bar::new(size_words(class), Ink::Other, class.bytes.0, amount)
    };
    classes.iter().map(bar).collect()
}

fn places(sketch: &Sketch) -> (Area, Area) {
    let (all, gap) = (sketch.free, sketch.px(30.0));
    if all.width < sketch.px(720.0) {
        if all.height < sketch.px(300.0) {
            return (all, Area { height: 0, ..all });
        }
        let height = all.height / 2;
        let left = Area { height: all.height - height, ..all };
        return (left, Area { y: left.bottom(), height, ..all });
    }
    let right = all.width * 2 / 5;
    let left = Area { width: all.width - right - gap, ..all };
    (left, Area { x: left.right() + gap, width: right, ..all })
}

/// Below the bars, as far as they leave room: the time that copies and sets took.
fn time_in_calls(sketch: &mut Sketch, facts: &Facts<'_>, place: Area, bars: usize) -> Area {
    let timeline = facts.timeline;
    let (Some(&from), Some(&to)) = (timeline.edges.first(), timeline.edges.last()) else {
        return place;
    };
    let bars = sketch.px(40.0) + sketch.px(44.0) * i32::try_from(bars).unwrap_or(i32::MAX).min(64);
    let values: Vec<u64> =
        timeline.calls.iter().map(|calls| u64::try_from(calls.copy.0).unwrap_or(0)).collect();
    let most = values.iter().copied().max().unwrap_or(0);
    if most == 0 || place.height - bars < sketch.px(130.0) {
        return place;
    }
    let outer = Area { y: place.y + bars, height: place.height - bars, ..place };
    let heading = ("time in copies and sets, all threads together", 0);
    let figure = sketch.axes(outer, heading, (from, to), (Unit::Time, most));
    let value = |bucket: usize| in_bucket(&values, Some(bucket));
    let columns = greatest(timeline, &figure.time, figure.area.width, value);
    let base = figure.bytes.y(0);
    let edges =
        columns.into_iter().map(|bucket| (figure.bytes.y(in_bucket(&values, bucket)), base));
    let edges = edges.collect();
    sketch.item(Item::Columns { x: figure.area.x, edges, ink: Ink::Other, opacity: 0.9 });
    sketch.hover(figure.area, Hover::Time { from, to, series: Vec::new() });
    Area { height: bars, ..place }
}
