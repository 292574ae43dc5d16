//! Where the file of an object is on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, elf};

use super::{Missing, Object};
use crate::input::Module;

/// Where distributions put separate debug information.
const DEBUG: &str = "/usr/lib/debug";

/// Opens an object and what belongs to it.
pub fn object(folders: &[PathBuf], path: &str, module: &Module) -> Result<Object, Missing> {
    let mut other = Missing::NoFile;
    let candidates = candidates(folders, path, &module.build_id);
    for candidate in candidates.into_iter().filter(|candidate| candidate.is_file()) {
        match facts(&candidate) {
            Ok(facts) if !module.build_id.is_empty() && facts.build_id != module.build_id => {
                other = Missing::OtherBuild(facts.build_id);
            }
            Ok(facts) => {
                let object = Loader::new(&candidate)
                    .map_err(|error| Missing::Unreadable(error.to_string()))?;
                let debug =
                    debug(folders, &candidate, &facts).and_then(|file| Loader::new(file).ok());
                return Ok(Object { bias: module.start.0.wrapping_sub(facts.base), object, debug });
            }
            Err(error) => other = Missing::Unreadable(error),
        }
    }
    Err(other)
}

/// What an object's file says of it.
struct Facts {
    build_id: String,
    /// The page of its lowest address.
    base: u64,
    /// The name of the file with its debug information.
    link: Option<String>,
}

/// Files that may be the object: in the folders by path, by name and by build id, then its own.
fn candidates(folders: &[PathBuf], path: &str, build_id: &str) -> Vec<PathBuf> {
    let path = Path::new(path);
    let mut found = Vec::new();
    for folder in folders {
        found.push(folder.join(path.strip_prefix("/").unwrap_or(path)));
        found.extend(path.file_name().map(|name| folder.join(name)));
        found.extend(by_build_id(folder, build_id));
    }
    found.push(path.to_owned());
    found
}

/// `.build-id/ab/cdef….debug` below a folder, and without the end for objects themselves.
fn by_build_id(folder: &Path, build_id: &str) -> Vec<PathBuf> {
    let Some((head, tail)) = build_id.split_at_checked(2).filter(|(_, tail)| !tail.is_empty())
    else {
        return Vec::new();
    };
    let below = folder.join(".build-id").join(head);
    vec![below.join(tail), below.join(format!("{tail}.debug"))]
}

/// The separate file of debug information.
fn debug(folders: &[PathBuf], object: &Path, facts: &Facts) -> Option<PathBuf> {
    let places = folders.iter().map(PathBuf::as_path).chain([Path::new(DEBUG)]);
    let mut found: Vec<PathBuf> =
        places.flat_map(|folder| by_build_id(folder, &facts.build_id)).collect();
    if let (Some(link), Some(folder)) = (&facts.link, object.parent()) {
        found.push(folder.join(link));
        found.push(folder.join(".debug").join(link));
        found.push(Path::new(DEBUG).join(folder.strip_prefix("/").unwrap_or(folder)).join(link));
    }
    let sound = |file: &PathBuf| {
        file.is_file()
            && file != object
            && facts_of_debug(file).is_ok_and(|build_id| build_id == facts.build_id)
    };
    found.into_iter().find(sound)
}

fn facts_of_debug(path: &Path) -> Result<String, String> {
    facts(path).map(|facts| facts.build_id)
}

fn facts(path: &Path) -> Result<Facts, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let cache = object::ReadCache::new(file);
    let data = &cache;
    let header = elf::FileHeader64::<Endianness>::parse(data).map_err(|error| error.to_string())?;
    let endian = header.endian().map_err(|error| error.to_string())?;
    let headers = header.program_headers(endian, data).map_err(|error| error.to_string())?;
    let loads = headers.iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
    let base = loads.map(|header| header.p_vaddr(endian)).min().unwrap_or(0) & !0xfff;
    let file = object::File::parse(data).map_err(|error| error.to_string())?;
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let build_id = file.build_id().ok().flatten().map(hexadecimal).unwrap_or_default();
    let link = file.gnu_debuglink().ok().flatten();
    let link = link.map(|(name, _)| String::from_utf8_lossy(name).into_owned());
    Ok(Facts { build_id, base, link })
}
