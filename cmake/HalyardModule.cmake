# halyard_add_module(NAME source...): builds libNAME.so, a native module for `vm-run --module=libNAME.so`. It sees
# halyard/module.h and nothing else of Halyard, exports halyard_module_negotiate and nothing else, and is bound
# completely when it is loaded. The target is NAME; link to it what the module itself needs. Used by this tree and,
# through find_package(Halyard), by modules outside it.
include_guard(GLOBAL)

function(halyard_add_module name)
  set(version_script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/halyard-module.map")
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE Halyard::module)
  set_target_properties(
    ${name}
    PROPERTIES PREFIX "lib"
               SUFFIX ".so"
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS "${version_script}")
  target_link_options(${name} PRIVATE "LINKER:--version-script=${version_script}" "LINKER:-z,now")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    # An undefined symbol is an error here rather than at the user's. (With clang, sanitized code has such symbols.)
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()
