//! Every rule of the objects that this process has mapped, beside what another reader of the same
//! tables says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "figures")]

use std::ffi::{CStr, c_int, c_void};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, X86_64,
};
use gmmtrace_unwind::{Object, Rule, rule};

/// An object's name, its place and the length of its `.eh_frame` section from its file.
struct Mapped {
    path: String,
    bias: u64,
    object: Object,
}

unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: what `dl_iterate_phdr` hands out, and what `mapped` gave it.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<Mapped>>()) };
    // SAFETY: the loader's table of segments and its name.
    let (headers, path) = unsafe {
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        (headers, CStr::from_ptr(info.dlpi_name).to_string_lossy().into_owned())
    };
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let header = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME);
    if let (Some(header), true) = (header, !path.contains("vdso")) {
        let start = loads().map(|header| header.p_vaddr).min().unwrap();
        let end = loads().map(|header| header.p_vaddr + header.p_memsz).max().unwrap();
        let [start, end, header] = [start, end, header.p_vaddr].map(|at| info.dlpi_addr + at);
        let path = if path.is_empty() { "/proc/self/exe".to_owned() } else { path };
        found.push(Mapped { path, bias: info.dlpi_addr, object: Object { start, end, header } });
    }
    0
}

fn mapped() -> Vec<Mapped> {
    let mut found: Vec<Mapped> = Vec::new();
    // SAFETY: the callback gets the vector for as long as the call lasts.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut found).cast()) };
    found
}

/// What a row of the other reader amounts to here.
fn expected(row: &gimli::UnwindTableRow<usize>, signal: bool) -> Rule {
    if signal {
        return Rule::Unknown;
    }
    if row.register(X86_64::RA) == RegisterRule::Undefined {
        return Rule::Outermost;
    }
    if row.register(X86_64::RA) != RegisterRule::Offset(-8) {
        return Rule::Unknown;
    }
    let frame_pointer = match row.register(X86_64::RBP) {
        // What is not told is as it was.
        RegisterRule::Undefined | RegisterRule::SameValue => None,
        RegisterRule::Offset(offset) => Some(i32::try_from(offset).unwrap()),
        _ => return Rule::Unknown,
    };
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset }
            if *register == X86_64::RSP || *register == X86_64::RBP =>
        {
            let above = i32::try_from(*offset).unwrap();
            Rule::Frame { by_frame_pointer: *register == X86_64::RBP, above, frame_pointer }
        }
        _ => Rule::Unknown,
    }
}

#[test]
fn rules_are_those_that_another_reader_finds() {
    // More objects, and such as were made by several compilers.
    for name in [c"libstdc++.so.6", c"libpython3.11.so.1.0", c"libcrypto.so.3", c"libm.so.6"] {
        // SAFETY: loads a library for good.
        unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    }
    let mut known = 0;
    for Mapped { path, bias, object } in mapped() {
        use object::{Object as _, ObjectSection as _};
        let file = std::fs::read(&path).unwrap();
        let file = object::File::parse(&*file).unwrap();
        let Some(section) = file.section_by_name(".eh_frame") else { continue };
        let bytes = section.data().unwrap();
        let table = EhFrame::new(bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(section.address() + bias);
        let mut context = UnwindContext::new();
        let (mut same, mut realigned, mut rows) = (0, 0, 0);
        let mut entries = table.entries(&bases);
        while let Some(entry) = entries.next().unwrap() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let entry = partial.parse(EhFrame::cie_from_offset).unwrap();
            if entry.initial_address() < object.start {
                continue;
            }
            let mut table = entry.rows(&table, &bases, &mut context).unwrap();
            while let Some(row) = table.next_row().unwrap() {
                if row.start_address() >= row.end_address() {
                    continue;
                }
                let expected = expected(row, entry.is_signal_trampoline());
                for address in [row.start_address(), row.end_address() - 1] {
                    // SAFETY: a mapped object.
                    let found = unsafe { rule(&object, address) };
                    rows += 1;
                    if let Rule::Realigned { kept } = found {
                        assert_eq!(expected, Rule::Unknown, "{path} {address:#x}");
                        realigned += u64::from(is_realigned(row, kept, bytes));
                        continue;
                    }
                    assert_eq!(found, expected, "{path} {:#x}", address - bias);
                    same += u64::from(found != Rule::Unknown);
                }
            }
        }
        println!("{path}: {rows} addresses, {same} with a rule, {realigned} realigned");
        assert!(rows > 0, "{path}");
        known += same + realigned;
    }
    assert!(known > 10_000, "{known}");
}

/// Whether the row's expressions are those of a stack that was aligned.
fn is_realigned(row: &gimli::UnwindTableRow<usize>, kept: i32, section: &[u8]) -> bool {
    let operations = |expression: gimli::UnwindExpression<usize>| {
        let table = EhFrame::new(section, LittleEndian);
        let bytes: EndianSlice<'_, LittleEndian> = expression.get(&table).unwrap().0;
        bytes.slice().to_vec()
    };
    let CfaRule::Expression(frame) = row.cfa() else { panic!("{row:?}") };
    let RegisterRule::Expression(pointer) = row.register(Register(6)) else { panic!("{row:?}") };
    let mut expected = vec![0x76];
    let mut rest = kept;
    loop {
        let byte = (rest & 0x7f) as u8;
        rest >>= 7;
        let last = rest == 0 && byte & 0x40 == 0 || rest == -1 && byte & 0x40 != 0;
        expected.push(if last { byte } else { byte | 0x80 });
        if last {
            break;
        }
    }
    expected.push(0x06);
    assert_eq!(operations(*frame), expected, "what lies at the frame pointer's offset");
    assert_eq!(operations(pointer), [0x76, 0x00], "the place that it points to");
    true
}

/// Tables that are damaged give a wrong rule or none, and nothing is read outside of them.
#[test]
fn damaged_tables_do_no_harm() {
    let code = mapped().into_iter().find(|object| object.path.contains("libc.so")).unwrap();
    let length = usize::try_from(code.object.end - code.object.start).unwrap();
    let file = std::fs::read(&code.path).unwrap();
    let mut copy = vec![0; length];
    let count = file.len().min(length);
    copy[..count].copy_from_slice(&file[..count]);
    // Segments of libc that hold no data lie in memory as in the file.
    let header = usize::try_from(code.object.header - code.object.start).unwrap();
    let mut state: u64 = 1;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 33
    };
    let mut rules = 0;
    for _ in 0..20_000 {
        let mut damaged = Vec::new();
        for _ in 0..random() % 8 {
            let at = header + usize::try_from(random()).unwrap() % (length - header);
            damaged.push((at, copy[at]));
            copy[at] = random() as u8;
        }
        let start = copy.as_ptr() as u64;
        // An end that is too early, now and then.
        let end = start
            + if random() % 4 == 0 { header as u64 + random() % 65536 } else { length as u64 };
        let object =
            Object { start, end: end.min(start + length as u64), header: start + header as u64 };
        for _ in 0..16 {
            let address = start + random() % length as u64;
            // SAFETY: all of the copy can be read.
            rules += u64::from(unsafe { rule(&object, address) } != Rule::Unknown);
        }
        for (at, byte) in damaged.into_iter().rev() {
            copy[at] = byte;
        }
    }
    println!("{rules} rules");
    assert!(rules > 0);
}
