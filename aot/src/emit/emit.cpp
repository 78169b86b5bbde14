#include "emit/emit.h"

#include <fmt/format.h>

#include <algorithm>

#include "aot/plan.h"
#include "emit/emitter.h"
#include "emit/host_module.h"
#include "emit/kernels.h"

namespace halyard::aot {

namespace {

Result<Emitted> emit_module(std::span<const uint8_t> bytes, const EmitOptions& options) {
  const std::vector<Processor> processors = HALYARD_TRY(read_processors(options.processors));
  const Ref<vm::BytecodeModule> module =
      HALYARD_TRY(vm::BytecodeModule::load(Bytes::borrow(bytes, {}), known_types()));
  const std::vector<PortableExecutable> executables = HALYARD_TRY(PortableExecutable::find(*module));
  if (executables.empty())
    return fail(
        Code::FAILED_PRECONDITION,
        "module '{}' has no portable kernels: none of its constants ({}) is an executable of the format "
        "vmvx-bytecode-fb; compile it for VMVX",
        module->name(), module->rodata().size());
  const halyard_emit_fn compiler = HALYARD_TRY(open_emitter());
  Emitted emitted;
  std::vector<ExecutableVariants> all;
  std::vector<uint32_t> with_tiles;  // constants of compiled executables that ask for the sizes of tiles
  bool tiles_stay_portable = false;
  for (const PortableExecutable& executable : executables) {
    ExecutableVariants variants{executable.constant(), {}};
    std::string refusal;
    for (size_t i = 0; i < processors.size(); ++i) {
      Result<std::vector<uint8_t>> library =
          executable.compile(compiler, processors[i], options.dynamic_memory);
      if (!library) {
        refusal = fmt::format("executable of constant {} stays portable, for {}: {}", executable.constant(),
                              processors[i].name, library.error().message());
        break;  // other processors have the same reason, and all or none take the place of the portable one
      }
      emitted.report +=
          fmt::format("executable of constant {}, {} kernels, {}: {} bytes\n", executable.constant(),
                      executable.kernel_count(), processors[i].name, library->size());
      variants.variants.push_back({i, *std::move(library)});
    }
    if (refusal.empty()) {
      all.push_back(std::move(variants));
      if (executable.asks_for_tiles()) with_tiles.push_back(executable.constant());
    } else {
      emitted.refused.push_back(std::move(refusal));
      tiles_stay_portable |= executable.asks_for_tiles();
    }
  }
  // One executable packs what another one multiplies, so all of them must get the same answers.
  if (tiles_stay_portable && !with_tiles.empty()) {
    std::erase_if(all, [&](const ExecutableVariants& each) {
      return std::ranges::find(with_tiles, each.constant) != with_tiles.end();
    });
    for (const uint32_t constant : with_tiles)
      emitted.refused.push_back(fmt::format(
          "executable of constant {} stays portable: it asks for the sizes of tiles, as an executable "
          "that stays portable does",
          constant));
  }
  if (all.empty()) return fail(Code::UNIMPLEMENTED, "{}", emitted.refused.front());
  emitted.module = HALYARD_TRY(with_variants(bytes, *module, processors, all, options.keep_portable));
  return emitted;
}

Refusal refusal_of(const Status& status) {
  const std::string text = status.text();
  return {.code = static_cast<int32_t>(status.code()), .text = text.substr(text.find("; ") + 2)};
}

}  // namespace

std::vector<std::string> processor_names() {
  const std::vector<std::string_view> names = known_processors();
  return {names.begin(), names.end()};
}

std::expected<void, Refusal> check_processors(const std::vector<std::string>& names) {
  if (const auto known = read_processors(names); !known) return std::unexpected(refusal_of(known.error()));
  return {};
}

std::expected<Emitted, Refusal> emit(std::span<const uint8_t> module, const EmitOptions& options) {
  Result<Emitted> emitted = emit_module(module, options);
  if (emitted) return *std::move(emitted);
  return std::unexpected(refusal_of(emitted.error()));
}

}  // namespace halyard::aot
