// The objects that an analysed program holds. A shared_ptr is a reference of the program: an allocation that
// nothing holds any more is freed, as in a run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/expression.h"

namespace halyard::analysis {

struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
};
using Ref = std::shared_ptr<Object>;  // null: the program's null, or an object of no interest

// An object about which nothing is known, other than that it is not null.
struct Unknown final : Object {};

struct DeviceObject final : Object {
  explicit DeviceObject(uint32_t which) : number(which) {}
  uint32_t number;
};

struct ExecutableObject final : Object {
  std::optional<uint32_t> constant;
};

class Timeline;

// The share of the program's buffers in one allocation.
struct Memory final : Object {
  Memory(std::weak_ptr<Timeline> of, uint32_t which) : timeline(std::move(of)), allocation(which) {}
  ~Memory() override;
  std::weak_ptr<Timeline> timeline;
  uint32_t allocation;
};

struct BufferObject final : Object {
  std::shared_ptr<Memory> memory;  // null: not known
  Expression offset;               // within the allocation
  Expression length;
};

struct ViewObject final : Object {
  std::shared_ptr<BufferObject> buffer;  // null until it is asked for, of an argument
  std::string argument;                  // its name; empty: the program made it
  bool is_ranked = true;
  std::vector<Expression> dimensions;
  std::optional<Expression> element_type;
  uint64_t element_bits = 0;  // 0: not known
};

// vm.buffer: a constant of the module, memory of the host, or the bytes of an inline buffer.
struct BytesObject final : Object {
  std::optional<uint32_t> constant;
  Expression offset;  // in the constant
  Expression length;
  std::shared_ptr<BufferObject> buffer;  // whose bytes they are
};

struct Element {
  std::variant<Expression, Ref> value;
};
struct ListObject final : Object {
  ~ListObject() override;  // not recursive, because programs may nest lists to any depth
  std::vector<Element> elements;
};

// A buffer of a command: the buffer itself, or a slot of the binding table.
struct Target {
  std::shared_ptr<BufferObject> buffer;
  Expression slot;
  Expression offset;
  Expression length;
  bool reads = true;
  bool writes = false;
  bool is_assumed = false;
};
struct Command {
  Step step;  // without its uses
  std::vector<Target> targets;
};
struct CommandsObject final : Object {
  std::vector<Command> commands;
};

template <typename T>
std::shared_ptr<T> as(const Ref& ref) {
  return std::dynamic_pointer_cast<T>(ref);
}

}  // namespace halyard::analysis
