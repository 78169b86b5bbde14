# HALYARD_STATIC: no shared library at all, for systems without dlopen. The drivers are linked in and negotiate as others do;
# files of drivers, native modules, system libraries in modules, and the compiler cannot be loaded (HALYARD_NO_LOADER).
# Where a part is left out, no_PART.cpp stands in for its files; it refuses with a message. HALYARD_SMALL leaves out more.
set(halyard_parts no_compiler no_system_library no_assembler no_optional_modules no_other_interpreters no_simd)
set(halyard_replaces_no_compiler "/compile/(compiler|helpers)\\.cpp$")
set(halyard_replaces_no_system_library "/native/system_library\\.cpp$")
set(halyard_replaces_no_assembler "/text/assembler[a-z_]*\\.cpp$")
set(halyard_replaces_no_optional_modules
    "/modules/(check_module|hal_inline_module|hal_loader_module|io_parameters|parameters|parameter_[a-z]+|gguf|safetensors)\\.cpp$")
set(halyard_replaces_no_other_interpreters "/run/interpreter_(kernel|sampled|traced)\\.cpp$")
set(halyard_replaces_no_simd "/vmvx/((copy|elementwise|mmt4d|tiles)_simd|instruction_sets)\\.cpp$")
set(halyard_left_out "")
if(HALYARD_STATIC)
  set(halyard_left_out no_compiler no_system_library)
endif()
if(HALYARD_SMALL)
  set(halyard_left_out ${halyard_parts})
endif()

# halyard_choose_sources(VARIABLE): takes from a list of sources those of parts that are left out, and the files that stand in
# for the others.
function(halyard_choose_sources variable)
  set(sources ${${variable}})
  foreach(part IN LISTS halyard_parts)
    if(part IN_LIST halyard_left_out)
      list(FILTER sources EXCLUDE REGEX "${halyard_replaces_${part}}")
    else()
      list(FILTER sources EXCLUDE REGEX "/${part}\\.cpp$")
    endif()
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

if(HALYARD_SMALL AND NOT HALYARD_STATIC)
  message(FATAL_ERROR "HALYARD_SMALL is on and HALYARD_STATIC is off; expected both: a small build is a static one")
endif()
if(NOT HALYARD_STATIC)
  return()
endif()
foreach(driver IN LISTS HALYARD_STATIC_DRIVERS)
  if(NOT driver MATCHES "^(local|null|template)$")
    message(FATAL_ERROR "HALYARD_STATIC_DRIVERS has '${driver}'; expected local, null or template. (vulkan opens libvulkan "
                        "at run time and cannot be static.)")
  endif()
endforeach()
foreach(option IN ITEMS HALYARD_TESTS HALYARD_BENCHMARKS HALYARD_JIT HALYARD_MPI HALYARD_PYTHON_BINDING HALYARD_FUZZ)
  set(${option} OFF)
endforeach()
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
add_compile_definitions(HALYARD_NO_LOADER)
# What a program does not use is left out of it, function by function.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(LINKER:--gc-sections)
set(CMAKE_C_FLAGS_MINSIZEREL "-Os -DNDEBUG")
set(CMAKE_CXX_FLAGS_MINSIZEREL "-Os -DNDEBUG")

# halyard_link_driver(NAME source...): a driver of the static library; its function has a name of its own.
function(halyard_link_driver name)
  add_library(halyard-driver-${name} STATIC ${ARGN})
  target_link_libraries(halyard-driver-${name} PRIVATE Halyard::driver)
  halyard_name_negotiation(halyard-driver-${name} ${name})
endfunction()
function(halyard_name_negotiation target name)
  target_compile_definitions(${target} PRIVATE halyard_driver_negotiate=halyard_driver_negotiate_${name})
endfunction()

# halyard_merge_archives(TARGET archive-target...): one .a of everything, for installation.
function(halyard_merge_archives target)
  set(script "create $<TARGET_FILE_DIR:${target}>/merged/libhalyard.a\n")
  foreach(part IN LISTS ARGN ITEMS ${target})
    string(APPEND script "addlib $<TARGET_FILE:${part}>\n")
  endforeach()
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/merge.mri" CONTENT "${script}save\nend\n")
  add_custom_command(
    TARGET ${target}
    POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -E make_directory "$<TARGET_FILE_DIR:${target}>/merged"
    COMMAND "${CMAKE_AR}" -M < "${CMAKE_CURRENT_BINARY_DIR}/merge.mri"
    VERBATIM)
  add_dependencies(${target} ${ARGN})
endfunction()
