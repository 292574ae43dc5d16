#!/bin/sh
# check.sh OUTDIR FAKEDIR [PROGRAM…]: runs programs without any preload and holds what they print
# against the truth of the simulated driver. It tests the programs, not gmmtrace.
set -eu
out=$1 fake=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
ledgers='device|async_pool|vmm_[a-z]*|managed|pinned|registered|array|graph|imported|copies|sets'

# The `Run with:` line of a source is its environment.
environment() {
  sed -n 's/^ \* Run with: //p' "$here/$1" | head -n 1
}

check() { # PROGRAM SOURCE
  rm -f "$work"/truth.*
  # shellcheck disable=SC2046 # words are assignments
  env $(environment "$2") LD_LIBRARY_PATH="$fake" FAKE_CUDA_TRUTH="$work/truth.%p" \
    timeout 60 "$out/$1" >"$work/out" 2>"$work/err" || true
  if [ ! -s "$work/out" ]; then
    echo "$1: printed nothing"
    cat "$work/err"
    bad=1
    return
  fi
  # Programs of several processes print a prefix and a pid for each; an image that was replaced
  # by exec writes no truth.
  for prefix in '' parent. child. second.; do
    if [ -n "$prefix" ]; then
      pid=$(sed -n "s/^${prefix}pid //p" "$work/out" | head -n 1)
      [ -n "$pid" ] || continue
      truth=$work/truth.$pid
    else
      truth=$(ls "$work"/truth.* 2>/dev/null | head -n 1)
    fi
    [ -e "$truth" ] || continue
    sed -n "s/^${prefix}\([a-z_]*\.[a-z_.]* [0-9]*\)$/\1/p" "$work/out" >"$work/claims"
    grep -E "^($ledgers)\." "$work/claims" | grep -vxFf "$truth" >"$work/wrong" || true
    if [ -s "$work/wrong" ]; then
      sed "s|^|$1: the driver does not say: $prefix|" "$work/wrong"
      bad=1
    fi
  done
}

while read -r kind name sources _; do
  [ "$kind" = program ] || continue
  grep -q '[Tt]o be killed' "$here/${sources%%,*}" && continue
  if [ $# -gt 0 ]; then
    case " $* " in *" $name "*) ;; *) continue ;; esac
  fi
  check "$name" "${sources%%,*}"
done <"$here/build.list"
if [ "$bad" = 0 ]; then echo "the programs agree with the driver"; fi
exit "$bad"
