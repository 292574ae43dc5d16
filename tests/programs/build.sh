#!/bin/sh
# build.sh OUTDIR FAKEDIR: builds what build.list names. FAKEDIR is an unpacked simulated CUDA.
set -eu
out=$1 fake=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
# For the programs that are to find a runtime but no driver.
cp -f "$fake/libcudart.so.13" "$out/"

build() { # KIND NAME SOURCES FLAGS…
  kind=$1 name=$2 sources=$3
  shift 3
  files=
  for file in $(echo "$sources" | tr , ' '); do files="$files $here/$file"; done
  if [ "$kind" = library ]; then set -- -shared -fPIC "$@"; fi
  compiler="${CC:-cc} -std=gnu11"
  case $sources in *.cpp) compiler="${CXX:-c++} -std=gnu++17" ;; esac
  # shellcheck disable=SC2086 # sources of this folder have no spaces
  $compiler -O2 -g -Wall -Wextra -Wno-unused-function ${CFLAGS:-} -pthread \
    -I "$fake/include" $files -o "$out/$name" -L "$fake" -L "$out" \
    -Wl,-rpath,'$ORIGIN' "$@" -ldl
}

while read -r line; do
  case $line in '' | '#'*) continue ;; esac
  # shellcheck disable=SC2086 # words are what the list means
  build $line
done <"$here/build.list"
