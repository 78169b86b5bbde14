// Native modules in the C ABI: from shared libraries, and defined by the embedder.
#include <cstring>
#include <filesystem>
#include <span>

#include "halyard/module.h"
#include "handles.h"
#include "vm/native/module_definition.h"
#include "vm/native/module_services.h"
#include "vm/native/shared_module.h"

namespace halyard::c {

std::optional<SharedPath> shared_path(const std::string& path) {
  constexpr std::string_view kSuffix = ".so";
  // "x.so", and "x.so.1" for libraries with a version.
  const size_t last = path.find_last_not_of("0123456789.");
  if (path.ends_with(kSuffix) || (last != std::string::npos && path.substr(0, last + 1).ends_with(kSuffix)))
    return SharedPath{path, ""};
  const size_t at = path.find(".so@");
  std::error_code error;
  // A file may have such a name, containing '@'.
  if (at == std::string::npos || std::filesystem::exists(path, error)) return std::nullopt;
  return SharedPath{path.substr(0, at + kSuffix.size()), path.substr(at + kSuffix.size() + 1)};
}

bool is_shared_library(std::span<const uint8_t> bytes) {
  constexpr uint8_t kMagic[] = {0x7F, 'E', 'L', 'F'};
  return bytes.size() >= sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
}

Result<> give_shared(Instance& instance, SharedPath path, halyard_module_t* out) {
  *out = give<halyard_module_t>(
      HALYARD_TRY(vm::load_shared_module(path.library, std::move(path.argument), instance.types)));
  return {};
}

}  // namespace halyard::c

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_module_create_native(halyard_instance_t instance,
                                              const struct halyard_module_definition* definition,
                                              halyard_module_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    *out = give<halyard_module_t>(HALYARD_TRY(
        vm::create_native_module(definition, {}, HALYARD_TRY(checked<Instance>(instance))->types)));
    return {};
  });
}

const struct halyard_module_services* halyard_module_services(void) { return &vm::module_services(); }
