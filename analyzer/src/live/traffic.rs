//! Copies and sets, counted by what they move between.

use gmmtrace_format::kind::copy;

use super::composition::{Share, size_class};
use crate::units::{Bytes, Ticks};

macro_rules! directions {
    ($($variant:ident $mode:ident $name:literal;)*) => {
        /// From where to where a copy goes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Direction {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Direction {
            /// Every direction.
            pub const ALL: &'static [Direction] = &[$(Direction::$variant),*];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The direction of a mode that says one.
            #[must_use]
            pub const fn of_mode(mode: u64) -> Option<Self> {
                match mode & copy::DIRECTION {
                    $(copy::$mode => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        const DIRECTIONS: usize = Direction::ALL.len();
    };
}

directions! {
    HostToDevice HOST_TO_DEVICE "host_to_device";
    DeviceToHost DEVICE_TO_HOST "device_to_host";
    DeviceToDevice DEVICE_TO_DEVICE "device_to_device";
    HostToHost HOST_TO_HOST "host_to_host";
    Peer PEER "peer";
    HostToArray HOST_TO_ARRAY "host_to_array";
    ArrayToHost ARRAY_TO_HOST "array_to_host";
    ArrayToDevice ARRAY_TO_DEVICE "array_to_device";
    DeviceToArray DEVICE_TO_ARRAY "device_to_array";
    ArrayToArray ARRAY_TO_ARRAY "array_to_array";
}

/// What a copy's host side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum HostMemory {
    /// Page-locked from the start.
    Pinned,
    /// Page-locked later.
    Registered,
    /// Neither: the driver copies through a buffer of its own.
    Pageable,
}

impl HostMemory {
    /// Every kind.
    pub const ALL: &'static [Self] = &[Self::Pinned, Self::Registered, Self::Pageable];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Registered => "registered",
            Self::Pageable => "pageable",
        }
    }
}

/// A number of calls and what they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Successful calls.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of `count` that moved nothing.
    pub empty: u64,
}

impl Moved {
    /// Counts a call.
    #[inline]
    pub fn add(&mut self, bytes: Bytes) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes.0);
        self.empty += u64::from(bytes.0 == 0);
    }
}

/// One copy or set.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// What it moved.
    pub bytes: Bytes,
    /// How long the call took.
    pub length: Ticks,
}

/// Calls of one kind.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// How many, and how much.
    pub moved: Moved,
    /// Their time together.
    pub total: Ticks,
    /// The longest.
    pub max: Ticks,
    /// By [`size_class`].
    pub sizes: Vec<Share>,
}

impl Transfers {
    #[inline]
    fn add(&mut self, call: Transfer) {
        let Transfer { bytes, length } = call;
        self.moved.add(bytes);
        self.total = Ticks(self.total.0.saturating_add(length.0));
        self.max = self.max.max(length);
        let class = size_class(bytes);
        if class >= self.sizes.len() {
            self.sizes.resize(class + 1, Share::default());
        }
        if let Some(share) = self.sizes.get_mut(class) {
            *share = share.plus(Share { bytes: bytes.0, count: 1 });
        }
    }
}

const HOSTS: usize = HostMemory::ALL.len() + 1;

/// What tells copies apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyKey {
    /// From where to where.
    pub direction: Direction,
    /// Whether the call returns before the copy is done.
    pub asynchronous: bool,
    /// What the host side is, where there is one.
    pub host: Option<HostMemory>,
}

/// All copies and sets of one scope.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    copies: [[[Transfers; HOSTS]; 2]; DIRECTIONS],
    /// Sets.
    pub sets: Transfers,
}

impl Traffic {
    /// Counts a copy.
    #[inline]
    pub fn copied(&mut self, key: CopyKey, call: Transfer) {
        let host = key.host.map_or(HOSTS - 1, |host| host as usize);
        self.copies[key.direction as usize][usize::from(key.asynchronous)][host].add(call);
    }

    /// The same without the copies from host to host.
    #[must_use]
    pub fn of_devices(&self) -> Self {
        let mut traffic = self.clone();
        traffic.copies[Direction::HostToHost as usize] = Default::default();
        traffic
    }

    /// Counts a set.
    #[inline]
    pub fn set(&mut self, call: Transfer) {
        self.sets.add(call);
    }

    /// Every kind of copy that was made.
    pub fn copies(&self) -> impl Iterator<Item = (CopyKey, &Transfers)> {
        Direction::ALL.iter().zip(&self.copies).flat_map(|(&direction, manners)| {
            [false, true].into_iter().zip(manners).flat_map(move |(asynchronous, hosts)| {
                let kinds = HostMemory::ALL.iter().copied().map(Some).chain([None]);
                let keys = kinds.map(move |host| CopyKey { direction, asynchronous, host });
                keys.zip(hosts).filter(|(_, transfers)| transfers.moved.count > 0)
            })
        })
    }

    /// Whether anything was counted.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.sets.moved.count > 0 || self.copies().next().is_some()
    }
}
