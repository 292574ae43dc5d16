//! The definitions of a log: what the ids in events mean.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use gmmtrace_format::ChunkHeader;
use gmmtrace_format::definition::{Definition, Definitions, Layer, Resolver};
use gmmtrace_format::layout::{CHUNK_HEADER, CHUNK_SIZE, CONTENT_DEFINITIONS, PAYLOAD};
use rustc_hash::FxHashMap;

use super::frames::{Frames, Stack};
use super::{Salvage, Slots, WriterState, read_up_to};
use crate::units::{Address, Bytes, Gpu};

/// An entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// Which library it belongs to.
    pub layer: Option<Layer>,
    /// The symbol.
    pub name: Arc<str>,
}

/// A loaded object.
#[derive(Clone, Debug)]
pub struct Module {
    /// First address.
    pub start: Address,
    /// Address after the last.
    pub end: Address,
    /// GNU build id in hexadecimal, or nothing.
    pub build_id: String,
    /// Path, empty for the executable.
    pub path: Arc<str>,
}

/// A call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The entry point that makes the events.
    pub api: u32,
    /// The runtime entry point around it, or 0.
    pub outer: u32,
    /// Return address of the outermost hooked call.
    pub address: Address,
    /// Module of that address, or 0.
    pub module: u32,
    /// What called it, where that was recorded.
    pub stack: Stack,
}

/// How an entry point was asked for.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// By which function.
    pub resolver: Option<Resolver>,
    /// Whether a hook was handed out.
    pub hooked: bool,
    /// CUDA version asked for, 0 for none.
    pub version: u64,
    /// Flags asked with.
    pub flags: u64,
    /// How often, when it was written.
    pub count: u64,
    /// Module of the caller, or 0.
    pub module: u32,
    /// The name.
    pub name: String,
}

/// A GPU of the machine.
#[derive(Clone, Debug)]
pub struct GpuFacts {
    /// Memory.
    pub total: Bytes,
    /// Its UUID.
    pub uuid: String,
    /// Its name.
    pub name: String,
}

/// All definitions of a log.
#[derive(Default)]
pub struct Dictionary {
    /// Entry points by id.
    pub apis: FxHashMap<u32, Api>,
    /// Objects by id.
    pub modules: FxHashMap<u32, Module>,
    /// Call sites by id.
    pub sites: FxHashMap<u32, Site>,
    /// Code objects, frames and nodes, of which the stacks of sites are made.
    pub frames: Frames,
    /// Stacks that wait for their site: id, site, stack.
    stacks: Vec<(u32, u32, Stack)>,
    /// Lookups, in the order they were noted.
    pub lookups: Vec<Lookup>,
    /// Remarks of the recorder.
    pub remarks: Vec<String>,
    /// GPUs by ordinal.
    pub gpus: BTreeMap<Gpu, GpuFacts>,
    /// The driver's version.
    pub driver: Option<String>,
    /// Definitions whose writer never completed them.
    pub incomplete: u64,
    /// Definitions of kinds that this version does not know.
    pub unknown: u64,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Dictionary {
    /// Name of an entry point.
    #[must_use]
    pub fn api(&self, id: u32) -> Option<&str> {
        self.apis.get(&id).map(|api| &*api.name)
    }

    fn add(&mut self, definition: Definition<'_>) {
        match definition {
            Definition::Api { id, layer, name } => {
                let api = Api { layer: Layer::from_code(layer), name: text(name).into() };
                self.apis.insert(id, api);
            }
            Definition::Module { id, start, end, build_id, path } => {
                let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
                let (start, end) = (Address(start), Address(end));
                let path = text(path).into();
                self.modules.insert(id, Module { start, end, build_id, path });
            }
            Definition::Site { id, api, outer, address, module } => {
                let (address, stack) = (Address(address), Stack::default());
                self.sites.insert(id, Site { api, outer, address, module, stack });
            }
            Definition::Lookup { resolver, hooked, version, flags, count, module, name } => {
                let resolver = Resolver::from_code(resolver);
                let name = text(name);
                self.lookups.push(Lookup { resolver, hooked, version, flags, count, module, name });
            }
            Definition::Remark { text: remark } => self.remarks.push(text(remark)),
            Definition::Gpu { index, total, uuid, name } => {
                let facts = GpuFacts { total: Bytes(total), uuid: text(uuid), name: text(name) };
                self.gpus.insert(Gpu(index), facts);
            }
            Definition::Driver { version } => self.driver = Some(text(version)),
            Definition::Stack { id, site, python, native } => {
                self.stacks.push((id, site, Stack { python, native }));
            }
            Definition::Code { .. }
            | Definition::CodeLines { .. }
            | Definition::PythonFrame { .. }
            | Definition::NativeFrame { .. }
            | Definition::FrameGap { .. }
            | Definition::Node { .. } => self.frames.add(definition),
            Definition::Unknown { .. } => self.unknown += 1,
        }
    }

    /// Makes a site of each stack, once all sites are there. One whose site has no definition
    /// stays unknown with it.
    fn settle(&mut self) {
        for (id, site, stack) in core::mem::take(&mut self.stacks) {
            if let Some(&site) = self.sites.get(&site) {
                self.sites.insert(id, Site { stack, ..site });
            }
        }
    }

    fn add_chunk(&mut self, slot: u64, payload: &[u8], salvage: &mut Vec<Salvage>) {
        let mut definitions = Definitions::new(payload);
        for definition in definitions.by_ref() {
            match definition {
                Ok(definition) => self.add(definition),
                Err(error) => salvage.push(Salvage::Definitions { slot, error }),
            }
        }
        self.incomplete += u64::from(definitions.incomplete);
    }
}

pub(super) fn read(
    opened: &File,
    slots: &Slots,
    state: WriterState,
    salvage: &mut Vec<Salvage>,
) -> io::Result<Dictionary> {
    let mut dictionary = Dictionary::default();
    let mut payload = vec![0; PAYLOAD];
    for slot in slots.definitions.iter().map(|&(slot, _)| slot) {
        add_slot(&mut dictionary, opened, slot, &mut payload, salvage)?;
    }
    if state == WriterState::Running {
        for slot in newer(opened, slots)? {
            add_slot(&mut dictionary, opened, slot, &mut payload, salvage)?;
        }
    }
    dictionary.settle();
    Ok(dictionary)
}

/// A dictionary chunk has no committed length: its definitions carry their own.
fn add_slot(
    dictionary: &mut Dictionary,
    opened: &File,
    slot: u64,
    payload: &mut [u8],
    salvage: &mut Vec<Salvage>,
) -> io::Result<()> {
    let start = slot * CHUNK_SIZE as u64 + CHUNK_HEADER as u64;
    let length = read_up_to(opened, payload, start)?;
    dictionary.add_chunk(slot, payload.get(..length).unwrap_or(&[]), salvage);
    Ok(())
}

/// Dictionary chunks that a running process has added since the walk.
fn newer(opened: &File, slots: &Slots) -> io::Result<Vec<u64>> {
    let count = opened.metadata()?.len().div_ceil(CHUNK_SIZE as u64).saturating_sub(1);
    let mut found = Vec::new();
    let mut bytes = [0; CHUNK_HEADER];
    for slot in 1..=count {
        if slots.definitions.iter().any(|&(known, _)| known == slot) {
            continue;
        }
        let length = read_up_to(opened, &mut bytes, slot * CHUNK_SIZE as u64)?;
        let header = bytes.get(..length).and_then(|bytes| ChunkHeader::parse(bytes).ok());
        if header.is_some_and(|header| header.content == CONTENT_DEFINITIONS) {
            found.push(slot);
        }
    }
    Ok(found)
}
