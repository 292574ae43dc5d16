//! What a page tells beside the pointer: places in its pictures, and the values behind them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::render::picture::{Hover, Ink, Scene};
use crate::report::{Figure, SeriesReport, TimelineReport};

/// The places of all pictures of a page.
pub struct Hovers<'a> {
    timeline: &'a TimelineReport,
    places: Vec<Value>,
    /// Series that some place shows, by their index in the timeline.
    series: BTreeMap<usize, Value>,
}

impl<'a> Hovers<'a> {
    /// No place yet.
    pub const fn new(timeline: &'a TimelineReport) -> Self {
        Self { timeline, places: Vec::new(), series: BTreeMap::new() }
    }

    /// Transparent rectangles over what can be pointed at, to stand last in a picture.
    pub fn places(&mut self, scene: &Scene) -> String {
        let mut out = String::new();
        for (area, hover) in &scene.hovers {
            let _ = writeln!(
                out,
                "<rect class=\"hover\" tabindex=\"0\" data-hover=\"{}\" x=\"{}\" y=\"{}\" \
                 width=\"{}\" height=\"{}\"/>",
                self.places.len(),
                area.x,
                area.y,
                area.width.max(0),
                area.height.max(0),
            );
            let place = self.place(hover);
            self.places.push(place);
        }
        out
    }

    fn place(&mut self, hover: &Hover) -> Value {
        match hover {
            Hover::Rows(rows) => json!({ "rows": rows }),
            Hover::Columns(columns) => json!({ "columns": columns }),
            Hover::Time { from, to, series } => {
                for &index in series {
                    if let Some(shown) = self.timeline.series.get(index) {
                        self.series.entry(index).or_insert_with(|| values(shown));
                    }
                }
                json!({ "from": from.0, "to": to.0, "series": series })
            }
        }
    }

    /// The values, for the page's script.
    pub fn data(&self) -> Value {
        let series = self.series.iter().map(|(index, values)| (index.to_string(), values.clone()));
        let calls = self.timeline.calls.iter();
        json!({
            "places": self.places,
            "edges": self.timeline.edges.iter().map(|edge| edge.0).collect::<Vec<i64>>(),
            "series": series.collect::<serde_json::Map<String, Value>>(),
            "calls": calls.map(|calls| [calls.alloc.0, calls.free.0, calls.copy.0])
                .collect::<Vec<_>>(),
        })
    }
}

fn values(series: &SeriesReport) -> Value {
    let ink = match series.figure {
        Figure::Ledger(ledger) => Ink::of(ledger),
        Figure::SampledProcess => Ink::Process,
        Figure::SampledUsed => Ink::Used,
        Figure::Touched | Figure::TorchReserved => Ink::Waste,
        Figure::Sum(_) => Ink::Text,
    };
    let used = series.parts.iter().filter(|(_, values)| values.iter().any(|&value| value > 0));
    let parts = used.map(|(ledger, values)| {
        json!({ "name": ledger.name(), "ink": Ink::of(*ledger).name(), "max": values })
    });
    json!({
        "name": series.figure.name(),
        "ink": ink.name(),
        "max": series.levels.iter().map(|level| level.max).collect::<Vec<u64>>(),
        "min": series.levels.iter().map(|level| level.min).collect::<Vec<u64>>(),
        "parts": parts.collect::<Vec<Value>>(),
    })
}
