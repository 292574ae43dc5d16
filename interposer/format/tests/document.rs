//! `docs/trace-format.md` is normative, so it is held against the code: every table has exactly
//! the code's rows, and every worked example decodes to what stands beside its bytes and encodes
//! to those bytes again.
//!
//! An example is a fenced block whose info string is `event`, `definition`, `file-header`,
//! `chunk-header` or `kinds`. Each line holds bytes, a field and its value.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use gmmtrace_format::definition::{self, COMPLETE, Definition, Definitions, Layer, Resolver};
use gmmtrace_format::event::{self, Flags};
use gmmtrace_format::header::Item;
use gmmtrace_format::kind::{self, Effect, MAX_OPERANDS, REGISTERS, copy};
use gmmtrace_format::layout::{self, Clock, Counter, State, chunk, file};
use gmmtrace_format::varint::{GRANULE, Input, Output};
use gmmtrace_format::{ChunkHeader, Codec, Event, FileHeader, Kind, Operand, Shapes};

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace-format.md");
    fs::read_to_string(path).expect("docs/trace-format.md is there")
}

/// Cells of the first table behind a heading, without its two head lines.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = document();
    let mut lines = text.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "no heading {heading:?}");
    lines
        .take_while(|line| !line.starts_with('#'))
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().replace('`', "")).collect()
        })
        .collect()
}

/// Holds the first cells of a table's rows against what the code says.
fn holds(heading: &str, expected: &[Vec<String>]) {
    let found = table(heading);
    let told: Vec<_> = found
        .iter()
        .zip(expected.iter().chain(std::iter::repeat(&Vec::new())))
        .map(|(row, expected)| row.iter().take(expected.len()).cloned().collect::<Vec<_>>())
        .collect();
    assert_eq!(told, expected, "the table under {heading:?}");
}

macro_rules! row {
    ($($cell:expr),*) => { vec![$($cell.to_string()),*] };
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// Blocks with this info string: their lines.
fn blocks(kind: &str) -> Vec<Vec<String>> {
    let text = document();
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{kind}") {
            let block = lines.by_ref().take_while(|line| *line != "```");
            found.push(block.map(str::to_owned).collect());
        }
    }
    assert!(!found.is_empty(), "no example of {kind}");
    found
}

/// The bytes at the start of a line, and what stands behind them.
fn split(line: &str) -> (Vec<u8>, &str) {
    let (bytes, rest) = line.split_once("  ").unwrap_or((line, ""));
    let bytes = bytes.split(' ').map(|byte| {
        assert_eq!(byte.len(), 2, "no byte in {line:?}");
        u8::from_str_radix(byte, 16).unwrap_or_else(|_| panic!("no byte in {line:?}"))
    });
    (bytes.collect(), rest.trim())
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Writes an example: one line for each field.
#[derive(Default)]
struct Example(String);

impl Example {
    fn field(&mut self, bytes: &[u8], name: &str, value: &str) {
        let bytes = hex(bytes);
        let line = format!("{bytes:<34}  {name:<13}  {value}");
        writeln!(self.0, "{}", line.trim_end()).expect("room");
    }
}

fn quoted(text: &[u8]) -> String {
    format!("{:?}", std::str::from_utf8(text).expect("text in an example"))
}

// ---- Tables ---------------------------------------------------------------------------------

#[test]
fn sizes_are_those_of_the_code() {
    let rows = [
        ("CHUNK_LOG2", usize::from(layout::CHUNK_LOG2)),
        ("CHUNK_SIZE", layout::CHUNK_SIZE),
        ("CHUNK_HEADER", layout::CHUNK_HEADER),
        ("PAYLOAD", layout::PAYLOAD),
        ("COUNTERS", layout::COUNTERS),
        ("MAX_OPERANDS", MAX_OPERANDS),
        ("REGISTERS", REGISTERS),
        ("GRANULE", GRANULE as usize),
        ("MAX_PLAIN", event::MAX_PLAIN),
        ("MAX_TEXT", event::MAX_TEXT),
        ("ALIGN", definition::ALIGN),
        ("MAX_DEFINITION", definition::MAX_DEFINITION),
    ];
    holds("## Sizes", &rows.map(|(name, value)| row![name, value]));
}

#[test]
fn the_version_is_that_of_the_code() {
    let told = format!("This is version **{}.{}**", layout::MAJOR, layout::MINOR);
    assert!(document().contains(&told), "{told}");
}

/// Offset, bytes and name of every field.
const FILE_FIELDS: [(usize, usize, &str); 20] = [
    (file::MAGIC, 8, "magic"),
    (file::MAJOR, 2, "major"),
    (file::MINOR, 2, "minor"),
    (file::CHUNK_LOG2, 1, "chunk_log2"),
    (file::CLOCK, 1, "clock"),
    (file::ITEMS_LENGTH, 4, "items_length"),
    (file::PID, 4, "pid"),
    (file::PARENT_PID, 4, "parent_pid"),
    (file::GENERATION, 4, "generation"),
    (file::LOAD_TICKS, 8, "load_ticks"),
    (file::LOAD_MONOTONIC, 8, "load_monotonic"),
    (file::START_TICKS, 8, "start_ticks"),
    (file::START_MONOTONIC, 8, "start_monotonic"),
    (file::START_REALTIME, 8, "start_realtime"),
    (file::LAST_TICKS, 8, "last_ticks"),
    (file::LAST_MONOTONIC, 8, "last_monotonic"),
    (file::LAST_SEQUENCE, 8, "last_sequence"),
    (file::EXIT_TICKS, 8, "exit_ticks"),
    (file::PROCESS_START, 8, "process_start"),
    (file::BOOT_ID, 16, "boot_id"),
];

/// What follows them.
const FILE_REST: [(usize, usize, &str); 4] = [
    (file::PID_NAMESPACE, 8, "pid_namespace"),
    (file::SLOTS, 8, "slots"),
    (file::COUNTERS, 8 * layout::COUNTERS, "counters"),
    (file::ITEMS, layout::CHUNK_SIZE - file::ITEMS, "items"),
];

const CHUNK_FIELDS: [(usize, usize, &str); 13] = [
    (chunk::STATE, 4, "state"),
    (chunk::COMMITTED, 4, "committed"),
    (chunk::TID, 4, "tid"),
    (chunk::THREAD, 4, "thread"),
    (chunk::SEQUENCE, 4, "sequence"),
    (chunk::CONTENT, 4, "content"),
    (chunk::BASE, 8, "base"),
    (chunk::TAKEN_TICKS, 8, "taken_ticks"),
    (chunk::TAKEN_MONOTONIC, 8, "taken_monotonic"),
    (chunk::RUNTIME_CALL, 8, "runtime_call"),
    (chunk::RUNTIME_CALL + 8, 8, "runtime_argument"),
    (chunk::DRIVER_CALL, 8, "driver_call"),
    (chunk::DRIVER_CALL + 8, 8, "driver_argument"),
];

#[test]
fn header_fields_stand_where_the_code_puts_them() {
    let rows = |fields: &[(usize, usize, &str)]| {
        fields.iter().map(|&(at, size, name)| row![at, size, name]).collect::<Vec<_>>()
    };
    let mut fields = rows(&FILE_FIELDS);
    fields.extend(rows(&FILE_REST));
    holds("## File header", &fields);
    holds("## Chunk header", &rows(&CHUNK_FIELDS));
}

#[test]
fn items_are_those_of_the_code() {
    let known = (0..=u16::MAX).filter_map(|tag| Item::from_tag(tag).map(|item| (tag, item)));
    let rows: Vec<_> = known.map(|(tag, item)| row![tag, snake(&format!("{item:?}"))]).collect();
    holds("### Items", &rows);
}

#[test]
fn counters_are_those_of_the_code() {
    let rows: Vec<_> = Counter::ALL
        .iter()
        .map(|&counter| {
            let loss = if counter.is_loss() { "yes" } else { "no" };
            row![counter as usize, counter.name(), loss, counter.meaning()]
        })
        .collect();
    holds("### Counters", &rows);
}

#[test]
fn states_and_clocks_are_those_of_the_code() {
    let states: Vec<_> = (0..=u16::MAX)
        .filter_map(|word| State::from_word(word.into()).map(|state| (word, state)))
        .map(|(word, state)| row![word, format!("{state:?}")])
        .collect();
    holds("## Chunk states", &states);
    let clocks = [Clock::TimeStampCounter, Clock::Monotonic];
    holds("### Clocks", &clocks.map(|clock| row![clock as u8, snake(&format!("{clock:?}"))]));
    let contents =
        [("events", layout::CONTENT_EVENTS), ("definitions", layout::CONTENT_DEFINITIONS)];
    holds("### Contents", &contents.map(|(name, content)| row![content, name]));
}

const FLAGS: [(Flags, &str); 5] = [
    (Flags::FAILED, "failed"),
    (Flags::CALL_FIRST, "call_first"),
    (Flags::CALL_NEXT, "call_next"),
    (Flags::CUT, "cut"),
    (Flags::CAPTURED, "captured"),
];

#[test]
fn flags_are_those_of_the_code() {
    holds("### Flags", &FLAGS.map(|(flag, name)| row![flag.0, name]));
}

fn operand_name(operand: Operand) -> String {
    snake(&format!("{operand:?}"))
}

#[test]
fn operands_are_those_of_the_code() {
    let rows: Vec<_> = (0..=u8::MAX)
        .filter_map(|code| Operand::from_code(code).map(|operand| (code, operand)))
        .map(|(code, operand)| {
            let encoding = match operand {
                Operand::Number => "number",
                Operand::Signed => "signed",
                Operand::Size => "scaled",
                Operand::Text => "text",
                _ => "scaled_signed",
            };
            let register = operand.register().map_or("–".to_owned(), |index| index.to_string());
            row![code, operand_name(operand), encoding, register]
        })
        .collect();
    holds("### Operands", &rows);
}

#[test]
fn kinds_are_those_of_the_code() {
    let rows: Vec<_> = Kind::ALL
        .iter()
        .map(|&kind| {
            let effect = if kind.effect() == Effect::AtStart { "start" } else { "end" };
            let operands = kind.operands().iter().zip(kind.roles());
            let operands: Vec<_> = operands
                .map(|(&operand, role)| format!("{role}: {}", operand_name(operand)))
                .collect();
            let operands = if operands.is_empty() { "–".into() } else { operands.join(", ") };
            row![format!("{:#04x}", kind as u8), kind.name(), effect, operands]
        })
        .collect();
    holds("### Kinds", &rows);
}

#[test]
fn copy_directions_are_those_of_the_code() {
    let rows = [
        (copy::UNIFIED, "unified"),
        (copy::HOST_TO_DEVICE, "host_to_device"),
        (copy::DEVICE_TO_HOST, "device_to_host"),
        (copy::HOST_TO_ARRAY, "host_to_array"),
        (copy::ARRAY_TO_HOST, "array_to_host"),
        (copy::ARRAY_TO_ARRAY, "array_to_array"),
        (copy::ARRAY_TO_DEVICE, "array_to_device"),
        (copy::DEVICE_TO_ARRAY, "device_to_array"),
        (copy::DEVICE_TO_DEVICE, "device_to_device"),
        (copy::HOST_TO_HOST, "host_to_host"),
        (copy::PEER, "peer"),
    ];
    holds("### Copy modes", &rows.map(|(number, name)| row![number, name]));
    assert_eq!((copy::ASYNCHRONOUS, copy::DIRECTION), (16, 15));
}

#[test]
fn encoded_numbers_are_those_of_the_code() {
    for row in table("### Encoded numbers") {
        let [encoding, value, bytes] = row.as_slice() else { panic!("{row:?}") };
        let (bytes, _) = split(bytes);
        let signed = || value.parse::<i64>().expect("a signed number");
        let unsigned = || value.parse::<u64>().expect("a number");
        let (mut input, mut out) = (Input::new(&bytes), [0; 10]);
        let mut output = Output::new(&mut out);
        let read = match encoding.as_str() {
            "number" => input.number().map(|read| read == unsigned()),
            "signed" => input.signed().map(|read| read == signed()),
            "scaled" => input.scaled().map(|read| read == unsigned()),
            "scaled_signed" => input.scaled_signed().map(|read| read == signed()),
            other => panic!("{other}"),
        };
        assert_eq!((read, input.is_empty()), (Ok(true), true), "{row:?}");
        match encoding.as_str() {
            "number" => output.number(unsigned()),
            "signed" => output.signed(signed()),
            "scaled" => output.scaled(unsigned()),
            _ => output.scaled_signed(signed()),
        }
        let length = output.finish().expect("room");
        assert_eq!(hex(&out[..length]), hex(&bytes), "{row:?}");
    }
}

/// How a definition's field is written.
#[derive(Clone, Copy)]
enum Field {
    Number,
    Hex,
    Text,
    Bytes,
}

/// The fields of a kind of definition, in order; `None` for kinds that the code does not know.
fn fields_of(kind: u8) -> Option<(&'static str, &'static [(&'static str, Field)])> {
    use Field::{Bytes, Hex, Number, Text};
    Some(match Definition::decode(kind, &[0; 64]).expect("64 bytes are enough for zeros") {
        Definition::Api { .. } => {
            ("api", &[("id", Number), ("layer", Number), ("name", Text)] as &[_])
        }
        Definition::Module { .. } => (
            "module",
            &[("id", Number), ("start", Hex), ("end", Hex), ("build_id", Bytes), ("path", Text)],
        ),
        Definition::Site { .. } => (
            "site",
            &[
                ("id", Number),
                ("api", Number),
                ("outer", Number),
                ("address", Hex),
                ("module", Number),
            ],
        ),
        Definition::Lookup { .. } => (
            "lookup",
            &[
                ("resolver", Number),
                ("hooked", Number),
                ("version", Number),
                ("flags", Number),
                ("count", Number),
                ("module", Number),
                ("name", Text),
            ],
        ),
        Definition::Remark { .. } => ("remark", &[("text", Text)]),
        Definition::Gpu { .. } => {
            ("gpu", &[("index", Number), ("total", Number), ("uuid", Text), ("name", Text)])
        }
        Definition::Driver { .. } => ("driver", &[("version", Text)]),
        Definition::Code { .. } => {
            ("code", &[("id", Number), ("first_line", Number), ("file", Text), ("name", Text)])
        }
        Definition::CodeLines { .. } => (
            "code_lines",
            &[
                ("code", Number),
                ("version", Number),
                ("total", Number),
                ("offset", Number),
                ("bytes", Bytes),
            ],
        ),
        Definition::PythonFrame { .. } => {
            ("python_frame", &[("id", Number), ("code", Number), ("at", Number), ("entry", Number)])
        }
        Definition::NativeFrame { .. } => {
            ("native_frame", &[("id", Number), ("address", Hex), ("module", Number)])
        }
        Definition::FrameGap { .. } => ("frame_gap", &[("id", Number), ("reason", Number)]),
        Definition::Node { .. } => {
            ("node", &[("id", Number), ("parent", Number), ("frame", Number)])
        }
        Definition::Stack { .. } => {
            ("stack", &[("id", Number), ("site", Number), ("python", Number), ("native", Number)])
        }
        Definition::Unknown { .. } => return None,
    })
}

#[test]
fn definitions_are_those_of_the_code() {
    let rows: Vec<_> = (0..128)
        .filter_map(|kind| fields_of(kind).map(|(name, fields)| (kind, name, fields)))
        .map(|(kind, name, fields)| {
            let fields = fields.iter().map(|&(name, field)| match field {
                Field::Number | Field::Hex => format!("{name}: number"),
                Field::Text | Field::Bytes => format!("{name}: text"),
            });
            row![kind, name, fields.collect::<Vec<_>>().join(", ")]
        })
        .collect();
    holds("### Kinds of definitions", &rows);
    let layers = [Layer::Driver, Layer::Runtime, Layer::Own, Layer::Framework];
    holds("### Layers", &layers.map(|layer| row![layer as u8, snake(&format!("{layer:?}"))]));
    let resolvers = [Resolver::Dlsym, Resolver::Dlvsym, Resolver::GetProcAddress];
    let reasons = definition::gap::NAMES.map(|(reason, name)| row![reason, name]);
    holds("### Reasons of gaps", &reasons);
    holds("### Resolvers", &resolvers.map(|resolver| row![resolver as u8, resolver.name()]));
}

// ---- Examples -------------------------------------------------------------------------------

/// An event's fields, each with its bytes. Steps through `codec` as a reader does.
fn render_event(
    codec: &mut Codec,
    bytes: &[u8],
    at: &mut usize,
    out: &mut Example,
) -> Event<'static> {
    let rest = &bytes[*at..];
    let mut whole = Input::new(rest);
    let event = codec.decode(&Shapes::default(), &mut whole).expect("an event").expect("an event");
    let kind = event.known().expect("a kind of this version");
    let mut input = Input::new(rest);
    let mut field = |name: &str, value: String, read: &dyn Fn(&mut Input<'_>) -> bool| {
        let before = input.offset();
        assert!(read(&mut input), "{name}");
        out.field(&rest[before..input.offset()], name, &value);
    };
    let byte = |input: &mut Input<'_>| input.byte().is_ok();
    let number = |input: &mut Input<'_>| input.number().is_ok();
    field("kind", format!("{:#04x} {}", event.kind, kind.name()), &byte);
    field("flags", flag_names(event.flags), &byte);
    field("site", event.site.to_string(), &number);
    field("start", event.start.to_string(), &number);
    field("duration", (event.end - event.start).to_string(), &number);
    if event.flags.has(Flags::FAILED) {
        field("status", event.status.to_string(), &number);
    }
    for ((&operand, role), &value) in kind.operands().iter().zip(kind.roles()).zip(&event.operands)
    {
        match operand {
            Operand::Number => field(role, value.to_string(), &number),
            Operand::Signed => field(role, value.cast_signed().to_string(), &number),
            Operand::Size => field(role, value.to_string(), &|input| input.scaled().is_ok()),
            Operand::Text => field(role, quoted(event.text), &|input| input.text().is_ok()),
            _ => field(role, format!("{value:#x}"), &|input| input.scaled_signed().is_ok()),
        }
    }
    assert_eq!(input.offset(), whole.offset(), "the fields are the event");
    *at += whole.offset();
    Event { text: event.text.to_vec().leak(), ..event }
}

fn flag_names(flags: Flags) -> String {
    let set: Vec<_> =
        FLAGS.iter().filter(|(flag, _)| flags.has(*flag)).map(|&(_, name)| name).collect();
    if set.is_empty() { "none".into() } else { set.join(", ") }
}

/// The events of a block that starts with `base N`, as text and as values.
fn render_events(base: u64, bytes: &[u8]) -> (String, Vec<Event<'static>>) {
    let mut out = Example::default();
    writeln!(out.0, "base {base}").expect("room");
    let (mut codec, mut at, mut events) = (Codec::new(base), 0, Vec::new());
    while at < bytes.len() {
        events.push(render_event(&mut codec, bytes, &mut at, &mut out));
    }
    (out.0, events)
}

/// An example must be what is rendered from its bytes, spaces aside.
fn same(block: &[String], rendered: &str) {
    let told: Vec<_> = block.iter().map(|line| words(line)).collect();
    let expected: Vec<_> = rendered.lines().map(words).collect();
    assert_eq!(told, expected, "the example should read\n{rendered}");
}

#[test]
fn every_event_example_decodes_to_what_it_says_and_encodes_to_its_bytes() {
    let mut shown = BTreeMap::new();
    for block in blocks("event") {
        let base = block[0].strip_prefix("base ").expect("the chunk's base");
        let base: u64 = base.parse().expect("a number");
        let bytes: Vec<u8> = block[1..].iter().flat_map(|line| split(line).0).collect();
        let (rendered, events) = render_events(base, &bytes);
        same(&block, &rendered);
        let (mut codec, mut out, mut at) = (Codec::new(base), vec![0; bytes.len()], 0);
        for event in &events {
            let kind = event.known().expect("a known kind");
            at += codec.encode(kind, event, &mut out[at..]).expect("as long as it was");
            *shown.entry(event.kind).or_insert(0) += 1;
        }
        assert_eq!(hex(&out), hex(&bytes));
        assert_eq!(at, bytes.len());
    }
    let missing: Vec<_> =
        Kind::ALL.iter().filter(|&&kind| !shown.contains_key(&(kind as u8))).collect();
    assert!(missing.is_empty(), "no example of {missing:?}");
}

fn render_definition(bytes: &[u8]) -> String {
    let mut out = Example::default();
    let word = u32::from_le_bytes(*bytes.first_chunk().expect("a word"));
    let kind = (word >> 24 & 0x7f) as u8;
    let (name, fields) = fields_of(kind).expect("a kind of this version");
    let complete = if word & COMPLETE == 0 { "claimed" } else { "complete" };
    let value = format!("{complete}, kind {kind} {name}, {} bytes", word & definition::LENGTH);
    out.field(&bytes[..4], "word", &value);
    let mut input = Input::new(&bytes[4..]);
    for &(name, field) in fields {
        let before = input.offset();
        let value = match field {
            Field::Number => input.number().expect("a number").to_string(),
            Field::Hex => format!("{:#x}", input.number().expect("a number")),
            Field::Text => quoted(input.text().expect("text")),
            Field::Bytes => hex(input.text().expect("bytes")),
        };
        out.field(&bytes[4 + before..4 + input.offset()], name, &value);
    }
    if 4 + input.offset() < bytes.len() {
        out.field(&bytes[4 + input.offset()..], "filling", "");
    }
    out.0
}

#[test]
fn every_definition_example_decodes_to_what_it_says_and_encodes_to_its_bytes() {
    let mut shown = Vec::new();
    for block in blocks("definition") {
        let bytes: Vec<u8> = block.iter().flat_map(|line| split(line).0).collect();
        same(&block, &render_definition(&bytes));
        let mut definitions = Definitions::new(&bytes);
        let definition = definitions.next().expect("a definition").expect("a whole one");
        assert!(definitions.next().is_none(), "one definition in an example");
        let mut out = vec![0; bytes.len() - 4];
        let word = definition.encode(&mut out).expect("as long as it was");
        let again: Vec<u8> = word.to_le_bytes().into_iter().chain(out).collect();
        assert_eq!(hex(&again), hex(&bytes));
        shown.push((word >> 24 & 0x7f) as u8);
    }
    shown.sort_unstable();
    shown.dedup();
    let known: Vec<u8> = (0..128).filter(|&kind| fields_of(kind).is_some()).collect();
    assert_eq!(shown, known, "kinds of definitions with an example");
}

/// The bytes of a header example: each line starts with an offset. What is not told is 0.
fn header_bytes(block: &[String], length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for line in block {
        let (offset, rest) = line.trim().split_once("  ").expect("an offset");
        let offset: usize = offset.parse().expect("an offset in decimal");
        let (part, _) = split(rest.trim());
        bytes[offset..offset + part.len()].copy_from_slice(&part);
    }
    bytes
}

fn number_at(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Lines of a header example for its plain fields.
fn render_fields(bytes: &[u8], fields: &[(usize, usize, &str)], out: &mut String) {
    for &(at, size, name) in fields {
        let part = &bytes[at..at + size];
        let value = match name {
            "magic" | "boot_id" => String::new(),
            "runtime_call" | "driver_call" => {
                let word = number_at(bytes, at, size);
                format!("api {}, ticks {}", word >> 48, word & layout::IN_FLIGHT_TICKS)
            }
            name if name.ends_with("_argument") => {
                format!("{:#x}", number_at(bytes, at, size))
            }
            _ => number_at(bytes, at, size).to_string(),
        };
        let line = format!("{at:>4}  {:<47}  {name:<16}  {value}", hex(part));
        writeln!(out, "{}", line.trim_end()).expect("room");
    }
}

fn render_file_header(bytes: &[u8]) -> String {
    let mut out = String::new();
    render_fields(bytes, &FILE_FIELDS, &mut out);
    render_fields(bytes, &FILE_REST[..1], &mut out);
    let header = FileHeader::parse(bytes).expect("a header");
    for &counter in Counter::ALL.iter().filter(|&&counter| header.counter(counter) != 0) {
        let at = file::COUNTERS + 8 * counter as usize;
        render_fields(bytes, &[(at, 8, counter.name())], &mut out);
    }
    let mut at = file::ITEMS;
    for (tag, value) in header.items() {
        let item = Item::from_tag(tag).expect("an item of this version");
        let name = snake(&format!("{item:?}"));
        let length = 4 + value.len();
        let head = format!("tag {tag} {name}, {} bytes", value.len());
        let line = format!("{at:>4}  {:<47}  {:<16}  {head}", hex(&bytes[at..at + 4]), "item");
        writeln!(out, "{line}").expect("room");
        let text = if item == Item::Kinds { String::new() } else { quoted(value) };
        let line = format!("{:>4}  {:<47}  {:<16}  {text}", at + 4, hex(value), "value");
        writeln!(out, "{}", line.trim_end()).expect("room");
        at += length;
    }
    out
}

/// Puts the fields of a parsed header where the document says they stand.
fn write_file_header(header: &FileHeader<'_>) -> Vec<u8> {
    let mut bytes = vec![0; layout::CHUNK_SIZE];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    let last = header.last.unwrap_or_default();
    put(file::MAGIC, &layout::MAGIC);
    put(file::MAJOR, &layout::MAJOR.to_le_bytes());
    put(file::MINOR, &header.minor.to_le_bytes());
    put(file::CHUNK_LOG2, &[layout::CHUNK_LOG2, header.clock as u8]);
    put(file::PID, &header.pid.to_le_bytes());
    put(file::PARENT_PID, &header.parent_pid.to_le_bytes());
    put(file::GENERATION, &header.generation.to_le_bytes());
    put(file::BOOT_ID, &header.boot_id);
    for (at, value) in [
        (file::LOAD_TICKS, header.load.ticks),
        (file::LOAD_MONOTONIC, header.load.monotonic_ns),
        (file::START_TICKS, header.start.ticks),
        (file::START_MONOTONIC, header.start.monotonic_ns),
        (file::START_REALTIME, header.start_realtime_ns),
        (file::LAST_TICKS, last.ticks),
        (file::LAST_MONOTONIC, last.monotonic_ns),
        (file::LAST_SEQUENCE, 2),
        (file::EXIT_TICKS, header.exit_ticks.unwrap_or(0)),
        (file::PROCESS_START, header.process_start),
        (file::PID_NAMESPACE, header.pid_namespace),
        (file::SLOTS, header.slots),
    ] {
        put(at, &value.to_le_bytes());
    }
    for (index, counter) in header.counters.iter().enumerate() {
        put(file::COUNTERS + 8 * index, &counter.to_le_bytes());
    }
    let mut at = file::ITEMS;
    for (tag, value) in header.items() {
        put(at, &tag.to_le_bytes());
        put(at + 2, &u16::try_from(value.len()).expect("a short item").to_le_bytes());
        put(at + 4, value);
        at += 4 + value.len();
    }
    put(file::ITEMS_LENGTH, &u32::try_from(at - file::ITEMS).expect("room").to_le_bytes());
    bytes
}

#[test]
fn the_file_header_example_is_what_it_says() {
    for block in blocks("file-header") {
        let bytes = header_bytes(&block, layout::CHUNK_SIZE);
        same(&block, &render_file_header(&bytes));
        let header = FileHeader::parse(&bytes).expect("a header");
        assert!(write_file_header(&header) == bytes, "the header encodes to other bytes");
        let kinds = header.item(Item::Kinds).expect("the example declares its kinds");
        assert_eq!(Shapes::default().declare(kinds), Ok(()));
    }
}

#[test]
fn the_chunk_header_examples_are_what_they_say() {
    for block in blocks("chunk-header") {
        let bytes = header_bytes(&block, layout::CHUNK_HEADER);
        let mut rendered = String::new();
        render_fields(&bytes, &CHUNK_FIELDS, &mut rendered);
        same(&block, &rendered);
        let header = ChunkHeader::parse(&bytes).expect("a header");
        assert!(header.state.is_some());
        assert!(write_chunk_header(&header) == bytes, "the header encodes to other bytes");
    }
}

fn write_chunk_header(header: &ChunkHeader) -> Vec<u8> {
    let mut bytes = vec![0; layout::CHUNK_HEADER];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    for (at, value) in [
        (chunk::STATE, header.state.map_or(0, |state| state as u32)),
        (chunk::COMMITTED, header.committed),
        (chunk::TID, header.tid),
        (chunk::THREAD, header.thread),
        (chunk::SEQUENCE, header.sequence),
        (chunk::CONTENT, header.content),
    ] {
        put(at, &value.to_le_bytes());
    }
    put(chunk::BASE, &header.base.to_le_bytes());
    put(chunk::TAKEN_TICKS, &header.taken.ticks.to_le_bytes());
    put(chunk::TAKEN_MONOTONIC, &header.taken.monotonic_ns.to_le_bytes());
    for (at, call) in
        [(chunk::RUNTIME_CALL, header.runtime_call), (chunk::DRIVER_CALL, header.driver_call)]
    {
        if let Some(call) = call {
            let word = u64::from(call.api) << 48 | call.ticks_low;
            put(at, &word.to_le_bytes());
            put(at + 8, &call.argument.to_le_bytes());
        }
    }
    bytes
}

/// The declaration of a kind that this version does not know, and an event of it.
#[test]
fn an_unknown_kind_is_stepped_over_by_its_declaration() {
    for block in blocks("kinds") {
        let (declared, event): (Vec<_>, Vec<_>) = block
            .iter()
            .map(|line| split(line))
            .partition(|(_, told)| told.starts_with("declared"));
        let declared: Vec<u8> = declared.into_iter().flat_map(|(bytes, _)| bytes).collect();
        let event: Vec<u8> = event.into_iter().flat_map(|(bytes, _)| bytes).collect();
        let mut shapes = Shapes::default();
        assert!(Codec::new(0).decode(&shapes, &mut Input::new(&event)).is_err());
        shapes.declare(&declared).expect("a declaration");
        let mut input = Input::new(&event);
        let found = Codec::new(0).decode(&shapes, &mut input).expect("an event").expect("an event");
        assert_eq!(found.known(), None);
        assert!(input.is_empty(), "the whole event is stepped over");
    }
}

#[test]
fn the_declaration_has_one_entry_for_each_kind() {
    let mut out = [0; 1024];
    let length = kind::write_declaration(&mut out).expect("room");
    let mut expected = [0; 1024];
    let mut output = Output::new(&mut expected);
    for &kind in Kind::ALL {
        output.byte(kind as u8);
        let codes: Vec<u8> = kind.operands().iter().map(|&operand| operand as u8).collect();
        output.text(&codes);
    }
    let expected_length = output.finish().expect("room");
    assert_eq!(&out[..length], &expected[..expected_length]);
}
