// The faulty driver's controls, for tests of driver failures: drivers/faulty.cpp wraps the table of another
// driver, counts calls and handles, and injects a fault into one call. It exports a table of these controls
// beside the driver ABI. Its only kind is "faulty". Environment variables control it in programs that do not
// load the controls. HALYARD_FAULTY_WRAP=KIND=PATH wraps a driver. HALYARD_FAULTY_LOSE is a file: a
// queue_submit that finds it removes it and loses its device. HALYARD_FAULTY_REFUSE_OPEN is a file:
// device_open is refused as long as it exists.
#pragma once

#include <stdint.h>

#define FAULTY_CONTROLS_SYMBOL "faulty_driver_controls"

// Functions of the driver's table, FAULTY_memory_map and so on, in its order.
enum FaultyFunction {
#define HALYARD_DRIVER_FUNCTION(name, mandatory) FAULTY_##name,
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION
  FAULTY_FUNCTIONS
};

// The fault to inject. Every failure has the text "injected fault".
enum FaultyKind {
  FAULTY_NOTHING,
  FAULTY_REFUSE,          // the function does nothing and fails with the code, which may be invalid
  FAULTY_LOSE_DEVICE,     // semaphores and later calls fail; a queue_submit is accepted first
  FAULTY_FAIL_WORK,       // queue_submit: accepted, its signals and `completed` fail
  FAULTY_COMPLETE_ONLY,   // queue_submit: the same, but without the signals
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
  // Sets the driver to wrap, and the kind of it that "faulty" represents. Precondition: no instance exists.
  void (*wrap)(const char* path, const char* kind);
  // Clears the fault and all call counts.
  void (*reset)();
  // Injects a fault into call number `at` (from 1) of the function, counted from now on. 0: into every call;
  // -n: into every n-th call.
  void (*inject)(int function, int kind, int64_t at, int32_t code);
  int64_t (*calls)(int function);
  int64_t (*injected)();             // number of injected faults
  int64_t (*live)(int handle);       // live handles
  void (*be_late)(int32_t is_late);  // another thread calls completed and subscribers later
  void (*await_late_calls)();        // blocks until all delayed calls have been made
};
