//! GPU memory over time: ledgers upon each other, what was sampled, marks, and host memory.

use super::axis::Unit;
use super::columns::{line, stack};
use super::figure::Figure;
use super::font::{fitted, label};
use super::ink::Ink;
use super::scene::{Anchor, Area, Hover, Scene, Size};
use super::sketch::{Key, Sketch};
use super::subject::Facts;
use crate::live::{Ledger, Sum};
use crate::report::{self as model, Scope, SeriesReport};
use crate::units::{Bytes, Gpu, Nanos};

/// Host memory, as far as it is memory.
const HOST: [Ledger; 4] = [Ledger::Pinned, Ledger::Registered, Ledger::VmmHost, Ledger::Managed];

/// Marks that are drawn at most.
const MARKS: usize = 200;

/// Devices that have a figure of their own at most, and in a row.
const DEVICES: usize = 8;
const IN_A_ROW: usize = 4;

/// Draws the picture.
#[must_use]
pub fn scene(facts: &Facts<'_>, size: Size) -> Scene {
    let timeline = facts.timeline;
    let detail = "Every column shows the greatest value within its time.";
    let mut sketch = Sketch::new(size, "GPU memory over time", detail, facts.subject);
    let sum = timeline.series(model::Figure::Sum(Sum::Gpu), Scope::All);
    let host: Vec<&SeriesReport> = HOST
        .iter()
        .filter_map(|&ledger| timeline.series(model::Figure::Ledger(ledger), Scope::All))
        .collect();
    let (Some(&from), Some(&to)) = (timeline.edges.first(), timeline.edges.last()) else {
        sketch.nothing("No GPU memory was allocated.");
        return sketch.finish();
    };
    let devices = devices(facts);
    let sampled = match devices.is_empty() {
        true => Sampled::of_one_device(facts, sum),
        false => Sampled::default(),
    };
    if sum.is_none() && host.is_empty() && sampled.process.is_none() && sampled.used.is_none() {
        sketch.nothing("No GPU memory was allocated.");
        return sketch.finish();
    }
    let told = match devices.first() {
        Some(&(gpu, series)) => Sampled::on(facts, Scope::On(gpu), Some(series)),
        None => sampled,
    };
    sketch.legend(&legend(facts, sum, &told));
    let rows = devices.len().div_ceil(IN_A_ROW) as i32;
    let drawn = sum.is_some() || sampled.shown().next().is_some();
    let (above, below) = heights(&sketch, drawn, rows, !host.is_empty());
    if above > 0 {
        let place = sketch.take_top(above);
        main_figure(&mut sketch, place, (from, to), facts, sum, &sampled);
    }
    if below > 0 {
        let place = sketch.take_top(below);
        by_device(&mut sketch, place, (from, to), facts, &devices);
    }
    let (place, thick) = (sketch.free, sketch.px(2.0).unsigned_abs());
    if !host.is_empty() && place.height > 0 {
        let most = host.iter().map(|series| greatest(series)).max().unwrap_or(0);
        let heading = ("host and managed memory", 0);
        let figure = sketch.axes(place, heading, (from, to), (Unit::Bytes, most));
        let mut x = place.x + sketch.width(heading.0) + sketch.px(36.0);
        for series in &host {
            line(&mut sketch, &figure, timeline, series, (ink(series), thick));
            let row = Area { y: place.y - sketch.px(2.0), height: sketch.px(19.0), ..place };
            x = sketch.key(x, row, &Key::line(ink(series), series.figure.name()));
        }
        hover(&mut sketch, &figure, facts, host.into_iter());
    }
    sketch.finish()
}

/// How high the main figure and those of the devices are; what is left is for the host's. What
/// would be too low to be read is left out.
fn heights(sketch: &Sketch, main: bool, rows: i32, host: bool) -> (i32, i32) {
    let all = sketch.free.height;
    let least = sketch.px(90.0);
    if !main {
        return (0, 0);
    }
    let host = if host && all / 6 >= least { all / 6 } else { 0 };
    let each = (all - host) / (rows + 2);
    let devices = if each >= least { each * rows } else { 0 };
    (all - host - devices, devices)
}

fn main_figure(
    sketch: &mut Sketch,
    place: Area,
    times: (Nanos, Nanos),
    facts: &Facts<'_>,
    sum: Option<&SeriesReport>,
    sampled: &Sampled<'_>,
) {
    let most = sum.map_or(0, greatest).max(sampled.most());
    let between = if facts.marks.is_empty() { 0 } else { sketch.px(15.0) };
    let heading = ("device + async_pool + vmm_physical", between);
    let figure = sketch.axes(place, heading, times, (Unit::Bytes, most));
    if let Some(sum) = sum {
        stack(sketch, &figure, facts.timeline, sum);
    }
    let thick = sketch.px(2.0).unsigned_abs();
    let torch = torch(facts);
    for (series, ink) in torch.map(|series| (series, Ink::Torch)).into_iter().chain(sampled.shown())
    {
        line(sketch, &figure, facts.timeline, series, (ink, thick));
    }
    marks(sketch, &figure, facts);
    peak(sketch, &figure, facts);
    hover(sketch, &figure, facts, sum.into_iter().chain(torch).chain(sampled.series()));
}

/// Blocks of PyTorch's allocator, which lie in what is stacked.
fn torch<'a>(facts: &Facts<'a>) -> Option<&'a SeriesReport> {
    facts.timeline.series(model::Figure::Ledger(Ledger::Torch), Scope::All)
}

fn greatest(series: &SeriesReport) -> u64 {
    series.levels.iter().map(|level| level.max).max().unwrap_or(0)
}

fn ink(series: &SeriesReport) -> Ink {
    match series.figure {
        model::Figure::Ledger(ledger) => Ink::of(ledger),
        _ => Ink::Other,
    }
}

/// What NVML told, as far as it fits beside what is allocated.
#[derive(Clone, Copy, Default)]
struct Sampled<'a> {
    process: Option<&'a SeriesReport>,
    used: Option<&'a SeriesReport>,
    /// Whether what others use would press this process's memory flat.
    off_scale: bool,
}

impl<'a> Sampled<'a> {
    /// Of a process that uses one device: readings of that one, if it is known which, or of the
    /// only one that was read.
    fn of_one_device(facts: &Facts<'a>, sum: Option<&SeriesReport>) -> Self {
        let of = |wanted| {
            let all = facts.timeline.series.iter();
            all.filter(move |series| series.figure == wanted).map(|series| series.scope)
        };
        let mut read = of(model::Figure::SampledUsed);
        let only = read.next().filter(|_| read.next().is_none());
        let used = of(model::Figure::Sum(Sum::Gpu)).find(|&scope| scope != Scope::All);
        let used = used.filter(|&used| of(model::Figure::SampledUsed).any(|scope| scope == used));
        let scope = used.or_else(|| of(model::Figure::SampledProcess).next()).or(only);
        scope.map_or_else(Self::default, |scope| Self::on(facts, scope, sum))
    }

    fn on(facts: &Facts<'a>, scope: Scope, sum: Option<&SeriesReport>) -> Self {
        let find = |figure| facts.timeline.series(figure, scope);
        let process = find(model::Figure::SampledProcess);
        let used = find(model::Figure::SampledUsed);
        let own = sum.map_or(0, greatest).max(process.map_or(0, greatest));
        let off_scale = own > 0 && used.map_or(0, greatest) / 3 > own;
        Self { process, used, off_scale }
    }

    fn most(&self) -> u64 {
        self.shown().map(|(series, _)| greatest(series)).max().unwrap_or(0)
    }

    fn series(&self) -> impl Iterator<Item = &'a SeriesReport> {
        self.process.into_iter().chain(self.used)
    }

    fn shown(&self) -> impl Iterator<Item = (&'a SeriesReport, Ink)> {
        let used = self.used.filter(|_| !self.off_scale).map(|series| (series, Ink::Used));
        used.into_iter().chain(self.process.map(|series| (series, Ink::Process)))
    }
}

fn legend(facts: &Facts<'_>, sum: Option<&SeriesReport>, sampled: &Sampled<'_>) -> Vec<Key> {
    let parts = sum.map(|sum| sum.parts.as_slice()).unwrap_or_default();
    let used = parts.iter().filter(|(_, values)| values.iter().any(|&value| value > 0));
    let mut keys: Vec<Key> =
        used.map(|(ledger, _)| Key::area(Ink::of(*ledger), ledger.name())).collect();
    if torch(facts).is_some() {
        keys.push(Key::line(Ink::Torch, "of these, blocks of PyTorch"));
    }
    if sampled.process.is_some() {
        keys.push(Key::line(Ink::Process, "this process, sampled"));
    }
    if let Some(used) = sampled.used {
        let words = match sampled.off_scale {
            true => {
                format!("all processes, sampled: up to {}, off the scale", Bytes(greatest(used)))
            }
            false => "all processes, sampled".to_owned(),
        };
        keys.push(Key::line(Ink::Used, words));
    }
    if !facts.marks.is_empty() {
        keys.push(Key::upright(Ink::Quiet, "marks"));
    }
    if !facts.subject.calibrated {
        keys.push(Key::line(Ink::Alarm, "the clock could not be calibrated: times are in ticks"));
    }
    keys
}

fn peak(sketch: &mut Sketch, figure: &Figure, facts: &Facts<'_>) {
    let Some(sum) = facts.total.sum(Sum::Gpu) else { return };
    let Some(at) = sum.peak_at else { return };
    let words = format!("peak {} at {at}", sum.peak);
    let (x, y) = (figure.time.x(at), figure.bytes.y(sum.peak.0));
    sketch.point(figure, x, y, Ink::Text, &words);
}

/// Thin lines, and their names where there is room above the figure.
fn marks(sketch: &mut Sketch, figure: &Figure, facts: &Facts<'_>) {
    let area = figure.area;
    let mut columns: Vec<(i32, &str)> = Vec::new();
    for mark in facts.marks.iter().take(MARKS) {
        let x = figure.time.x(mark.at);
        if columns.last().is_none_or(|&(last, _)| last != x) {
            columns.push((x, &mark.text));
        }
    }
    let few = columns.len() <= 24;
    let ends = columns.iter().skip(1).map(|&(x, _)| x).chain([area.right()]);
    let ends: Vec<i32> = ends.collect();
    for (&(x, text), end) in columns.iter().zip(ends) {
        sketch.fill(Area { x, width: 1, ..area }, Ink::Quiet, 0.55);
        let room = end - x - sketch.px(10.0);
        if few && room >= sketch.px(56.0) {
            let words = fitted(&label(text), sketch.font(), false, room);
            let baseline = area.y - sketch.px(5.0);
            sketch.words(x, baseline, Anchor::Start, Ink::Quiet, &words);
        }
    }
}

fn hover<'a>(
    sketch: &mut Sketch,
    figure: &Figure,
    facts: &Facts<'a>,
    shown: impl Iterator<Item = &'a SeriesReport>,
) {
    let all = &facts.timeline.series;
    let index = |series: &SeriesReport| all.iter().position(|other| std::ptr::eq(other, series));
    let series = shown.filter_map(index).collect();
    let (from, to) = (Nanos(figure.time.from), Nanos(figure.time.to));
    sketch.hover(figure.area, Hover::Time { from, to, series });
}

/// The sum on each device, when there are several.
fn devices<'a>(facts: &Facts<'a>) -> Vec<(Option<Gpu>, &'a SeriesReport)> {
    let on = |series: &'a SeriesReport| match (series.figure, series.scope) {
        (model::Figure::Sum(Sum::Gpu), Scope::On(gpu)) => Some((gpu, series)),
        _ => None,
    };
    let found: Vec<_> = facts.timeline.series.iter().filter_map(on).take(DEVICES).collect();
    if found.len() > 1 { found } else { Vec::new() }
}

/// One small figure for each device, all on one scale.
fn by_device(
    sketch: &mut Sketch,
    place: Area,
    times: (Nanos, Nanos),
    facts: &Facts<'_>,
    devices: &[(Option<Gpu>, &SeriesReport)],
) {
    let highest = |&(gpu, series): &(Option<Gpu>, &SeriesReport)| {
        greatest(series).max(Sampled::on(facts, Scope::On(gpu), Some(series)).most())
    };
    let most = devices.iter().map(highest).max().unwrap_or(0);
    let in_a_row = devices.len().clamp(1, IN_A_ROW);
    let rows = devices.len().div_ceil(in_a_row).max(1);
    let gap = sketch.px(18.0);
    let width = (place.width + gap) / in_a_row as i32 - gap;
    let height = place.height / rows as i32;
    for (index, &(gpu, series)) in devices.iter().enumerate() {
        let (row, column) = ((index / in_a_row) as i32, (index % in_a_row) as i32);
        let outer =
            Area { x: place.x + column * (width + gap), y: place.y + row * height, width, height };
        let name = gpu.map_or_else(|| "unknown device".to_owned(), |gpu| format!("GPU {}", gpu.0));
        let heading = format!("{name}, {}", Bytes(greatest(series)));
        let figure = sketch.axes(outer, (&heading, 0), times, (Unit::Bytes, most));
        let sampled = Sampled::on(facts, series.scope, Some(series));
        stack(sketch, &figure, facts.timeline, series);
        for (series, ink) in sampled.shown() {
            line(sketch, &figure, facts.timeline, series, (ink, 1));
        }
        hover(sketch, &figure, facts, std::iter::once(series).chain(sampled.series()));
    }
}
