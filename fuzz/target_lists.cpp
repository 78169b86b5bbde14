// Lists within lists, as programs can create them: they may contain themselves, be deep, or be reachable in
// very many ways. Code that walks them ends with a value or a status, and reads and prints no more than the
// limits allow. A second walk, from the innermost lists outwards, computes the expected amounts.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.h"
#include "fuzzing.h"
#include "vm-run/json.h"
#include "vm-run/print.h"

using namespace halyard;
using namespace halyard::tools;

namespace {

using tools::Result;

constexpr size_t kMaxLists = 1 << 18;  // in one input
constexpr uint64_t kMany = uint64_t{1} << 62;
// Limits of vm-run for a list without --json: levels, elements, and bytes after which no further element
// begins.
constexpr uint64_t kPrintedDepth = 64, kPrintedElements = 1 << 16;
constexpr size_t kPrintedText = 16 << 20;
constexpr size_t kOneElement = 1 << 20;  // bytes: more than the tensor, and the ends of all lists, as text
constexpr uint64_t kShown = 1000;        // printed elements of a tensor
constexpr int64_t kTensor[] = {1 << 14, 1 << 5};  // the shape of the tensor in the lists
constexpr uint64_t kMaxParsed = 1 << 12;          // elements; reading JSON takes longer than writing it
constexpr std::string_view kLine = "child_list[";

void expect(halyard_status_t status) {
  if (const Result<> done = check(status); !done) fuzz::finding(done.error().line());
}

halyard_value_t value_of(const Object& object) {
  halyard_value_t value = {};
  value.kind = HALYARD_VALUE_OBJECT;
  value.object = object.get();
  return value;
}

const Object& tensor() {
  static const Object made = [] {
    halyard_object_t view = nullptr;
    expect(halyard_view_create(nullptr, HALYARD_ELEMENT_I8, kTensor, std::size(kTensor), nullptr,
                               kTensor[0] * kTensor[1], &view));
    return Object(adopt, view);
  }();
  return made;
}

// The lists of one input, with their sizes and the lists within each.
class Lists {
 public:
  Lists() {
    for (size_t& place : places_) place = add(HALYARD_VALUE_NULL);
  }
  // Empties the lists, because lists that contain themselves would never be released.
  ~Lists() {
    constexpr halyard_value_t kNull = {};
    for (const Named& each : named_)
      for (size_t i = 0; i < known_[each.list].size && each.holds_all; ++i)
        expect(halyard_list_set(each.object.get(), i, &kNull));
  }

  void step(uint8_t what, uint8_t where, uint8_t how) {
    size_t& place = places_[where % places_.size()];
    const Named& other = named_[places_[where / places_.size() % places_.size()]];
    switch (what % 8) {
      case 0:
        place = add(how % 4 == 0 ? HALYARD_VALUE_I64 : HALYARD_VALUE_NULL);
        break;
      case 1: {
        halyard_value_t number = {};
        number.kind = HALYARD_VALUE_I64;
        number.i64 = how;
        append(named_[place], number, how);
        break;
      }
      case 2:
        if (named_[place].holds_all) append(named_[place], value_of(tensor()), how);
        break;
      case 3:
      case 4:
        if (named_[place].holds_all) append(named_[place], value_of(other.object), 1 + how % 3, other.list);
        break;
      case 5:
      case 6:  // nests lists, each once or several times
        surround(place, size_t{1} << how % 16, 1 + how / 16 % 4);
        break;
      default:
        surround(place, how, 2);
        break;
    }
  }

  const Object& object(size_t place) const { return named_[places_[place % places_.size()]].object; }

  struct Extent {
    uint64_t depth = kMany;     // levels
    uint64_t elements = kMany;  // counted each time they are reached
  };
  // kMany for both: the list contains itself, or another list that does.
  Extent extent(size_t place) const {
    const uint32_t root = named_[places_[place % places_.size()]].list;
    // The number of places of each list among those reached from `place`.
    std::vector<uint32_t> uses(known_.size(), 0), found = {root};
    for (size_t i = 0; i < found.size(); ++i)
      for (const uint32_t inner : known_[found[i]].lists)
        if (uses[inner]++ == 0 && inner != root) found.push_back(inner);
    // Each list comes before the lists within it.
    std::vector<uint32_t> order;
    if (uses[root] == 0) order.push_back(root);
    for (size_t i = 0; i < order.size(); ++i)
      for (const uint32_t inner : known_[order[i]].lists)
        if (--uses[inner] == 0) order.push_back(inner);
    if (order.size() < found.size()) return {};
    std::vector<Extent> extents(known_.size());
    for (size_t i = order.size(); i-- > 0;) {
      const Known& list = known_[order[i]];
      Extent& sum = extents[order[i]] = {.depth = 1, .elements = list.size};
      for (const uint32_t inner : list.lists) {
        sum.depth = std::max(sum.depth, extents[inner].depth + 1);
        sum.elements = std::min(sum.elements + extents[inner].elements, kMany);
      }
    }
    return extents[root];
  }

 private:
  struct Known {
    uint64_t size = 0;
    std::vector<uint32_t> lists = {};  // by index in known_, once for each occurrence
  };
  // A list that is or was in one of the places, so that elements may be added.
  struct Named {
    Object object;
    uint32_t list;
    bool holds_all;  // not only numbers
  };

  static Object create(uint32_t kind) {
    halyard_object_t made = nullptr;
    expect(halyard_list_create(kind, &made));
    return Object(adopt, made);
  }
  size_t add(uint32_t kind) {
    named_.push_back({create(kind), static_cast<uint32_t>(known_.size()), kind == HALYARD_VALUE_NULL});
    known_.emplace_back();
    return named_.size() - 1;
  }
  static constexpr uint32_t kNone = UINT32_MAX;
  void append(const Named& list, const halyard_value_t& value, unsigned times, uint32_t inner = kNone) {
    for (unsigned i = 0; i < times; ++i) {
      expect(halyard_list_append(list.object.get(), &value));
      ++known_[list.list].size;
      if (inner != kNone) known_[list.list].lists.push_back(inner);
    }
  }
  void surround(size_t& place, size_t levels, unsigned times) {
    if (known_.size() + levels > kMaxLists) return;
    Object outer = named_[place].object;
    uint32_t list = named_[place].list;
    for (size_t i = 0; i < levels; ++i) {
      const Object inner = std::exchange(outer, create(HALYARD_VALUE_NULL));
      const halyard_value_t value = value_of(inner);
      for (unsigned n = 0; n < times; ++n) expect(halyard_list_append(outer.get(), &value));
      known_.push_back({.size = times, .lists = std::vector<uint32_t>(times, list)});
      list = static_cast<uint32_t>(known_.size() - 1);
    }
    named_.push_back({outer, list, true});
    place = named_.size() - 1;
  }

  std::vector<Known> known_;
  std::vector<Named> named_;
  std::array<size_t, 4> places_;  // indices into named_
};

void check_limits(const Object& list, uint64_t depth, uint64_t elements, bool is_within) {
  const Result<> done = check(halyard_list_check(list.get(), depth, elements));
  if (done.has_value() != is_within) fuzz::finding("a list is measured wrongly");
  if (!done && done.error().code != HALYARD_RESOURCE_EXHAUSTED) fuzz::finding(done.error().line());
}

void check_text(const Object& list, const Lists::Extent& extent) {
  const Result<std::string> text = value_text(list, kShown);
  if (!text) fuzz::finding(text.error().line());
  if (text->size() > kPrintedText + kOneElement) fuzz::finding("a list is printed without bounds");
  uint64_t lines = 0;
  for (size_t at = 0; (at = text->find(kLine, at)) != std::string::npos; at += kLine.size()) ++lines;
  const bool is_whole =
      extent.depth <= kPrintedDepth && extent.elements <= kPrintedElements && text->size() < kPrintedText;
  if (is_whole ? lines != extent.elements : lines > kPrintedElements)
    fuzz::finding("other elements are printed than the list has");
  if (text->contains("\n...\n") == is_whole) fuzz::finding("what is left out is not said, or nothing is");
}

uint64_t elements_of(const Json& value) {
  if (!value.is_object() || value["type"] != "vm.list") return 0;
  uint64_t sum = value["elements"].size();
  for (const Json& each : value["elements"]) sum += elements_of(each);
  return sum;
}

void check_json(const Object& list, const Lists::Extent& extent) {
  const bool is_within =
      extent.depth <= HALYARD_LIST_MAX_DEPTH && extent.elements <= HALYARD_LIST_MAX_ELEMENTS;
  if (is_within && extent.elements > kPrintedElements) return;  // would take seconds
  const Value value = list;
  const Result<std::string> json = results_json("f", {&value, 1}, kShown, Json());
  if (json.has_value() != is_within)
    fuzz::finding("a list is JSON that is too large, or the other way round");
  if (!json && json.error().code != HALYARD_RESOURCE_EXHAUSTED) fuzz::finding(json.error().line());
  if (!json || extent.elements > kMaxParsed) return;
  const Json document = Json::parse(*json, nullptr, false);
  if (document.is_discarded() || elements_of(document["results"][0]) != extent.elements)
    fuzz::finding("other elements in JSON than the list has");
}

}  // namespace

// The list to check, then three bytes for each step.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Lists lists;
  for (size_t at = 1; at + 3 <= size; at += 3) lists.step(data[at], data[at + 1], data[at + 2]);
  const Object& list = lists.object(data[0]);
  const Lists::Extent extent = lists.extent(data[0]);
  check_limits(list, HALYARD_LIST_MAX_DEPTH, HALYARD_LIST_MAX_ELEMENTS,
               extent.depth <= HALYARD_LIST_MAX_DEPTH && extent.elements <= HALYARD_LIST_MAX_ELEMENTS);
  check_limits(list, SIZE_MAX, HALYARD_LIST_MAX_ELEMENTS, extent.elements <= HALYARD_LIST_MAX_ELEMENTS);
  if (extent.elements <= HALYARD_LIST_MAX_ELEMENTS) {
    check_limits(list, extent.depth, extent.elements, true);
    check_limits(list, extent.depth - 1, extent.elements, false);
    if (extent.elements > 0) check_limits(list, extent.depth, extent.elements - 1, false);
  }
  check_text(list, extent);
  check_json(list, extent);
  return 0;
}
