// Ranges of paired steps are paired too: by their place if both steps have equally large ranges, else in the
// order of those that were written.
#include "diff.h"

#include <algorithm>
#include <utility>

namespace halyard::tools {

namespace {

// Elements have at most 8 bytes.
constexpr uint64_t kElementAlignment = 8;
// Compilers align tensors within larger buffers to at least this many bytes.
constexpr uint64_t kTensorAlignment = 64;

struct RangePair {
  size_t a = 0;  // places in the ranges of the steps
  size_t b = 0;
  Extent from;  // to compare, in the ranges
  Extent to;
  bool is_comparable = true;
  bool uses_changes = false;  // only elements that a step has changed count
};

Extent aligned(const StepRange& range, Extent extent) {
  return aligned_extent(range, extent, kElementAlignment);
}

Extent joined(Extent a, Extent b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

// Pairs of ranges whose bytes are not known to be equal.
std::vector<RangePair> pair_ranges(const Step& a, const Step& b) {
  std::vector<RangePair> pairs;
  const auto have_equal_sizes =
      std::ranges::equal(a.ranges, b.ranges, {}, &StepRange::size, &StepRange::size);
  const auto add = [&](size_t i, size_t j) {
    const StepRange& from = a.ranges[i];
    const StepRange& to = b.ranges[j];
    if (from.written.size() == to.written.size() && from.after == to.after) return;
    const bool is_separate =
        !have_equal_sizes || from.written.begin >= to.written.end || to.written.begin >= from.written.end;
    if (is_separate && !from.written.empty() && !to.written.empty()) {
      const bool is_comparable = from.written.size() == to.written.size();
      pairs.push_back({i, j, aligned(from, from.written), aligned(to, to.written), is_comparable, false});
      RangePair& made = pairs.back();
      if (made.from.size() != made.to.size()) made.from = from.written, made.to = to.written;
      return;
    }
    const Extent both = aligned(from, joined(from.written, to.written));
    pairs.push_back({i, j, both, both, true, true});
  };
  if (have_equal_sizes) {
    for (size_t i = 0; i < a.ranges.size(); ++i) add(i, i);
    return pairs;
  }
  const auto written = [](const Step& step) {
    std::vector<size_t> places;
    for (size_t i = 0; i < step.ranges.size(); ++i)
      if (!step.ranges[i].written.empty()) places.push_back(i);
    return places;
  };
  const std::vector<size_t> from = written(a);
  const std::vector<size_t> to = written(b);
  for (size_t i = 0; i < std::min(from.size(), to.size()); ++i) add(from[i], to[i]);
  return pairs;
}

std::vector<bool> either(const std::vector<bool>& a, const std::vector<bool>& b) {
  if (a.empty() || b.empty()) return {};
  std::vector<bool> both(a.size());
  for (size_t i = 0; i < a.size(); ++i) both[i] = a[i] || b[i];
  return both;
}

// Finds the shape of the tensor and its start. A step does not change elements that had their value before,
// such as zeros in new memory, so the first and last ones may lie outside the written extent.
void find_shape(const Step& step, const StepRange& range, Extent extent, const std::vector<bool>& counts,
                TensorDifference& tensor) {
  const uint64_t size = tensor.type.kind->size;
  if (!step.shape.empty() || step.kind != Step::Kind::device) {
    tensor.shape = step.shape;
    if (step.type == "cf64" || step.type == "cf128") tensor.shape.push_back(2);
    if (tensor.type.source == Typed::Source::none) tensor.shape = {static_cast<int64_t>(extent.size())};
    return;
  }
  uint64_t first = 0;
  uint64_t last = extent.size() / size;  // excluded
  if (!counts.empty()) {
    const auto is_counted = [&](uint64_t element) {
      return std::any_of(counts.begin() + static_cast<ptrdiff_t>(element * size),
                         counts.begin() + static_cast<ptrdiff_t>((element + 1) * size),
                         [](bool bit) { return bit; });
    };
    while (first < last && !is_counted(first)) ++first;
    while (last > first && !is_counted(last - 1)) --last;
  }
  const uint64_t count = last - first;
  tensor.first = -static_cast<int64_t>(first);
  tensor.shape = shape_in_name(step.name, count);
  if (!tensor.shape.empty()) return;
  tensor.shape = {static_cast<int64_t>(count)};
  const std::optional<uint64_t> whole = count_in_name(step.name, count);
  if (!whole) return;
  const uint64_t begin = range.offset + extent.begin + first * size;
  const uint64_t start = std::max(begin / kTensorAlignment * kTensorAlignment, range.offset);
  if ((begin - start) / size + count > *whole || start + *whole * size > range.offset + range.size) return;
  tensor.shape = shape_in_name(step.name, *whole);
  tensor.first = static_cast<int64_t>((begin - start) / size) - static_cast<int64_t>(first);
}

class Differ {
 public:
  Differ(Side& a, Side& b, const DiffOptions& options) : a_(a), b_(b), options_(options) {}

  Result<Diff> run() {
    diff_.a = TOOL_TRY(noted("a", a_.record()));
    diff_.b = TOOL_TRY(noted("b", b_.record()));
    diff_.alignment = align(diff_.a.steps, diff_.b.steps);
    uint64_t held = 0;
    std::vector<Work> window;
    for (const Pair& pair : diff_.alignment.pairs) {
      Work work = {pair, pair_ranges(diff_.a.steps[pair.a], diff_.b.steps[pair.b])};
      if (work.ranges.empty()) continue;
      uint64_t bytes = 0;
      for (const RangePair& range : work.ranges)
        if (range.is_comparable) bytes += range.from.size() + range.to.size();
      if (!window.empty() && held + bytes > options_.hold) {
        TOOL_TRY(compare_window(window));
        window.clear();
        held = 0;
      }
      held += bytes;
      window.push_back(std::move(work));
    }
    if (!window.empty()) TOOL_TRY(compare_window(window));
    for (size_t i = 0; i < diff_.differences.size() && !diff_.first_beyond; ++i)
      if (diff_.differences[i].is_beyond()) diff_.first_beyond = i;
    return std::move(diff_);
  }

 private:
  struct Work {
    Pair pair;
    std::vector<RangePair> ranges;
  };

  template <typename T>
  static Result<T> noted(std::string_view side, Result<T> result) {
    if (!result) result.error().text = fmt::format("run {}: {}", side, result.error().text);
    return result;
  }

  Result<> compare_window(const std::vector<Work>& window) {
    Wanted wanted_a;
    Wanted wanted_b;
    for (const Work& work : window) {
      std::vector<Extent>& from = wanted_a[work.pair.a];
      std::vector<Extent>& to = wanted_b[work.pair.b];
      from.resize(diff_.a.steps[work.pair.a].ranges.size());
      to.resize(diff_.b.steps[work.pair.b].ranges.size());
      for (const RangePair& range : work.ranges) {
        if (!range.is_comparable) continue;
        from[range.a] = range.from;
        to[range.b] = range.to;
      }
    }
    ++diff_.runs;
    std::vector<size_t> unstable;
    const Kept kept_a = TOOL_TRY(noted("a", a_.keep(diff_.a, wanted_a, unstable)));
    if (diff_.unstable_a.empty()) diff_.unstable_a = unstable;
    const Kept kept_b = TOOL_TRY(noted("b", b_.keep(diff_.b, wanted_b, unstable)));
    if (diff_.unstable_b.empty()) diff_.unstable_b = unstable;
    for (const Work& work : window) TOOL_TRY(compare_step(work, kept_a, kept_b));
    return {};
  }

  Result<> compare_step(const Work& work, const Kept& kept_a, const Kept& kept_b) {
    const Step& a = diff_.a.steps[work.pair.a];
    const Step& b = diff_.b.steps[work.pair.b];
    StepDifference difference = {.pair = work.pair};
    std::vector<std::pair<const KeptRange*, const KeptRange*>> bytes;
    for (const RangePair& range : work.ranges) {
      TensorDifference tensor = {.binding = a.ranges[range.a].binding,
                                 .size_a = a.ranges[range.a].written.size(),
                                 .size_b = b.ranges[range.b].written.size()};
      const auto of = [&](const Kept& kept, size_t step, size_t place) -> const KeptRange* {
        const auto found = kept.find(step);
        if (found == kept.end() || place >= found->second.size()) return nullptr;
        const KeptRange& each = found->second[place];
        return each.bytes.size() == range.from.size() ? &each : nullptr;
      };
      if (!range.is_comparable) {
        difference.tensors.push_back(std::move(tensor));
        bytes.emplace_back(nullptr, nullptr);
        continue;
      }
      const KeptRange* const from = of(kept_a, work.pair.a, range.a);
      const KeptRange* const to = of(kept_b, work.pair.b, range.b);
      if (!from || !to) continue;  // an unstable run, which is reported
      tensor.size_a = tensor.size_b = from->bytes.size();
      const std::vector<bool> counts =
          range.uses_changes ? either(from->changed, to->changed) : std::vector<bool>();
      tensor.type = type_of(a, options_.types, from->bytes);
      tensor.comparison = compare(*tensor.type.kind, from->bytes, to->bytes, counts,
                                  options_.tolerances.of(*tensor.type.kind), options_.worst);
      if (tensor.comparison.different == 0) continue;
      find_shape(a, a.ranges[range.a], range.from, counts, tensor);
      difference.tensors.push_back(std::move(tensor));
      bytes.emplace_back(from, to);
    }
    if (difference.tensors.empty()) return {};
    find_inputs(a, b, difference);
    if (options_.keep && difference.is_beyond())
      for (size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i].first)
          TOOL_TRY(options_.keep(a, work.pair.a, difference.tensors[i], bytes[i].first->bytes,
                                 bytes[i].second->bytes));
    diff_.differences.push_back(std::move(difference));
    return {};
  }

  static void find_inputs(const Step& a, const Step& b, StepDifference& difference) {
    if (a.kind != Step::Kind::device || a.ranges.size() != b.ranges.size()) return;
    for (size_t i = 0; i < a.ranges.size(); ++i) {
      if (a.ranges[i].size != b.ranges[i].size) continue;
      ++difference.inputs;
      if (a.ranges[i].before != b.ranges[i].before) difference.changed_inputs.push_back(a.ranges[i].binding);
    }
  }

  Side& a_;
  Side& b_;
  const DiffOptions& options_;
  Diff diff_;
};

}  // namespace

size_t Diff::beyond() const {
  return static_cast<size_t>(std::ranges::count_if(differences, &StepDifference::is_beyond));
}

Result<Diff> diff(Side& a, Side& b, const DiffOptions& options) { return Differ(a, b, options).run(); }

}  // namespace halyard::tools
