// The steps from a file to a module. Each step has its own failure.
#include "vm/native/shared_module.h"

#include <algorithm>

#include "base/plugin.h"
#include "vm/native/module_definition.h"
#include "vm/native/module_services.h"

namespace halyard::vm {

namespace {

constexpr char kHostVersion[] = "Halyard";

Result<> check_note(const halyard_module_note_t& note, const std::string& path) {
  const std::string_view name = padded_text(note.name);
  if (!is_module_name(name) || note.abi_min > note.abi_max)
    return fail(Code::INVALID_ARGUMENT,
                "the note of native module '{}' is malformed (name '{}', ABI {}..{}); expected a name of "
                "letters, digits, '_', '$' and '-'",
                path, name, note.abi_min, note.abi_max);
  HALYARD_TRY(check_abi(kModulePlugin, path, {note.abi_min, note.abi_max}, kModuleAbi));
  return check_sanitizer(kModulePlugin, path, note.sanitizer);
}

Result<const halyard_module_definition_t*> negotiate(halyard_module_negotiate_fn function,
                                                     const halyard_module_note_t& note,
                                                     const std::string& path) {
  const halyard_module_request_t request = {sizeof request,         kModuleAbi.low, kModuleAbi.high,
                                            HALYARD_SANITIZER_KIND, kHostVersion,   &module_services()};
  halyard_module_reply_t reply = {};
  reply.struct_size = sizeof reply;
  if (function(&request, &reply) == 0) {
    const std::string_view reason = padded_text(reply.refusal);
    return fail(Code::INCOMPATIBLE, "native module '{}' refuses this host, which supports module ABI {}: {}",
                path, to_text(kModuleAbi), reason.empty() ? "it gives no reason" : reason);
  }
  const halyard_module_definition_t* const definition = reply.definition;
  if (!definition)
    return fail(Code::INCOMPATIBLE, "native module '{}' gave no definition in the negotiation", path);
  if (definition->struct_size >= HALYARD_FIELD_END(halyard_module_definition_t, abi_version) &&
      definition->abi_version != 0) {
    const AbiRange common = {std::max(kModuleAbi.low, note.abi_min), std::min(kModuleAbi.high, note.abi_max)};
    if (definition->abi_version < common.low || definition->abi_version > common.high)
      return fail(Code::INCOMPATIBLE,
                  "native module '{}' chose module ABI {}; expected {}, which both sides support", path,
                  definition->abi_version, to_text(common));
  }
  return definition;
}

}  // namespace

Result<Ref<NativeModule>> load_shared_module(const std::string& path, std::string argument,
                                             TypeRegistry& types) {
  const std::string file = HALYARD_TRY(plugin_path(path, kModulePlugin));
  const auto note = HALYARD_TRY(read_note<halyard_module_note_t>(file, kModulePlugin));
  HALYARD_TRY(check_note(note, file));
  void* const symbol = HALYARD_TRY(open_plugin(file, kModulePlugin));
  const halyard_module_definition_t* const definition =
      HALYARD_TRY(negotiate(reinterpret_cast<halyard_module_negotiate_fn>(symbol), note, file));
  NativeModuleOptions options = {std::move(argument), std::string(padded_text(note.name))};
  return with_note(create_native_module(definition, std::move(options), types),
                   fmt::format("loading native module '{}'", file));
}

}  // namespace halyard::vm
