// Threads and callbacks of a case. If the case stops in one of them, only that thread or callback ends; the
// problem has been reported.
#pragma once

#include <thread>
#include <vector>

#include "check.h"

namespace halyard::cts {

// Runs `body` until it ends or stops.
template <typename Body>
void until_stopped(const Body& body) {
  try {
    body();
  } catch (const Stopped&) {
    return;
  }
}

// Runs `body(0)` to `body(count - 1)` concurrently, and waits for all.
template <typename Body>
void at_once(int count, const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { until_stopped([&] { body(i); }); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace halyard::cts
