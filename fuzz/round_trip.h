// Text to module and back to text: a property that two targets check.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "fuzzing.h"
#include "vm/text/assembler.h"
#include "vm/text/disassembler.h"
#include "vm/text/module_view.h"

namespace halyard::fuzz {

// Checks that `text`, a disassembly, assembles to a module that disassembles to `expected` (or the same text)
// and has the functions of `original`, if given.
inline void check_round_trip(const std::string& text, const vm::BytecodeModule* original,
                             std::string_view expected = {}) {
  const auto assembled = vm::assemble(text, {.bytecode_version = 0, .file = "f.vmasm"});
  if (!assembled)
    finding("what was disassembled does not assemble: " + assembled.error().text() + "\n" + text);
  const auto again = vm::disassemble(Bytes::borrow(*assembled, {}), {});
  if (!again) finding("what was assembled again does not disassemble: " + again.error().text() + "\n" + text);
  if (*again != (expected.empty() ? std::string_view(text) : expected))
    finding("another text the second time:\n" + text + "\n----\n" + *again);
  if (!original) return;
  const auto copy = vm::ModuleView::open(Bytes::borrow(*assembled, {}));
  if (!copy) finding("what was assembled again does not load: " + copy.error().text() + "\n" + text);
  const bool same = std::ranges::equal(
      original->functions(), copy->module().functions(), [](const vm::Function& a, const vm::Function& b) {
        return std::ranges::equal(a.bytecode, b.bytecode) && a.convention == b.convention &&
               a.features == b.features && a.value_registers == b.value_registers &&
               a.ref_registers == b.ref_registers && a.block_count == b.block_count;
      });
  if (!same || original->bytecode_version() != copy->module().bytecode_version())
    finding("other functions the second time:\n" + text);
}

}  // namespace halyard::fuzz
