// Builds the module from the tables of the file, with the checks of module-format.md, section 4, in their
// order.
#include "vm/module/bytecode_module.h"

#include <bytecode_module_generated.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "text/suggest.h"
#include "vm/format/archive.h"
#include "vm/format/byte_ranges.h"
#include "vm/format/bytecode_version.h"
#include "vm/format/opcodes.h"

namespace halyard::vm {

const ObjectType BytecodeModule::kType = object_type<BytecodeModule>("vm.module");

namespace {

// Limits of the cost of a small file that refers to the same item many times. Compiled modules stay far below
// them.
constexpr uint64_t kMaxAttributes = uint64_t{1} << 20;
constexpr uint64_t kMaxFunctionBytes = uint64_t{64} << 20;  // or eight times the bytecode, if that is more

constexpr size_t kListedTypes = 64;  // shown in a message

struct ValueTypeName {
  std::string_view name;
  ValueType type;
};
constexpr ValueTypeName kValueTypes[] = {{"i8", ValueType::i8},   {"i16", ValueType::i16},
                                         {"i32", ValueType::i32}, {"i64", ValueType::i64},
                                         {"f32", ValueType::f32}, {"f64", ValueType::f64}};

std::string_view view(const flatbuffers::String* string) {
  return string ? std::string_view(string->c_str(), string->size()) : std::string_view();
}

template <typename Vector>
uint32_t count(const Vector* vector) {
  return vector ? vector->size() : 0;
}

std::vector<Attribute> attributes(const flatbuffers::Vector<flatbuffers::Offset<schema::Attribute>>* source) {
  std::vector<Attribute> result;
  result.reserve(count(source));
  for (uint32_t i = 0; i < count(source); ++i)
    result.push_back({view(source->Get(i)->key()), view(source->Get(i)->value())});
  return result;
}

std::string_view convention(const schema::FunctionSignature* signature) {
  return signature ? view(signature->calling_convention()) : std::string_view();
}

std::string feature_names(uint32_t features) {
  constexpr std::string_view kNames[] = {"EXT_F32", "EXT_F64", "YIELD", "UNWIND"};
  std::string text;
  for (uint32_t bit = 0; bit < 32; ++bit) {
    if (!(features >> bit & 1)) continue;
    if (!text.empty()) text += ", ";
    text += bit < std::size(kNames) ? std::string(kNames[bit]) : fmt::format("bit {}", bit);
  }
  return text;
}

// Registers are addressed up to the next power of two (verifier-and-execution.md, 3.1).
uint16_t rounded(int16_t registers) {
  return static_cast<uint16_t>(std::bit_ceil(std::max<uint32_t>(1, registers)));
}

}  // namespace

std::optional<ElementType> find_element_type(std::string_view name, const TypeRegistry& types) {
  const auto* value = std::ranges::find(kValueTypes, name, &ValueTypeName::name);
  if (value != std::end(kValueTypes)) return ElementType{value->type, nullptr};
  if (name == "!vm.opaque") return ElementType{};
  if (name.starts_with("!vm.list")) return ElementType{ValueType::none, &List::kType};
  if (!name.starts_with('!')) return std::nullopt;
  const ObjectType* object = types.find(name.substr(1));
  return object ? std::optional(ElementType{ValueType::none, object}) : std::nullopt;
}

struct ModuleReader {
  const Archive& archive;
  const schema::BytecodeModule& source;
  const TypeRegistry& types;
  BytecodeModule& module;

  Result<> read() {
    module.registry_ = types;
    module.bytes_ = archive.bytes;
    module.metadata_ = archive.metadata;
    HALYARD_TRY(load_requirements());
    module.name_ = view(source.name());
    module.version_ = source.version();
    if (module.name_.empty())
      return fail(Code::INVALID_ARGUMENT, "the module's name is empty; expected a name");
    return with_note(load_tables(), fmt::format("loading module '{}'", module.name_));
  }

  Result<> load_tables() {
    for (uint32_t i = 0; i < count(source.types()); ++i)
      HALYARD_TRY(named("types", i, source.types()->Get(i)->full_name()));
    HALYARD_TRY(load_rodata());
    HALYARD_TRY(load_dependencies());
    HALYARD_TRY(load_imports());
    if (count(source.function_signatures()) != count(source.function_descriptors()))
      return fail(Code::INVALID_ARGUMENT,
                  "expected as many function signatures as functions, found {} and {}",
                  count(source.function_signatures()), count(source.function_descriptors()));
    HALYARD_TRY(load_exports());
    HALYARD_TRY(load_version());
    HALYARD_TRY(load_functions());
    HALYARD_TRY(load_state());
    HALYARD_TRY(load_types());
    module.attributes_ = attributes(source.attributes());
    name_functions();
    return {};
  }

  // Sets names for messages: of the first export, else from the debug database.
  void name_functions() {
    std::vector<std::string_view>& names = module.function_names_;
    names.resize(module.functions_.size());
    for (const Export& item : module.exports_)
      if (names[item.function].empty()) names[item.function] = item.name;
    const schema::DebugDatabase* database = source.debug_database();
    module.debug_database_ = database;
    if (database) assign_debug_entries(*database);
  }

  // Entry i describes function i.
  void assign_debug_entries(const schema::DebugDatabase& database) {
    std::vector<std::string_view>& names = module.function_names_;
    const uint32_t known =
        std::min<uint32_t>(count(database.functions()), static_cast<uint32_t>(names.size()));
    if (known == 0) return;
    module.debug_entries_.resize(names.size(), BytecodeModule::kNoDebugEntry);
    for (uint32_t i = 0; i < known; ++i) {
      const schema::FunctionSourceMap& entry = *database.functions()->Get(i);
      const uint32_t function = known == 1 ? function_of_only_entry(entry) : i;
      if (function == kNoFunction) continue;
      module.debug_entries_[function] = i;
      if (names[function].empty()) names[function] = view(entry.local_name());
    }
  }

  // Some compilers record the last function only, as entry 0, with its locations.
  static constexpr uint32_t kNoFunction = UINT32_MAX;
  uint32_t function_of_only_entry(const schema::FunctionSourceMap& entry) const {
    constexpr size_t kMaxName = 1024;
    const std::string_view name = view(entry.local_name());
    if (module.functions_.size() == 1 || count(entry.locations()) == 0 || name.size() > kMaxName) return 0;
    const auto exported = std::ranges::find(module.exports_, name, &Export::name);
    if (exported != module.exports_.end()) return exported->function;
    const auto last = static_cast<uint32_t>(module.function_names_.size() - 1);
    return module.function_names_[last].empty() ? last : kNoFunction;  // else it has another name
  }

  Result<> load_requirements() {
    const Release* release = find_release(source.bytecode_version());
    const auto features = static_cast<uint32_t>(source.requirements());
    const uint32_t missing = features & ~known_features(release ? release->bytecode : 17);
    if (missing != 0) {
      HALYARD_TRY(load_version());
      return fail(Code::INVALID_ARGUMENT, "the module requires features that bytecode {} does not have: {}",
                  release->bytecode, feature_names(missing));
    }
    module.features_ = features;
    return {};
  }

  Result<> load_version() {
    const uint32_t word = source.bytecode_version();
    const Release* release = find_release(word);
    if (release) {
      module.bytecode_version_ = release->bytecode;
      return {};
    }
    return unsupported_version(word);
  }

  Result<> named(std::string_view table, uint32_t index, const flatbuffers::String* name) {
    if (!view(name).empty()) return {};
    return fail(Code::INVALID_ARGUMENT, "the name of '{}[{}]' is empty; expected a name", table, index);
  }

  Result<> load_rodata() {
    const uint64_t file_size = archive.bytes->size();
    std::vector<std::span<const uint8_t>> places;
    std::vector<Ref<Bytes>> owners;
    for (uint32_t i = 0; i < count(source.rodata_segments()); ++i) {
      const schema::RodataSegment& segment = *source.rodata_segments()->Get(i);
      std::span<const uint8_t> data;
      Ref<Bytes> owner = archive.metadata;
      if (const auto* embedded = segment.embedded_data()) {
        data = {embedded->data(), embedded->size()};
      } else {
        const uint64_t offset = segment.external_data_offset();
        const uint64_t length = segment.external_data_length();
        if (archive.rodata_base > file_size || offset > file_size - archive.rodata_base ||
            length > file_size - archive.rodata_base - offset)
          return fail(Code::INVALID_ARGUMENT,
                      "constant {} ({} bytes at {} past byte {} of the file) exceeds the file ({} bytes); "
                      "the file was cut off",
                      i, length, offset, archive.rodata_base, file_size);
        data = archive.bytes->span().subspan(archive.rodata_base + offset, length);
        owner = archive.bytes;
      }
      places.push_back(data);
      owners.push_back(std::move(owner));
    }
    // If two constants overlap, one of them may be device code, which must not change.
    const std::vector<bool> shared = ByteRanges(places).shared();
    for (size_t i = 0; i < places.size(); ++i)
      module.rodata_.push_back(
          Buffer::wrap_const(places[i], [owner = owners[i]] {}, owners[i]->is_private() && !shared[i]));
    return {};
  }

  Result<> load_dependencies() {
    for (uint32_t i = 0; i < count(source.dependencies()); ++i) {
      const schema::ModuleDependency& dependency = *source.dependencies()->Get(i);
      HALYARD_TRY(named("dependencies", i, dependency.name()));
      const auto flags = static_cast<uint32_t>(dependency.flags());
      module.dependencies_.push_back(
          {view(dependency.name()), dependency.minimum_version(),
           (flags & static_cast<uint32_t>(schema::ModuleDependencyFlags::REQUIRED)) != 0,
           (flags & static_cast<uint32_t>(schema::ModuleDependencyFlags::OPTIONAL)) != 0});
    }
    return {};
  }

  Result<> load_imports() {
    for (uint32_t i = 0; i < count(source.imported_functions()); ++i) {
      const schema::ImportFunction& import = *source.imported_functions()->Get(i);
      HALYARD_TRY(named("imported_functions", i, import.full_name()));
      const auto flags = static_cast<uint32_t>(import.flags());
      module.imports_.push_back({view(import.full_name()), convention(import.signature()),
                                 (flags & static_cast<uint32_t>(schema::ImportFlags::OPTIONAL)) != 0});
    }
    return {};
  }

  Result<> load_exports() {
    uint64_t attribute_count = count(source.attributes());
    for (uint32_t i = 0; i < count(source.exported_functions()); ++i) {
      const schema::ExportFunction& function = *source.exported_functions()->Get(i);
      HALYARD_TRY(named("exported_functions", i, function.local_name()));
      const auto ordinal = static_cast<uint32_t>(function.internal_ordinal());
      if (ordinal >= count(source.function_descriptors()))
        return fail(Code::INVALID_ARGUMENT, "export '{}' is function {}, but the module has {} functions",
                    view(function.local_name()), function.internal_ordinal(),
                    count(source.function_descriptors()));
      const schema::FunctionSignature& signature = *source.function_signatures()->Get(ordinal);
      attribute_count += count(signature.attributes());
      if (attribute_count > std::max<uint64_t>(kMaxAttributes, archive.metadata->size()))
        return fail(Code::RESOURCE_EXHAUSTED, "the exports have more than {} attributes in all",
                    attribute_count - 1);
      module.exports_.push_back(
          {view(function.local_name()), convention(&signature), ordinal, attributes(signature.attributes())});
    }
    return {};
  }

  Result<> load_functions() {
    const uint64_t bytecode_size = count(source.bytecode_data());
    if (bytecode_size != 0) module.bytecode_ = Bytes::copy({source.bytecode_data()->data(), bytecode_size});
    uint64_t function_bytes = 0;
    for (uint32_t i = 0; i < count(source.function_descriptors()); ++i) {
      const schema::FunctionDescriptor& descriptor = *source.function_descriptors()->Get(i);
      const auto refuse = [&](std::string_view what, int64_t found, std::string_view expected) {
        return fail(Code::INVALID_ARGUMENT, "function {} has {} {}; expected {}", i, what, found, expected);
      };
      const int64_t offset = descriptor.bytecode_offset();
      const int64_t length = descriptor.bytecode_length();
      if (descriptor.block_count() <= 0) return refuse("block count", descriptor.block_count(), "at least 1");
      if (length <= 0) return refuse("bytecode length", length, "at least 1");
      if (offset < 0) return refuse("bytecode offset", offset, "0 or more");
      if (static_cast<uint64_t>(offset + length) > bytecode_size)
        return fail(Code::INVALID_ARGUMENT,
                    "function {} has its bytecode at {} to {}, but there are only {} bytes", i, offset,
                    offset + length, bytecode_size);
      if (descriptor.i32_register_count() < 0)
        return refuse("value register count", descriptor.i32_register_count(), "0 to 32767");
      if (descriptor.ref_register_count() < 0 || descriptor.ref_register_count() > kRefOrdinalMask)
        return refuse("ref register count", descriptor.ref_register_count(), "0 to 16383");
      function_bytes += static_cast<uint64_t>(length);
      if (function_bytes > std::max(kMaxFunctionBytes, 8 * bytecode_size))
        return fail(
            Code::RESOURCE_EXHAUSTED,
            "functions 0 to {} share {} bytes of bytecode but have {} bytes together; expected far fewer", i,
            bytecode_size, function_bytes);
      module.functions_.push_back(
          {module.bytecode_->span().subspan(static_cast<size_t>(offset), static_cast<size_t>(length)),
           descriptor.requirements(), static_cast<uint16_t>(descriptor.block_count()),
           rounded(descriptor.i32_register_count()), rounded(descriptor.ref_register_count()),
           convention(source.function_signatures()->Get(i))});
    }
    return {};
  }

  Result<> load_state() {
    const schema::ModuleState* state = source.module_state();
    if (!state) return {};
    if (state->global_bytes_capacity() < 0 || state->global_ref_count() < 0)
      return fail(Code::INVALID_ARGUMENT,
                  "the module has {} bytes of globals and {} ref globals; expected 0 or more",
                  state->global_bytes_capacity(), state->global_ref_count());
    module.global_bytes_ = static_cast<uint32_t>(state->global_bytes_capacity());
    module.global_refs_ = static_cast<uint32_t>(state->global_ref_count());
    return {};
  }

  Result<> load_types() {
    for (uint32_t i = 0; i < count(source.types()); ++i) {
      const std::string_view name = view(source.types()->Get(i)->full_name());
      const std::optional<ElementType> type = find_element_type(name, types);
      if (!type) {
        const std::vector<std::string> known = type_names();
        const std::vector<std::string_view> candidates(known.begin(), known.end());
        std::string hint = did_you_mean(name, candidates);
        if (candidates.size() <= kListedTypes)
          hint += fmt::format("; known types are {}", fmt::join(candidates, ", "));
        return fail(Code::NOT_FOUND, "type '{}' (types[{}]) is unknown{}", name, i, hint);
      }
      module.types_.push_back(*type);
      module.type_names_.push_back(name);
    }
    return {};
  }

  std::vector<std::string> type_names() const {
    std::vector<std::string> names;
    for (const ValueTypeName& value : kValueTypes) names.emplace_back(value.name);
    names.emplace_back("!vm.opaque");
    for (const ObjectType* object : types.all()) names.push_back(fmt::format("!{}", object->name));
    return names;
  }
};

BytecodeModule::BytecodeModule(const ObjectType* type) : Module(type, ModuleKind::bytecode) {}

Result<> BytecodeModule::read(Ref<Bytes> bytes, const TypeRegistry& types) {
  const Archive archive = HALYARD_TRY(open_archive(std::move(bytes)));
  return ModuleReader{archive, *archive.module, types, *this}.read();
}

Result<Ref<BytecodeModule>> BytecodeModule::load(Ref<Bytes> bytes, const TypeRegistry& types) {
  auto module = make<BytecodeModule>();
  HALYARD_TRY(module->read(std::move(bytes), types));
  return module;
}

std::string_view BytecodeModule::function_name(uint32_t function) const {
  return function < function_names_.size() ? function_names_[function] : std::string_view();
}

}  // namespace halyard::vm
