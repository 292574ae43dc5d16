//! Pictures: well formed, true to their figures, and not broken by what a log says.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod drawn;
mod support;

use std::fs;
use std::path::Path;

use drawn::{Made, empty, full, held, series, site, sum};
use gmmtrace::live::Ledger;
use gmmtrace::render::picture::svg::Colours;
use gmmtrace::render::picture::{
    Area, Facts, Ink, Item, Picture, Scene, Size, Subject, Theme, png, svg,
};
use gmmtrace::report::{Figure, MarkReport};
use gmmtrace::units::{Bytes, Nanos};
use gmmtrace_format::Kind;
use support::{Writer, event};

const SMALLEST: Size = Size { width: 320, height: 240 };

/// Both themes of every picture as SVG, parsed.
fn documents(made: &Made, size: Size) -> Vec<String> {
    let mut all = Vec::new();
    for &picture in Picture::ALL {
        let scene = picture.draw(&made.facts(), size);
        for colours in [Colours::Of(Theme::Light), Colours::Of(Theme::Dark), Colours::Variables] {
            let text = svg::write(&scene, colours);
            let parsed = roxmltree::Document::parse(&text).map(|_| ());
            assert_eq!(parsed, Ok(()), "{}", picture.name());
            all.push(text);
        }
    }
    all
}

fn words(scene: &Scene) -> String {
    let text = |item: &Item| match item {
        Item::Text(text) => Some(text.words.clone()),
        _ => None,
    };
    scene.items.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// The upper edges of the columns in an ink, and where they begin.
fn tops(scene: &Scene, wanted: Ink) -> (i32, Vec<i32>) {
    let found = scene.items.iter().find_map(|item| match item {
        Item::Columns { x, edges, ink, .. } if *ink == wanted => Some((*x, edges)),
        _ => None,
    });
    let (x, edges) = found.unwrap();
    (x, edges.iter().map(|edge| edge.0).collect())
}

fn peak_dot(scene: &Scene) -> (i32, i32) {
    let dot = scene.items.iter().find_map(|item| match item {
        Item::Dot { centre, ink: Ink::Text, .. } => Some(*centre),
        _ => None,
    });
    dot.unwrap()
}

/// Pixels of a PNG as red, green, blue.
fn pixels(file: &[u8]) -> (Size, Vec<[u8; 3]>) {
    let mut reader = png_reader(file);
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let (pixels, rest) = bytes.as_chunks::<3>();
    assert!(rest.is_empty());
    (Size { width: info.width, height: info.height }, pixels.to_vec())
}

fn png_reader(file: &[u8]) -> ::png::Reader<std::io::Cursor<&[u8]>> {
    ::png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap()
}

fn rgb(ink: Ink, theme: Theme) -> [u8; 3] {
    let (red, green, blue) = ink.rgb(theme);
    [red, green, blue]
}

#[test]
fn every_picture_is_well_formed_in_every_size() {
    for size in [SMALLEST, Size::default(), Size { width: 480, height: 1600 }] {
        for made in [empty(), full(700, 0), full(90, 8)] {
            documents(&made, size);
        }
    }
}

#[test]
fn a_process_without_gpu_memory_has_pictures_that_say_so() {
    let made = empty();
    let said = |picture: Picture| words(&picture.draw(&made.facts(), Size::default()));
    for picture in [Picture::Timeline, Picture::Peak] {
        assert!(said(picture).contains("No GPU memory was allocated."), "{}", picture.name());
    }
    assert!(said(Picture::Fragmentation).contains("No device memory was allocated"));
    assert!(said(Picture::Copies).contains("Nothing was copied or set."));
}

#[test]
fn the_stack_is_as_high_as_the_greatest_value() {
    for buckets in [1, 50, 700, 1_024, 5_000] {
        let made = full(buckets, 0);
        let scene = Picture::Timeline.draw(&made.facts(), Size::default());
        let (_, tops) = tops(&scene, Ink::VmmPhysical);
        let (_, dot) = peak_dot(&scene);
        assert_eq!(tops.into_iter().min(), Some(dot), "{buckets}");
    }
}

#[test]
fn a_peak_of_one_bucket_among_many_is_seen() {
    let mut made = empty();
    made.timeline.edges = (0..=5_000).map(|index| Nanos(index * 1_000)).collect();
    let mut values = vec![1 << 20; 5_000];
    values[3_333] = 1 << 30;
    sum(&mut made, vec![(Ledger::Device, values)], Vec::new());
    let scene = Picture::Timeline.draw(&made.facts(), Size::default());
    let (x, tops) = tops(&scene, Ink::Device);
    let (column, height) = peak_dot(&scene);
    assert_eq!(tops[usize::try_from(column - x).unwrap()], height);
    assert!(tops.iter().filter(|&&top| top == height).count() <= 2);
}

#[test]
fn a_png_has_the_size_asked_for_and_the_colours_of_its_theme() {
    let made = full(300, 0);
    for theme in [Theme::Light, Theme::Dark] {
        for size in [SMALLEST, Size { width: 1001, height: 777 }] {
            let scene = Picture::Timeline.draw(&made.facts(), size);
            let (found, pixels) = pixels(&png::write(&scene, theme).unwrap());
            assert_eq!(found, size);
            assert_eq!(pixels.first(), Some(&rgb(Ink::Ground, theme)));
            assert_eq!(pixels.last(), Some(&rgb(Ink::Ground, theme)));
            let ground = pixels.iter().filter(|&&pixel| pixel == rgb(Ink::Ground, theme)).count();
            assert!(ground < pixels.len() * 19 / 20, "something is drawn");
        }
    }
}

#[test]
fn in_a_png_too_the_stack_ends_at_the_greatest_value() {
    let mut made = empty();
    made.timeline.edges = [0, 10, 20].map(Nanos).to_vec();
    sum(&mut made, vec![(Ledger::Device, vec![3 << 20, 7 << 20])], Vec::new());
    let scene = Picture::Timeline.draw(&made.facts(), Size::default());
    let (size, pixels) = pixels(&png::write(&scene, Theme::Light).unwrap());
    let (x, tops) = tops(&scene, Ink::Device);
    let at = |x: i32, y: i32| {
        pixels[usize::try_from(y).unwrap() * size.width as usize + usize::try_from(x).unwrap()]
    };
    let blue = |pixel: [u8; 3]| pixel[2] > pixel[0].saturating_add(60);
    for column in [3, tops.len() - 3] {
        let (x, top) = (x + i32::try_from(column).unwrap(), tops[column]);
        assert!(blue(at(x, top)), "{column}");
        assert!(!blue(at(x, top - 1)), "{column}");
    }
}

#[test]
fn a_bound_is_said_on_every_picture() {
    let mut made = full(100, 0);
    made.subject.bound = true;
    for &picture in Picture::ALL {
        for size in [SMALLEST, Size::default()] {
            let said = words(&picture.draw(&made.facts(), size));
            assert!(said.contains("bound: events are missing"), "{}", picture.name());
        }
    }
}

#[test]
fn nothing_stands_outside_of_a_picture() {
    for size in [SMALLEST, Size::default(), Size { width: 2_000, height: 400 }] {
        for made in [full(500, 0), full(60, 8)] {
            for &picture in Picture::ALL {
                let scene = picture.draw(&made.facts(), size);
                let (width, height) = (size.width as i32, size.height as i32);
                let inside = |area: &Area| {
                    area.x >= 0 && area.y >= 0 && area.right() <= width && area.bottom() <= height
                };
                for item in &scene.items {
                    let within = match item {
                        Item::Box(area, ..) => inside(area),
                        Item::Text(text) => {
                            let wide = gmmtrace::render::picture::font::width(
                                &text.words,
                                text.size,
                                text.bold,
                            );
                            let left = match text.anchor {
                                gmmtrace::render::picture::Anchor::Start => text.x,
                                gmmtrace::render::picture::Anchor::Middle => text.x - wide / 2,
                                gmmtrace::render::picture::Anchor::End => text.x - wide,
                            };
                            left >= 0 && left + wide <= width && text.baseline <= height
                        }
                        _ => true,
                    };
                    assert!(within, "{} {size:?} {item:?}", picture.name());
                }
            }
        }
    }
}

#[test]
fn names_of_any_kind_do_no_harm() {
    let evil = [
        "</text><script>alert(1)</script>".to_owned(),
        "\" onmouseover=\"alert(1)".to_owned(),
        "\0\u{1b}[2J\u{85}\u{fffe}\u{ffff}\u{202e}".to_owned(),
        "x".repeat(1 << 20),
        "\u{1f980}".repeat(1 << 18),
        String::new(),
    ];
    let mut made = full(100, 0);
    made.subject.process = evil.join(" ");
    let held_by = |name: &String| held(Ledger::Device, site(name, name, Some(name)), 1, 1 << 20);
    made.total.sums[0].at_peak.held = evil.iter().map(held_by).collect();
    made.marks = evil
        .iter()
        .enumerate()
        .map(|(index, text)| MarkReport {
            at: Nanos(index as i64 * 100_000_000),
            text: text.clone(),
            thread: None,
        })
        .collect();
    for text in documents(&made, Size::default()) {
        assert!(text.len() < 100_000, "{}", text.len());
        assert!(!text.contains("<script"));
        assert!(!text.contains(['\0', '\u{1b}', '\u{202e}', '\u{85}']));
    }
}

#[test]
fn extreme_values_are_drawn_in_bounded_time() {
    let max = u64::MAX;
    for edges in [
        vec![0, 0],
        vec![0, 1],
        vec![i64::MIN, 0, i64::MAX],
        vec![5, 5, 5],
        vec![i64::MAX, i64::MAX],
        vec![0, i64::MAX],
    ] {
        let mut made = empty();
        let buckets = edges.len() - 1;
        made.timeline.edges = edges.into_iter().map(Nanos).collect();
        let parts =
            vec![(Ledger::Device, vec![max; buckets]), (Ledger::AsyncPool, vec![max; buckets])];
        sum(&mut made, parts, vec![held(Ledger::Device, site("", "", None), max, max)]);
        for figure in [Figure::Touched, Figure::SampledUsed, Figure::Ledger(Ledger::Pinned)] {
            made.timeline.series.push(series(figure, &vec![max; buckets]));
        }
        made.total.fragmentation.device.requested = Bytes(max);
        made.total.fragmentation.device.touched = Bytes(max);
        made.total.copies = full(2, 0).total.copies;
        for (_, moved) in &mut made.total.copies {
            moved.moved.bytes = max;
            moved.moved.count = max;
            (moved.total, moved.max) = (Nanos(i64::MAX), Nanos(i64::MAX));
        }
        for &picture in Picture::ALL {
            let scene = picture.draw(&made.facts(), Size::default());
            assert!(scene.items.len() < 500, "{} {}", picture.name(), scene.items.len());
            let _ = svg::write(&scene, Colours::Of(Theme::Light));
        }
    }
}

#[test]
fn a_picture_within_a_page_has_the_colours_of_the_page() {
    let text = documents(&full(40, 2), Size::default());
    for text in text.iter().skip(2).step_by(3) {
        assert!(!text.contains("\"#"), "no colour of its own");
        assert!(text.contains("var(--device)") && text.contains("var(--ground)"));
    }
}

/// Two devices, every ledger, marks, copies and a hole in an address range.
fn a_log_of_two_devices() -> Writer {
    let mut events =
        vec![event(Kind::ContextCreate, 1, &[0xc0, 0]), event(Kind::ContextCreate, 8, &[0xc1, 1])];
    for step in 0..40u64 {
        let (at, context) = (100 + step * 1_000, 0xc0 + step % 2);
        let address = 0x7000_0000_0000 + (step << 30);
        events.extend([
            event(Kind::ContextCurrent, at, &[context]).site(0),
            event(Kind::DeviceAlloc, at + 10, &[address, (step + 1) << 20]),
            event(Kind::PoolAlloc, at + 20, &[address + (1 << 28), step << 19, 0, 0]),
            event(Kind::PinnedAlloc, at + 30, &[address + (1 << 29), 1 << 20, 0]),
            event(Kind::ManagedAlloc, at + 40, &[address + (3 << 28), 1 << 18, 1]),
            event(Kind::Copy, at + 50, &[1, address, address + (1 << 29), 1 << 19, 0]),
            event(Kind::Set, at + 60, &[0, address, 1 << 12, 0]),
        ]);
        if step % 3 == 2 {
            events.push(event(Kind::PoolFree, at + 70, &[address + (1 << 28), 0]));
        }
        if step % 8 == 0 {
            let text = format!("batch {step}");
            events.push(event(Kind::Mark, at + 80, &[0]).site(0).text(&text));
        }
    }
    let range = 0x1_0000_0000;
    events.push(event(Kind::AddressReserve, 50_000, &[range, 1 << 30]));
    for piece in [0u64, 1, 3] {
        let (handle, address) = (0xa0 + piece, range + (piece << 21));
        events.push(event(Kind::PhysicalCreate, 50_100 + piece * 50, &[handle, 1 << 21, 1, 0]));
        events.push(event(Kind::Map, 50_120 + piece * 50, &[address, 1 << 21, 0, handle]));
    }
    Writer { gpus: 2, ..Writer::of(events) }
}

#[test]
fn a_process_on_two_devices_has_a_figure_for_each() {
    let report = support::read(&a_log_of_two_devices().log());
    let subject = Subject::of(&report);
    let facts = Facts::of(&subject, &report);
    let scene = Picture::Timeline.draw(&facts, Size::default());
    let said = words(&scene);
    for wanted in ["GPU 0, ", "GPU 1, ", "batch 0", "async_pool", "vmm_physical", "managed"] {
        assert!(said.contains(wanted), "{wanted}\n{said}");
    }
    let said = words(&Picture::Fragmentation.draw(&facts, Size::default()));
    assert!(said.contains("in holes"), "{said}");
    let said = words(&Picture::Copies.draw(&facts, Size::default()));
    assert!(said.contains("host to device, synchronous, pinned"), "{said}");
    if let Some(folder) = std::env::var_os("GMMTRACE_LOOK") {
        fs::write(Path::new(&folder).join("two.gmmt"), a_log_of_two_devices().bytes()).unwrap();
    }
}

#[test]
fn logs_of_one_event_or_none_have_pictures() {
    let one = Writer::of(vec![event(Kind::DeviceAlloc, 0, &[0x1000, u64::MAX]).lasting(0)]);
    for log in [Writer::default(), one] {
        let report = support::read(&log.log());
        let subject = Subject::of(&report);
        for &picture in Picture::ALL {
            let scene = picture.draw(&Facts::of(&subject, &report), Size::default());
            assert!(png::write(&scene, Theme::Dark).unwrap().len() > 1_000);
        }
    }
}

#[test]
fn the_pictures_in_the_documents_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let log = root.join("tests/fixtures/pytorch-infer.gmmt");
    let report = gmmtrace::cli::report::read(&log).unwrap();
    let subject = Subject::of(&report);
    let folder = root.join("docs/pictures");
    for &picture in Picture::ALL {
        for (theme, name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
            let size = Size { width: 1000, height: 560 };
            let scene = picture.draw(&Facts::of(&subject, &report), size);
            let text = svg::write(&scene, Colours::Of(theme));
            assert!(text.len() < 150_000);
            let path = folder.join(format!("{}-{name}.svg", picture.name()));
            if std::env::var_os("GMMTRACE_BLESS").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert!(found == text, "{} is not up to date: GMMTRACE_BLESS=1", path.display());
        }
    }
}
