//! Names for native addresses: functions, files and lines, from the objects that the process had
//! loaded, as they lie on this machine.
//!
//! An object is used only when it is the one that was loaded: its build id is compared. One that is
//! missing, or another build, gives no names, and [`Symbols::missing`] says which.

mod find;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use addr2line::Loader;

use crate::input::Module;
use crate::units::Address;

/// What stands at an address: a function, and the place in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol {
    /// The function, demangled.
    pub function: Arc<str>,
    /// Its source file.
    pub file: Option<Arc<str>>,
    /// The line.
    pub line: Option<u32>,
    /// Whether it was built into the function after it.
    pub inlined: bool,
}

/// Why an object gives no names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// No file with this name.
    NoFile,
    /// The file is another build; its build id.
    OtherBuild(String),
    /// It cannot be read, and why.
    Unreadable(String),
}

/// Names of the addresses of a process.
#[derive(Default)]
pub struct Symbols {
    folders: Vec<PathBuf>,
    /// By module id.
    objects: HashMap<u32, Option<Object>>,
    known: HashMap<(u32, Address), Arc<[Symbol]>>,
    missing: BTreeMap<String, Missing>,
}

/// An object with its separate file of debug information, if there is one.
struct Object {
    /// What is to be taken off an address of the process.
    bias: u64,
    object: Loader,
    debug: Option<Loader>,
}

impl Symbols {
    /// Looks for objects in these folders first: at the object's own path below them, by its name,
    /// and by its build id.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, ..Self::default() }
    }

    /// What stands before a return address, in the call that will return there: the innermost
    /// inlined function first. Empty when nothing is known.
    pub fn before(
        &mut self,
        id: u32,
        module: &Module,
        executable: &str,
        back: Address,
    ) -> Arc<[Symbol]> {
        if let Some(known) = self.known.get(&(id, back)) {
            return Arc::clone(known);
        }
        if !self.objects.contains_key(&id) {
            let path = if module.path.is_empty() { executable } else { &module.path };
            let opened = match find::object(&self.folders, path, module) {
                Ok(object) => Some(object),
                Err(missing) => {
                    self.missing.insert(path.to_owned(), missing);
                    None
                }
            };
            self.objects.insert(id, opened);
        }
        let object = self.objects.get(&id).and_then(Option::as_ref);
        let symbols = object.map(|object| object.at(back.0.wrapping_sub(1))).unwrap_or_default();
        let symbols: Arc<[Symbol]> = symbols.into();
        self.known.insert((id, back), Arc::clone(&symbols));
        symbols
    }

    /// Objects that gave no names, by path.
    pub fn missing(&self) -> impl Iterator<Item = (&str, &Missing)> {
        self.missing.iter().map(|(path, missing)| (path.as_str(), missing))
    }
}

impl Object {
    /// The functions at an address, the innermost first.
    fn at(&self, address: u64) -> Vec<Symbol> {
        let address = address.wrapping_sub(self.bias);
        let files = [self.debug.as_ref(), Some(&self.object)];
        for file in files.into_iter().flatten() {
            let found = by_lines(file, address);
            if !found.is_empty() {
                return found;
            }
        }
        let name = files.into_iter().flatten().find_map(|file| file.find_symbol(address));
        let symbol = name.map(|name| Symbol {
            function: demangled(name).into(),
            file: None,
            line: None,
            inlined: false,
        });
        symbol.into_iter().collect()
    }
}

/// The functions at an address by debug information.
fn by_lines(file: &Loader, address: u64) -> Vec<Symbol> {
    let mut found = Vec::new();
    let Ok(mut frames) = file.find_frames(address) else { return found };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|function| {
            let name = function.raw_name().ok()?;
            Some(addr2line::demangle_auto(name, function.language).into_owned())
        });
        // A place without a function is of no use beside a symbol.
        let name = name.or_else(|| file.find_symbol(address).map(demangled));
        let Some(name) = name else { continue };
        let place = frame.location.as_ref();
        found.push(Symbol {
            function: name.into(),
            file: place.and_then(|place| place.file).map(Arc::from),
            line: place.and_then(|place| place.line).filter(|&line| line != 0),
            inlined: true,
        });
    }
    if let Some(outermost) = found.last_mut() {
        outermost.inlined = false;
    }
    found
}

fn demangled(name: &str) -> String {
    // A version behind the name is of no interest: `malloc@@GLIBC_2.2.5`.
    let name = name.split('@').next().unwrap_or(name);
    addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned()
}
