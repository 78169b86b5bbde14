#!/bin/bash -eu
# usage: fuzz/elsewhere/bundle.sh FOLDER [NAME...]  puts the built fuzz targets (all, or those named) into FOLDER, with all that they
# need on a machine without this tree: libraries, drivers, corpora, dictionaries and the script run.sh. Build them before:
# cmake --preset fuzz && ninja -C build/fuzz halyard_fuzz
here=$(dirname "$(readlink -f "$0")")
cd "$here/../.."
[ $# -ge 1 ] && [ "${1#-}" = "$1" ] || { sed -n 's/^# \(usage\)/\1/p' "$0" >&2; exit 2; }
folder=$(realpath -m "$1")
shift
build=build/fuzz
if [ $# -eq 0 ]; then
  mapfile -t targets < <(find fuzz -name 'target_*.cpp' | sed 's,.*/target_\(.*\)\.cpp,\1,' | sort)
else
  targets=("$@")
fi
for name in seeds "${targets[@]}"; do
  [ -x "$build/fuzz/$name" ] || { printf 'bundle: %s is not built; build it with: cmake --build %s --target halyard_fuzz\n' "$build/fuzz/$name" "$build" >&2; exit 1; }
done
source <(sed -n '/^fuzz_options() {/,/^}/p' dev) # those of ./dev fuzz

mkdir -p "$folder/lib" "$folder/dictionaries" "$folder/options"
"$build/fuzz/seeds" "$build/seeds"
mv "$build/seeds/assembler.dict" "$build/assembler.dict"
# Libraries beside the program that uses them, but those that every machine has in its own form.
libraries() { ldd "$1" | awk '$3 ~ /^\// { print $3 }' | grep -E -v '/(ld-linux.*|lib(c|m|dl|rt|pthread))\.so'; }
# install_program FILE TO: without its debug information, but with its symbols.
install_program() {
  install -D "$1" "$2"
  strip --strip-debug "$2"
}
needed=("$build"/lib/halyard/drivers/halyard-driver-{null,local}.so)
for name in "${targets[@]}"; do
  install_program "$build/fuzz/$name" "$folder/$name"
  needed+=("$build/fuzz/$name")
  for kept in "fuzz/corpus/$name" "$build/seeds/$name" "$build/corpus/$name"; do
    [ ! -d "$kept" ] || { mkdir -p "$folder/corpus/$name" && cp -r "$kept/." "$folder/corpus/$name"; }
  done
  fuzz_options "$name" | while read -r option; do
    case "$option" in
      -dict=*) cp "${option#-dict=}" "$folder/dictionaries/" && printf -- '-dict=dictionaries/%s\n' "$(basename "$option")" ;;
      *) printf '%s\n' "$option" ;;
    esac
  done >"$folder/options/$name"
  if [ "$name" = jit ]; then
    for library in "$build"/lib/halyard/halyard-jit-llvm{,-codegen}.so; do
      install_program "$library" "$folder/halyard/$(basename "$library")"
      needed+=("$library")
    done
  fi
done
for driver in null local; do install_program "$build/lib/halyard/drivers/halyard-driver-$driver.so" "$folder/lib/halyard-driver-$driver.so"; done
cp examples/inline_mul.vmasm "$folder/lib/" # http serves it
for file in "${needed[@]}"; do libraries "$file"; done | sort -u | xargs -r cp -L -t "$folder/lib"
install "$here/run.sh" "$folder/run.sh"
