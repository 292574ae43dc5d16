//! Marks and ranges: what the process said about its own phases. Capped, and the cap is told.

use rustc_hash::FxHashMap;

use crate::units::Ticks;

/// Marks kept.
pub const MARKS: usize = 2_000;
/// Names of ranges kept.
pub const NAMES: usize = 1_000;
/// Ranges open at the same time that are kept, in one thread or by id.
const OPEN: usize = 4_096;

/// A moment named by the process.
#[derive(Clone, Debug)]
pub struct Mark {
    /// When.
    pub at: Ticks,
    /// In which lane.
    pub lane: u32,
    /// What it said.
    pub text: String,
}

/// All ranges of one name.
#[derive(Clone, Debug)]
pub struct RangeTotal {
    /// The name.
    pub name: String,
    /// Ranges that ended.
    pub count: u64,
    /// Their length together, in ticks.
    pub total: u64,
    /// Ranges that have not ended.
    pub open: u64,
}

/// A range that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// Which name; `None` past the cap.
    name: Option<usize>,
    at: Ticks,
}

/// A thread's open ranges.
#[derive(Debug, Default)]
pub struct Stack {
    begun: Vec<Begun>,
    /// Ranges open above those in `begun`.
    deeper: u64,
}

/// Every mark and range.
#[derive(Debug, Default)]
pub struct Marks {
    /// The first [`MARKS`] marks.
    pub marks: Vec<Mark>,
    /// How many there were.
    pub mark_count: u64,
    /// The first [`NAMES`] names.
    pub ranges: Vec<RangeTotal>,
    /// Ranges that were not counted, because there were too many names or too many open.
    pub uncounted: u64,
    names: FxHashMap<Box<[u8]>, usize>,
    by_id: FxHashMap<u64, Begun>,
}

impl Marks {
    /// Begins to count anew. Ranges that are open stay so, with their names; others are
    /// forgotten. `stacks` are those of every thread.
    pub fn restart<'a>(&mut self, stacks: impl Iterator<Item = &'a mut Stack>) {
        self.marks.clear();
        self.mark_count = 0;
        self.uncounted = 0;
        let mut places = Vec::with_capacity(self.ranges.len());
        let mut kept = Vec::new();
        for range in self.ranges.drain(..) {
            places.push((range.open > 0).then_some(kept.len()));
            if range.open > 0 {
                kept.push(RangeTotal { count: 0, total: 0, ..range });
            }
        }
        self.ranges = kept;
        let place = |old: usize| places.get(old).copied().flatten();
        self.names.retain(|_, index| match place(*index) {
            Some(new) => {
                *index = new;
                true
            }
            None => false,
        });
        let open = stacks.flat_map(|stack| &mut stack.begun).chain(self.by_id.values_mut());
        for begun in open {
            begun.name = begun.name.and_then(place);
        }
    }

    /// A mark.
    pub fn mark(&mut self, lane: u32, at: Ticks, text: &[u8]) {
        self.mark_count += 1;
        if self.marks.len() < MARKS {
            let text = String::from_utf8_lossy(text).into_owned();
            self.marks.push(Mark { at, lane, text });
        }
    }

    fn begin(&mut self, at: Ticks, text: &[u8]) -> Begun {
        let name = self.names.get(text).copied().or_else(|| self.add_name(text));
        match name.and_then(|name| self.ranges.get_mut(name)) {
            Some(range) => range.open += 1,
            None => self.uncounted += 1,
        }
        Begun { name, at }
    }

    fn add_name(&mut self, text: &[u8]) -> Option<usize> {
        let index = self.ranges.len();
        if index >= NAMES {
            return None;
        }
        let name = String::from_utf8_lossy(text).into_owned();
        self.ranges.push(RangeTotal { name, count: 0, total: 0, open: 0 });
        self.names.insert(text.into(), index);
        Some(index)
    }

    fn end(&mut self, begun: Begun, at: Ticks) {
        let Some(range) = begun.name.and_then(|name| self.ranges.get_mut(name)) else { return };
        range.open = range.open.saturating_sub(1);
        range.count += 1;
        range.total = range.total.saturating_add(at.0.saturating_sub(begun.at.0));
    }

    /// A range of a thread begins.
    pub fn push(&mut self, stack: &mut Stack, at: Ticks, text: &[u8]) {
        if stack.begun.len() >= OPEN {
            stack.deeper += 1;
            self.uncounted += 1;
            return;
        }
        let begun = self.begin(at, text);
        stack.begun.push(begun);
    }

    /// A thread's innermost range ends.
    pub fn pop(&mut self, stack: &mut Stack, at: Ticks) {
        if stack.deeper > 0 {
            stack.deeper -= 1;
        } else if let Some(begun) = stack.begun.pop() {
            self.end(begun, at);
        }
    }

    /// A range with an id begins.
    pub fn start(&mut self, id: u64, at: Ticks, text: &[u8]) {
        if self.by_id.len() >= OPEN {
            self.uncounted += 1;
            return;
        }
        let begun = self.begin(at, text);
        self.by_id.insert(id, begun);
    }

    /// That range ends.
    pub fn finish(&mut self, id: u64, at: Ticks) {
        if let Some(begun) = self.by_id.remove(&id) {
            self.end(begun, at);
        }
    }
}
