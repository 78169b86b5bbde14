# Tests may run on threads of vm-check's own.
target_link_libraries(vm-check PRIVATE Threads::Threads)
