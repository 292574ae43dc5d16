//! The chain of calls above an event as people read it: Python and native frames in call order, the
//! innermost first.
//!
//! A stack is recorded as two chains. Each evaluation loop of the interpreter, a native function,
//! runs some of the Python frames, the last of them marked as its entry; so these stand in the loop's
//! place, and the interpreter's own functions around it are left out.

use std::fmt;
use std::sync::Arc;

use gmmtrace_format::definition::gap;

use super::names::PythonLine;
use crate::input::{Dictionary, Frame, Frames, Stack};
use crate::symbols::Symbols;
use crate::units::Address;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// A Python function.
    Python(PythonLine),
    /// A native function.
    Native(Native),
    /// Calls that could not be read, and why: a name of [`gap::NAMES`].
    Gap(&'static str),
}

/// A native function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Native {
    /// Path of the object that it lies in, empty when unknown.
    pub module: Arc<str>,
    /// Its name, demangled; `None` when it is not known.
    pub function: Option<Arc<str>>,
    /// Its source file.
    pub file: Option<Arc<str>>,
    /// The line.
    pub line: Option<u32>,
    /// Whether it was built into the function that called it.
    pub inlined: bool,
    /// Where it goes on, from the object's start; the address itself where the object is unknown.
    pub offset: u64,
}

/// As it stands in a list: `service.py:42 handle`, `malloc`, `libtorch.so+0x1234`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Python(line) => line.fmt(f),
            Self::Native(native) => native.fmt(f),
            Self::Gap(reason) => write!(f, "[{}]", reason.replace('_', " ")),
        }
    }
}

impl fmt::Display for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => f.write_str(function),
            None if self.module.is_empty() => write!(f, "{:#x}", self.offset),
            None => {
                let name = self.module.rsplit('/').next().unwrap_or(&self.module);
                write!(f, "{name}+{:#x}", self.offset)
            }
        }
    }
}

/// What chains are made from.
pub struct Chains<'a> {
    dictionary: &'a Dictionary,
    /// Path of the executable, which modules do not name.
    executable: &'a str,
    symbols: Symbols,
}

impl<'a> Chains<'a> {
    /// Chains of a log's stacks, with names from these symbols.
    #[must_use]
    pub const fn new(dictionary: &'a Dictionary, executable: &'a str, symbols: Symbols) -> Self {
        Self { dictionary, executable, symbols }
    }

    /// What names came from, and what was missing.
    #[must_use]
    pub const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The calls above a site, the innermost first. Empty when none were recorded.
    pub fn of(&mut self, stack: Stack) -> Vec<Call> {
        let native = self.native(stack.native);
        merged(self.python(stack.python), native)
    }

    fn python(&self, node: u32) -> Vec<(Call, bool)> {
        let frames = &self.dictionary.frames;
        let calls = frames.chain(node).map(|frame| match frame {
            Frame::Python { code, at, entry } => {
                (Call::Python(PythonLine::at(code, at, frames)), entry)
            }
            Frame::Gap(reason) => (Call::Gap(reason_of(reason)), true),
            Frame::Native { .. } | Frame::Unknown => (Call::Gap("unknown"), true),
        });
        calls.collect()
    }

    fn native(&mut self, node: u32) -> Vec<Call> {
        let mut calls = Vec::new();
        for frame in self.dictionary.frames.chain(node) {
            match frame {
                Frame::Native { address, module } => self.functions(address, module, &mut calls),
                Frame::Gap(reason) => calls.push(Call::Gap(reason_of(reason))),
                Frame::Python { .. } | Frame::Unknown => calls.push(Call::Gap("unknown")),
            }
        }
        calls
    }

    /// The functions that a return address lies in.
    fn functions(&mut self, address: Address, id: u32, calls: &mut Vec<Call>) {
        let module = self.dictionary.modules.get(&id);
        let path: Arc<str> = match module {
            Some(module) if module.path.is_empty() => self.executable.into(),
            Some(module) => Arc::clone(&module.path),
            None => "".into(),
        };
        let offset = address.0.wrapping_sub(module.map_or(0, |module| module.start.0));
        let plain =
            Native { module: path, function: None, file: None, line: None, inlined: false, offset };
        let symbols = module
            .map(|module| self.symbols.before(id, module, self.executable, address))
            .unwrap_or_default();
        if symbols.is_empty() {
            calls.push(Call::Native(plain));
            return;
        }
        calls.extend(symbols.iter().map(|symbol| {
            Call::Native(Native {
                function: Some(Arc::clone(&symbol.function)),
                file: symbol.file.clone(),
                line: symbol.line,
                inlined: symbol.inlined,
                ..plain.clone()
            })
        }));
    }
}

impl PythonLine {
    /// The place of a frame.
    #[must_use]
    pub fn at(code: u32, at: Option<u64>, frames: &Frames) -> Self {
        let line = frames.line(code, at);
        match frames.code(code) {
            Some(object) => {
                let (file, function) = (Arc::clone(&object.file), Arc::clone(&object.name));
                Self { file, line, function }
            }
            None => Self { file: "".into(), line, function: "unknown".into() },
        }
    }
}

fn reason_of(reason: u64) -> &'static str {
    let named = gap::NAMES.iter().find(|&&(code, _)| code == reason);
    named.map_or("unknown", |&(_, name)| name)
}

/// Whether a native function is an evaluation loop of the interpreter.
fn is_loop(call: &Call) -> bool {
    let Call::Native(Native { function: Some(name), .. }) = call else { return false };
    // Compilers split a part off and name it `….cold`.
    name.split('.').next() == Some("_PyEval_EvalFrameDefault")
}

/// Both chains in call order.
fn merged(python: Vec<(Call, bool)>, native: Vec<Call>) -> Vec<Call> {
    if python.is_empty() {
        return native;
    }
    let interpreter = native.iter().find(|call| is_loop(call)).and_then(module).cloned();
    // Without the loop's name the interpreter's own calls cannot be told from others.
    let Some(interpreter) = interpreter else {
        return python.into_iter().map(|(call, _)| call).collect();
    };
    let mut calls = Vec::with_capacity(python.len() + native.len());
    let mut python = python.into_iter();
    for call in native {
        if is_loop(&call) {
            for (call, entry) in python.by_ref() {
                calls.push(call);
                if entry {
                    break;
                }
            }
        } else if module(&call) != Some(&interpreter) {
            calls.push(call);
        }
    }
    // Those whose loop lies behind a gap of the native chain.
    calls.extend(python.map(|(call, _)| call));
    calls
}

fn module(call: &Call) -> Option<&Arc<str>> {
    match call {
        Call::Native(native) => Some(&native.module),
        Call::Python(_) | Call::Gap(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(function: &str, entry: bool) -> (Call, bool) {
        let line = PythonLine { file: "a.py".into(), line: Some(1), function: function.into() };
        (Call::Python(line), entry)
    }

    fn native(module: &str, function: &str) -> Call {
        Call::Native(Native {
            module: module.into(),
            function: (!function.is_empty()).then(|| function.into()),
            file: None,
            line: None,
            inlined: false,
            offset: 16,
        })
    }

    fn shown(calls: &[Call]) -> Vec<String> {
        calls.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn python_frames_stand_where_their_loop_stands() {
        let chain = [
            native("libtorch.so", "at::empty"),
            native("python", "cfunction_call"),
            native("python", "_PyEval_EvalFrameDefault.cold"),
            native("python", "_PyFunction_Vectorcall"),
            native("libtorch.so", "apply"),
            native("python", "_PyEval_EvalFrameDefault"),
            native("python", "main"),
            native("libc.so.6", ""),
        ];
        let frames = vec![python("f", false), python("g", true), python("<module>", true)];
        let expected =
            ["at::empty", "a.py:1 f", "a.py:1 g", "apply", "a.py:1 <module>", "libc.so.6+0x10"];
        assert_eq!(shown(&merged(frames, chain.to_vec())), expected);
    }

    #[test]
    fn frames_behind_a_gap_come_after_it() {
        let chain = vec![
            native("a.so", "f"),
            native("python", "_PyEval_EvalFrameDefault"),
            native("python", "call"),
            Call::Gap("no_rule"),
        ];
        let frames = vec![python("g", true), python("h", true)];
        assert_eq!(shown(&merged(frames, chain)), ["f", "a.py:1 g", "[no rule]", "a.py:1 h"]);
    }

    #[test]
    fn one_chain_alone_is_the_whole() {
        let alone = vec![native("a.so", "f"), Call::Gap("depth")];
        assert_eq!(merged(Vec::new(), alone.clone()), alone);
        let frames = || vec![python("g", true), python("h", true)];
        assert_eq!(shown(&merged(frames(), Vec::new())), ["a.py:1 g", "a.py:1 h"]);
        // An interpreter without names: which frames are its own cannot be told.
        let unnamed = vec![native("a.so", "f"), native("python", "")];
        assert_eq!(shown(&merged(frames(), unnamed)), ["a.py:1 g", "a.py:1 h"]);
    }
}
