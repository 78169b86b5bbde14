# Link options of libraries that Halyard loads at run time: they export only the symbols of their version script and
# are linked with -z now. They look for libraries where these were when they were linked, in the build folder and installed
# alike: where CMake exchanges that at installation, it makes room with empty elements, which are the current folder. Used by HalyardDriver and HalyardModule, here and installed.
include_guard(GLOBAL)

function(halyard_make_plugin target version_script prefix)
  set_target_properties(
    ${target}
    PROPERTIES PREFIX "${prefix}"
               SUFFIX ".so"
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               BUILD_WITH_INSTALL_RPATH ON
               INSTALL_RPATH_USE_LINK_PATH ON
               LINK_DEPENDS "${version_script}")
  target_link_options(${target} PRIVATE "LINKER:--version-script=${version_script}" "LINKER:-z,now")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    # Undefined symbols are errors at link time instead of on the user's machine. (With clang, sanitized code has
    # undefined symbols.)
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()
