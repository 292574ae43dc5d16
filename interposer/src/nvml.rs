//! Device memory as NVML tells it. Loaded by the helper if the machine has it.

use core::ffi::{CStr, c_char, c_uint, c_void};

use gmmtrace_format::definition::Definition;
use gmmtrace_format::kind::Kind;

use crate::session::Session;
use crate::{clock, record};

/// Devices that are sampled.
const DEVICES: usize = 32;
/// Processes of one device that are looked through.
const PROCESSES: usize = 256;

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Default)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlProcessInfo_t` of the _v3 call.
#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    pid: c_uint,
    used: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

type Init = unsafe extern "C" fn() -> c_uint;
type Count = unsafe extern "C" fn(*mut c_uint) -> c_uint;
type ByIndex = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_uint;
type MemoryInfo = unsafe extern "C" fn(*mut c_void, *mut Memory) -> c_uint;
type Processes = unsafe extern "C" fn(*mut c_void, *mut c_uint, *mut Process) -> c_uint;
type Text = unsafe extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_uint;
type Version = unsafe extern "C" fn(*mut c_char, c_uint) -> c_uint;

/// NVML, or its absence: then there are no devices.
pub struct Nvml {
    devices: [*mut c_void; DEVICES],
    count: usize,
    memory: Option<MemoryInfo>,
    processes: Option<Processes>,
}

/// A function of NVML's.
fn function(handle: *mut c_void, name: &CStr) -> Option<usize> {
    let dlsym = crate::libc_symbols::dlsym()?;
    // SAFETY: a handle of a loaded object and a C string.
    let found = unsafe { dlsym(handle, name.as_ptr()) } as usize;
    (found != 0).then_some(found)
}

macro_rules! function {
    ($handle:expr, $name:literal, $type:ty) => {
        function($handle, $name).map(|address| {
            // SAFETY: the symbol's address, and NVML's signature for it.
            unsafe { core::mem::transmute::<usize, $type>(address) }
        })
    };
}

impl Nvml {
    /// Loads NVML and defines the machine's GPUs and driver.
    pub fn open(session: &Session) -> Self {
        let mut this = Self {
            devices: [core::ptr::null_mut(); DEVICES],
            count: 0,
            memory: None,
            processes: None,
        };
        // SAFETY: loads a library of the driver's; absence is an answer.
        let handle = unsafe {
            libc::dlopen(c"libnvidia-ml.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL)
        };
        if handle.is_null() {
            return this;
        }
        let (Some(init), Some(count), Some(by_index)) = (
            function!(handle, c"nvmlInit_v2", Init),
            function!(handle, c"nvmlDeviceGetCount_v2", Count),
            function!(handle, c"nvmlDeviceGetHandleByIndex_v2", ByIndex),
        ) else {
            return this;
        };
        // SAFETY: NVML's own order of calls.
        if unsafe { init() } != 0 {
            return this;
        }
        this.memory = function!(handle, c"nvmlDeviceGetMemoryInfo", MemoryInfo);
        this.processes = function!(handle, c"nvmlDeviceGetComputeRunningProcesses_v3", Processes);
        let mut devices = 0;
        // SAFETY: out-parameters of ours.
        if unsafe { count(&raw mut devices) } != 0 {
            return this;
        }
        for (index, device) in this.devices.iter_mut().enumerate().take(devices as usize) {
            // SAFETY: as above.
            if unsafe { by_index(index as c_uint, device) } != 0 {
                break;
            }
            this.count += 1;
        }
        this.define(session, handle);
        this
    }

    fn define(&self, session: &Session, handle: *mut c_void) {
        let mut text = [0_u8; 128];
        if let Some(version) = function!(handle, c"nvmlSystemGetDriverVersion", Version) {
            // SAFETY: NVML writes at most the length given.
            if unsafe { version(text.as_mut_ptr().cast(), text.len() as c_uint) } == 0 {
                let definition = Definition::Driver { version: until_nul(&text) };
                session.dictionary.define(session.log, clock::now(), &definition);
            }
        }
        let uuid_of = function!(handle, c"nvmlDeviceGetUUID", Text);
        let name_of = function!(handle, c"nvmlDeviceGetName", Text);
        for (index, &device) in self.devices.iter().enumerate().take(self.count) {
            let (mut uuid, mut name) = ([0_u8; 96], [0_u8; 96]);
            for (function, text) in [(uuid_of, &mut uuid), (name_of, &mut name)] {
                if let Some(function) = function {
                    // SAFETY: NVML writes at most the length given.
                    unsafe { function(device, text.as_mut_ptr().cast(), text.len() as c_uint) };
                }
            }
            let total = self.memory_of(device).map_or(0, |memory| memory.total);
            let definition = Definition::Gpu {
                index: index as u32,
                total,
                uuid: until_nul(&uuid),
                name: until_nul(&name),
            };
            session.dictionary.define(session.log, clock::now(), &definition);
        }
    }

    fn memory_of(&self, device: *mut c_void) -> Option<Memory> {
        let mut memory = Memory::default();
        let function = self.memory?;
        // SAFETY: NVML's handle and a structure of ours.
        (unsafe { function(device, &raw mut memory) } == 0).then_some(memory)
    }

    /// Bytes that this process uses on a device, where NVML's pids are ours.
    fn process_of(&self, device: *mut c_void, pid: i32) -> Option<u64> {
        let function = self.processes?;
        let empty = Process { pid: 0, used: 0, gpu_instance: 0, compute_instance: 0 };
        let mut list = [empty; PROCESSES];
        let mut count = PROCESSES as c_uint;
        // SAFETY: NVML writes at most `count` entries.
        if unsafe { function(device, &raw mut count, list.as_mut_ptr()) } != 0 {
            return None;
        }
        let ours = list.iter().take(count as usize).find(|entry| entry.pid == pid.cast_unsigned());
        ours.map(|entry| entry.used).filter(|&used| used != u64::MAX)
    }

    /// Writes one reading of every device.
    pub fn sample(&self, session: &Session) {
        for (index, &device) in self.devices.iter().enumerate().take(self.count) {
            let Some(memory) = self.memory_of(device) else { continue };
            let used = self.process_of(device, session.pid).map_or(0, |used| used + 1);
            let operands = [index as u64, memory.used, memory.total, used, 0];
            record::fact(Kind::Sample, operands, &[]);
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(&[])
}
