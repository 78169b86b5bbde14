// Parsing the container, and structural checks that the FlatBuffers library does not make: null elements in
// vectors of offsets, unions whose tag and value contradict each other, and tables with fields outside of
// their stated size.
#include "vm/format/archive.h"

#include <bytecode_module_generated.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "vm/format/bytecode_reader.h"

namespace halyard::vm {

namespace {

constexpr uint32_t kZipSignature = 0x04034B50;
constexpr uint64_t kZipHeaderSize = 30;
constexpr uint64_t kPrefixSize = 4;
constexpr uint64_t kRodataAlignment = 64;
constexpr uint64_t kScalarAlignment = 8;  // the widest scalar of the schema
constexpr uint32_t kMaxDepth = 100;
constexpr uint32_t kMaxTables =
    1'000'000;  // a minimum; tables may be shared, so the size of the file does not limit their number

template <typename T>
using TableVector = flatbuffers::Vector<flatbuffers::Offset<T>>;

// Walks a FlatBuffer that has passed the library's verifier.
class StructureCheck {
 public:
  Result<> module(const schema::BytecodeModule& module) {
    HALYARD_TRY(table(module, "module"));
    HALYARD_TRY(attributes(module.attributes(), "attributes"));
    HALYARD_TRY(tables(module.types(), "types"));
    HALYARD_TRY(tables(module.dependencies(), "dependencies"));
    HALYARD_TRY(tables(module.imported_functions(), "imported_functions"));
    if (module.imported_functions())
      for (const auto* import : *module.imported_functions())
        if (import->signature()) HALYARD_TRY(signature(*import->signature()));
    HALYARD_TRY(tables(module.exported_functions(), "exported_functions"));
    HALYARD_TRY(tables(module.function_signatures(), "function_signatures"));
    if (module.function_signatures())
      for (const auto* entry : *module.function_signatures()) HALYARD_TRY(signature(*entry));
    HALYARD_TRY(tables(module.rodata_segments(), "rodata_segments"));
    if (module.rodata_segments())
      for (const auto* segment : *module.rodata_segments()) HALYARD_TRY(rodata(*segment));
    HALYARD_TRY(tables(module.rwdata_segments(), "rwdata_segments"));
    if (module.module_state()) HALYARD_TRY(table(*module.module_state(), "module_state"));
    if (module.debug_database()) HALYARD_TRY(debug_database(*module.debug_database()));
    return {};
  }

 private:
  // Every T is a flatbuffers::Table, which has no members.
  template <typename T>
  Result<> table(const T& entry, std::string_view name) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&entry);
    const uint8_t* vtable = bytes - load_unaligned<int32_t>(bytes);
    const auto vtable_size = load_unaligned<uint16_t>(vtable);
    if (vtable_size < 4)
      return fail(Code::INVALID_ARGUMENT,
                  "'{}': expected a vtable of at least 4 bytes, found {}; the file is damaged", name,
                  vtable_size);
    const auto table_size = load_unaligned<uint16_t>(vtable + 2);
    for (uint16_t field = 4; field < vtable_size; field = static_cast<uint16_t>(field + 2)) {
      const auto offset = load_unaligned<uint16_t>(vtable + field);
      if (offset != 0 && (offset < 4 || offset >= table_size))
        return fail(Code::INVALID_ARGUMENT,
                    "'{}': field {} lies at byte {} of a table of {} bytes; the file is damaged", name,
                    field / 2 - 2, offset, table_size);
    }
    return {};
  }

  Result<> offsets(const uint8_t* data, uint32_t count, std::string_view name) {
    for (uint32_t i = 0; i < count; ++i)
      if (load_unaligned<uint32_t>(data + 4 * size_t{i}) == 0)
        return fail(Code::INVALID_ARGUMENT, "'{}[{}]' is null; expected a table", name, i);
    return {};
  }

  template <typename T>
  Result<> tables(const TableVector<T>* vector, std::string_view name) {
    if (!vector) return {};
    HALYARD_TRY(offsets(vector->Data(), vector->size(), name));
    for (const T* entry : *vector) HALYARD_TRY(table(*entry, name));
    return {};
  }

  Result<> attributes(const TableVector<schema::Attribute>* vector, std::string_view name) {
    return tables(vector, name);
  }

  Result<> signature(const schema::FunctionSignature& signature) {
    HALYARD_TRY(table(signature, "signature"));
    return attributes(signature.attributes(), "signature.attributes");
  }

  Result<> rodata(const schema::RodataSegment& segment) {
    const bool tagged = segment.compression_type_type() != schema::CompressionType::NONE;
    if (tagged != (segment.compression_type() != nullptr))
      return fail(Code::INVALID_ARGUMENT,
                  "'rodata_segments': a compression tag and its value must be both there or both absent");
    if (segment.compression_type_as_UncompressedData())
      HALYARD_TRY(table(*segment.compression_type_as_UncompressedData(), "rodata_segments.compression_type"));
    return {};
  }

  Result<> debug_database(const schema::DebugDatabase& database) {
    HALYARD_TRY(table(database, "debug_database"));
    HALYARD_TRY(tables(database.functions(), "debug_database.functions"));
    const auto* tags = database.location_table_type();
    const auto* values = database.location_table();
    if (!values) return {};
    for (uint32_t i = 0; i < values->size(); ++i) {
      const schema::Location tag = tags->Get(i);
      const bool present = load_unaligned<uint32_t>(values->Data() + 4 * size_t{i}) != 0;
      if ((tag != schema::Location::NONE) != present)
        return fail(
            Code::INVALID_ARGUMENT,
            "'debug_database.location_table[{}]': a tag and its value must be both there or both absent", i);
      if (present && tag <= schema::Location::MAX)
        HALYARD_TRY(table(*reinterpret_cast<const flatbuffers::Table*>(values->Get(i)),
                          "debug_database.location_table"));
    }
    return {};
  }
};

std::string printable(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    if (byte >= 0x20 && byte < 0x7F) {
      text += static_cast<char>(byte);
    } else {
      text += fmt::format("\\x{:02X}", byte);
    }
  }
  return text;
}

std::unexpected<Status> not_a_module(std::span<const uint8_t> file, uint64_t base) {
  const std::span<const uint8_t> found = file.subspan(base + 8, 4);
  const std::span<const uint8_t> bare = file.subspan(base + 4, 4);
  std::string_view advice =
      "; is this a module made by iree-compile? (the name of one in text form ends in .vmasm)";
  if (std::ranges::equal(bare, std::string_view("IREE")))
    advice = "; it is 4 bytes too early: the u32 size prefix before the FlatBuffer is missing";
  else if (base != 0 && load_unaligned<uint16_t>(file.data() + 8) != 0)
    advice =
        "; the first entry of the zip archive is compressed, it must be the module, stored without "
        "compression";
  else if (base != 0)
    advice = "; the first entry of the zip archive must be the module";
  return fail(Code::INVALID_ARGUMENT,
              "not a compiled module: expected the identifier 'IREE' at byte {}, found '{}'{}", base + 8,
              printable(found), advice);
}

}  // namespace

Result<Archive> open_archive(Ref<Bytes> bytes) {
  if (!bytes || bytes->size() == 0)
    return fail(Code::INVALID_ARGUMENT, "no module: the file is empty; expected the output of iree-compile");
  const std::span<const uint8_t> file = bytes->span();

  uint64_t base = 0;
  if (file.size() >= kZipHeaderSize && load_unaligned<uint32_t>(file.data()) == kZipSignature) {
    base = kZipHeaderSize + load_unaligned<uint16_t>(file.data() + 26) +
           load_unaligned<uint16_t>(file.data() + 28);
    if (base > file.size())
      return fail(Code::INVALID_ARGUMENT,
                  "the zip header says that its data starts at byte {}, but the file has {}; it was cut off",
                  base, file.size());
  }
  const uint64_t rest = file.size() - base;
  if (rest < 16)
    return fail(Code::INVALID_ARGUMENT,
                "expected at least 16 bytes of module at byte {}, found {}; the file was cut off", base,
                rest);
  const uint64_t size = load_unaligned<uint32_t>(file.data() + base);
  if (!std::ranges::equal(file.subspan(base + 8, 4), std::string_view("IREE")))
    return not_a_module(file, base);
  if (size > rest - kPrefixSize)
    return fail(Code::INVALID_ARGUMENT,
                "the module's FlatBuffer has {} bytes, but the file ends after {} of them; it was cut off",
                size, rest - kPrefixSize);
  if (size + kPrefixSize >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return fail(Code::INVALID_ARGUMENT, "the module's FlatBuffer has {} bytes; expected less than 2 GiB",
                size);

  Archive archive;
  archive.bytes = bytes;
  archive.metadata = std::move(bytes);
  archive.rodata_base =
      (base + kPrefixSize + size + kRodataAlignment - 1) / kRodataAlignment * kRodataAlignment;

  // The alignment within the FlatBuffer is relative to its size prefix.
  const uint8_t* prefix = file.data() + base;
  if (reinterpret_cast<uintptr_t>(prefix) % kScalarAlignment != 0) {
    archive.metadata = Bytes::copy(file.subspan(base, kPrefixSize + size));
    prefix = archive.metadata->data();
  }

  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxDepth;
  options.max_tables = std::max(kMaxTables, static_cast<uint32_t>(size / 16));
  flatbuffers::Verifier verifier(prefix, kPrefixSize + size, options);
  if (!schema::VerifySizePrefixedBytecodeModuleBuffer(verifier))
    return fail(Code::INVALID_ARGUMENT,
                "the module's FlatBuffer is damaged: an offset, a size, an alignment or the end of a string "
                "is wrong, or its name "
                "is missing");
  archive.module = schema::GetSizePrefixedBytecodeModule(prefix);
  HALYARD_TRY(StructureCheck().module(*archive.module));
  return archive;
}

}  // namespace halyard::vm
