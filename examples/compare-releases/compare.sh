#!/usr/bin/env bash
# compare.sh BASE-COMMAND NEW-COMMAND [OPTION…]
#
# Records both commands RUNS times, in turns, so that what changes on the machine meanwhile meets
# both, and compares them. OPTIONs go to `gmmtrace diff`. Exits with its code: 1 when a gate
# fails, 2 when something could not be done. Traces go to TRACES and stay there.
set -euo pipefail

if [ $# -lt 2 ]; then
    echo "usage: compare.sh BASE-COMMAND NEW-COMMAND [OPTION of gmmtrace diff…]" >&2
    exit 2
fi
base=$1 new=$2
shift 2
runs=${RUNS:-3}
traces=${TRACES:-$(mktemp -d)}

record() { # SIDE RUN COMMAND
    rm -rf "${traces:?}/$1.$2"
    gmmtrace run --quiet -o "$traces/$1.$2" -- sh -c "$3" >&2 || {
        echo "compare.sh: '$3' failed with $?" >&2
        exit 2
    }
}

before=() after=()
for run in $(seq "$runs"); do
    record base "$run" "$base"
    record new "$run" "$new"
    before+=("$traces/base.$run")
    after+=("$traces/new.$run")
done
gmmtrace diff "${before[@]}" --against "${after[@]}" "$@"
