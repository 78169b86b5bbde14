# Google Benchmark, which repeats, reports and writes JSON; and threads of its own.
target_link_libraries(vm-bench PRIVATE benchmark::benchmark Threads::Threads)
