//! Why a program may not be reachable by `LD_PRELOAD`: read from its file.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, elf};

/// Bytes of an executable that hold its program headers.
const HEAD: usize = 1 << 16;

/// What keeps the library out of this program, if its file tells.
#[must_use]
pub fn obstacle(program: &OsStr) -> Option<String> {
    let path = locate(program)?;
    let shown = path.display();
    let mode = fs::metadata(&path).ok()?.permissions().mode();
    if mode & 0o6000 != 0 {
        return Some(format!("{shown} is setuid or setgid: the loader ignores LD_PRELOAD for it"));
    }
    let bytes = head(&path)?;
    if bytes.starts_with(b"#!") {
        let interpreter = bytes.get(2..)?.split(|byte| *byte == b'\n').next()?;
        let interpreter = String::from_utf8_lossy(interpreter);
        let first = interpreter.split_whitespace().next()?.to_owned();
        return obstacle(OsStr::new(&first));
    }
    let elf = elf::FileHeader64::<LittleEndian>::parse(&*bytes).ok();
    let Some(header) = elf.filter(|header| header.e_machine(LittleEndian) == elf::EM_X86_64) else {
        return bytes
            .starts_with(b"\x7fELF")
            .then(|| format!("{shown} is not an x86-64 program, and the library is"));
    };
    let segments = header.program_headers(LittleEndian, &*bytes).ok()?;
    let interpreter = segments
        .iter()
        .find_map(|segment| segment.interpreter(LittleEndian, &*bytes).ok().flatten());
    match interpreter {
        None => Some(format!("{shown} is a static program: it has no loader to preload into")),
        Some(loader) if !loader.windows(8).any(|part| part == b"ld-linux") => Some(format!(
            "{shown} uses the loader {}, and the library needs glibc's",
            String::from_utf8_lossy(loader)
        )),
        Some(_) => None,
    }
}

fn locate(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() {
        return Some(path.to_path_buf());
    }
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths).map(|folder| folder.join(path)).find(|path| path.is_file())
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let opened = fs::File::open(path).ok()?;
    let mut bytes = vec![0; HEAD];
    let length = crate::input::read_up_to(&opened, &mut bytes, 0).ok()?;
    bytes.truncate(length);
    Some(bytes)
}
