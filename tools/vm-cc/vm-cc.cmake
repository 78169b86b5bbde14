# Of the layers below the C ABI, vm-cc alone uses aot, which never runs a program.
# It reads parameter files with the reader of modules.
target_link_libraries(vm-cc PRIVATE halyard_aot halyard_modules)
