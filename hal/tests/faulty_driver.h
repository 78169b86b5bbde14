// The faulty driver's controls, for tests of what happens when a driver fails: drivers/faulty.cpp wraps the
// table of another driver, counts calls and handles, and has one call go wrong. It exports one table of these
// controls beside the driver ABI. Its only kind is "faulty".
#pragma once

#include <stdint.h>

#define FAULTY_CONTROLS_SYMBOL "faulty_driver_controls"

// Functions of the driver's table, FAULTY_memory_map and so on, in its order.
enum FaultyFunction {
#define HALYARD_DRIVER_ENTRY(name, mandatory) FAULTY_##name,
#include "hal/driver/driver_entries.inc"
#undef HALYARD_DRIVER_ENTRY
  FAULTY_FUNCTIONS
};

// What goes wrong at the call that is named. Every failure says "injected fault".
enum FaultyKind {
  FAULTY_NOTHING,
  FAULTY_REFUSE,          // the function does nothing and fails with the code, which may be no code at all
  FAULTY_LOSE_DEVICE,     // all semaphores fail, and every later call fails; a queue_submit is accepted first
  FAULTY_FAIL_WORK,       // queue_submit: accepted, its signals and `completed` are told of a failure
  FAULTY_COMPLETE_ONLY,   // queue_submit: the same, but the signals are forgotten
  FAULTY_FAIL_SEMAPHORE,  // functions of a semaphore: it fails first
  FAULTY_UNTOUCHED,       // success, with nothing done and all outputs as they were
  FAULTY_NONSENSE,        // what it gives makes no sense, in the way that `code` says: drivers/faulty.cpp
};

enum FaultyHandle {
  FAULTY_INSTANCE,
  FAULTY_DEVICE,
  FAULTY_MEMORY,
  FAULTY_SEMAPHORE,
  FAULTY_EXECUTABLE,
  FAULTY_LIST,
  FAULTY_HANDLES
};

struct FaultyControls {
  // The driver to wrap, and which of its kinds "faulty" stands for. Before the driver is opened; no instance
  // is alive.
  void (*wrap)(const char* path, const char* kind);
  // No fault, and every count of calls 0.
  void (*reset)();
  // At call `at` (from 1) of the function since then. 0: at every call; -n: at every n-th.
  void (*inject)(int function, int kind, int64_t at, int32_t code);
  int64_t (*calls)(int function);
  int64_t (*injected)();             // how many calls have gone wrong
  int64_t (*live)(int handle);       // made and not yet destroyed
  void (*be_late)(int32_t is_late);  // completed and subscribers are called by another thread, later
  void (*settle)();                  // returns when all that is late has been called
};
