// SubmissionLog: the last submissions of a queue, for the report when the device is lost. The objects that
// they used may be gone by then. Entries contain their text, so that writing an entry allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halyard::vulkan {

// Text of at most kSize bytes; longer text ends with "...".
template <size_t kSize>
class BoundedText {
 public:
  bool is_cut() const { return is_cut_; }
  std::string_view view() const { return {bytes_.data(), size_}; }
  void append(std::string_view text) {
    if (is_cut_) return;
    constexpr std::string_view kCut = "...";
    is_cut_ = text.size() > kSize - kCut.size() - size_;
    copy(text.substr(0, kSize - kCut.size() - size_));
    if (is_cut_) copy(kCut);
  }

 private:
  void copy(std::string_view text) {
    std::copy(text.begin(), text.end(), bytes_.begin() + size_);
    size_ += static_cast<uint16_t>(text.size());
  }

  std::array<char, kSize> bytes_ = {};
  uint16_t size_ = 0;
  bool is_cut_ = false;
};

// The contents of a submission.
struct SubmissionLabel {
  BoundedText<128> functions;  // "'softmax', 'matmul'"; consecutive repetitions are listed once
  BoundedText<192> groups;     // "attention, attention/softmax": paths of debug groups

  void add_function(std::string_view name);
  void add_group(const std::vector<std::string_view>& path);
};

struct LoggedSubmission {
  uint64_t id = 0;      // in the order of submission to the device, from 1
  uint64_t number = 0;  // on its queue
  uint32_t queue = 0;
  uint32_t operation = 0;  // HALYARD_OPERATION_*
  SubmissionLabel label;

  // "#17 execute of 'softmax' with groups attention on queue 0 (number 12)"
  std::string text() const;
};

class SubmissionLog {
 public:
  static constexpr size_t kMaxEntries = 8;
  // Returns the next entry, which the caller fills in.
  LoggedSubmission& next() { return entries_[count_++ % kMaxEntries]; }
  // From oldest to newest.
  template <typename Visit>
  void each(Visit visit) const {
    for (uint64_t i = count_ - std::min<uint64_t>(count_, kMaxEntries); i < count_; ++i)
      visit(entries_[i % kMaxEntries]);
  }

 private:
  std::array<LoggedSubmission, kMaxEntries> entries_;
  uint64_t count_ = 0;
};

}  // namespace halyard::vulkan
