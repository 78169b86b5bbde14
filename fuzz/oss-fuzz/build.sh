#!/bin/bash -eu
# Builds the fuzz targets as OSS-Fuzz expects it: with its compilers, flags and engine (CC, CXX, CFLAGS, CXXFLAGS,
# LIB_FUZZING_ENGINE), into $OUT, with the corpora of the tree, dictionaries and options. HALYARD_FUZZ_TARGETS names some of them.
source=${SRC:?}/halyard
build=${WORK:?}/halyard
list() { find "$source/fuzz" -name 'target_*.cpp' | sed 's,.*/target_\(.*\)\.cpp,\1,' | grep -v '^jit$' | sort; }
targets=${HALYARD_FUZZ_TARGETS:-$(list)}

# The compiler at run time needs LLVM's libraries, built without a sanitizer: it is left out.
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DHALYARD_FUZZ=ON -DHALYARD_FUZZ_ENGINE="${LIB_FUZZING_ENGINE:?}" \
  -DHALYARD_TESTS=OFF -DHALYARD_BENCHMARKS=OFF -DHALYARD_JIT=OFF -DHALYARD_MPI=OFF \
  -DHALYARD_PYTHON_BINDING=OFF -DHALYARD_LTO=OFF -DCMAKE_BUILD_RPATH="\$ORIGIN/lib"
names=()
for name in $targets; do names+=("halyard_fuzz_$name"); done
cmake --build "$build" --target halyard_fuzz_seeds "${names[@]}"

mkdir -p "$OUT/lib"
"$build/fuzz/seeds" "$build/seeds"
for name in $targets; do
  cp "$build/fuzz/$name" "$OUT/$name"
  # Libraries that the image in which targets run does not have.
  ldd "$OUT/$name" | awk '$3 ~ /^\// { print $3 }' | grep -E -v '/(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s))\.so' | xargs -r cp -L -n -t "$OUT/lib"
  ! command -v patchelf >/dev/null || patchelf --set-rpath '$ORIGIN/lib' "$OUT/$name"
  files=()
  for folder in "$source/fuzz/corpus/$name" "$build/seeds/$name"; do [ ! -d "$folder" ] || files+=("$folder"); done
  [ ${#files[@]} -eq 0 ] || (cd "$build" && rm -f "$OUT/${name}_seed_corpus.zip" && zip -q -j -r "$OUT/${name}_seed_corpus.zip" "${files[@]}")
  options=$(bash -c "$(sed -n '/^fuzz_options() {/,/^}/p' "$source/dev"); fuzz_options $name") # those of ./dev fuzz
  {
    printf '[libfuzzer]\n'
    for option in $options; do
      case "$option" in
        -dict=build/fuzz/assembler.dict) cp "$build/seeds/assembler.dict" "$OUT/$name.dict" ;;
        -dict=*) cp "$source/${option#-dict=}" "$OUT/$name.dict" ;;
        -*) printf '%s\n' "${option#-}" ;;
      esac
    done
  } >"$OUT/$name.options"
done
for driver in null local; do
  file=$(find "$build/lib" -name "halyard-driver-$driver.so")
  [ -z "$file" ] || cp "$file" "$OUT/lib/"
done
cp "$source/examples/inline_mul.vmasm" "$OUT/lib/" # http serves it
