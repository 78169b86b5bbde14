# Of the layers below the C ABI, vm-cc alone uses aot, which never runs a program. Its reader of parameter files is a library of its own,
# because the rest of the tool may not include what the reader includes.
add_library(halyard_vm_cc_parameters STATIC "${CMAKE_CURRENT_LIST_DIR}/parameters/parameter_files.cpp")
target_include_directories(halyard_vm_cc_parameters PRIVATE "${CMAKE_CURRENT_LIST_DIR}")
target_link_libraries(halyard_vm_cc_parameters PRIVATE halyard_modules halyard_aot)
target_link_libraries(vm-cc PRIVATE halyard_aot halyard_vm_cc_parameters)
