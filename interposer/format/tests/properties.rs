//! The codec over arbitrary events and arbitrary bytes.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use gmmtrace_format::definition::{
    ALIGN, COMPLETE, Definition, Definitions, LENGTH, MAX_DEFINITION,
};
use gmmtrace_format::event::{Flags, MAX_PLAIN, MAX_TEXT};
use gmmtrace_format::kind::MAX_OPERANDS;
use gmmtrace_format::layout::{CHUNK_SIZE, MAGIC, MAJOR, file};
use gmmtrace_format::varint::{Input, Output, unzigzag, zigzag};
use gmmtrace_format::{ChunkHeader, Codec, DecodeError, Event, FileHeader, Kind, Operand, Shapes};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// An event that owns its text.
#[derive(Clone, Debug)]
struct Owned {
    kind: Kind,
    event: Event<'static>,
    text: Vec<u8>,
}

impl Owned {
    fn event(&self) -> Event<'_> {
        Event { text: &self.text, ..self.event }
    }
}

/// Numbers of every length, multiples of the granule among them.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32, any::<bool>()).prop_map(|(value, shift, granules)| {
        let value = value >> shift;
        if granules { value & !511 } else { value }
    })
}

/// Events as a writer makes them: a text operand's number is its length, operands that the kind
/// has not are 0, a call ends no earlier than it starts, and only a failed one has a status.
fn owned() -> impl Strategy<Value = Owned> {
    let stamps = (number(), number());
    let rest = (any::<[u64; 5]>(), 0..64_u32, vec(any::<u8>(), 0..80));
    let head = (select(Kind::ALL), any::<u8>(), any::<u32>(), any::<u32>());
    (head, stamps, rest).prop_map(|((kind, flags, site, status), (start, length), rest)| {
        let (raw, shift, text) = rest;
        let mut operands = [0; MAX_OPERANDS];
        let mut has_text = false;
        for ((slot, &operand), raw) in operands.iter_mut().zip(kind.operands()).zip(raw) {
            has_text |= operand == Operand::Text;
            *slot = if operand == Operand::Text { text.len() as u64 } else { raw >> shift };
        }
        let mut event = Event::new(kind, site, start, start.saturating_add(length), operands);
        event.flags = Flags(flags);
        event.status = if event.flags.has(Flags::FAILED) { status } else { 0 };
        Owned { kind, event, text: if has_text { text } else { Vec::new() } }
    })
}

/// Bytes of the events, and where each ends.
fn encode(base: u64, events: &[Owned]) -> (Vec<u8>, Vec<usize>) {
    let mut codec = Codec::new(base);
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut buffer = [0; MAX_PLAIN + MAX_TEXT + 8];
    for owned in events {
        let length = codec.encode(owned.kind, &owned.event(), &mut buffer).expect("room");
        bytes.extend_from_slice(&buffer[..length]);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

/// The events of a payload, and how the decoding ended.
fn decode<'a>(
    base: u64,
    shapes: &Shapes,
    payload: &'a [u8],
) -> (Vec<Event<'a>>, Result<(), DecodeError>) {
    let (mut codec, mut input) = (Codec::new(base), Input::new(payload));
    let mut events = Vec::new();
    loop {
        let before = input.offset();
        match codec.decode(shapes, &mut input) {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, Ok(())),
            Err(error) => return (events, Err(error)),
        }
        assert!(input.offset() > before, "an event has at least one byte");
    }
}

/// Everything that reads bytes, over bytes that nobody vouches for.
fn read_everything(bytes: &[u8]) {
    let mut shapes = Shapes::default();
    let declared = shapes.declare(bytes);
    assert!(!matches!(declared, Err(DecodeError::NotALog)));
    for shapes in [&Shapes::default(), &shapes] {
        for base in [0, u64::MAX] {
            let (events, _) = decode(base, shapes, bytes);
            assert!(events.len() <= bytes.len());
            let stamps = events.iter().map(Event::effective);
            assert!(stamps.count() == events.len());
        }
    }
    let mut definitions = Definitions::new(bytes);
    let found = definitions.by_ref().count();
    assert!(found <= bytes.len() / ALIGN + 1);
    for kind in 0..=u8::MAX {
        let _ = Definition::decode(kind, bytes);
    }
    let _ = ChunkHeader::parse(bytes);
    let _ = FileHeader::parse(bytes).map(|header| header.items().count());
    // The same bytes as the fields of a header that passes the first looks.
    let mut header = vec![0; CHUNK_SIZE];
    for (slot, &byte) in header.iter_mut().zip(bytes) {
        *slot = byte;
    }
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[file::MAJOR..][..2].copy_from_slice(&MAJOR.to_le_bytes());
    header[file::CHUNK_LOG2..][..2].copy_from_slice(&[16, 1]);
    match FileHeader::parse(&header) {
        Ok(header) => assert!(header.items().count() <= CHUNK_SIZE / 4),
        Err(error) => assert!(matches!(error, DecodeError::BadHeader { .. }), "{error}"),
    }
}

proptest! {
    #[test]
    fn events_come_back_as_they_were(base in number(), events in vec(owned(), 0..40)) {
        let (bytes, _) = encode(base, &events);
        let (decoded, end) = decode(base, &Shapes::default(), &bytes);
        prop_assert_eq!(end, Ok(()));
        let expected: Vec<_> = events.iter().map(Owned::event).collect();
        prop_assert_eq!(decoded, expected);
    }

    #[test]
    fn a_prefix_of_the_bytes_is_a_prefix_of_the_events(
        base in number(),
        events in vec(owned(), 1..12),
    ) {
        let (bytes, ends) = encode(base, &events);
        let (whole, _) = decode(base, &Shapes::default(), &bytes);
        for cut in 0..=bytes.len() {
            let (part, end) = decode(base, &Shapes::default(), &bytes[..cut]);
            let complete = ends.iter().filter(|&&end| end <= cut).count();
            prop_assert_eq!(&part[..], &whole[..complete]);
            let clean = cut == 0 || ends.contains(&cut);
            prop_assert_eq!(end.is_ok(), clean, "cut at {}: {:?}", cut, end);
        }
    }

    #[test]
    fn arbitrary_prefixes_decode_to_prefixes(bytes in vec(any::<u8>(), 0..200), cut: usize) {
        let (whole, _) = decode(7, &Shapes::default(), &bytes);
        let (part, _) = decode(7, &Shapes::default(), &bytes[..cut % (bytes.len() + 1)]);
        prop_assert!(whole.starts_with(&part));
    }

    #[test]
    fn a_full_buffer_leaves_the_codec_as_it_was(
        base in number(),
        events in vec(owned(), 1..8),
        room in 0_usize..60,
    ) {
        let mut codec = Codec::new(base);
        let mut buffer = vec![0; MAX_PLAIN + MAX_TEXT];
        for owned in &events {
            let mut refused = codec;
            let tried = refused.encode(owned.kind, &owned.event(), &mut buffer[..room]);
            let length = codec.encode(owned.kind, &owned.event(), &mut buffer).expect("room");
            let expected = buffer[..length].to_vec();
            prop_assert_eq!(tried.is_some(), length <= room);
            if tried.is_none() {
                // What was refused is written again, and to the same bytes.
                let again = refused.encode(owned.kind, &owned.event(), &mut buffer);
                prop_assert_eq!(again, Some(length));
                prop_assert_eq!(&buffer[..length], &expected[..]);
            }
        }
    }

    #[test]
    fn no_event_without_text_is_longer_than_promised(owned in owned()) {
        let mut event = owned.event();
        event.text = &[];
        let length = Codec::new(0).encode(owned.kind, &event, &mut [0; 200]).expect("room");
        prop_assert!(length <= MAX_PLAIN, "{length}");
    }

    #[test]
    fn arbitrary_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..2000)) {
        read_everything(&bytes);
    }

    /// Few different values: more of them mean something.
    #[test]
    fn small_bytes_are_read_without_a_panic(bytes in vec(0..24_u8, 0..2000)) {
        read_everything(&bytes);
    }

    #[test]
    fn damaged_events_are_read_without_a_panic(
        events in vec(owned(), 1..20),
        damage in vec((any::<usize>(), any::<u8>()), 1..5),
    ) {
        let (mut bytes, _) = encode(0, &events);
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        read_everything(&bytes);
    }

    #[test]
    fn numbers_come_back_as_they_were(value in number(), signed: i64) {
        let mut buffer = [0; 64];
        let mut output = Output::new(&mut buffer);
        output.number(value);
        output.signed(signed);
        output.scaled(value);
        output.scaled_signed(signed);
        output.scaled_signed(value.cast_signed());
        let length = output.finish().expect("five numbers of ten bytes");
        let mut input = Input::new(&buffer[..length]);
        prop_assert_eq!(input.number(), Ok(value));
        prop_assert_eq!(input.signed(), Ok(signed));
        prop_assert_eq!(input.scaled(), Ok(value));
        prop_assert_eq!(input.scaled_signed(), Ok(signed));
        prop_assert_eq!(input.scaled_signed(), Ok(value.cast_signed()));
        prop_assert!(input.is_empty());
        prop_assert_eq!(unzigzag(zigzag(signed)), signed);
    }

    #[test]
    fn definitions_come_back_as_they_were(
        number: [u32; 4],
        large: [u64; 4],
        hooked: bool,
        one in vec(any::<u8>(), 0..90),
        two in vec(any::<u8>(), 0..90),
        room in 0_usize..200,
    ) {
        let [id, api, outer, module] = number;
        let [start, end, flags, count] = large;
        let (one, two) = (&one[..], &two[..]);
        for definition in [
            Definition::Api { id, layer: start, name: one },
            Definition::Module { id, start, end, build_id: one, path: two },
            Definition::Site { id, api, outer, address: start, module },
            Definition::Lookup {
                resolver: start, hooked, version: end, flags, count, module, name: one,
            },
            Definition::Remark { text: one },
            Definition::Gpu { index: id, total: start, uuid: one, name: two },
            Definition::Driver { version: one },
            Definition::Code { id, first_line: start, file: one, name: two },
            Definition::CodeLines {
                code: id, version: start, total: end, offset: flags, bytes: one,
            },
            Definition::PythonFrame { id, code: api, at: start, entry: end },
            Definition::NativeFrame { id, address: start, module },
            Definition::FrameGap { id, reason: start },
            Definition::Node { id, parent: api, frame: outer },
            Definition::Stack { id, site: api, python: outer, native: module },
        ] {
            let mut body = [0; MAX_DEFINITION];
            let word = definition.encode(&mut body).expect("room");
            let length = (word & LENGTH) as usize;
            prop_assert!(word & COMPLETE != 0 && length.is_multiple_of(ALIGN));
            let framed: Vec<u8> =
                word.to_le_bytes().into_iter().chain(body[..length - 4].iter().copied()).collect();
            let read: Vec<_> = Definitions::new(&framed).collect();
            prop_assert_eq!(read, [Ok(definition)]);
            // What is promised to fit fits with its filling.
            let fits = definition.encode(&mut body[..room]).is_some();
            prop_assert_eq!(fits, length - 4 <= room);
        }
    }
}

#[test]
fn numbers_are_exact_at_the_borders_of_their_lengths() {
    let mut buffer = [0; 16];
    for bits in 0..=64_u32 {
        let border = 1_u128 << bits;
        for value in [border - 1, border, border + 1].map(u64::try_from).into_iter().flatten() {
            let mut output = Output::new(&mut buffer);
            output.number(value);
            let length = output.finish().expect("room");
            assert_eq!(length, (64 - value.leading_zeros()).div_ceil(7).max(1) as usize);
            assert_eq!(Input::new(&buffer[..length]).number(), Ok(value));
            let cut = Input::new(&buffer[..length - 1]).number();
            assert!(matches!(cut, Err(DecodeError::Truncated { .. })), "{value}: {cut:?}");
        }
    }
}

#[test]
fn a_number_past_64_bits_is_refused_and_a_padded_one_is_not() {
    let nine = [0xff; 9];
    let with = |last: &[u8]| [&nine[..], last].concat();
    assert_eq!(Input::new(&with(&[1])).number(), Ok(u64::MAX));
    assert_eq!(Input::new(&with(&[2])).number(), Err(DecodeError::Overlong { offset: 0 }));
    assert_eq!(Input::new(&with(&[0x81, 0])).number(), Err(DecodeError::Overlong { offset: 0 }));
    assert_eq!(Input::new(&[0x80, 0x00]).number(), Ok(0));
    // A scaled number has six bits in its first byte, so 58 are left for the rest.
    let rest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03];
    let scaled = |rest: &[u8]| Input::new(&[&[0xfe], rest].concat()).scaled();
    assert_eq!(scaled(&rest), Ok(u64::MAX));
    let more = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x07];
    assert_eq!(scaled(&more), Err(DecodeError::Overlong { offset: 0 }));
}

#[test]
fn a_value_above_32_bits_in_a_narrow_field_is_refused() {
    let decode = |bytes: &[u8]| {
        Codec::new(0)
            .decode(&Shapes::default(), &mut Input::new(bytes))
            .map(|event| event.is_some())
    };
    let past = [0x80, 0x80, 0x80, 0x80, 0x10];
    let site = [&[Kind::RangePop as u8, 0][..], &past, &[0, 0]].concat();
    assert_eq!(decode(&site), Err(DecodeError::Overlong { offset: 2 }));
    let status = [&[Kind::RangePop as u8, 1, 0, 0, 0][..], &past].concat();
    assert_eq!(decode(&status), Err(DecodeError::Overlong { offset: 5 }));
}

#[test]
fn another_major_version_is_refused_by_name() {
    let mut header = vec![0; CHUNK_SIZE];
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[file::MAJOR..][..4].copy_from_slice(&[7, 0, 3, 0]);
    let refused = FileHeader::parse(&header).expect_err("another version");
    assert_eq!(refused, DecodeError::OtherVersion { major: 7, minor: 3 });
    let told = refused.to_string();
    assert!(told.contains("7.3") && told.contains(&format!("{MAJOR}.x")), "{told}");
}

#[test]
fn a_higher_minor_version_is_read() {
    let mut header = vec![0; CHUNK_SIZE];
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[file::MAJOR..][..2].copy_from_slice(&MAJOR.to_le_bytes());
    header[file::MINOR..][..2].copy_from_slice(&9_u16.to_le_bytes());
    header[file::CHUNK_LOG2..][..2].copy_from_slice(&[16, 2]);
    assert_eq!(FileHeader::parse(&header).map(|header| header.minor), Ok(9));
}

#[test]
fn a_declaration_adds_kinds_and_changes_none() {
    let mut shapes = Shapes::default();
    let alloc = Kind::DeviceAlloc as u8;
    assert_eq!(shapes.declare(&[alloc, 1, 10, 0xf0, 2, 1, 3]), Ok(()));
    assert_eq!(shapes.get(alloc), Some(&[4, 3][..]));
    assert_eq!(shapes.get(0xf0), Some(&[1, 3][..]));
    assert_eq!(shapes.get(0xf1), None);
    let unknown_operand = Err(DecodeError::UnknownKind { kind: 0xf1, offset: 0 });
    assert_eq!(shapes.declare(&[0xf1, 1, 99]), unknown_operand);
    assert_eq!(shapes.declare(&[0xf1, 6, 1, 1, 1, 1, 1, 1]), unknown_operand);
    assert_eq!(shapes.declare(&[0xf1, 9, 1]), Err(DecodeError::Truncated { offset: 1 }));
}

/// What fuzzing starts from and what it once found, on every run of the tests.
#[test]
fn the_fuzzing_corpus_is_read_without_a_panic() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus");
    let mut read = 0;
    for target in ["decode", "pipeline"] {
        for entry in fs::read_dir(corpus.join(target)).expect("the corpus is there") {
            let path = entry.expect("an entry").path();
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            read_everything(&bytes);
            read += 1;
        }
    }
    assert!(read >= 8, "{read} seeds");
}
