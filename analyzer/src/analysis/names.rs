//! Call sites in words. Sites of one library, entry point, runtime call and Python line have one
//! name, whose texts are shared by everything that names it.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::input::{Dictionary, Frame, Frames, Site};
use crate::live::{SiteIndex, Sites};

/// A place in a Python program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PythonLine {
    /// The file as the interpreter names it.
    pub file: Arc<str>,
    /// The line; `None` when the instruction belongs to none.
    pub line: Option<u64>,
    /// The function's qualified name.
    pub function: Arc<str>,
}

/// As people write it: `service.py:42 handle_request`, without the folders.
impl fmt::Display for PythonLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit('/').next().unwrap_or(&self.file);
        match self.line {
            Some(line) => write!(f, "{name}:{line} {}", self.function),
            None => write!(f, "{name} {}", self.function),
        }
    }
}

impl PythonLine {
    /// The line of the program's own that called, for the chain that begins at a node: the
    /// innermost that is no part of an installed package or of Python itself, or the innermost if
    /// all are. `None` without a Python frame.
    #[must_use]
    pub fn of(node: u32, frames: &Frames) -> Option<Self> {
        let mut innermost = None;
        for frame in frames.chain(node) {
            let Frame::Python { code, at, .. } = frame else { continue };
            let Some(object) = frames.code(code) else { continue };
            let own = !is_installed(&object.file);
            if own || innermost.is_none() {
                let (file, function) = (Arc::clone(&object.file), Arc::clone(&object.name));
                innermost = Some(Self { file, line: frames.line(code, at), function });
            }
            if own {
                break;
            }
        }
        innermost
    }
}

/// Whether a file belongs to an installed package, to the standard library, or is frozen into the
/// interpreter.
fn is_installed(file: &str) -> bool {
    file.contains("/site-packages/")
        || file.contains("/dist-packages/")
        || file.contains("/lib/python3")
        || file.starts_with("<frozen ")
}

/// A call site in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteName {
    /// Path of the calling module, empty for the executable; `None` when unknown.
    pub library: Option<Arc<str>>,
    /// The entry point that made the event.
    pub api: Option<Arc<str>>,
    /// The runtime call around it.
    pub call: Option<Arc<str>>,
    /// The Python line that called.
    pub caller: Option<PythonLine>,
    /// How many call sites this stands for that a list does not name; 0 for one that it names.
    pub others: u64,
}

impl SiteName {
    /// The words for a site.
    #[must_use]
    pub fn of(site: Option<Site>, dictionary: &Dictionary) -> Self {
        let Some(site) = site else { return Self::default() };
        let name = |id| dictionary.apis.get(&id).map(|api| Arc::clone(&api.name));
        let module = dictionary.modules.get(&site.module);
        Self {
            library: module.map(|module| Arc::clone(&module.path)),
            api: name(site.api),
            call: if site.outer == 0 { None } else { name(site.outer) },
            caller: PythonLine::of(site.stack.python, &dictionary.frames),
            others: 0,
        }
    }

    /// So many sites that a list does not name.
    #[must_use]
    pub fn others(sites: u64) -> Self {
        Self { others: sites, ..Self::default() }
    }
}

/// The names of all sites of a log, each once.
#[derive(Debug, Default)]
pub struct Names {
    names: Vec<SiteName>,
    of_sites: Vec<u32>,
}

impl Names {
    /// The names of these sites.
    #[must_use]
    pub fn of(sites: &Sites, dictionary: &Dictionary) -> Self {
        let mut all = Self::default();
        let mut known: FxHashMap<SiteName, u32> = FxHashMap::default();
        for (site, _) in sites.all() {
            let name = SiteName::of(site, dictionary);
            let next = u32::try_from(all.names.len()).unwrap_or(u32::MAX);
            let group = *known.entry(name).or_insert_with_key(|name| {
                all.names.push(name.clone());
                next
            });
            all.of_sites.push(group);
        }
        all
    }

    /// The number of a site's name.
    #[must_use]
    pub fn group(&self, site: SiteIndex) -> u32 {
        self.of_sites.get(site.0 as usize).copied().unwrap_or_default()
    }

    /// The name of this number.
    #[must_use]
    pub fn name(&self, group: u32) -> &SiteName {
        const UNKNOWN: &SiteName =
            &SiteName { library: None, api: None, call: None, caller: None, others: 0 };
        self.names.get(group as usize).unwrap_or(UNKNOWN)
    }
}
