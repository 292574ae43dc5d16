//! Objects that own memory without an allocation call: what was made, what is left, and what went
//! with its context.

use std::collections::BTreeMap;

use gmmtrace_format::kind::object;
use rustc_hash::FxHashMap;

use super::context::OwnerIndex;
use super::sites::SiteIndex;
use crate::units::{Bytes, Handle, Ticks};

macro_rules! classes {
    ($($variant:ident $number:ident $name:literal $tied:literal $doc:literal;)*) => {
        /// A kind of object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Class { $(#[doc = $doc] $variant,)* }

        impl Class {
            /// Every class, in the order of reports.
            pub const ALL: &'static [Class] = &[$(Class::$variant),*];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The class with this number.
            #[must_use]
            pub const fn of_number(number: u64) -> Option<Self> {
                match number { $(object::$number => Some(Self::$variant),)* _ => None }
            }

            /// Whether its objects end with their context.
            #[must_use]
            pub const fn is_tied(self) -> bool {
                match self { $(Self::$variant => $tied,)* }
            }
        }

        /// Number of classes.
        pub const CLASSES: usize = Class::ALL.len();
    };
}

classes! {
    GreenContext GREEN_CONTEXT "green_contexts" false "Green contexts.";
    Module MODULE "modules" true "Modules that were loaded by themselves.";
    Library LIBRARY "libraries" false "Libraries, whose modules are loaded into each context.";
    Stream STREAM "streams" true "Streams.";
    Event EVENT "events" true "Events.";
    Graph GRAPH "graphs" false "Graphs, captured ones included.";
    GraphExec GRAPH_EXEC "graph_execs" false "Executable graphs.";
    Texture TEXTURE "textures" true "Texture objects.";
    Surface SURFACE "surfaces" true "Surface objects.";
    ExternalMemory EXTERNAL_MEMORY "external_memories" true "Imported external memory.";
}

/// What was counted of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectCounts {
    /// Made.
    pub created: u64,
    /// Destroyed by a call.
    pub destroyed: u64,
    /// Gone with their context, or whose handle was given out again.
    pub implicit: u64,
    /// Calls to make or destroy one that failed.
    pub failed: u64,
    /// Successful destroys of what was not there: destroyed twice, or made before the log began.
    pub unknown: u64,
    /// There now.
    pub live: u64,
    /// The most that were there at a time.
    pub peak: u64,
}

/// An object that is there.
#[derive(Clone, Copy, Debug)]
pub struct LiveObject {
    /// Who made it.
    pub site: SiteIndex,
    /// When.
    pub at: Ticks,
    owner: OwnerIndex,
}

/// Every object.
#[derive(Debug, Default)]
pub struct Objects {
    live: FxHashMap<(Class, Handle), LiveObject>,
    counts: [ObjectCounts; CLASSES],
    /// The last value of each limit that was set, by CUDA's number of the limit.
    pub limits: BTreeMap<u64, Bytes>,
}

impl Objects {
    /// What was counted of a class.
    #[must_use]
    pub fn counts(&self, class: Class) -> ObjectCounts {
        self.counts[class as usize]
    }

    /// Whether an object is there.
    #[must_use]
    pub fn is_live(&self, class: Class, handle: Handle) -> bool {
        self.live.contains_key(&(class, handle))
    }

    /// Counts a call that failed.
    pub fn fail(&mut self, class: Class) {
        self.counts[class as usize].failed += 1;
    }

    /// An object was made. Returns the owner of the one that had its handle.
    pub fn made(
        &mut self,
        class: Class,
        handle: Handle,
        site: SiteIndex,
        at: Ticks,
        owner: OwnerIndex,
    ) -> Option<OwnerIndex> {
        let former = self.live.insert((class, handle), LiveObject { site, at, owner });
        let counts = &mut self.counts[class as usize];
        counts.created += 1;
        counts.live += 1;
        if former.is_some() {
            counts.implicit += 1;
            counts.live -= 1;
        }
        counts.peak = counts.peak.max(counts.live);
        former.map(|former| former.owner)
    }

    /// An object was destroyed. Returns its owner.
    pub fn destroyed(&mut self, class: Class, handle: Handle) -> Option<OwnerIndex> {
        let found = self.live.remove(&(class, handle));
        let counts = &mut self.counts[class as usize];
        match found {
            Some(_) => {
                counts.destroyed += 1;
                counts.live -= 1;
            }
            None => counts.unknown += 1,
        }
        found.map(|object| object.owner)
    }

    /// The end of a context: takes what is tied to it. Returns how many that were.
    pub fn end_owner(&mut self, owner: OwnerIndex) -> u64 {
        let counts = &mut self.counts;
        let before = self.live.len();
        self.live.retain(|(class, _), object| {
            let stays = object.owner != owner || !class.is_tied();
            if !stays {
                let counts = &mut counts[*class as usize];
                counts.implicit += 1;
                counts.live -= 1;
            }
            stays
        });
        (before - self.live.len()) as u64
    }

    /// Every object that is there, in no order.
    pub fn live(&self) -> impl Iterator<Item = (Class, &LiveObject)> {
        self.live.iter().map(|(&(class, _), object)| (class, object))
    }

    /// Begins to count anew; what is there stays.
    pub fn begin(&mut self) {
        for counts in &mut self.counts {
            let live = counts.live;
            *counts = ObjectCounts { live, peak: live, ..ObjectCounts::default() };
        }
    }
}
