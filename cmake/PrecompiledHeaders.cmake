# HALYARD_PCH: common headers are parsed once instead of in each source, which is a third of the time of a build.
# Sources include what they use all the same: builds without the option show it (packages, sanitizers, fuzz targets).
option(HALYARD_PCH "Parse common headers once: a faster build from scratch (g++, and clang in the preset coverage)" OFF)
set(CMAKE_PCH_WARN_INVALID OFF) # g++ parses the headers again for a source whose options differ, say in instruction sets
set(halyard_common_headers
    <algorithm> <array> <atomic> <chrono> <cstdint> <cstdlib> <cstring> <functional> <map> <memory> <mutex> <optional> <span>
    <string> <string_view> <thread> <utility> <vector> <fmt/format.h>)

# halyard_precompile_headers(target [<header>...]): its sources take the common headers, and these, from a precompiled file.
# Targets with the same options and headers share one; a target's options are set before.
function(halyard_precompile_headers target)
  if(NOT HALYARD_PCH OR NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR HALYARD_COVERAGE))
    return()
  endif()
  get_target_property(options ${target} COMPILE_OPTIONS)
  get_target_property(visibility ${target} CXX_VISIBILITY_PRESET)
  get_target_property(type ${target} TYPE)
  if(NOT options)
    set(options "")
  endif()
  if(type STREQUAL "EXECUTABLE")
    set(position -fPIE)
  else()
    set(position -fPIC)
  endif()
  string(MD5 key "${options} ${position} ${visibility} ${ARGN}")
  string(SUBSTRING "${key}" 0 8 key)
  set(shared halyard_pch_${key})
  if(NOT TARGET ${shared})
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/pch/${key}.cpp" CONTENT "")
    add_library(${shared} OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/pch/${key}.cpp")
    target_compile_options(${shared} PRIVATE ${position} ${options} "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
    if("${ARGN}" MATCHES gtest)
      target_compile_definitions(${shared} PRIVATE GTEST_HAS_PTHREAD=1)
    endif()
    set_target_properties(${shared} PROPERTIES CXX_VISIBILITY_PRESET "${visibility}" POSITION_INDEPENDENT_CODE OFF)
    target_precompile_headers(${shared} PRIVATE ${halyard_common_headers} ${ARGN})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${shared})
  # g++ 12 forgets in a precompiled file that warnings about the standard library's own code are off.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow> "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()
