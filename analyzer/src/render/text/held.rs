//! Who holds memory, of which size, and since when.

use std::io::{self, Write};

use super::page::{Page, at, call, caller};
use crate::analysis::names::SiteName;
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, grouped};
use crate::report::{AgeReport, Composition, HeldReport, SizeClassReport};
use crate::units::{Bytes, Nanos};

/// By ledger and call site; with the oldest block where that is known.
pub fn by_site(
    page: &Page<'_>,
    title: &str,
    nothing: &str,
    held: &[HeldReport],
    out: &mut impl Write,
) -> io::Result<()> {
    if held.is_empty() {
        return if nothing.is_empty() { Ok(()) } else { writeln!(out, "\n{title}\n  {nothing}") };
    }
    writeln!(out, "\n{title}")?;
    let oldest = held.iter().any(|entry| entry.oldest.is_some());
    let mut table = Table::new([
        ("", Right),
        ("bytes", Right),
        ("blocks", Right),
        ("ledger", Left),
        ("call", Left),
        ("called from", Left),
        (if oldest { "oldest at" } else { "" }, Right),
    ]);
    let named = held.iter().take(page.style.top).take_while(|entry| entry.site.others == 0);
    let named = named.count();
    for entry in held.iter().take(named) {
        table.row([
            page.style.size(entry.bytes),
            grouped(entry.bytes.0),
            grouped(entry.count),
            entry.ledger.name().to_owned(),
            call(&entry.site),
            caller(&entry.site),
            if oldest { at(entry.oldest) } else { String::new() },
        ]);
    }
    if let Some(others) = others(held.get(named..).unwrap_or_default()) {
        table.row([
            page.style.size(others.bytes),
            grouped(others.bytes.0),
            grouped(others.count),
            String::new(),
            call(&others.site),
            String::new(),
            if oldest { at(others.oldest) } else { String::new() },
        ]);
    }
    table.write(out)
}

/// What is not shown by name in one row, so that a table adds up to the whole.
fn others(rest: &[HeldReport]) -> Option<HeldReport> {
    let mut all = rest.first()?.clone();
    let sum = |of: fn(&HeldReport) -> u64| rest.iter().map(of).fold(0, u64::saturating_add);
    all.bytes = Bytes(sum(|held| held.bytes.0));
    all.count = sum(|held| held.count);
    all.oldest = rest.iter().filter_map(|held| held.oldest).min();
    all.site = SiteName::others(sum(|held| held.site.others.max(1)));
    Some(all)
}

/// By size and by age. `then` is the moment that ages are counted from.
pub fn by_size_and_age(
    page: &Page<'_>,
    composition: &Composition,
    then: Option<Nanos>,
    out: &mut impl Write,
) -> io::Result<()> {
    by_size(page, &composition.by_size, out)?;
    by_age(page, &composition.by_age, then, out)
}

/// By size of the blocks.
pub fn by_size(
    page: &Page<'_>,
    classes: &[SizeClassReport],
    out: &mut impl Write,
) -> io::Result<()> {
    if classes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nBy size of the blocks")?;
    let mut table = Table::new([
        ("from", Right),
        ("to below", Right),
        ("blocks", Right),
        ("", Right),
        ("", Left),
    ]);
    let most = classes.iter().map(|class| class.bytes.0).max().unwrap_or(0);
    for class in classes {
        table.row([
            page.style.size(class.from),
            page.style.size(Bytes(class.to.0.saturating_add(1))),
            grouped(class.count),
            page.style.size(class.bytes),
            bar(class.bytes.0, most),
        ]);
    }
    table.write(out)
}

fn by_age(
    page: &Page<'_>,
    ages: &[AgeReport],
    then: Option<Nanos>,
    out: &mut impl Write,
) -> io::Result<()> {
    if ages.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nBy the time that the blocks were made")?;
    let mut table = Table::new([
        ("from", Right),
        ("to", Right),
        ("at most so old", Right),
        ("blocks", Right),
        ("", Right),
        ("", Left),
    ]);
    let ages = joined(ages, page.style.top);
    let most = ages.iter().map(|age| age.bytes.0).max().unwrap_or(0);
    for age in &ages {
        let old = then.map(|then| Nanos(then.0.saturating_sub(age.from.0)));
        table.row([
            age.from.to_string(),
            age.to.to_string(),
            old.map_or_else(|| "-".to_owned(), |old| old.to_string()),
            grouped(age.count),
            page.style.size(age.bytes),
            bar(age.bytes.0, most),
        ]);
    }
    table.write(out)
}

/// The stretches in so many rows: neighbours with the least bytes stand together, and nothing is
/// left out.
fn joined(ages: &[AgeReport], rows: usize) -> Vec<AgeReport> {
    let mut ages = ages.to_vec();
    while ages.len() > rows.max(1) {
        let both = |pair: &[AgeReport]| {
            pair.iter().fold(0_u64, |sum, age| sum.saturating_add(age.bytes.0))
        };
        let least = ages.windows(2).enumerate().min_by_key(|(_, pair)| both(pair));
        let Some(place) = least.map(|(place, _)| place) else { break };
        let next = ages.remove(place + 1);
        if let Some(age) = ages.get_mut(place) {
            age.to = next.to;
            age.count = age.count.saturating_add(next.count);
            age.bytes = Bytes(age.bytes.0.saturating_add(next.bytes.0));
        }
    }
    ages
}

/// A bar of up to 20 letters.
#[must_use]
pub fn bar(value: u64, most: u64) -> String {
    const WIDTH: u128 = 20;
    let length = u128::from(value) * WIDTH / u128::from(most.max(1));
    "█".repeat(usize::try_from(length).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_few_bytes_join_their_neighbours_and_none_is_lost() {
        let age = |number: i64, bytes| AgeReport {
            from: Nanos(number * 10),
            to: Nanos(number * 10 + 10),
            count: 1,
            bytes: Bytes(bytes),
        };
        let ages: Vec<AgeReport> = [5, 1, 2, 9, 4, 1]
            .into_iter()
            .zip(0..)
            .map(|(bytes, number)| age(number, bytes))
            .collect();
        for rows in 1..8 {
            let shown = joined(&ages, rows);
            assert_eq!(shown.len(), rows.min(6));
            assert_eq!(shown.iter().map(|age| age.bytes.0).sum::<u64>(), 22);
            assert_eq!(shown.iter().map(|age| age.count).sum::<u64>(), 6);
            let ends = |age: Option<&AgeReport>| age.map(|age| (age.from, age.to));
            assert_eq!(ends(shown.first()).unwrap().0, Nanos(0));
            assert_eq!(ends(shown.last()).unwrap().1, Nanos(60));
        }
        assert_eq!(joined(&ages, 3).iter().map(|age| age.bytes.0).collect::<Vec<_>>(), [8, 9, 5]);
    }
}
