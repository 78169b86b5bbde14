// The fake driver's controls, for tests of the HAL's host side: drivers/fake.cpp exports a table of them
// beside the driver ABI. Devices, by the path of their URI: "" runs in the caller; "queued" collects ready
// work until run_ready; "helped" is like "queued", and waiting threads also run its work (device_help);
// "bare" has only the mandatory operations; "opaque" allocates memory that the host cannot map unless
// requested; "passing" is like "queued" and supports semaphore descriptors; "apart" is like "passing", but
// has another group.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FAKE_CONTROLS_SYMBOL "fake_driver_controls"

enum FakeHandle { FAKE_MEMORY, FAKE_SEMAPHORE, FAKE_EXECUTABLE, FAKE_LIST, FAKE_DEVICE, FAKE_HANDLE_KINDS };

struct FakeControls {
  void (*reset)();                             // clears the log and pending faults
  int64_t (*live)(FakeHandle kind);            // live handles
  size_t (*ready)();                           // work waiting for run_ready
  size_t (*run_ready)();                       // runs it, and work that becomes ready; returns the count
  size_t (*log)(char* text, size_t capacity);  // copies the log of operations so far; returns its size
  void (*refuse_next)(int32_t code);           // refuses the next queue_submit
  void (*fail_next)(int32_t code);             // fails the next operation that runs
  size_t (*closed_in_callbacks)();             // devices closed while the driver was calling the host
  size_t (*exported)();                        // exported semaphores since reset()
  size_t (*imported)();                        // imported semaphores since reset()
  void (*refuse_export)(int32_t code);         // the next semaphore_export fails
  void (*refuse_import)(int32_t code);         // the next semaphore_import fails
  void (*hold_back)(int32_t holds);            // pauses updates of descriptors; 0: resumes them
};
