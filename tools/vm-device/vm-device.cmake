# Of the layers below the C ABI, vm-device uses the server of devices alone, whose header shows none of them.
target_link_libraries(vm-device PRIVATE halyard_device_server Threads::Threads)

# A unit for systemd, as that of vm-serve.
set(units "${PROJECT_BINARY_DIR}/share/systemd")
set(HALYARD_BINDIR "${CMAKE_INSTALL_FULL_BINDIR}")
configure_file("${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-device.service.in" "${units}/halyard-device.service" @ONLY)
if(NOT HALYARD_PACKAGES)
  install(CODE "set(HALYARD_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
string(REPLACE % %% HALYARD_BINDIR \"\${HALYARD_BINDIR}\")
configure_file(\"${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-device.service.in\" \"${units}/installed/halyard-device.service\" @ONLY)")
  string(APPEND units "/installed")
endif()
install(FILES "${units}/halyard-device.service" "${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-device.socket"
        DESTINATION "lib/systemd/system")
