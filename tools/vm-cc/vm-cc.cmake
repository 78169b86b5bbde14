# Of the layers below the C ABI, vm-cc alone uses aot, which never runs a program.
target_link_libraries(vm-cc PRIVATE halyard_aot)
