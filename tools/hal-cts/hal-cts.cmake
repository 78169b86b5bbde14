# What hal-cts has that other tools have not: the driver ABI, and an executable that vm-as makes and that is part of it.
target_include_directories(hal-cts PRIVATE "${PROJECT_SOURCE_DIR}/drivers/testing")
target_link_libraries(hal-cts PRIVATE halyard_driver_abi Threads::Threads ${CMAKE_DL_LIBS})
set(device_code "${CMAKE_CURRENT_BINARY_DIR}/hal-cts/device_code.vmfb")
file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/hal-cts")
add_custom_command(
  OUTPUT "${device_code}"
  COMMAND ${HALYARD_RUN_HERE} "$<TARGET_FILE:vm-as>" "${CMAKE_CURRENT_LIST_DIR}/device_code.vmasm" "--output=${device_code}"
  DEPENDS vm-as "${CMAKE_CURRENT_LIST_DIR}/device_code.vmasm"
  COMMENT "vm-as device_code.vmasm"
  VERBATIM)
set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/device_code.cpp" PROPERTIES OBJECT_DEPENDS "${device_code}"
                                                                                   COMPILE_DEFINITIONS HAL_CTS_VMVX="${device_code}")
