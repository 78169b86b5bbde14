#include "emit/host_module.h"

#include <bytecode_module_generated.h>

#include <algorithm>
#include <cstring>

#include "aot/plan.h"
#include "aot/signature.h"
#include "emit/choice.h"
#include "vm/format/archive.h"
#include "vm/format/bytecode_reader.h"
#include "vm/text/assembler.h"
#include "vm/verify/verifier.h"

namespace halyard::aot {

namespace {

constexpr std::string_view kPortableFormat = "vmvx-bytecode-fb";
constexpr uint64_t kSegmentAlignment = 64;
constexpr size_t kFunctionAlignment = 16;

// Replaces the callee of a call instruction in the bytes of the module, and checks that nothing else changed.
Result<> replace_callee(std::span<uint8_t> function, uint32_t pc, uint32_t next_pc, uint32_t version,
                        uint32_t features, uint32_t from, uint32_t to) {
  for (uint32_t at = pc; at + sizeof from <= next_pc; ++at) {
    if (std::memcmp(function.data() + at, &from, sizeof from) != 0) continue;
    std::memcpy(function.data() + at, &to, sizeof to);
    const Result<vm::Instruction> changed = vm::read_instruction(function, pc, version, features);
    if (changed && changed->op == vm::Op::call && changed->next_pc == next_pc) {
      const CallOperands operands(*changed);
      if (!operands.is_import && operands.callee == to) return {};
    }
    std::memcpy(function.data() + at, &from, sizeof from);
  }
  return fail(Code::UNIMPLEMENTED, "a call of the function that creates executables cannot be changed");
}

class HostRewriter {
 public:
  HostRewriter(const vm::Archive& archive, const vm::BytecodeModule& module) : module_(module) {
    archive.module->UnPackTo(&table_);
  }

  // Makes calls of the import calls of a new function; returns their number.
  Result<size_t> redirect(uint32_t import, uint32_t function) {
    size_t changed = 0;
    for (uint32_t i = 0; i < module_.functions().size(); ++i) {
      const vm::Function& body = module_.functions()[i];
      HALYARD_TRY(vm::verify_function(module_, i));
      const schema::FunctionDescriptor& place = table_.function_descriptors[i];
      const std::span<uint8_t> bytes(table_.bytecode_data.data() + place.bytecode_offset(),
                                     static_cast<size_t>(place.bytecode_length()));
      for (uint32_t pc = 0; vm::has_instruction(body.bytecode, pc);) {
        const vm::Instruction instruction =
            HALYARD_TRY(vm::read_instruction(body.bytecode, pc, module_.bytecode_version(), body.features));
        const uint32_t next = instruction.next_pc;
        if (vm::has_trait(instruction.op, vm::CALLS)) {
          const CallOperands operands(instruction);
          if (operands.is_import && operands.callee == import) {
            if (instruction.op != vm::Op::call)
              return fail(Code::UNIMPLEMENTED, "{}: expected a plain call of '{}'",
                          vm::code_location(module_, i, pc), module_.imports()[import].name);
            HALYARD_TRY(with_note(replace_callee(bytes, pc, next, module_.bytecode_version(), body.features,
                                                 import | vm::kImportBit, function),
                                  vm::code_location(module_, i, pc)));
            ++changed;
          }
        }
        pc = next;
      }
    }
    return changed;
  }

  // Adds the function of an assembled module, and the types that it names.
  Result<> add_function(std::span<const uint8_t> assembled) {
    const vm::Archive archive = HALYARD_TRY(vm::open_archive(Bytes::borrow(assembled, {})));
    schema::BytecodeModuleT added;
    archive.module->UnPackTo(&added);
    if (added.function_descriptors.size() != 1 || added.types.size() < table_.types.size())
      return fail(Code::INTERNAL, "the function that chooses executables has another form than expected");
    for (size_t i = table_.types.size(); i < added.types.size(); ++i)
      table_.types.push_back(std::move(added.types[i]));
    const schema::FunctionDescriptor& from = added.function_descriptors.front();
    table_.bytecode_data.resize((table_.bytecode_data.size() + kFunctionAlignment - 1) / kFunctionAlignment *
                                kFunctionAlignment);
    const auto offset = static_cast<int32_t>(table_.bytecode_data.size());
    const auto begin = added.bytecode_data.begin() + from.bytecode_offset();
    table_.bytecode_data.insert(table_.bytecode_data.end(), begin, begin + from.bytecode_length());
    if (table_.debug_database &&
        table_.debug_database->functions.size() == table_.function_descriptors.size()) {
      auto& source =
          table_.debug_database->functions.emplace_back(std::make_unique<schema::FunctionSourceMapT>());
      source->local_name = "choose_executable";
    }
    table_.function_descriptors.emplace_back(offset, from.bytecode_length(), from.requirements(),
                                             from.reserved(), from.block_count(), from.i32_register_count(),
                                             from.ref_register_count());
    table_.function_signatures.resize(table_.function_descriptors.size());
    for (auto& signature : table_.function_signatures)
      if (!signature) signature = std::make_unique<schema::FunctionSignatureT>();
    table_.function_signatures.back()->calling_convention =
        added.function_signatures.front()->calling_convention;
    return {};
  }

  void add_imports(const Additions& additions) {
    for (const Additions::NewImport& each : additions.imports) {
      auto& import = table_.imported_functions.emplace_back(std::make_unique<schema::ImportFunctionT>());
      import->full_name = each.name;
      import->signature = std::make_unique<schema::FunctionSignatureT>();
      import->signature->calling_convention = each.convention;
    }
  }

  // The archive, with all constants after the FlatBuffer. `constants`: the bytes of each.
  std::vector<uint8_t> archive(std::span<const std::span<const uint8_t>> constants) {
    table_.rodata_segments.clear();
    uint64_t end = 0;
    for (const std::span<const uint8_t> bytes : constants) {
      auto& segment = table_.rodata_segments.emplace_back(std::make_unique<schema::RodataSegmentT>());
      segment->external_data_offset = bytes.empty() ? 0 : end;
      segment->external_data_length = bytes.size();
      end = (end + bytes.size() + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
    }
    const std::vector<uint32_t> no_locations = fill_empty_locations();
    flatbuffers::FlatBufferBuilder builder;
    schema::FinishSizePrefixedBytecodeModuleBuffer(builder, schema::BytecodeModule::Pack(builder, &table_));
    clear_locations(builder.GetBufferPointer(), no_locations);
    std::vector<uint8_t> bytes(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
    const auto align = [&] {
      bytes.resize((bytes.size() + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment);
    };
    bytes.reserve(bytes.size() + end + 2 * kSegmentAlignment);
    for (const std::span<const uint8_t> constant : constants) {
      align();
      bytes.insert(bytes.end(), constant.begin(), constant.end());
    }
    return bytes;
  }

 private:
  // The first location of a debug database is the unknown one: it has no tag and no value. FlatBuffers'
  // builder cannot write such elements, so they have a value until the buffer is built.
  std::vector<uint32_t> fill_empty_locations() {
    std::vector<uint32_t> filled;
    if (!table_.debug_database) return filled;
    std::vector<schema::LocationUnion>& locations = table_.debug_database->location_table;
    for (uint32_t i = 0; i < locations.size(); ++i) {
      if (locations[i].type != schema::Location::NONE) continue;
      locations[i].Set(schema::NameLocationT());
      filled.push_back(i);
    }
    return filled;
  }
  static void clear_locations(uint8_t* buffer, std::span<const uint32_t> locations) {
    if (locations.empty()) return;
    const schema::DebugDatabase& database = *schema::GetSizePrefixedBytecodeModule(buffer)->debug_database();
    const auto clear = [buffer](const uint8_t* place, size_t size) {
      std::memset(buffer + (place - buffer), 0, size);
    };
    for (const uint32_t i : locations) {
      clear(database.location_table_type()->Data() + i, sizeof(uint8_t));
      clear(database.location_table()->Data() + i * sizeof(flatbuffers::uoffset_t),
            sizeof(flatbuffers::uoffset_t));
    }
  }

  const vm::BytecodeModule& module_;
  schema::BytecodeModuleT table_;
};

// The name of a format that no device has, for messages.
std::string no_format(std::span<const Processor> processors) {
  std::string names;
  for (const Processor& each : processors) names += (names.empty() ? "" : ", ") + each.name;
  return "machine code for " + names;
}

bool is_text(std::span<const uint8_t> bytes, std::string_view text) {
  return std::ranges::equal(bytes, text, {}, {}, [](char c) { return static_cast<uint8_t>(c); });
}

}  // namespace

Result<std::vector<uint8_t>> with_variants(std::span<const uint8_t> archive, const vm::BytecodeModule& module,
                                           std::span<const Processor> processors,
                                           std::span<const ExecutableVariants> executables,
                                           bool keep_portable) {
  const vm::Archive opened = HALYARD_TRY(vm::open_archive(Bytes::borrow(archive, {})));
  HostRewriter host(opened, module);
  Additions additions(module);
  std::vector<Choice> choices;
  for (const ExecutableVariants& executable : executables) {
    Choice& choice = choices.emplace_back(Choice{executable.constant, {}});
    for (const NativeVariant& variant : executable.variants)
      choice.libraries.emplace_back(variant.processor, additions.constant(variant.library));
  }
  const std::string none = keep_portable ? "" : no_format(processors);
  // Without portable kernels, and with one format, devices are chosen by this format. With several, any
  // device that runs portable kernels is asked for its processor.
  const std::string& format = processors.front().format;
  const bool is_one =
      std::ranges::all_of(processors, [&](const Processor& each) { return each.format == format; });
  const bool renames = !keep_portable && is_one;
  const std::string_view asked = renames ? format : kPortableFormat;
  size_t redirected = 0;
  auto next_function = static_cast<uint32_t>(module.functions().size());
  std::vector<std::vector<uint8_t>> functions;
  for (uint32_t import = 0; import < module.imports().size(); ++import) {
    const vm::Import& each = module.imports()[import];
    const CreatingImport* const creating = find_creating_import(each.name, each.convention);
    if (!creating) continue;
    const size_t changed = HALYARD_TRY(host.redirect(import, next_function));
    if (changed == 0) continue;
    redirected += changed;
    // The text may add imports, which its tables must have.
    static_cast<void>(
        choosing_module(module, *creating, import, processors, choices, asked, none, additions));
    const std::string text =
        choosing_module(module, *creating, import, processors, choices, asked, none, additions);
    const vm::AssembleOptions options = {.bytecode_version = module.bytecode_version(), .file = "the choice"};
    functions.push_back(HALYARD_TRY(vm::assemble(text, options)));
    ++next_function;
  }
  if (redirected == 0)
    return fail(
        Code::UNIMPLEMENTED,
        "the module has portable kernels, but calls no function that creates executables and is known: "
        "hal.executable.create or hal_loader.executable.load");
  for (const std::vector<uint8_t>& function : functions) HALYARD_TRY(host.add_function(function));
  host.add_imports(additions);

  std::vector<std::span<const uint8_t>> constants;
  for (const Ref<vm::Buffer>& each : module.rodata()) constants.emplace_back(each->span());
  if (!keep_portable) {
    for (const ExecutableVariants& executable : executables) constants[executable.constant] = {};
    for (std::span<const uint8_t>& constant : constants)
      if (renames && is_text(constant, kPortableFormat))
        constant = {reinterpret_cast<const uint8_t*>(format.data()), format.size()};
  }
  for (const std::vector<uint8_t>& each : additions.constants) constants.emplace_back(each);
  std::vector<uint8_t> bytes = host.archive(constants);

  const Ref<vm::BytecodeModule> changed = HALYARD_TRY(
      with_note(vm::BytecodeModule::load(Bytes::borrow(bytes, {}), known_types()), "in the new module"));
  for (uint32_t i = 0; i < changed->functions().size(); ++i)
    HALYARD_TRY(with_note(vm::verify_function(*changed, i), "in the new module"));
  return bytes;
}

}  // namespace halyard::aot
