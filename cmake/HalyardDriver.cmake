# halyard_add_driver(NAME source...): builds halyard-driver-NAME.so with only the driver ABI's headers of Halyard. It
# exports only halyard_driver_negotiate and is linked with -z now. The target is `halyard-driver-NAME`; link the
# driver's own dependencies to it. `cmake --install` installs it to the folder where an installed Halyard searches.
# Used by this tree and, through find_package(Halyard), by drivers outside it.
include_guard(GLOBAL)
include(GNUInstallDirs)
include("${CMAKE_CURRENT_LIST_DIR}/HalyardPlugin.cmake")

set(HALYARD_DRIVER_VERSION_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/halyard-driver.map")

function(halyard_add_driver name)
  if(HALYARD_STATIC) # this tree's own, linked into libhalyard.a
    halyard_link_driver(${name} ${ARGN})
    return()
  endif()
  set(target "halyard-driver-${name}")
  add_library(${target} MODULE ${ARGN})
  target_link_libraries(${target} PRIVATE Halyard::driver)
  halyard_make_plugin(${target} "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/halyard-driver.map" "")
  install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/halyard/drivers")
  if(COMMAND halyard_strip_installed) # in this tree
    halyard_strip_installed(${target} "${CMAKE_INSTALL_LIBDIR}/halyard/drivers")
  endif()
endfunction()
