//! `gmmtrace dump TRACE`: every record as text, in time order, behind the header and the
//! definitions.

use std::io::{self, Write};
use std::path::PathBuf;

use gmmtrace_format::Kind;
use gmmtrace_format::event::Flags;
use gmmtrace_format::kind::{Operand, copy};
use gmmtrace_format::layout::Counter;

use super::output::Output;
use crate::Error;
use crate::analysis::names::SiteName;
use crate::input::{self, Dictionary, Frame, Log, Salvage, Stack};
use crate::order::{self, LaneStart, Record, Sink};
use crate::render::clean;
use crate::report::layer_name;

/// Arguments of `dump`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A log, or a directory of logs.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// When the log cannot be read or the text not be written.
pub fn run(arguments: &Arguments) -> Result<u8, Error> {
    let mut output = Output::open(None, false, &[])?;
    for path in input::logs(&arguments.trace)? {
        let log = Log::open(&path)?;
        let written = write(&log, &mut output.writer());
        written.map_err(|error| output.failed(error))?;
    }
    output.finish()?;
    Ok(0)
}

/// Writes everything in `log` to `out`.
///
/// # Errors
/// As `out` says.
pub fn write(log: &Log, out: &mut impl Write) -> io::Result<()> {
    header(log, out)?;
    definitions(log, out)?;
    let mut printer = Printer { log, out, lanes: Vec::new(), failed: None };
    let outcome = order::run(log, &mut printer);
    if let Some(error) = printer.failed {
        return Err(error);
    }
    for damage in log.salvage.iter().chain(&outcome.salvage) {
        salvage(damage, out)?;
    }
    Ok(())
}

fn header(log: &Log, out: &mut impl Write) -> io::Result<()> {
    let process = &log.process;
    let optional = |text: &Option<String>| text.as_deref().map_or("unknown".to_owned(), clean);
    writeln!(out, "log {}", clean(&log.path.display().to_string()))?;
    writeln!(out, "size {}", log.size)?;
    writeln!(out, "state {}", log.state.name())?;
    writeln!(out, "pid {} parent {}", process.pid, process.parent_pid)?;
    writeln!(out, "generation {}", process.generation)?;
    writeln!(out, "executable {}", optional(&process.executable))?;
    writeln!(out, "command {}", clean(&process.command_line.join(" ")))?;
    writeln!(out, "directory {}", optional(&process.directory))?;
    writeln!(out, "host {} kernel {}", optional(&process.host), optional(&process.kernel))?;
    writeln!(out, "recorder {}", optional(&process.recorder))?;
    writeln!(out, "start_realtime_ns {}", process.start_realtime_ns)?;
    for variable in &process.environment {
        writeln!(out, "environment {}", clean(variable))?;
    }
    for remark in process.remarks.iter().chain(&log.dictionary.remarks) {
        writeln!(out, "remark {}", clean(remark))?;
    }
    for &counter in Counter::ALL {
        writeln!(out, "counter {} {}", counter.name(), log.counters.get(counter))?;
    }
    Ok(())
}

fn definitions(log: &Log, out: &mut impl Write) -> io::Result<()> {
    let dictionary = &log.dictionary;
    if let Some(driver) = &dictionary.driver {
        writeln!(out, "driver {}", clean(driver))?;
    }
    for (gpu, facts) in &dictionary.gpus {
        let (name, uuid) = (clean(&facts.name), clean(&facts.uuid));
        writeln!(out, "gpu {} total={} uuid={uuid} name={name}", gpu.0, facts.total.0)?;
    }
    for (id, api) in sorted(&dictionary.apis) {
        let layer = api.layer.map_or("unknown", layer_name);
        writeln!(out, "api {id} {layer} {}", clean(&api.name))?;
    }
    for (id, module) in sorted(&dictionary.modules) {
        let (start, end) = (module.start, module.end);
        let build = &module.build_id;
        writeln!(out, "module {id} {start}..{end} build_id={build} {}", clean(&module.path))?;
    }
    for (id, site) in sorted(&dictionary.sites) {
        let (api, outer, module) = (site.api, site.outer, site.module);
        write!(out, "site {id} api={api} outer={outer} module={module} at={}", site.address)?;
        if site.stack != Stack::default() {
            write!(out, " python={} native={}", site.stack.python, site.stack.native)?;
        }
        writeln!(out)?;
    }
    frames(dictionary, out)?;
    for lookup in &dictionary.lookups {
        let resolver = lookup.resolver.map_or("unknown", |resolver| resolver.name());
        let how = if lookup.hooked { "hooked" } else { "passed" };
        let (version, flags, count) = (lookup.version, lookup.flags, lookup.count);
        writeln!(
            out,
            "lookup {} by={resolver} {how} version={version} flags={flags} count={count} module={}",
            clean(&lookup.name),
            lookup.module,
        )?;
    }
    Ok(())
}

/// What the stacks of sites are made of.
fn frames(dictionary: &Dictionary, out: &mut impl Write) -> io::Result<()> {
    let listed = dictionary.frames.listed();
    for (id, code) in listed.codes {
        let (line, file, name) = (code.first_line, clean(&code.file), clean(&code.name));
        let lines = code.lines().map_or(0, |(_, table)| table.len());
        writeln!(out, "code {id} {file}:{line} {name} lines_bytes={lines}")?;
    }
    for (id, frame) in listed.frames {
        match frame {
            Frame::Python { code, at, entry } => {
                let line = dictionary.frames.line(*code, *at);
                let at = at.map_or("unknown".to_owned(), |at| at.to_string());
                let line = line.map_or("unknown".to_owned(), |line| line.to_string());
                writeln!(out, "python_frame {id} code={code} at={at} line={line} entry={entry}")?;
            }
            Frame::Native { address, module } => {
                writeln!(out, "native_frame {id} module={module} at={address}")?;
            }
            Frame::Gap(reason) => writeln!(out, "frame_gap {id} reason={reason}")?,
            Frame::Unknown => {}
        }
    }
    for (id, (parent, frame)) in listed.nodes {
        writeln!(out, "node {id} parent={parent} frame={frame}")?;
    }
    Ok(())
}

fn sorted<T>(table: &rustc_hash::FxHashMap<u32, T>) -> Vec<(&u32, &T)> {
    let mut rows: Vec<(&u32, &T)> = table.iter().collect();
    rows.sort_by_key(|&(id, _)| *id);
    rows
}

fn salvage(damage: &Salvage, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "salvage {damage}")
}

struct Printer<'a, W> {
    log: &'a Log,
    out: &'a mut W,
    /// Kernel ids of the threads.
    lanes: Vec<u32>,
    failed: Option<io::Error>,
}

impl<W: Write> Sink for Printer<'_, W> {
    fn lane(&mut self, _ordinal: u32, start: &LaneStart) {
        self.lanes.push(start.tid);
    }

    fn records(&mut self, lane: u32, records: &[Record], texts: &[u8]) {
        for record in records {
            if self.failed.is_some() {
                return;
            }
            let lane = lane.saturating_add(u32::from(record.lane));
            self.failed = self.record(lane, record, texts).err();
        }
    }

    fn is_done(&self) -> bool {
        self.failed.is_some()
    }
}

impl<W: Write> Printer<'_, W> {
    fn record(&mut self, lane: u32, record: &Record, texts: &[u8]) -> io::Result<()> {
        let at = self.log.timeline.at(record.stamp()).0;
        let took = self.log.timeline.length(record.duration()).0;
        let tid = self.lanes.get(lane as usize).copied().unwrap_or(0);
        write!(self.out, "{at} {tid} ")?;
        match Kind::from_id(record.kind) {
            Some(kind) => {
                write!(self.out, "{}", kind.name())?;
                self.operands(kind, record, texts)?;
            }
            None => write!(self.out, "kind_{:#04x}", record.kind)?,
        }
        if took > 0 {
            write!(self.out, " took={took}")?;
        }
        if record.failed() {
            write!(self.out, " status={}", record.status)?;
        }
        if record.flags().has(Flags::CUT) {
            write!(self.out, " cut")?;
        }
        self.site(record)?;
        writeln!(self.out)
    }

    fn operands(&mut self, kind: Kind, record: &Record, texts: &[u8]) -> io::Result<()> {
        let named = kind.operands().iter().zip(kind.roles());
        for ((&operand, role), &value) in named.zip(record.operands()) {
            match operand {
                Operand::Number if kind == Kind::Sample && *role == SHIFTED => {
                    // As it is meant, not as it is written.
                    match value.checked_sub(1) {
                        Some(value) => write!(self.out, " {role}={value}")?,
                        None => write!(self.out, " {role}=unknown")?,
                    }
                }
                Operand::Number if kind == Kind::Copy => {
                    write!(self.out, " {role}={}", copy_mode(value))?;
                }
                Operand::Number | Operand::Size => write!(self.out, " {role}={value}")?,
                Operand::Signed => write!(self.out, " {role}={}", value.cast_signed())?,
                Operand::Text => {
                    let text = String::from_utf8_lossy(record.text(texts));
                    write!(self.out, " {role}=\"{}\"", clean(&text))?;
                }
                _ => write!(self.out, " {role}={value:#x}")?,
            }
        }
        Ok(())
    }

    fn site(&mut self, record: &Record) -> io::Result<()> {
        if record.site == 0 {
            return Ok(());
        }
        let site = self.log.dictionary.sites.get(&record.site).copied();
        let name = SiteName::of(site, &self.log.dictionary);
        write!(self.out, " site={}", record.site)?;
        if let Some(api) = &name.api {
            write!(self.out, " api={}", clean(api))?;
        }
        if let Some(call) = &name.call {
            write!(self.out, " outer={}", clean(call))?;
        }
        if let Some(stack) = site.map(|site| site.stack).filter(|stack| *stack != Stack::default())
        {
            write!(self.out, " python={} native={}", stack.python, stack.native)?;
        }
        match name.library.as_deref() {
            Some("") => write!(self.out, " library=executable"),
            Some(path) => write!(self.out, " library={}", clean(path)),
            None => Ok(()),
        }
    }
}

/// The operand of a sample that is 0 for unknown, else one more than what it says.
const SHIFTED: &str = "process_used";

fn copy_mode(mode: u64) -> String {
    let direction = crate::live::Direction::of_mode(mode);
    let name = match (direction, mode & copy::DIRECTION) {
        (Some(direction), _) => direction.name().to_owned(),
        (None, copy::UNIFIED) => "unified".to_owned(),
        (None, other) => format!("direction_{other}"),
    };
    if mode & copy::ASYNCHRONOUS == 0 { name } else { format!("{name}+async") }
}
