# Google Benchmark repeats, reports and writes JSON; calls may run on vm-bench's own threads.
# A separate package, because the shared library of Debian's Google Benchmark changes its name with each Debian release.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME bench)
target_link_libraries(vm-bench PRIVATE benchmark::benchmark Threads::Threads)
