// An arbitrary file, zip or flat. If it opens, it can be read completely, at any address.
#include <cstring>
#include <vector>

#include "differential.h"
#include "fuzzing.h"
#include "vm/format/archive.h"

using namespace halyard;
using namespace halyard::vm;

namespace {

// Reads everything that a loaded module exposes.
uint64_t read_all(const BytecodeModule& module) {
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
  for (const Ref<Buffer>& segment : module.rodata()) add_bytes(segment->span());
  for (uint32_t i = 0; i < module.functions().size(); ++i) {
    add_bytes(module.functions()[i].bytecode);
    add(module.functions()[i].convention);
    add(module.function_name(i));
  }
  return sum;
}

Code open(std::span<const uint8_t> bytes, uint64_t& contents) {
  const Ref<Bytes> file = Bytes::borrow(bytes, {});
  const Result<Archive> archive = open_archive(file);
  if (!archive) return archive.error().code();
  const Result<Ref<BytecodeModule>> module = BytecodeModule::load(file, test::known_types());
  if (!module) return module.error().code();
  contents = read_all(**module);
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
