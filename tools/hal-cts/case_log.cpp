// Writes and reads the log of a case. Addresses of literals are the same in a process and in its forked
// children.
#include "case_log.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

namespace halyard::cts {

CaseLog& CaseLog::create() {
  void* const shared =
      mmap(nullptr, sizeof(CaseLog), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("cannot share memory with the process of a case");
  return *new (shared) CaseLog;
}

void CaseLog::destroy(CaseLog& case_log) { munmap(&case_log, sizeof(CaseLog)); }

std::atomic<const char*>& CaseLog::place() {
  static std::atomic<size_t> threads = 0;
  thread_local const size_t mine = threads++ % kMaxThreads;
  return inside_[mine];
}

CaseLog::Call CaseLog::enter(const char* name) {
  const Call call = {place().exchange(name), ++calls_};
  last_ = name;
  return call;
}

void CaseLog::leave(const Call& call) {
  place() = call.outer;
  if (calls_ == call.number) returned_ = call.number;
}

// If another thread is writing, this text is dropped, because both threads are at about the same step.
void CaseLog::write(std::string_view before, std::string_view text) {
  if (writing_.exchange(true)) return;
  const size_t first = std::min(before.size(), kMaxStep);
  const size_t second = std::min(text.size(), kMaxStep - first);
  std::copy_n(before.begin(), first, step_.begin());
  std::copy_n(text.begin(), second, step_.begin() + static_cast<ptrdiff_t>(first));
  step_[first + second] = 0;
  writing_ = false;
}

void CaseLog::held(std::string_view rule, std::string_view what) {
  write(fmt::format("after [{}] ", rule), what);
}

void CaseLog::step(std::string_view text) { write("at ", text); }

std::string CaseLog::text() const {
  std::string text;
  if (const char* const last = last_) {
    text = fmt::format("entered last: {}, which has {}returned", last, calls_ == returned_ ? "" : "not ");
    std::string others;
    for (const std::atomic<const char*>& place : inside_)
      if (const char* const name = place; name && (calls_ == returned_ || name != last))
        others += fmt::format("{}{}", others.empty() ? "" : ", ", name);
    if (!others.empty()) text += fmt::format("; still inside: {}", others);
  }
  if (step_[0]) text += fmt::format("{}{}", text.empty() ? "" : "; ", step_.data());
  return text;
}

}  // namespace halyard::cts
