// CaseLog: the progress of a case, in memory that outlives its process: the last entered function of the
// driver's table, the functions that have not returned, and the current step of the case.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace halyard::cts {

class CaseLog {
 public:
  // Shared with child processes that are forked later. Throws std::runtime_error without memory.
  static CaseLog& create();
  static void destroy(CaseLog& case_log);
  CaseLog(const CaseLog&) = delete;

  // The calling thread enters a function; `name` is a literal of this program. Calls may be nested.
  struct Call {
    const char* outer;
    uint64_t number;
  };
  Call enter(const char* name);
  void leave(const Call& call);

  // held() records a passed check, the last action of the case; step() records the next action.
  void held(std::string_view rule, std::string_view what);
  void step(std::string_view text);

  // "entered last: queue_submit, which has not returned; after [R60] a wait". Empty if nothing was recorded.
  std::string text() const;

 private:
  static constexpr size_t kMaxThreads = 64;  // more threads share entries
  static constexpr size_t kMaxStep = 240;    // bytes of a step
  CaseLog() = default;
  ~CaseLog() = default;
  void write(std::string_view before, std::string_view text);
  std::atomic<const char*>& place();

  std::atomic<uint64_t> calls_ = 0;
  std::atomic<const char*> last_ = nullptr;
  std::atomic<uint64_t> returned_ = 0;  // the number of the last call, once it has returned
  std::array<std::atomic<const char*>, kMaxThreads> inside_ = {};
  std::atomic<bool> writing_ = false;
  std::array<char, kMaxStep + 1> step_ = {};
};

}  // namespace halyard::cts
