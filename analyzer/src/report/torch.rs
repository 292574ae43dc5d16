//! PyTorch's caching allocator, as it reported itself.

use super::build::{Builder, gpu};
use crate::analysis::names::SiteName;
use crate::live::{Failure, Release, Reserved, Segments, Share, TorchDevice, Totals};
use crate::units::{Bytes, Gpu, Nanos};

/// Why nothing is known, where that is so.
pub const ABSENT: &str = "no report of PyTorch's allocator was seen: another framework, another \
                          backend of it (cudaMallocAsync), or nothing allocated";

/// The allocator on every device.
#[derive(Clone, Debug)]
pub struct TorchReport {
    /// Whether it ever reported anything. If not, nothing here is known.
    pub seen: bool,
    /// By device.
    pub devices: Vec<TorchDeviceReport>,
    /// Bytes in blocks and in segments of all devices, at the end.
    pub totals: Totals,
    /// When the most was in segments and in no block, exactly.
    pub worst: Option<(Nanos, Totals)>,
    /// The segments at the end.
    pub segments: Segments,
    /// The same at the worst moment that was looked at.
    pub worst_segments: Option<(Nanos, Segments)>,
    /// Moments that were looked at.
    pub looked: u64,
    /// Blocks that were handed out in no segment that is known.
    pub outside: Share,
    /// The first few times that segments were given back.
    pub releases: Vec<(Nanos, Release)>,
    /// The first few requests that found no memory.
    pub failures: Vec<FailureReport>,
}

/// One device.
#[derive(Clone, Debug)]
pub struct TorchDeviceReport {
    /// Which.
    pub gpu: Option<Gpu>,
    /// The numbers.
    pub device: TorchDevice,
    /// When the most was in segments; `None` when nothing ever was.
    pub peak_reserved_at: Option<Nanos>,
    /// When a total was first not what was counted.
    pub first_mismatch_at: Option<Nanos>,
    /// When the most was in segments and in no block.
    pub worst: Option<(Nanos, Totals)>,
}

/// A request that found no memory.
#[derive(Clone, Debug)]
pub struct FailureReport {
    /// When.
    pub at: Nanos,
    /// On which device.
    pub gpu: Option<Gpu>,
    /// Kernel id of the thread.
    pub thread: Option<u32>,
    /// Whose.
    pub site: SiteName,
    /// Bytes asked for.
    pub requested: Bytes,
    /// The allocator's totals.
    pub totals: Totals,
    /// Free on the device by the last reading before.
    pub device_free: Option<Bytes>,
    /// The largest hole in its segments, where it was looked for.
    pub largest: Option<Bytes>,
}

/// What is said about the allocator.
pub(super) fn build(builder: &Builder<'_>) -> TorchReport {
    let torch = &builder.live.torch;
    let at = |at| builder.clock.at(at);
    let worst = |reserved: &Reserved| reserved.worst.map(|(moment, totals)| (at(moment), totals));
    let devices = torch.devices.iter().map(|(&slot, device)| TorchDeviceReport {
        gpu: gpu(slot),
        peak_reserved_at: (device.reserved.peak > 0).then(|| at(device.reserved.peak_at)),
        first_mismatch_at: device.first_mismatch.map(|first| at(first.at)),
        worst: worst(&device.reserved),
        device: device.clone(),
    });
    TorchReport {
        seen: torch.seen,
        devices: devices.collect(),
        totals: torch.totals(),
        worst: worst(&torch.reserved),
        segments: builder.live.segments(),
        worst_segments: torch.worst.clone().map(|(moment, segments)| (at(moment), segments)),
        looked: torch.looked,
        outside: torch.outside,
        releases: torch.releases.iter().map(|release| (at(release.at), *release)).collect(),
        failures: torch.failures.iter().map(|failure| told(builder, failure)).collect(),
    }
}

fn told(builder: &Builder<'_>, failure: &Failure) -> FailureReport {
    FailureReport {
        at: builder.clock.at(failure.at),
        gpu: gpu(failure.gpu),
        thread: builder.thread(failure.lane),
        site: builder.site(failure.site),
        requested: failure.requested,
        totals: failure.totals,
        device_free: failure.device_free,
        largest: failure.largest,
    }
}
