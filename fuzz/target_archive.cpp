// An arbitrary file, zip or flat. If it opens, it can be read completely at any address, and a kernel that
// writes to its constants changes no other part.
#include <cstring>
#include <vector>

#include "differential.h"
#include "fuzzing.h"
#include "module_mutator.h"
#include "private_bytes.h"
#include "vm/format/archive.h"
#include "vm/module/source_location.h"

using namespace halyard;
using namespace halyard::vm;

namespace {

constexpr uint32_t kLocations = 8;  // of each function

// Reads everything that a loaded module exposes, except the contents of constants.
uint64_t read_rest(const BytecodeModule& module) {
  uint64_t sum = module.version() + module.features() + module.global_bytes() + module.global_refs();
  const auto add = [&](std::string_view text) {
    for (const char c : text) sum = sum * 31 + static_cast<uint8_t>(c);
  };
  const auto add_bytes = [&](std::span<const uint8_t> bytes) {
    for (const uint8_t byte : bytes) sum = sum * 31 + byte;
  };
  const auto add_attributes = [&](const std::vector<Attribute>& attributes) {
    for (const Attribute& attribute : attributes) {
      add(attribute.key);
      add(attribute.value);
    }
  };
  add(module.name());
  add_attributes(module.attributes());
  for (const std::string_view name : module.type_names()) add(name);
  for (const Dependency& dependency : module.dependencies()) add(dependency.name);
  for (const Import& import : module.imports()) {
    add(import.name);
    add(import.convention);
  }
  for (const Export& each : module.exports()) {
    add(each.name);
    add(each.convention);
    add_attributes(each.attributes);
  }
  for (uint32_t i = 0; i < module.functions().size(); ++i) {
    add_bytes(module.functions()[i].bytecode);
    add(module.functions()[i].convention);
    add(module.function_name(i));
    for (uint32_t pc = 0; pc < kLocations; ++pc) add(source_location(module, i, pc));
  }
  return sum;
}

uint64_t read_constants(const BytecodeModule& module) {
  uint64_t sum = 0;
  for (const Ref<Buffer>& segment : module.rodata())
    for (const uint8_t byte : segment->span()) sum = sum * 31 + byte;
  return sum;
}

Code open(std::span<const uint8_t> bytes, uint64_t& contents) {
  const Ref<Bytes> file = fuzz::private_bytes(bytes);
  const Result<Archive> archive = open_archive(file);
  if (!archive) return archive.error().code();
  const Result<Ref<BytecodeModule>> module = BytecodeModule::load(file, test::known_types());
  if (!module) return module.error().code();
  const uint64_t rest = read_rest(**module);
  contents = rest * 31 + read_constants(**module);
  if (!test::overwrite_constants(**module) || read_rest(**module) != rest)
    fuzz::finding("a module changes when its constants are written");
  return Code::OK;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t contents = 0;
  const Code code = open({data, size}, contents);
  if (code != Code::OK || size % 4 != 0) return 0;
  std::vector<uint8_t> moved(size + 1);
  std::memcpy(moved.data() + 1, data, size);
  uint64_t moved_contents = 0;
  if (open({moved.data() + 1, size}, moved_contents) != code || moved_contents != contents)
    fuzz::finding("the same bytes at an odd address are another module");
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  constexpr unsigned kAliases = 4;  // one of this many mutations
  if (seed % kAliases == 0) return fuzz::alias_parts(data, size, max_size, seed / kAliases);
  return LLVMFuzzerMutate(data, size, max_size);
}
