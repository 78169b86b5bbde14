// Shared by the parts of the disassembler: the printed text, and the names of a module's items.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "vm/text/module_view.h"

namespace halyard::vm::disassembler {

// Lines of text up to a limit. After the limit, lines are dropped and `full` stays set, because a small file
// can refer to a long string any number of times.
class Listing {
 public:
  explicit Listing(size_t limit) : limit_(limit) {}

  bool full() const { return full_; }
  void line(std::string_view text);
  void append(Listing&& other);  // appends lines that were printed separately
  void indent() { indentation_ += 2; }
  void unindent() { indentation_ -= 2; }
  size_t room() const { return limit_ - text_.size(); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  size_t limit_;
  size_t indentation_ = 0;
  bool full_ = false;
};

// Tracks which names have occurred. Very long names are treated as duplicates.
class Seen {
 public:
  bool again(std::string_view name);

 private:
  std::unordered_set<std::string_view> names_;
};

// A module and the names of its items.
struct Names {
  explicit Names(const ModuleView& view);

  const ModuleView& view;
  std::deque<std::string> made_up;
  std::vector<std::string_view> functions;
  std::vector<bool> import_by_ordinal;  // the name is ambiguous
  std::vector<bool> type_by_ordinal;

  std::string function(uint32_t ordinal) const;  // @name
  std::string callee(uint32_t callee) const;     // @name or import[N]
  std::string type(uint32_t ordinal) const;      // !name or type[N]
  std::string list_of(uint32_t ordinal) const;   // !vm.list<!name> or type[N]
};

// `offsets`: with the pc before each instruction.
void print_function(Listing& listing, const Names& names, uint32_t function, bool offsets);

}  // namespace halyard::vm::disassembler
