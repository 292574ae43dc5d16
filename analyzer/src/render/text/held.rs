//! Who holds memory, of which size, and since when.

use std::io::{self, Write};

use super::page::{Page, at, call, library};
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
        ("library", Left),
        (if oldest { "oldest at" } else { "" }, Right),
    ]);
    let named = held.iter().take(page.style.top).take_while(|entry| entry.site.others == 0);
    let named = named.count();
    for entry in held.iter().take(named) {
        table.row([
            entry.bytes.to_string(),
            grouped(entry.bytes.0),
            grouped(entry.count),
            entry.ledger.name().to_owned(),
            call(&entry.site),
            library(&entry.site),
            if oldest { at(entry.oldest) } else { String::new() },
        ]);
    }
    if let Some(others) = others(held.get(named..).unwrap_or_default()) {
        table.row([
            others.bytes.to_string(),
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
            class.from.to_string(),
            Bytes(class.to.0.saturating_add(1)).to_string(),
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
    let most = ages.iter().map(|age| age.bytes.0).max().unwrap_or(0);
    for age in largest(ages, page.style.top) {
        let old = then.map(|then| Nanos(then.0.saturating_sub(age.from.0)));
        table.row([
            age.from.to_string(),
            age.to.to_string(),
            at(old),
            grouped(age.count),
            page.style.size(age.bytes),
            bar(age.bytes.0, most),
        ]);
    }
    table.write(out)?;
    page.more(ages.len(), out)
}

/// The entries with the most bytes, in the order of time.
fn largest(ages: &[AgeReport], count: usize) -> Vec<AgeReport> {
    let mut ages = ages.to_vec();
    ages.sort_by_key(|age| std::cmp::Reverse(age.bytes));
    ages.truncate(count);
    ages.sort_by_key(|age| age.from);
    ages
}

/// A bar of up to 20 letters.
#[must_use]
pub fn bar(value: u64, most: u64) -> String {
    const WIDTH: u128 = 20;
    let length = u128::from(value) * WIDTH / u128::from(most.max(1));
    "█".repeat(usize::try_from(length).unwrap_or(0))
}
