# halyard_add_driver(NAME source...): builds halyard-driver-NAME.so, which sees the driver ABI's headers and nothing
# else of Halyard, exports halyard_driver_negotiate and nothing else, and is bound completely when it is loaded.
# The target is `halyard-driver-NAME`; link to it what the driver itself needs. `cmake --install` puts it where an
# installed Halyard looks for drivers. Used by this tree and, through find_package(Halyard), by drivers outside it.
include_guard(GLOBAL)
include(GNUInstallDirs)

set(HALYARD_DRIVER_VERSION_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/halyard-driver.map")

function(halyard_add_driver name)
  set(target "halyard-driver-${name}")
  set(version_script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/halyard-driver.map")
  add_library(${target} MODULE ${ARGN})
  target_link_libraries(${target} PRIVATE Halyard::driver)
  set_target_properties(
    ${target}
    PROPERTIES PREFIX ""
               SUFFIX ".so"
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS "${version_script}")
  target_link_options(${target} PRIVATE "LINKER:--version-script=${version_script}" "LINKER:-z,now")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    # An undefined symbol is an error here rather than at the user's. (With clang, sanitized code has such symbols.)
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/halyard/drivers")
endfunction()
