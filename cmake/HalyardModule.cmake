# halyard_add_module(NAME source...): builds libNAME.so, a native module for `vm-run --module=libNAME.so`. It uses
# only halyard/module.h of Halyard, exports only halyard_module_negotiate and is linked with -z now. The target is
# NAME; link the module's own dependencies to it. Used by this tree and, through find_package(Halyard), by modules
# outside it.
include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/HalyardPlugin.cmake")

function(halyard_add_module name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE Halyard::module)
  halyard_make_plugin(${name} "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/halyard-module.map" "lib")
endfunction()
