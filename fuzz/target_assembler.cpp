// Text: it assembles, or gives an error with a line number. The loader reads the assembled file or refuses it
// with an error, because the assembler does not repeat the checks of the loader and the verifier.
#include "differential.h"
#include "fuzzing.h"
#include "round_trip.h"
#include "vm/format/archive.h"
#include "vm/text/assembler.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace halyard;
  using namespace halyard::vm;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const uint32_t version = 15 + (size % 4 == 0 ? size / 4 % 3 : 2);
  const Result<std::vector<uint8_t>> assembled =
      assemble(text, {.bytecode_version = version, .file = "f.vmasm"});
  if (!assembled) {
    if (!assembled.error().message().starts_with("f.vmasm:")) fuzz::finding(assembled.error().text());
    return 0;
  }
  const Ref<Bytes> file = Bytes::borrow(*assembled, {});
  const Result<Archive> archive = open_archive(file);
  if (!archive) fuzz::finding(archive.error().text());
  const Result<Ref<LoadedModule>> module = LoadedModule::load(file, test::known_types());
  if (!module) return 0;
  for (uint32_t i = 0; i < (*module)->functions().size(); ++i) (void)(*module)->code(i);
  const Result<std::string> printed = disassemble(file, {});
  if (printed) fuzz::check_round_trip(*printed, module->get());
  return 0;
}
