//! From buckets to columns of pixels, such that no maximum is lost.

use super::axis::TimeScale;
use super::figure::Figure;
use super::ink::Ink;
use super::scene::Item;
use super::sketch::Sketch;
use crate::report::Figure::{SampledProcess, SampledUsed};
use crate::report::{SeriesReport, TimelineReport};

/// For each column of a figure the bucket with the greatest value of those in it.
pub fn greatest(
    timeline: &TimelineReport,
    time: &TimeScale,
    width: i32,
    value: impl Fn(usize) -> u64,
) -> Vec<Option<usize>> {
    let mut columns: Vec<Option<usize>> = vec![None; usize::try_from(width).unwrap_or(0)];
    for (bucket, edges) in timeline.edges.windows(2).enumerate() {
        let &[from, to] = edges else { continue };
        let first = usize::try_from(time.column(from)).unwrap_or(0);
        let end = usize::try_from(time.after(to)).unwrap_or(0).max(first + 1);
        let end = end.min(columns.len());
        for column in columns.get_mut(first..end).unwrap_or_default() {
            if column.is_none_or(|other| value(bucket) > value(other)) {
                *column = Some(bucket);
            }
        }
    }
    columns
}

/// What a bucket holds, as far as it has a value.
pub fn in_bucket(values: &[u64], bucket: Option<usize>) -> u64 {
    bucket.and_then(|bucket| values.get(bucket)).copied().unwrap_or(0)
}

/// A line through the greatest values of a series. Of readings, it begins with the first.
pub fn line(
    sketch: &mut Sketch,
    figure: &Figure,
    timeline: &TimelineReport,
    series: &SeriesReport,
    (ink, width): (Ink, u32),
) {
    let value = |bucket: usize| series.levels.get(bucket).map_or(0, |level| level.max);
    let columns = greatest(timeline, &figure.time, figure.area.width, value);
    let height = |bucket: Option<usize>| {
        bucket.and_then(|bucket| series.levels.get(bucket)).map(|level| figure.bytes.y(level.max))
    };
    let mut heights: Vec<Option<i32>> = columns.into_iter().map(height).collect();
    if matches!(series.figure, SampledUsed | SampledProcess) {
        let none = Some(figure.bytes.y(0));
        heights.iter_mut().take_while(|height| **height == none).for_each(|height| *height = None);
    }
    sketch.item(Item::Steps { x: figure.area.x, heights, ink, width });
}

/// The parts of a sum upon each other. Their top is the greatest value of the sum.
pub fn stack(
    sketch: &mut Sketch,
    figure: &Figure,
    timeline: &TimelineReport,
    series: &SeriesReport,
) {
    let value = |bucket: usize| series.levels.get(bucket).map_or(0, |level| level.max);
    let columns = greatest(timeline, &figure.time, figure.area.width, value);
    let mut sums: Vec<u64> = vec![0; columns.len()];
    let mut layers: Vec<(Ink, &[u64])> = Vec::new();
    for (ledger, values) in &series.parts {
        layers.push((Ink::of(*ledger), values));
    }
    let whole: Vec<u64> = series.levels.iter().map(|level| level.max).collect();
    if layers.is_empty() {
        layers.push((Ink::Other, &whole));
    }
    for (ink, values) in layers {
        let mut edges = Vec::with_capacity(columns.len());
        for (sum, &bucket) in sums.iter_mut().zip(&columns) {
            let below = figure.bytes.y(*sum);
            *sum = sum.saturating_add(in_bucket(values, bucket));
            edges.push((figure.bytes.y(*sum), below));
        }
        sketch.item(Item::Columns { x: figure.area.x, edges, ink, opacity: 0.85 });
    }
}
