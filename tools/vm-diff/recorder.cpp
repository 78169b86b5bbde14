// Steps that run at once may be reported in any order, so they are sorted by the order of submission.
#include "recorder.h"

#include <algorithm>
#include <utility>

#include "common/contents.h"

namespace halyard::tools {

namespace {

constexpr uint64_t kLast = UINT64_MAX;

bool same_bytes(const Step& left, const Step& right) {
  return std::ranges::equal(left.ranges, right.ranges, [](const StepRange& a, const StepRange& b) {
    return a.size == b.size && a.written == b.written && a.after == b.after;
  });
}

}  // namespace

Recorder::Recorder(const RunRecord& record, const Wanted& wanted) : known_(&record), wanted_(&wanted) {
  for (size_t i = 0; i < record.steps.size(); ++i) places_.emplace(record.steps[i].key, i);
}

void Recorder::take(const halyard_traced_tensor_t& tensor) {
  const std::lock_guard lock(mutex_);
  const StepKey key = {tensor.execution, tensor.command, 0};
  last_execution_ = std::max(last_execution_, tensor.execution);
  Step& step = steps_[key];
  if (step.operation.empty()) {
    step.key = key;
    step.operation = view(tensor.operation);
    step.name = view(tensor.function);
    step.device = view(tensor.device);
    step.place = view(tensor.place);
    step.source = view(tensor.source);
    std::ranges::copy(tensor.workgroups, step.workgroups.begin());
  }
  StepRange range = {
      .binding = tensor.binding, .buffer = tensor.buffer, .offset = tensor.offset, .size = tensor.size};
  take_range(step, range, {tensor.before, tensor.size}, {tensor.data, tensor.size});
}

Result<> Recorder::take(Step::Kind kind, std::string_view name, uint64_t place, const Tensor& tensor) {
  const Contents contents = TOOL_TRY(contents_of(tensor));
  const std::lock_guard lock(mutex_);
  Step step;
  step.kind = kind;
  step.key =
      kind == Step::Kind::result ? StepKey{kLast, place, 0} : StepKey{last_execution_, kLast, shown_++};
  step.operation = kind == Step::Kind::result ? "result" : "trace";
  step.name = name;
  step.type = contents.element_type;
  step.shape = contents.shape;
  Step& kept = steps_[step.key] = std::move(step);
  take_range(kept, {.size = contents.bytes.size()}, {}, contents.bytes);
  return {};
}

// Without bytes from before, all bytes count as written.
void Recorder::take_range(Step& step, StepRange range, std::span<const uint8_t> before,
                          std::span<const uint8_t> after) {
  // Whole words, because the first or last byte of an element may be the same by chance.
  range.written = before.empty() ? Extent{0, after.size()}
                                 : aligned_extent(range, changed_extent(before, after), kWordBytes);
  if (!wanted_) range.before = digest_of(before);
  range.after = digest_of(after.subspan(range.written.begin, range.written.size()));
  const size_t place = step.ranges.size();
  step.ranges.push_back(range);
  if (!wanted_) return;
  const auto known = places_.find(step.key);
  if (known == places_.end()) return;
  const auto wanted = wanted_->find(known->second);
  if (wanted == wanted_->end() || place >= wanted->second.size()) return;
  std::vector<KeptRange>& kept = kept_[known->second];
  kept.resize(std::max(kept.size(), place + 1));
  Extent extent = wanted->second[place];
  extent.end = std::min<uint64_t>(extent.end, after.size());
  if (extent.empty()) return;
  KeptRange& to = kept[place];
  to.extent = extent;
  to.bytes.assign(after.begin() + static_cast<ptrdiff_t>(extent.begin),
                  after.begin() + static_cast<ptrdiff_t>(extent.end));
  if (before.empty()) return;
  to.changed.resize(extent.size());
  for (uint64_t i = 0; i < extent.size(); ++i)
    to.changed[i] = before[extent.begin + i] != after[extent.begin + i];
}

RunRecord Recorder::record() {
  const std::lock_guard lock(mutex_);
  RunRecord record;
  for (auto& [key, step] : steps_) record.steps.push_back(std::move(step));
  steps_.clear();
  return record;
}

std::vector<size_t> Recorder::unstable() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < known_->steps.size(); ++i) {
    const auto again = steps_.find(known_->steps[i].key);
    if (again == steps_.end() || !same_bytes(again->second, known_->steps[i])) found.push_back(i);
  }
  return found;
}

}  // namespace halyard::tools
