// The objects of host code, as they are known when a program is translated.
#pragma once

#include <string>
#include <vector>

#include "aot/translate.h"
#include "plan/nodes.h"

namespace halyard::aot {

using ObjectId = uint32_t;
inline constexpr ObjectId kNull = 0;
inline constexpr ObjectId kUnknownObject = UINT32_MAX;  // a ref that depends on a branch

enum class MemoryKind : uint8_t {
  constant,   // a segment of the module
  argument,   // bytes of the caller
  result,     // bytes of the caller, for a result
  transient,  // of one call
  state,      // kept between calls
  binding,    // of a kernel
  constants,  // the constants of a dispatch
  local,      // the local memory of a kernel
};

struct Memory {
  MemoryKind kind = MemoryKind::transient;
  ValueId bytes = kNoValue;
  uint64_t size = 0;  // if the number of bytes is known
  bool has_size = false;
  uint32_t index = 0;   // of the segment, the argument, the result or the binding
  size_t function = 0;  // of the host, whose call it belongs to
  bool is_read_only = false;
  bool is_written = false;
  bool is_read = false;
  bool is_zeroed = false;
  size_t parameter = SIZE_MAX;  // of a constant that is a parameter: its place in Lifter::parameters
};

// A parameter that the program loads.
struct UsedParameter {
  std::string scope;
  std::string key;
  const ParameterBytes* baked = nullptr;  // null: the caller of the program gives a pointer
  uint64_t length = 0;                    // bytes that the program needs
};

// A command of a command buffer.
struct Command {
  enum class Kind : uint8_t { fill, update, copy, dispatch };
  struct Binding {
    ObjectId buffer = kNull;  // null: a slot
    ValueId slot = kNoValue;
    ValueId offset = kNoValue;
    ValueId length = kNoValue;
    uint32_t usage = 0;
  };
  Kind kind = Kind::fill;
  std::vector<Binding> bindings;  // of a copy: source and target
  ValueId pattern = kNoValue;
  uint32_t width = 0;
  ObjectId bytes = kNull;  // of an update
  ValueId bytes_offset = kNoValue;
  ObjectId executable = kNull;
  uint32_t function = 0;
  std::array<ValueId, 3> counts = {kNoValue, kNoValue, kNoValue};
  std::vector<ValueId> constants;
};

struct Object {
  enum class Kind : uint8_t {
    null,
    device,
    allocator,
    fence,
    executable,
    bytes,
    buffer,
    view,
    commands,
    file,
    list
  };
  Kind kind = Kind::null;
  Place place;         // bytes, buffer, file
  uint32_t type = 0;   // of a buffer's memory
  uint32_t usage = 0;  // of a buffer
  bool is_import = false;
  size_t kernels = 0;       // of an executable
  ObjectId buffer = kNull;  // of a view
  ValueId element_type = kNoValue;
  ValueId encoding = kNoValue;
  std::vector<ValueId> shape;
  size_t argument = SIZE_MAX;  // of a view that is an argument, whose type is not known yet
  std::vector<Command> commands;
  uint32_t modes = 0;
  uint32_t categories = 0;
  uint32_t capacity = 0;
  bool is_final = false;
  std::vector<ObjectId> elements;
};

// A dispatch.
struct Site {
  size_t kernels = 0;
  uint32_t function = 0;
  std::array<ValueId, 3> counts = {kNoValue, kNoValue, kNoValue};
  std::vector<ValueId> constants;
  std::vector<Place> bindings;
  size_t host = 0;  // the function of the host
};

}  // namespace halyard::aot
