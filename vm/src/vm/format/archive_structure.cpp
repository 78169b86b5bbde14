// Checks all tables in one walk. Work on devices may write to constants, and a FlatBuffer may place two
// vectors at the same address. A constant that overlaps the bytecode would let a program change verified
// code. So every table, vtable, vector and string is compared with the constants in the FlatBuffer.
#include "vm/format/archive_structure.h"

#include <bytecode_module_generated.h>

#include <string>
#include <string_view>
#include <vector>

#include "vm/format/byte_ranges.h"
#include "vm/format/bytecode_reader.h"

namespace halyard::vm {

namespace {

using flatbuffers::Offset;
using flatbuffers::String;
using flatbuffers::Vector;

constexpr size_t kFieldSize = 4;    // of the widest field that is read after loading
constexpr size_t kLengthSize = 4;   // precedes the elements of a vector and the characters of a string
constexpr size_t kHeaderSize = 12;  // size prefix, offset of the root, identifier

template <typename T>
using TableVector = Vector<Offset<T>>;

class StructureCheck {
 public:
  StructureCheck(std::span<const uint8_t> flatbuffer, uint64_t file_offset)
      : flatbuffer_(flatbuffer), file_offset_(file_offset) {}

  Result<> module(const schema::BytecodeModule& module) {
    // These tables define the constants, so they are compared with the constants in a second pass.
    HALYARD_TRY(table(module, "module"));
    HALYARD_TRY(tables(module.rodata_segments(), "rodata_segments"));
    find_constants(module.rodata_segments());
    HALYARD_TRY(table(module, "module"));
    HALYARD_TRY(each(module.rodata_segments(), "rodata_segments",
                     [&](const schema::RodataSegment& segment) { return rodata(segment); }));
    HALYARD_TRY(apart(flatbuffer_.data(), kHeaderSize, "header"));
    HALYARD_TRY(text(module.name(), "name"));
    HALYARD_TRY(attributes(module.attributes(), "attributes"));
    HALYARD_TRY(each(module.types(), "types",
                     [&](const schema::Type& type) { return text(type.full_name(), "types.full_name"); }));
    HALYARD_TRY(each(module.dependencies(), "dependencies", [&](const schema::ModuleDependency& dependency) {
      return text(dependency.name(), "dependencies.name");
    }));
    HALYARD_TRY(each(module.imported_functions(), "imported_functions",
                     [&](const schema::ImportFunction& import) -> Result<> {
                       HALYARD_TRY(text(import.full_name(), "imported_functions.full_name"));
                       if (!import.signature()) return {};
                       HALYARD_TRY(table(*import.signature(), "imported_functions.signature"));
                       return signature(*import.signature());
                     }));
    HALYARD_TRY(
        each(module.exported_functions(), "exported_functions", [&](const schema::ExportFunction& function) {
          return text(function.local_name(), "exported_functions.local_name");
        }));
    HALYARD_TRY(each(module.function_signatures(), "function_signatures",
                     [&](const schema::FunctionSignature& entry) { return signature(entry); }));
    HALYARD_TRY(tables(module.rwdata_segments(), "rwdata_segments"));
    if (module.module_state()) HALYARD_TRY(table(*module.module_state(), "module_state"));
    HALYARD_TRY(vector(module.function_descriptors(), "function_descriptors"));
    HALYARD_TRY(vector(module.bytecode_data(), "bytecode_data"));
    if (module.debug_database()) HALYARD_TRY(debug_database(*module.debug_database()));
    return {};
  }

 private:
  void find_constants(const TableVector<schema::RodataSegment>* segments) {
    for (uint32_t i = 0; segments && i < segments->size(); ++i) {
      const auto* data = segments->Get(i)->embedded_data();
      constant_bytes_.push_back(data ? std::span(data->data(), data->size()) : std::span<const uint8_t>());
    }
    constants_ = ByteRanges(constant_bytes_);
  }

  // Checks that data that is read later does not overlap a constant.
  Result<> apart(const void* begin, uint64_t size, std::string_view name) {
    const int64_t constant = constants_.overlapping(begin, size);
    return constant < 0 ? Result<>() : overlap(begin, size, name, constant);
  }
  [[gnu::cold]] Result<> overlap(const void* begin, uint64_t size, std::string_view name, int64_t constant) {
    const std::span<const uint8_t> data = constant_bytes_[static_cast<size_t>(constant)];
    return fail(
        Code::INVALID_ARGUMENT,
        "constant {} (bytes {} to {} of the file) overlaps '{}' (bytes {} to {}), but a program may write to "
        "its constants; the file is damaged or was crafted to modify itself; compile it again",
        constant, place(data.data()), place(data.data() + data.size()), name, place(begin),
        place(static_cast<const uint8_t*>(begin) + size));
  }
  uint64_t place(const void* at) const {
    return file_offset_ + static_cast<uint64_t>(static_cast<const uint8_t*>(at) - flatbuffer_.data());
  }

  Result<> text(const String* string, std::string_view name) {
    return string ? apart(string, kLengthSize + string->size() + 1, name) : Result<>();
  }
  template <typename T>
  Result<> vector(const Vector<T>* vector, std::string_view name) {
    if (!vector) return {};
    return apart(vector, kLengthSize + vector->size() * flatbuffers::IndirectHelper<T>::element_stride, name);
  }
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
    HALYARD_TRY(apart(vtable, vtable_size, name));
    // The last field begins within the stated size, but may extend past it. It cannot reach a following
    // constant, because the length of the constant precedes the constant.
    return apart(bytes, table_size + kFieldSize - 1, name);
  }

  template <typename T>
  Result<> tables(const TableVector<T>* entries, std::string_view name) {
    if (!entries) return {};
    HALYARD_TRY(vector(entries, name));
    for (uint32_t i = 0; i < entries->size(); ++i)
      if (load_unaligned<uint32_t>(entries->Data() + kFieldSize * i) == 0)
        return fail(Code::INVALID_ARGUMENT, "'{}[{}]' is null; expected a table", name, i);
    for (const T* entry : *entries) HALYARD_TRY(table(*entry, name));
    return {};
  }
  // Also checks the data to which each table refers.
  template <typename T, typename Check>
  Result<> each(const TableVector<T>* entries, std::string_view name, Check check) {
    HALYARD_TRY(tables(entries, name));
    for (uint32_t i = 0; entries && i < entries->size(); ++i) HALYARD_TRY(check(*entries->Get(i)));
    return {};
  }

  Result<> attributes(const TableVector<schema::Attribute>* entries, std::string_view name) {
    return each(entries, name, [&](const schema::Attribute& attribute) -> Result<> {
      HALYARD_TRY(text(attribute.key(), name));
      return text(attribute.value(), name);
    });
  }

  Result<> signature(const schema::FunctionSignature& signature) {
    HALYARD_TRY(text(signature.calling_convention(), "signature.calling_convention"));
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
    HALYARD_TRY(each(database.functions(), "debug_database.functions",
                     [&](const schema::FunctionSourceMap& function) -> Result<> {
                       HALYARD_TRY(text(function.local_name(), "debug_database.functions.local_name"));
                       return vector(function.locations(), "debug_database.functions.locations");
                     }));
    const auto* tags = database.location_table_type();
    const auto* values = database.location_table();
    HALYARD_TRY(vector(tags, "debug_database.location_table_type"));
    HALYARD_TRY(vector(values, "debug_database.location_table"));
    for (uint32_t i = 0; values && i < values->size(); ++i) {
      const schema::Location tag = tags->Get(i);
      const bool present = load_unaligned<uint32_t>(values->Data() + kFieldSize * i) != 0;
      if ((tag != schema::Location::NONE) != present)
        return fail(
            Code::INVALID_ARGUMENT,
            "'debug_database.location_table[{}]': a tag and its value must be both there or both absent", i);
      if (present && tag <= schema::Location::MAX) HALYARD_TRY(location(tag, values->Get(i)));
    }
    return {};
  }

  Result<> location(schema::Location tag, const void* value) {
    HALYARD_TRY(table(*static_cast<const flatbuffers::Table*>(value), "debug_database.location_table"));
    switch (tag) {
      case schema::Location::FileLineColLocation:
        return text(static_cast<const schema::FileLineColLocation*>(value)->filename(),
                    "debug_database.location_table.filename");
      case schema::Location::NameLocation:
        return text(static_cast<const schema::NameLocation*>(value)->name(),
                    "debug_database.location_table.name");
      case schema::Location::FusedLocation: {
        const auto* fused = static_cast<const schema::FusedLocation*>(value);
        HALYARD_TRY(text(fused->metadata(), "debug_database.location_table.metadata"));
        return vector(fused->locations(), "debug_database.location_table.locations");
      }
      case schema::Location::CallSiteLocation:
      case schema::Location::NONE:
        return {};
    }
    return {};
  }

  std::span<const uint8_t> flatbuffer_;
  uint64_t file_offset_;
  std::vector<std::span<const uint8_t>> constant_bytes_;
  ByteRanges constants_ = ByteRanges({});  // by segment
};

}  // namespace

Result<> check_structure(const schema::BytecodeModule& module, std::span<const uint8_t> flatbuffer,
                         uint64_t file_offset) {
  return StructureCheck(flatbuffer, file_offset).module(module);
}

}  // namespace halyard::vm
