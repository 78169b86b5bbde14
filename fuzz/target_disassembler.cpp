// Converts a file to text and back: a module that loads can be disassembled, and the assembled text
// disassembles to the same text and has the same bytecode.
#include "fuzzing.h"
#include "module_mutator.h"
#include "round_trip.h"

using namespace halyard;
using namespace halyard::vm;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Ref<Bytes> file = Bytes::borrow({data, size}, {});
  const Result<ModuleView> view = ModuleView::open(file);
  const Result<std::string> text = disassemble(file, {});
  if (!view && text) fuzz::finding("a module has a text, but cannot be loaded");
  if (!view) return 0;
  if (!text) {
    if (text.error().code() != Code::RESOURCE_EXHAUSTED) fuzz::finding(text.error().text());
    return 0;
  }
  fuzz::check_round_trip(*text, &view->module());
  // With pcs, which the assembler ignores.
  const Result<std::string> with_offsets = disassemble(file, {.offsets = true});
  if (with_offsets && size % 8 == 0) fuzz::check_round_trip(*with_offsets, nullptr, *text);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_module(data, size, max_size, seed);
}
