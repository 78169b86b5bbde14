// The fake driver's controls, for tests of the host's half of the HAL: drivers/fake.cpp exports one table of
// them beside the driver ABI. Devices, by the path of their URI: "" runs in the caller; "queued" collects
// what is due until run_ready; "helped" does, too, and runs it on threads that are lent; "bare" has only the
// mandatory operations; "opaque" gives memory that the host cannot see unless it is asked for; "passing" is
// queued and has descriptors of semaphores, "apart" too, but others.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FAKE_CONTROLS_SYMBOL "fake_driver_controls"

enum FakeHandle { FAKE_MEMORY, FAKE_SEMAPHORE, FAKE_EXECUTABLE, FAKE_LIST, FAKE_DEVICE, FAKE_HANDLE_KINDS };

struct FakeControls {
  void (*reset)();                             // forgets the log and what was to fail
  int64_t (*live)(FakeHandle kind);            // handles made and not yet destroyed
  size_t (*ready)();                           // pieces of work that wait for run_ready
  size_t (*run_ready)();                       // runs them, and what becomes due by that; how many
  size_t (*log)(char* text, size_t capacity);  // copies the lines that operations wrote so far; its size
  void (*refuse_next)(int32_t code);           // the next queue_submit is not accepted
  void (*fail_next)(int32_t code);             // the next operation that runs fails
  size_t (*closed_in_callbacks)();             // devices closed while the driver was calling the host
  size_t (*exported)();                        // semaphores, since reset()
  size_t (*imported)();                        // the same
  void (*refuse_export)(int32_t code);         // the next semaphore_export fails
  void (*refuse_import)(int32_t code);         // the next semaphore_import fails
  void (*hold_back)(int32_t holds);            // descriptors stay behind; 0: they catch up
};
