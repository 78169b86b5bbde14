// A child reports through a pipe, one record at a time, so that no report is lost if it crashes. A record:
// kind, size of the rest in bytes, zero-terminated texts.
#include "process.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "common/child.h"

namespace halyard::cts {

namespace {

enum Kind : char { kProblem = 'P', kSkipped = 'S', kNote = 'N', kEnd = 'E' };
constexpr size_t kHeader = 1 + sizeof(uint32_t);

class PipeTeller final : public Teller {
 public:
  explicit PipeTeller(int fd) : fd_(fd) {}
  void problem(const Problem& it) override { send(kProblem, {it.rule, it.what, it.expected, it.found}); }
  void skipped(const std::string& reason) override { send(kSkipped, {reason}); }
  void note(const std::string& text) override { send(kNote, {text}); }
  void end() { send(kEnd, {}); }

 private:
  void send(Kind kind, const std::vector<std::string>& texts) {
    std::string record(kHeader, kind);
    for (const std::string& text : texts) record.append(text.c_str()).push_back('\0');
    const auto size = static_cast<uint32_t>(record.size() - kHeader);
    std::memcpy(record.data() + 1, &size, sizeof size);
    const std::lock_guard lock(mutex_);
    for (size_t sent = 0; sent < record.size();) {
      const ssize_t count = write(fd_, record.data() + sent, record.size() - sent);
      if (count < 0 && errno != EINTR) return;  // the parent has ended
      if (count > 0) sent += static_cast<size_t>(count);
    }
  }

  std::mutex mutex_;
  const int fd_;
};

class DirectTeller final : public Teller {
 public:
  explicit DirectTeller(Report& report) : report_(report) {}
  void problem(const Problem& it) override {
    const std::lock_guard lock(mutex_);
    report_.problems.push_back(it);
  }
  void skipped(const std::string& reason) override {
    report_.skipped = true;
    report_.reason = reason;
  }
  void note(const std::string& text) override { report_.notes.push_back(text); }

 private:
  std::mutex mutex_;
  Report& report_;
};

// Removes the complete records from the front of `bytes`. Returns whether the final record was among them.
bool take_records(std::string& bytes, Report& report) {
  bool ended = false;
  while (bytes.size() >= kHeader) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.data() + 1, sizeof size);
    if (bytes.size() - kHeader < size) break;
    std::vector<std::string> texts;
    for (size_t at = kHeader; at < kHeader + size; at += texts.back().size() + 1)
      texts.emplace_back(bytes.c_str() + at);
    texts.resize(4);
    switch (bytes[0]) {
      case kProblem:
        report.problems.push_back({texts[0], texts[1], texts[2], texts[3]});
        break;
      case kSkipped:
        report.skipped = true;
        report.reason = texts[0];
        break;
      case kNote:
        report.notes.push_back(texts[0]);
        break;
      default:
        ended = true;
    }
    bytes.erase(0, kHeader + size);
  }
  return ended;
}

std::string seconds(int64_t ns) { return fmt::format("{:g} s", static_cast<double>(ns) / 1e9); }

}  // namespace

Report run_apart(const std::function<void(Teller&)>& body, int64_t timeout_ns) {
  Report report;
  if (timeout_ns == 0) {
    DirectTeller teller(report);
    body(teller);
    return report;
  }
  tools::Children children;
  tools::ChildExit child;
  const auto tell = [&](int pipe) {
    PipeTeller teller(pipe);
    body(teller);
    teller.end();
  };
  const tools::Result<> started = children.fork(tell, std::chrono::nanoseconds(timeout_ns),
                                                [&](tools::ChildExit it) { child = std::move(it); });
  if (!started) throw std::runtime_error("cannot start a process: " + started.error().text);
  children.run();
  const bool ended = take_records(child.outputs.front(), report);

  const char* const where = ended ? "the process after the case" : "the case";
  if (child.is_late) {
    report.problems.push_back({"R34", where, "an end", "no answer in " + seconds(timeout_ns)});
  } else if (child.is_signalled()) {
    const int number = child.signal();
    report.problems.push_back({ended ? "R9" : "R35", where, "an end",
                               fmt::format("died of signal {} ({})", number, strsignal(number))});
  } else if (child.exit_code() != 0 || !ended) {
    report.problems.push_back({ended ? "R9" : "R35", where, "an end with exit code 0",
                               fmt::format("the process ended with exit code {}", child.exit_code())});
  }
  return report;
}

}  // namespace halyard::cts
