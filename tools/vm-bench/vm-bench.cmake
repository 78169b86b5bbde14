# Google Benchmark, which repeats, reports and writes JSON; and threads of its own.
# A package of its own: Debian's Google Benchmark is a shared library whose name changes with every release of Debian.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME bench)
target_link_libraries(vm-bench PRIVATE benchmark::benchmark Threads::Threads)
