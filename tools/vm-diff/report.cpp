// The first step beyond tolerance in full; then one line for each step that differs.
#include "report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/printable.h"
#include "common/quantities.h"
#include "common/table.h"

namespace halyard::tools {

namespace {

constexpr size_t kMaxListed = 20;  // steps without a partner

std::string amount(double value) { return std::isinf(value) ? "inf" : fmt::format("{:.3g}", value); }

std::string shape_text(const TensorDifference& tensor) {
  if (!tensor.type.kind) return "?";
  std::string text;
  for (const int64_t size : tensor.shape) text += fmt::format("{}x", size);
  return text + std::string(tensor.type.kind->name);
}

int64_t index_in(const TensorDifference& tensor, uint64_t compared) {
  return static_cast<int64_t>(compared) + tensor.first;
}

// By dimension: "3, 17".
std::vector<int64_t> indices_of(const TensorDifference& tensor, uint64_t compared) {
  int64_t index = index_in(tensor, compared);
  std::vector<int64_t> indices(std::max<size_t>(tensor.shape.size(), 1));
  for (size_t i = indices.size(); i-- > 0;) {
    const int64_t size = i < tensor.shape.size() && i > 0 ? tensor.shape[i] : 0;
    indices[i] = size > 0 ? index % size : index;
    if (size > 0) index /= size;
  }
  return indices;
}

std::string step_name(const Step& step) {
  return step.is_dispatch() || step.kind != Step::Kind::device ? step.name : step.operation;
}

std::string unit(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string_view text_of(Match match) {
  return match == Match::name ? "by name" : match == Match::kind ? "by kind" : "by size";
}

std::string histogram_text(const Comparison& comparison) {
  std::string text;
  for (size_t i = 0; i < comparison.histogram.size(); ++i) {
    if (comparison.histogram[i] == 0) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", distance_text(i), comparison.histogram[i]);
  }
  return text;
}

std::string tensor_text(const TensorDifference& tensor) {
  if (!tensor.is_comparable())
    return fmt::format("  tensor      binding {}: {} written by a, {} by b, so it was not compared\n",
                       tensor.binding, unit(tensor.size_a, "byte"), unit(tensor.size_b, "byte"));
  const Comparison& found = tensor.comparison;
  std::string text = fmt::format("  tensor      binding {}, {}; its type is from {}\n", tensor.binding,
                                 shape_text(tensor), text_of(tensor.type.source));
  text += fmt::format("  elements    {} of {} differ, {} beyond tolerance\n", found.different, found.elements,
                      found.beyond);
  text += fmt::format("  largest     absolute {}, relative {}, {} ulps\n", amount(found.largest_absolute),
                      amount(found.largest_relative), amount(found.largest_ulps));
  text += fmt::format("  ulps        {}\n", histogram_text(found));
  if (found.nan_a || found.nan_b || found.infinite_a || found.infinite_b)
    text += fmt::format("  not finite  a: {} NaN, {} infinite; b: {} NaN, {} infinite\n", found.nan_a,
                        found.infinite_a, found.nan_b, found.infinite_b);
  for (size_t i = 0; i < found.worst.size(); ++i) {
    const Miss& miss = found.worst[i];
    text += fmt::format("  {:11} [{}]  a {}  b {}  absolute {}, relative {}, {} ulps\n",
                        i == 0 ? "worst" : "", fmt::join(indices_of(tensor, miss.index), ", "), miss.a,
                        miss.b, amount(miss.absolute), amount(miss.relative), amount(miss.ulps));
  }
  return text;
}

std::string inputs_text(const StepDifference& difference) {
  if (difference.inputs == 0) return "";
  if (difference.changed_inputs.empty())
    return fmt::format(
        "  before      the same bytes in {}, so the step itself differs\n",
        difference.inputs == 1 ? "its range" : fmt::format("all {} ranges", difference.inputs));
  return fmt::format("  before      binding{} {} differed already\n",
                     difference.changed_inputs.size() == 1 ? "" : "s",
                     fmt::join(difference.changed_inputs, ", "));
}

std::string step_text(const Diff& diff, const StepDifference& difference) {
  const Step& a = diff.a.steps[difference.pair.a];
  const Step& b = diff.b.steps[difference.pair.b];
  std::string text =
      fmt::format("  {:11} {}", a.operation == "dispatch" ? "kernel" : a.operation, step_name(a));
  if (a.is_dispatch()) text += fmt::format(", workgroups {}", fmt::join(a.workgroups, "x"));
  text += "\n";
  if (a.name != b.name)
    text += fmt::format("  in b        {} ({})\n", step_name(b), text_of(difference.pair.match));
  if (!a.place.empty()) text += fmt::format("  place       {}\n", a.place);
  if (a.place != b.place && !b.place.empty()) text += fmt::format("  place in b  {}\n", b.place);
  if (!a.source.empty()) text += fmt::format("  source      {}\n", a.source);
  if (a.source != b.source && !b.source.empty()) text += fmt::format("  source in b {}\n", b.source);
  if (!a.device.empty())
    text += a.device == b.device ? fmt::format("  device      {}\n", a.device)
                                 : fmt::format("  device      a {}, b {}\n", a.device, b.device);
  if (a.kind == Step::Kind::device)
    text += fmt::format("  execution   {}, command {}\n", a.key.execution, a.key.command);
  text += inputs_text(difference);
  for (const TensorDifference& tensor : difference.tensors) text += tensor_text(tensor);
  return text;
}

std::string unpaired_text(std::string_view side, const std::vector<size_t>& places, const RunRecord& record) {
  if (places.empty()) return "";
  std::string text = fmt::format("\nonly in {}: {}\n", side, unit(places.size(), "step"));
  for (size_t i = 0; i < std::min(places.size(), kMaxListed); ++i) {
    const Step& step = record.steps[places[i]];
    text += fmt::format("  {:5}  {}, {} written\n", places[i], step_name(step),
                        unit(step.written_bytes(), "byte"));
  }
  if (places.size() > kMaxListed)
    text += fmt::format("  and {} more (--json lists all)\n", places.size() - kMaxListed);
  return text;
}

std::string unstable_text(std::string_view side, const std::vector<size_t>& places, const RunRecord& record) {
  if (places.empty()) return "";
  return fmt::format(
      "\nrun {0} differs from itself: {1} had other bytes when {0} ran again, the first of them {2} '{3}'; "
      "look for a race or memory that is read before it is written\n",
      side, unit(places.size(), "step"), places.front(), step_name(record.steps[places.front()]));
}

Json number_or_text(double value) { return std::isinf(value) ? Json("inf") : Json(value); }

Json tensor_json(const TensorDifference& tensor) {
  Json object = {{"binding", tensor.binding}, {"comparable", tensor.is_comparable()}};
  if (!tensor.is_comparable()) {
    object["bytes_a"] = tensor.size_a;
    object["bytes_b"] = tensor.size_b;
    return object;
  }
  const Comparison& found = tensor.comparison;
  object["type"] = tensor.type.kind->name;
  object["type_from"] = text_of(tensor.type.source);
  object["shape"] = tensor.shape;
  object["elements"] = found.elements;
  object["different"] = found.different;
  object["beyond"] = found.beyond;
  object["largest_absolute"] = number_or_text(found.largest_absolute);
  object["largest_relative"] = number_or_text(found.largest_relative);
  object["largest_ulps"] = number_or_text(found.largest_ulps);
  object["nan"] = {found.nan_a, found.nan_b};
  object["infinite"] = {found.infinite_a, found.infinite_b};
  Json histogram = Json::object();
  for (size_t i = 0; i < found.histogram.size(); ++i)
    if (found.histogram[i] != 0) histogram[distance_text(i)] = found.histogram[i];
  object["ulps"] = std::move(histogram);
  Json worst = Json::array();
  for (const Miss& miss : found.worst)
    worst.push_back({{"index", indices_of(tensor, miss.index)},
                     {"a", miss.a},
                     {"b", miss.b},
                     {"absolute", number_or_text(miss.absolute)},
                     {"relative", number_or_text(miss.relative)},
                     {"ulps", number_or_text(miss.ulps)}});
  object["worst"] = std::move(worst);
  return object;
}

// How many steps before it have the same name and place.
size_t occurrence_of(const RunRecord& record, size_t place) {
  const Step& step = record.steps[place];
  return static_cast<size_t>(
      std::count_if(record.steps.begin(), record.steps.begin() + static_cast<ptrdiff_t>(place),
                    [&](const Step& each) { return each.name == step.name && each.place == step.place; }));
}

Json step_json(const Diff& diff, const StepDifference& difference) {
  const Step& a = diff.a.steps[difference.pair.a];
  const Step& b = diff.b.steps[difference.pair.b];
  Json tensors = Json::array();
  for (const TensorDifference& tensor : difference.tensors) tensors.push_back(tensor_json(tensor));
  return {{"step_a", difference.pair.a},
          {"step_b", difference.pair.b},
          {"paired", text_of(difference.pair.match)},
          {"operation", a.operation},
          {"name_a", a.name},
          {"name_b", b.name},
          {"place_a", a.place},
          {"occurrence", occurrence_of(diff.a, difference.pair.a)},
          {"place_b", b.place},
          {"source_a", a.source},
          {"source_b", b.source},
          {"device_a", a.device},
          {"device_b", b.device},
          {"workgroups", a.workgroups},
          {"execution", a.kind == Step::Kind::device ? Json(a.key.execution) : Json()},
          {"command", a.kind == Step::Kind::device ? Json(a.key.command) : Json()},
          {"beyond", difference.is_beyond()},
          {"changed_before", difference.changed_inputs},
          {"tensors", std::move(tensors)}};
}

Json unpaired_json(const std::vector<size_t>& places, const RunRecord& record) {
  Json list = Json::array();
  for (const size_t place : places)
    list.push_back({{"step", place},
                    {"operation", record.steps[place].operation},
                    {"name", record.steps[place].name},
                    {"bytes", record.steps[place].written_bytes()}});
  return list;
}

}  // namespace

std::string_view outcome_of(const Diff& diff) {
  if (diff.alignment.pairs.empty() && !(diff.a.steps.empty() && diff.b.steps.empty())) return "not alike";
  if (diff.first_beyond) return "differs";
  return diff.differences.empty() ? "same" : "within tolerance";
}

std::string text_report(const Diff& diff, const Descriptions& sides) {
  const Alignment& alignment = diff.alignment;
  std::string text = fmt::format("a: {}\nb: {}\n", sides.a, sides.b);
  text += fmt::format("{} compared: {} differ, {} beyond tolerance\n", unit(alignment.pairs.size(), "step"),
                      diff.differences.size(), diff.beyond());
  const auto loosely =
      std::ranges::count_if(alignment.pairs, [](const Pair& pair) { return pair.match != Match::name; });
  if (loosely > 0)
    text += fmt::format("{} paired by kind or size, because their names differ\n",
                        unit(static_cast<uint64_t>(loosely), "step"));
  if (diff.first_beyond) {
    const StepDifference& first = diff.differences[*diff.first_beyond];
    text += fmt::format("\nthe first step beyond tolerance is {} of {}\n{}", first.pair.a,
                        diff.a.steps.size(), step_text(diff, first));
  }
  if (!diff.differences.empty()) {
    std::vector<Row> rows;
    for (const StepDifference& difference : diff.differences)
      for (const TensorDifference& tensor : difference.tensors) {
        const Comparison& found = tensor.comparison;
        const std::string step = fmt::format("{}{}", difference.pair.a, tensor.is_beyond() ? "*" : "");
        const std::string name = step_name(diff.a.steps[difference.pair.a]);
        if (tensor.is_comparable()) {
          rows.push_back({step, fmt::format("{} of {}", found.different, found.elements),
                          amount(found.largest_absolute), amount(found.largest_relative),
                          amount(found.largest_ulps), shape_text(tensor), name});
        } else {
          rows.push_back({step, "not compared", "", "", "",
                          fmt::format("{} and {} bytes", tensor.size_a, tensor.size_b), name});
        }
      }
    text += "\nthe error of each step (*: beyond tolerance)\n";
    text +=
        table({"step", "differ", "absolute", "relative", "ulps", "tensor", "written by"}, std::move(rows));
  }
  text += unpaired_text("a", alignment.only_a, diff.a);
  text += unpaired_text("b", alignment.only_b, diff.b);
  text += unstable_text("a", diff.unstable_a, diff.a);
  text += unstable_text("b", diff.unstable_b, diff.b);
  return printable(text);
}

Json json_report(const Diff& diff, const Descriptions& sides) {
  Json differences = Json::array();
  for (const StepDifference& difference : diff.differences)
    differences.push_back(step_json(diff, difference));
  return {{"outcome", outcome_of(diff)},
          {"a", sides.a},
          {"b", sides.b},
          {"function", sides.function.empty() ? Json() : Json(sides.function)},
          {"steps_a", diff.a.steps.size()},
          {"steps_b", diff.b.steps.size()},
          {"compared", diff.alignment.pairs.size()},
          {"runs", diff.runs},
          {"first_beyond", diff.first_beyond ? Json(*diff.first_beyond) : Json()},
          {"differences", std::move(differences)},
          {"only_a", unpaired_json(diff.alignment.only_a, diff.a)},
          {"only_b", unpaired_json(diff.alignment.only_b, diff.b)},
          {"unstable_a", diff.unstable_a},
          {"unstable_b", diff.unstable_b}};
}

}  // namespace halyard::tools
