//! Builds the simulated driver, runtimes, NVML and the demo program with the system's C compiler
//! (`$CC`, else `cc`) into `OUT_DIR`, from where `src/lib.rs` embeds them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The runtimes that are built from one source.
const RUNTIMES: [&str; 2] = ["12", "13"];

struct Compiler {
    program: OsString,
    root: PathBuf,
    out: PathBuf,
}

impl Compiler {
    /// Runs the compiler on every C file of `folder` with `arguments`.
    fn build(&self, folder: &str, output: &str, arguments: &[&str]) -> Outcome {
        let mut command = self.command();
        command.args(c_files(&self.root.join(folder))?);
        command.arg("-o").arg(self.out.join(output)).args(arguments);
        run(command)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Paths of this machine do not belong into what is shipped.
        let mut map = OsString::from("-ffile-prefix-map=");
        map.push(&self.root);
        map.push("=fake-cuda");
        command.args(["-std=gnu11", "-O2", "-g", "-fPIC", "-pthread", "-Wall", "-Wextra"]);
        command.arg(map).arg("-I").arg(self.root.join("include"));
        command.arg("-I").arg(self.root.join("driver"));
        command
    }

    fn shared(&self, folder: &str, soname: &str, script: &str, more: &[&str]) -> Outcome {
        let path = self.out.join(format!("{soname}.map"));
        fs::write(&path, script)?;
        let soname_flag = format!("-Wl,-soname,{soname}");
        let script_flag = format!("-Wl,--version-script={}", path.display());
        // Calls within a library stay in it, whatever a preloaded library exports.
        let mut arguments = vec!["-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs", &soname_flag];
        arguments.push(&script_flag);
        arguments.extend(more);
        self.build(folder, soname, &arguments)
    }
}

fn main() -> Outcome {
    let compiler = Compiler {
        program: env::var_os("CC").unwrap_or_else(|| "cc".into()),
        root: env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest directory")?.into(),
        out: env::var_os("OUT_DIR").ok_or("no output directory")?.into(),
    };
    for folder in ["driver", "runtime", "nvml", "demo", "include", "build.rs"] {
        println!("cargo:rerun-if-changed={folder}");
    }
    println!("cargo:rerun-if-env-changed=CC");
    println!("cargo:rerun-if-env-changed=AR");
    driver(&compiler)?;
    runtimes(&compiler)?;
    static_runtime(&compiler)?;
    let exported = "{ global: nvml*; local: *; };";
    compiler.shared("nvml", "libnvidia-ml.so.1", exported, &["-ldl"])?;
    demo(&compiler)
}

/// Exports exactly what the table of entry points lists.
fn driver(compiler: &Compiler) -> Outcome {
    let table = fs::read_to_string(compiler.root.join("driver/table.inc"))?;
    let symbols: Vec<_> = table.lines().filter_map(symbol_of).collect();
    let script = format!("{{ global: {}; fakeCuda*; local: *; }};", symbols.join("; "));
    compiler.shared("driver", "libcuda.so.1", &script, &[])
}

/// `ROW(base, version, stream, symbol)`.
fn symbol_of(line: &str) -> Option<&str> {
    let row = line.strip_prefix("ROW(")?.strip_suffix(')')?;
    row.rsplit(", ").next()
}

fn runtimes(compiler: &Compiler) -> Outcome {
    for major in RUNTIMES {
        let soname = format!("libcudart.so.{major}");
        let script = format!("{soname} {{ global: cuda*; fakeCudart*; local: *; }};");
        let version = format!("-DCUDART_MAJOR={major}");
        compiler.shared("runtime", &soname, &script, &[&version, "-ldl"])?;
    }
    Ok(())
}

/// One relocatable object in an archive, with nothing that a program would export again.
fn static_runtime(compiler: &Compiler) -> Outcome {
    let object = compiler.out.join("cudart_static.o");
    let archive = compiler.out.join("libcudart_static.a");
    let arguments = ["-DCUDART_MAJOR=13", "-fvisibility=hidden", "-r", "-nostdlib"];
    compiler.build("runtime", "cudart_static.o", &arguments)?;
    if archive.exists() {
        fs::remove_file(&archive)?;
    }
    let mut command = Command::new(env::var_os("AR").unwrap_or_else(|| "ar".into()));
    command.arg("crs").arg(&archive).arg(&object);
    run(command)
}

fn demo(compiler: &Compiler) -> Outcome {
    let archive = compiler.out.join("libcudart_static.a");
    let archive = archive.to_str().ok_or("the output directory is not UTF-8")?;
    compiler.build("demo", "gmmtrace-demo-service", &["-rdynamic", archive, "-ldl"])
}

fn c_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn run(mut command: Command) -> Outcome {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{:?} ended with {status}", command.get_program()).into()),
        Err(error) => {
            let program = command.get_program();
            Err(format!("cannot run {program:?} ({error}): a C compiler is needed").into())
        }
    }
}
