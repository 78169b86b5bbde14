// Writes what the two sides of remote devices may send: after a byte that says how the rest is read (1: after
// a right greeting, 2 or 4: in records), records of 4 bytes.
#include <string>

#include "seeds.h"

namespace halyard::fuzz {

namespace {

using Records = std::vector<uint8_t>;

// Sizes in units of 512 bytes. The client's first memory is 1, its reads are 2 and 3, of 64 units.
enum FromServer : uint8_t { kData = 1, kContents, kDone, kAnswer, kPong, kWait, kCut };

// The many memories have the numbers from 256 on. Semaphores are waited for until they have the value 1.
enum FromClient : uint8_t {
  kMemory = 1,
  kManyMemories,
  kSemaphore,
  kFailure,
  kSignal,
  kExecutable,
  kDispatches,
  kFillsOfMany,
  kExecutions,
  kWrite,
  kRead,
  kWatch,
  kStage,
  kUpdate,
  kDestroy
};

}  // namespace

void write_server_frames(const std::filesystem::path& folder) {
  int number = 0;
  const auto write = [&](Records records) {
    records.insert(records.begin(), 3);
    write_seed(folder / std::to_string(number++), records);
  };
  write({kWait, 0, 0, 0, kData, 2, 0, 64, kWait, 0, 0, 0, kWait, 0, 0, 0, kData, 3, 0, 64});
  // All in several pieces, then more for the same read, which comes when that has returned.
  write({kWait, 0, 0, 0, kData, 2, 0, 32, kData, 2, 32, 32, kCut, 128, 0, 0, kData, 2, 0, 64});
  write({kWait, 0, 0, 0, kData, 2, 0, 32, kDone, 2, 0, 0, kCut, 128, 0, 0, kData, 2, 32, 32});
  write({kWait, 0, 0, 0, kDone, 2, 1, 0, kWait, 0, 0, 0, kWait, 0, 0, 0, kDone, 3, 2, 0});
  write({kWait,     0, 0, 0, kDone, 2, 0, 0, kWait,     0, 0, 0,  kWait, 0, 0, 0,
         kDone,     3, 0, 0, kWait, 0, 0, 0, kContents, 1, 0, 64, kData, 4, 0, 64,
         kContents, 1, 8, 8, kDone, 5, 0, 0, kAnswer,   6, 1, 3,  kPong, 0, 0, 0});
}

void write_client_frames(const std::filesystem::path& folder) {
  int number = 0;
  const auto write = [&](Records records) {
    records.insert(records.begin(), 5);
    write_seed(folder / std::to_string(number++), records);
  };
  write({kMemory,     1,  64,     0, kWrite,      1, 0,       64, kRead,    1, 1,      64, kRead, 1,
         2,           64, kStage, 5, 4,           4, kUpdate, 1,  4,        5, kWatch, 1,  1,     0,
         kDispatches, 9,  0,      0, kExecutions, 9, 0,       2,  kDestroy, 1, 2,      0});
  // The same command many times, with code that does not exist.
  write({kMemory, 1, 64, 0, kExecutable, 2, 3, 1, kDispatches, 9, 255, 255, kExecutions, 9, 0, 1});
  // Failures with much text.
  Records failures;
  for (uint8_t semaphore = 1; semaphore <= 100; ++semaphore)
    for (const uint8_t byte : {uint8_t{kSemaphore}, semaphore, uint8_t{0}, uint8_t{0}, uint8_t{kFailure},
                               semaphore, uint8_t{3}, uint8_t{30}})
      failures.push_back(byte);
  write(failures);
  // Work that waits and may write to many memories.
  write({kManyMemories, 64, 4, 0,   kSemaphore,  1, 0, 0,   kFillsOfMany, 9, 0, 0,
         kExecutions,   9,  1, 255, kExecutions, 9, 1, 255, kSignal,      1, 1, 0});
}

}  // namespace halyard::fuzz
