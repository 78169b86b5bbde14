# For the threads of --jobs.
target_link_libraries(vm-check PRIVATE Threads::Threads)
