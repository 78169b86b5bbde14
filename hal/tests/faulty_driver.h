// The faulty driver's controls, for tests of driver failures: drivers/faulty.cpp wraps the table of another
// driver, counts calls and handles, and injects a fault into one call. It exports a table of these controls
// beside the driver ABI. Its only kind is "faulty". Programs that do not load the controls are tested by the
// environment: HALYARD_FAULTY_WRAP=KIND=PATH wraps a driver, a queue_submit that finds the file
// HALYARD_FAULTY_LOSE removes it and loses its device, and device_open is refused as long as the file
// HALYARD_FAULTY_REFUSE_OPEN exists.
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

// The fault to inject. Every failure says "injected fault".
enum FaultyKind {
  FAULTY_NOTHING,
  FAULTY_REFUSE,          // the function does nothing and fails with the code, which may be invalid
  FAULTY_LOSE_DEVICE,     // its semaphores fail, and every later call fails; a queue_submit is accepted first
  FAULTY_FAIL_WORK,       // queue_submit: accepted, its signals and `completed` fail
  FAULTY_COMPLETE_ONLY,   // queue_submit: the same, but the signals are forgotten
  FAULTY_FAIL_SEMAPHORE,  // functions of a semaphore: it fails first
  FAULTY_UNTOUCHED,       // success without any effect or output
  FAULTY_NONSENSE,        // an invalid answer, selected by `code`: drivers/faulty.cpp
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
  // The driver to wrap, and its kind that "faulty" stands for. Only while no instance is alive.
  void (*wrap)(const char* path, const char* kind);
  // Clears the fault and all call counts.
  void (*reset)();
  // Injects at call `at` (from 1) of the function from now on. 0: at every call; -n: at every n-th.
  void (*inject)(int function, int kind, int64_t at, int32_t code);
  int64_t (*calls)(int function);
  int64_t (*injected)();             // number of injected faults
  int64_t (*live)(int handle);       // live handles
  void (*be_late)(int32_t is_late);  // another thread calls completed and subscribers later
  void (*await_late_calls)();        // blocks until all delayed calls have been made
};
