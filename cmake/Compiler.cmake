# Language, warnings and sanitizers, the same for every target. Warnings are errors.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12
   OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR "Found ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}; expected g++ 12, clang 19 or newer. "
                      "Name another compiler with -DCMAKE_CXX_COMPILER=...")
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT HALYARD_STATIC)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_MESSAGE LAZY)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

set(warnings -Werror -Wall -Wextra -Wcast-align -Wundef -Wno-missing-field-initializers)
# Programs say where a product and a sum are rounded once. Without the second option g++ fuses them wherever the processor can.
add_compile_options(
  ${warnings}
  -ffp-contract=off
  $<$<COMPILE_LANGUAGE:C>:-pedantic>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # -Wshadow=local: a constructor's parameter may have the name of the member that it sets.
  # -Wno-restrict: g++ 12 reports std::string's own operator+ (GCC bug 105651).
  add_compile_options(-Wshadow=local $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  add_compile_options(--param=ggc-min-heapsize=524288) # KiB before the compiler collects garbage: a twelfth of its time
else()
  add_compile_options(-Wshadow)
endif()

# The same source gives the same bytes, whichever folder it is in: file names in debug information and messages begin with
# that of an installed source tree. Of two names that match the later one counts.
if(HALYARD_REPRODUCIBLE)
  set(halyard_prefix_maps "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=/usr/src/halyard-${PROJECT_VERSION}"
                          "-ffile-prefix-map=${PROJECT_BINARY_DIR}=/usr/src/halyard-${PROJECT_VERSION}/build")
  add_compile_options(${halyard_prefix_maps})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # with -flto g++ 12 does not tell the assembler
    string(REPLACE "-ffile-prefix-map=" "-Wa,--debug-prefix-map=" assembler_maps "${halyard_prefix_maps}")
    add_compile_options(${assembler_maps})
  endif()
  add_link_options(${halyard_prefix_maps}) # for link-time optimization
endif()

# Targets that do not use a library of a linked layer (libffi: only native modules do) do not need it at run time.
add_link_options("LINKER:--as-needed")

# Addresses that the dynamic linker adjusts take two bits instead of 24 bytes, in every process that uses the libraries.
# The C library has to know of it: glibc from 2.36 on.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LINK_OPTIONS "LINKER:-z,pack-relative-relocs")
check_cxx_source_compiles("int main() {}" HALYARD_LINKER_PACKS_RELOCATIONS FAIL_REGEX "pack-relative-relocs") # or ignores it
set(CMAKE_REQUIRED_LINK_OPTIONS)
check_cxx_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error older
#endif
int main() {}" HALYARD_LIBC_READS_PACKED_RELOCATIONS)
if(HALYARD_LINKER_PACKS_RELOCATIONS AND HALYARD_LIBC_READS_PACKED_RELOCATIONS)
  add_link_options("LINKER:-z,pack-relative-relocs")
endif()

if(HALYARD_SANITIZE)
  add_compile_options(-fsanitize=${HALYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HALYARD_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # In instrumented code g++ 12 reports its own checks as uses of uninitialized values, and copies of small vectors as
    # out of bounds.
    add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow)
  endif()
  if(HALYARD_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT HALYARD_SANITIZE)
  set(halyard_gnu_release TRUE)
endif()
# Code of the product's shared libraries is compiled to fat LTO objects: the libraries use link-time optimization,
# tests link normally, which is faster.
if(HALYARD_LTO AND halyard_gnu_release)
  set(halyard_lto TRUE)
  add_link_options("$<IF:$<BOOL:$<TARGET_PROPERTY:HALYARD_LTO>>,-flto=auto,-fno-lto>")
endif()
# halyard_lto_objects(TARGET): its objects may be linked into such a library.
function(halyard_lto_objects target)
  if(halyard_lto)
    target_compile_options(${target} PRIVATE -flto -ffat-lto-objects)
  endif()
endfunction()
# halyard_lto_library(TARGET SCRIPT): links it with link-time optimization. A linker script names the functions to put apart.
function(halyard_lto_library target script)
  set_target_properties(${target} PROPERTIES HALYARD_LTO ON)
  if(halyard_lto)
    target_link_options(${target} PRIVATE -ffunction-sections "LINKER:-T,${script}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
  endif()
endfunction()

if(HALYARD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "Found ${CMAKE_CXX_COMPILER_ID}; expected clang for HALYARD_FUZZ. Use the preset fuzz")
  endif()
  # Edge coverage only: tracing comparisons costs a third of the speed, and seeds and dictionaries replace it. Another engine than
  # libFuzzer brings its options in CXXFLAGS (fuzz/oss-fuzz/build.sh).
  if(NOT DEFINED HALYARD_FUZZ_ENGINE OR HALYARD_FUZZ_ENGINE STREQUAL "-fsanitize=fuzzer")
    add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp)
  endif()
endif()

if(HALYARD_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "Found ${CMAKE_CXX_COMPILER_ID}; expected clang for HALYARD_COVERAGE. Use the preset coverage")
  endif()
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()
