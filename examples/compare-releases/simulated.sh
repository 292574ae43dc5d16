#!/usr/bin/env bash
# simulated.sh [FOLDER]
#
# The whole of it without a GPU: builds two releases of service.c for the simulated CUDA, which
# FOLDER holds (unpacked into a new one when it is not named), and compares them. The new release
# leaks, so this exits with 1. Without a gmmtrace on the PATH, that of target/release is built.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

simulated=${1:-}
if [ -z "$simulated" ]; then
    simulated=$work/cuda
    cargo run -q --manifest-path "$root/Cargo.toml" -p gmmtrace-fake-cuda --example unpack "$simulated"
fi
if ! command -v gmmtrace >/dev/null; then
    cargo build -q --release --manifest-path "$root/Cargo.toml"
    PATH=${CARGO_TARGET_DIR:-$root/target}/release:$PATH
fi

build() { # NAME FLAGS…
    local name=$1
    shift
    "${CC:-cc}" -O2 -DSIMULATED -I "$simulated/include" "$@" "$here/service.c" -o "$work/$name" \
        -L "$simulated" -lcudart
}
build service-1.0
build service-1.1 -DKEEP_ANSWERS

export LD_LIBRARY_PATH=$simulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export TRACES=$work
"$here/compare.sh" "$work/service-1.0" "$work/service-1.1" \
    --fail-on 'peak.gpu>+5%' \
    --fail-on 'live.gpu>+0' \
    --fail-on 'failed.*>0' \
    --fail-on 'losses>0'
