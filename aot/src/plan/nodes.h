// A function as a tree of statements with loops and branches, and what it does to memory. Texts of C in nodes
// name memory as "@12@", because addresses are known only when everything is placed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/values.h"

namespace halyard::aot {

using MemoryId = uint32_t;
inline constexpr MemoryId kNoMemory = UINT32_MAX;

// A part of a memory.
struct Place {
  MemoryId memory = kNoMemory;
  ValueId offset = kNoValue;  // i64 values, in bytes
  ValueId length = kNoValue;
};

// Elements of a memory that a node reads or writes.
struct Access {
  MemoryId memory = kNoMemory;
  bool writes = false;
  uint32_t width = 0;        // bytes of an element; 0: the whole memory
  ValueId index = kNoValue;  // counts elements from `offset`
  int64_t offset = 0;        // bytes
};

struct Node {
  enum class Kind : uint8_t {
    let,         // value = text
    variable,    // a variable that begins with uses[0]
    assign,      // a variable := uses[0]
    effect,      // text is a statement
    check,       // if (text) fails with `failure`
    attempt,     // text is a status; fails unless it is 0
    branch,      // if (text) body else other
    loop,        // body, until leave_loop; a counted loop has a variable `value` from first to bound
    leave_loop,  //
    dispatch,    // of the kernel of a site
    fail,        // fails with `failure`
    allocate,    // the memory `text` gets uses[0] bytes
  };
  Kind kind = Kind::effect;
  ValueId value = kNoValue;
  std::string text;
  std::string failure;
  std::vector<ValueId> uses;
  bool removable = false;  // a let that may be left out if nothing uses its value
  std::vector<Access> accesses;
  std::vector<Node> body;
  std::vector<Node> other;
  bool counted = false;
  ValueId first = kNoValue;
  ValueId bound = kNoValue;
  int64_t step = 0;
  size_t site = 0;
  ValueId condition = kNoValue;  // of a branch
  uint64_t array_bytes = 0;      // of a local array that an effect declares
  std::string cell;              // the variable in place of memory that an effect declares or assigns
};

using Nodes = std::vector<Node>;

inline std::string memory_name(MemoryId memory) { return "@" + std::to_string(memory) + "@"; }

// The text with the C of each memory in place of "@12@".
template <typename Of>
std::string with_memories(std::string_view text, Of of) {
  std::string all;
  while (true) {
    const size_t begin = text.find('@');
    if (begin == std::string_view::npos) return all.append(text);
    const size_t end = text.find('@', begin + 1);
    const std::string_view inner =
        end == std::string_view::npos ? "" : text.substr(begin + 1, end - begin - 1);
    if (inner.empty() || inner.find_first_not_of("0123456789") != std::string_view::npos) {
      all.append(text.substr(0, begin + 1));
      text.remove_prefix(begin + 1);
      continue;
    }
    all.append(text.substr(0, begin));
    all.append(of(static_cast<MemoryId>(std::stoul(std::string(inner)))));
    text.remove_prefix(end + 1);
  }
}

}  // namespace halyard::aot
