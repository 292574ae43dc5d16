//! Whatever the bytes are, decoding ends, and without a panic.
#![no_main]

use gmmtrace_format::definition::{Definition, Definitions};
use gmmtrace_format::varint::Input;
use gmmtrace_format::{ChunkHeader, Codec, FileHeader, Shapes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut shapes = Shapes::default();
    let _ = shapes.declare(bytes);
    let (mut codec, mut input) = (Codec::new(0), Input::new(bytes));
    while let Ok(Some(event)) = codec.decode(&shapes, &mut input) {
        let _ = event.effective();
    }
    assert!(Definitions::new(bytes).count() <= bytes.len() / 8 + 1);
    if let Some((&kind, body)) = bytes.split_first() {
        let _ = Definition::decode(kind, body);
    }
    let _ = ChunkHeader::parse(bytes);
    if let Ok(header) = FileHeader::parse(bytes) {
        let _ = header.items().count();
    }
});
