// Native modules of the C ABI: out of shared libraries, and of the embedder's own.
#include <cstring>
#include <span>

#include "halyard/module.h"
#include "handles.h"
#include "vm/module_definition.h"
#include "vm/module_services.h"
#include "vm/shared_module.h"

namespace halyard::c {

bool names_shared_library(const std::string& path) {
  return path.ends_with(".so") || path.find(".so@") != std::string::npos;
}

bool is_shared_library(std::span<const uint8_t> bytes) {
  constexpr uint8_t kMagic[] = {0x7F, 'E', 'L', 'F'};
  return bytes.size() >= sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
}

Result<Ref<vm::Module>> load_shared(Instance& instance, const std::string& path) {
  const size_t at = path.find(".so@");
  const size_t size = at == std::string::npos ? path.size() : at + std::string_view(".so").size();
  std::string argument = at == std::string::npos ? "" : path.substr(size + 1);
  return HALYARD_TRY(vm::load_shared_module(path.substr(0, size), std::move(argument), instance.types));
}

}  // namespace halyard::c

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_module_create_native(halyard_instance_t instance,
                                              const struct halyard_module_definition* definition,
                                              halyard_module_t* out) {
  return guarded([&]() -> Result<> {
    *out = give<halyard_module_t>(
        HALYARD_TRY(vm::create_native_module(definition, {}, from_handle<Instance>(instance)->types)));
    return {};
  });
}

const struct halyard_module_services* halyard_module_services(void) { return &vm::module_services(); }
