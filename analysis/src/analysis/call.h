// A call of an import, with its arguments as the convention groups them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/objects.h"

namespace halyard::analysis {

// A value that is passed: an integer, a ref, or neither (a float).
struct Value {
  Expression number;
  Ref ref;
};

// An argument: a value, or the tuples of a span.
struct Argument {
  Value value;
  bool is_span = false;
  std::vector<std::vector<Value>> tuples;
};

struct Call {
  std::string_view name;  // "hal.device.queue.alloca"
  Place place;
  std::vector<Argument> arguments;
  std::string_view result_types;
  std::vector<Value> results;  // one for each result type

  size_t size() const { return arguments.size(); }
  const Expression& number(size_t i) const {
    static const Expression kNone;
    return i < arguments.size() ? arguments[i].value.number : kNone;
  }
  const Ref& ref(size_t i) const {
    static const Ref kNone;
    return i < arguments.size() ? arguments[i].value.ref : kNone;
  }
  template <typename T>
  std::shared_ptr<T> object(size_t i) const {
    return as<T>(ref(i));
  }
  // The tuples of the n-th span.
  std::span<const std::vector<Value>> span(size_t n) const {
    for (const Argument& argument : arguments)
      if (argument.is_span && n-- == 0) return argument.tuples;
    return {};
  }
  void give(size_t i, Expression number) {
    if (i < results.size()) results[i].number = std::move(number);
  }
  void give(size_t i, Ref ref) {
    if (i < results.size()) results[i].ref = std::move(ref);
  }
};

}  // namespace halyard::analysis
