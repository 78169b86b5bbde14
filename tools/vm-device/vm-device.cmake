# Of the layers below the C ABI, vm-device uses the server of devices alone, whose header shows none of them.
target_link_libraries(vm-device PRIVATE halyard_device_server Threads::Threads)
