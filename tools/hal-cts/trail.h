// Trail: how far a case has come, in memory that outlives its process: which function of the driver's table
// was entered last and which have not returned, and the step that the case was at.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace halyard::cts {

class Trail {
 public:
  // Shared with the processes that are forked afterwards. Throws std::runtime_error where there is no memory.
  static Trail& create();
  static void destroy(Trail& trail);
  Trail(const Trail&) = delete;

  // The calling thread enters a function; `name` is a literal of this program. Nested calls are fine.
  struct Call {
    const char* outer;
    uint64_t number;
  };
  Call enter(const char* name);
  void leave(const Call& call);

  // A check that held: what the case did last. And what it is about to do, where that is worth saying.
  void held(std::string_view rule, std::string_view what);
  void step(std::string_view text);

  // "entered last: queue_submit, which has not returned; after [R60] a wait". Empty where nothing was noted.
  std::string text() const;

 private:
  static constexpr size_t kMostThreads = 64;  // more than that share places
  static constexpr size_t kLongest = 240;     // bytes of a step
  Trail() = default;
  ~Trail() = default;
  void write(std::string_view before, std::string_view text);
  std::atomic<const char*>& place();

  std::atomic<uint64_t> calls_ = 0;
  std::atomic<const char*> last_ = nullptr;
  std::atomic<uint64_t> returned_ = 0;  // the number of the last call, once it has returned
  std::array<std::atomic<const char*>, kMostThreads> inside_ = {};
  std::atomic<bool> writing_ = false;
  std::array<char, kLongest + 1> step_ = {};
};

}  // namespace halyard::cts
