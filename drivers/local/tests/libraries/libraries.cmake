# Libraries of machine code for the tests, like those of a compiler: variants of tests/libraries/*.c, each as an
# embedded library (NAME.embedded.so, self-contained) and as a system library (NAME.system.so), in
# <build>/tests/libraries, which the tests know as HALYARD_TEST_LIBRARIES. Built without add_library(), so that they
# get no sanitizers and other options of the build.
set(library_folder "${PROJECT_BINARY_DIR}/tests/libraries")
set(library_sources "${CMAKE_CURRENT_SOURCE_DIR}/tests/libraries")
file(MAKE_DIRECTORY "${library_folder}")
set(common -O1 -fPIC -shared -fvisibility=hidden -fno-builtin)
set(embedded ${common} -ffreestanding -nostdlib -fno-stack-protector -fno-asynchronous-unwind-tables
             -Wl,--hash-style=sysv,--build-id=none,-z,now,-z,relro,-z,noexecstack,--no-undefined)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  list(APPEND embedded -mno-outline-atomics) # their functions are in libgcc, which an embedded library lacks
endif()

function(halyard_add_test_library source kind output)
  set(file "${library_folder}/${output}")
  add_custom_command(
    OUTPUT "${file}"
    COMMAND "${CMAKE_C_COMPILER}" ${${kind}} ${ARGN} "${library_sources}/${source}.c" -o "${file}"
    DEPENDS "${library_sources}/${source}.c" "${library_sources}/abi.h"
    VERBATIM)
  set_property(GLOBAL APPEND PROPERTY HALYARD_TEST_LIBRARY_FILES "${file}")
endfunction()

function(halyard_add_kernels name)
  halyard_add_test_library(kernels embedded ${name}.embedded.so ${ARGN})
  halyard_add_test_library(kernels common ${name}.system.so ${ARGN})
endfunction()

halyard_add_kernels(rev6)
halyard_add_kernels(rev5 -DREVISION=5)
halyard_add_kernels(rev6_nameless -DNAMES=0)
halyard_add_kernels(rev5_nameless -DREVISION=5 -DNAMES=0)
halyard_add_kernels(rev6_without_attributes -DATTRIBUTES=0)
halyard_add_kernels(rev5_without_attributes -DREVISION=5 -DATTRIBUTES=0)
halyard_add_kernels(rev6_constants -DCONSTANTS=2)
halyard_add_kernels(rev5_constants -DREVISION=5 -DCONSTANTS=2)
halyard_add_kernels(required_import "-DIMPORTS=\"add_one\"")
halyard_add_kernels(optional_import "-DIMPORTS=\"?add_one\"")
halyard_add_kernels(two_imports "-DIMPORTS=\"add_one\",\"add_two\"")
halyard_add_kernels(broken_import "-DIMPORTS=\"broken\"")
halyard_add_kernels(sanitized -DSANITIZER=4)
halyard_add_kernels(features -DFEATURES=1)
halyard_add_kernels(other_revision -DCLAIMS=7)
halyard_add_kernels(many_bindings -DBINDINGS=65)
halyard_add_kernels(initializer -DINITIALIZER=1)
halyard_add_test_library(kernels common outside.system.so -DOUTSIDE=1)
foreach(revision IN ITEMS 5 6)
  halyard_add_test_library(mul embedded mul${revision}.embedded.so -DREVISION=${revision})
  halyard_add_test_library(mul common mul${revision}.system.so -DREVISION=${revision})
endforeach()
halyard_add_test_library(plugin common plugin.so)
halyard_add_test_library(plugin embedded plugin.sos)
halyard_add_test_library(plugin common empty_plugin.so -DPROVIDES=0)
halyard_add_test_library(plugin common future_plugin.so -DVERSION=2)
halyard_add_test_library(plugin common sanitized_plugin.so -DSANITIZER=4)
foreach(part IN ITEMS PLUGIN HEADER LOAD UNLOAD RESOLVE)
  string(TOLOWER ${part} name)
  halyard_add_test_library(plugin common plugin_without_${name}.so -DLACKS=${part})
endforeach()

file(WRITE "${library_folder}/libraries.txt" "no library\n")
get_property(files GLOBAL PROPERTY HALYARD_TEST_LIBRARY_FILES)
add_custom_target(halyard_test_libraries DEPENDS ${files})
target_compile_definitions(halyard_local_tests PRIVATE HALYARD_TEST_LIBRARIES="${library_folder}")
add_dependencies(halyard_local_tests halyard_test_libraries)
