// Any module that can be loaded becomes text, the text assembles, and what it assembles to has the same text
// and, function by function, the same bytecode.
#include <algorithm>

#include "fuzzing.h"
#include "vm/assembler.h"
#include "vm/disassembler.h"
#include "vm/module_view.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace halyard;
  using namespace halyard::vm;
  const Ref<Bytes> file = Bytes::borrow({data, size}, {});
  const Result<ModuleView> view = ModuleView::open(file);
  const Result<std::string> text = disassemble(file, {});
  if (!view) {
    if (text) fuzz::finding("a module has a text, but cannot be loaded");
    return 0;
  }
  if (!text) {
    if (text.error().code() != Code::RESOURCE_EXHAUSTED) fuzz::finding(text.error().text());
    return 0;
  }
  const Result<std::vector<uint8_t>> assembled = assemble(*text, {.file = "text"});
  if (!assembled) fuzz::finding(assembled.error().text());
  const Ref<Bytes> again = Bytes::borrow(*assembled, {});
  const Result<std::string> second = disassemble(again, {});
  if (!second) fuzz::finding(second.error().text());
  if (*second != *text) fuzz::finding("the text is another after it was assembled");
  const Result<ModuleView> found = ModuleView::open(again);
  if (!found) fuzz::finding(found.error().text());
  const auto& functions = view->module().functions();
  if (!std::ranges::equal(functions, found->module().functions(), [](const Function& a, const Function& b) {
        return std::ranges::equal(a.bytecode, b.bytecode) && a.features == b.features &&
               a.block_count == b.block_count && a.value_registers == b.value_registers &&
               a.ref_registers == b.ref_registers && a.convention == b.convention;
      }))
    fuzz::finding("the functions are others after they were assembled");
  return 0;
}
