// Modules for tests, made from parts: the FlatBuffer by the generated builder, bytecode one instruction at a
// time. They are as well-formed as their parts, so tests can break one thing at a time.
#pragma once

#include <bytecode_module_generated.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vm/format/opcodes.h"

namespace halyard::vm::test {

constexpr uint16_t ref(uint16_t ordinal) { return kRefBit | ordinal; }
constexpr uint16_t moved(uint16_t ordinal) { return kRefBit | kMoveBit | ordinal; }

// The bytecode of one function. Numbers are little-endian; lists are aligned to an even pc.
class CodeBuilder {
 public:
  CodeBuilder& block() { return op(Op::block); }
  CodeBuilder& op(Op op) {
    if (info(op).set == OpSet::F32) bytes_.push_back(info(Op::prefix_ext_f32).byte);
    if (info(op).set == OpSet::F64) bytes_.push_back(info(Op::prefix_ext_f64).byte);
    bytes_.push_back(info(op).byte);
    return *this;
  }
  CodeBuilder& op(Op code, std::initializer_list<uint16_t> registers) {
    op(code);
    for (const uint16_t reg : registers) u16(reg);
    return *this;
  }
  CodeBuilder& u8(uint8_t value) { return put(value); }
  CodeBuilder& u16(uint16_t value) { return put(value); }
  CodeBuilder& u32(uint32_t value) { return put(value); }
  CodeBuilder& u64(uint64_t value) { return put(value); }
  CodeBuilder& list(std::span<const uint16_t> entries) {
    align();
    u16(static_cast<uint16_t>(entries.size()));
    for (const uint16_t entry : entries) u16(entry);
    return *this;
  }
  CodeBuilder& list(std::initializer_list<uint16_t> entries) {
    return list(std::span(entries.begin(), entries.size()));
  }
  CodeBuilder& remap(std::span<const std::pair<uint16_t, uint16_t>> pairs) {
    align();
    u16(static_cast<uint16_t>(pairs.size()));
    for (const auto& [source, destination] : pairs) u16(source).u16(destination);
    return *this;
  }
  CodeBuilder& remap(std::initializer_list<std::pair<uint16_t, uint16_t>> pairs) {
    return remap(std::span(pairs.begin(), pairs.size()));
  }
  CodeBuilder& string(std::string_view text) {
    u16(static_cast<uint16_t>(text.size()));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  CodeBuilder& ret(std::initializer_list<uint16_t> values = {}) { return op(Op::return_).list(values); }

  // Overwrites the bytes at `pc`: for branch targets that were unknown before.
  CodeBuilder& patch_u32(uint32_t pc, uint32_t value) {
    std::memcpy(bytes_.data() + pc, &value, sizeof value);
    return *this;
  }

  uint32_t pc() const { return static_cast<uint32_t>(bytes_.size()); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  template <typename T>
  CodeBuilder& put(T value) {
    const size_t size = bytes_.size();
    bytes_.resize(size + sizeof(T));
    std::memcpy(bytes_.data() + size, &value, sizeof(T));
    return *this;
  }
  void align() {
    if (bytes_.size() % 2 != 0) bytes_.push_back(0);
  }

  std::vector<uint8_t> bytes_;
};

struct FunctionParts {
  std::vector<uint8_t> code = CodeBuilder().block().ret().bytes();
  std::optional<std::string> convention = "0v_v";
  int values = 0;
  int refs = 0;
  int blocks = 1;
  uint32_t features = 0;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::optional<int> offset;  // overrides the offset of `code`
  std::optional<int> length;
};

struct ImportParts {
  std::string name;
  std::optional<std::string> convention;
  uint32_t flags = 1;
};

struct DependencyParts {
  std::string name;
  uint32_t minimum_version = 0;
  uint32_t flags = 1;
};

struct RodataParts {
  std::vector<uint8_t> data;
  bool embedded = true;
  std::optional<uint64_t> offset;  // of an external segment; overrides the offset of `data`
  std::optional<uint64_t> length;
};

struct ModuleParts {
  std::string name = "test";
  uint32_t version = 0;
  uint32_t bytecode_version = 17u << 16;
  uint32_t features = 0;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<std::string> types;
  std::vector<DependencyParts> dependencies;
  std::vector<ImportParts> imports;
  std::vector<std::pair<std::string, int>> exports;  // name, function
  std::vector<FunctionParts> functions;
  std::optional<size_t> signature_count;  // overrides one for each function
  std::vector<RodataParts> rodata;
  int global_bytes = 0;
  int global_refs = 0;
  std::vector<std::string> debug_names;
  struct DebugLocation {
    uint32_t function;
    int32_t pc;
    std::string file;
    int32_t line;
    int32_t column;
  };
  std::vector<DebugLocation> debug_locations;  // of functions with a debug name
  // For each of these, also locations of the other kinds that refer to it: a name, a fusion and a call site,
  // at the next pcs.
  bool all_location_kinds = false;
  // Replaces all of these.
  std::function<flatbuffers::Offset<schema::DebugDatabase>(flatbuffers::FlatBufferBuilder&)> debug_database;

  // The flat form: size prefix, FlatBuffer, external constants.
  std::vector<uint8_t> build() const {
    flatbuffers::FlatBufferBuilder builder;
    const auto table_vector = [&]<typename T>(const std::vector<flatbuffers::Offset<T>>& entries) {
      return entries.empty() ? flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<T>>>()
                             : builder.CreateVector(entries);
    };
    const auto attribute_vector = [&](const std::vector<std::pair<std::string, std::string>>& entries) {
      std::vector<flatbuffers::Offset<schema::Attribute>> offsets;
      for (const auto& [key, value] : entries)
        offsets.push_back(schema::CreateAttributeDirect(builder, key.c_str(), value.c_str()));
      return table_vector(offsets);
    };
    const auto signature = [&](const std::optional<std::string>& convention, const auto& entries) {
      const auto text = convention ? builder.CreateString(*convention) : 0;
      return schema::CreateFunctionSignature(builder, text, attribute_vector(entries));
    };

    std::vector<flatbuffers::Offset<schema::Type>> type_offsets;
    for (const std::string& type : types)
      type_offsets.push_back(schema::CreateTypeDirect(builder, type.c_str()));
    std::vector<flatbuffers::Offset<schema::ModuleDependency>> dependency_offsets;
    for (const DependencyParts& dependency : dependencies)
      dependency_offsets.push_back(
          schema::CreateModuleDependencyDirect(builder, dependency.name.c_str(), dependency.minimum_version,
                                               static_cast<schema::ModuleDependencyFlags>(dependency.flags)));
    std::vector<flatbuffers::Offset<schema::ImportFunction>> import_offsets;
    for (const ImportParts& import : imports) {
      const auto offset =
          import.convention ? signature(import.convention, std::vector<std::pair<std::string, std::string>>())
                            : 0;
      import_offsets.push_back(schema::CreateImportFunctionDirect(
          builder, import.name.c_str(), offset, static_cast<schema::ImportFlags>(import.flags)));
    }
    std::vector<flatbuffers::Offset<schema::ExportFunction>> export_offsets;
    for (const auto& [export_name, function] : exports)
      export_offsets.push_back(schema::CreateExportFunctionDirect(builder, export_name.c_str(), function));

    std::vector<uint8_t> bytecode;
    std::vector<schema::FunctionDescriptor> descriptors;
    std::vector<flatbuffers::Offset<schema::FunctionSignature>> signature_offsets;
    for (const FunctionParts& function : functions) {
      descriptors.emplace_back(function.offset.value_or(static_cast<int>(bytecode.size())),
                               function.length.value_or(static_cast<int>(function.code.size())),
                               function.features, 0, static_cast<int16_t>(function.blocks),
                               static_cast<int16_t>(function.values), static_cast<int16_t>(function.refs));
      bytecode.insert(bytecode.end(), function.code.begin(), function.code.end());
      bytecode.resize((bytecode.size() + 7) / 8 * 8);
      signature_offsets.push_back(signature(function.convention, function.attributes));
    }
    if (signature_count)
      signature_offsets.resize(*signature_count, signature_offsets.empty() ? 0 : signature_offsets[0]);

    std::vector<uint8_t> external;
    std::vector<flatbuffers::Offset<schema::RodataSegment>> rodata_offsets;
    for (const RodataParts& segment : rodata) {
      if (segment.embedded) {
        rodata_offsets.push_back(
            schema::CreateRodataSegmentDirect(builder, schema::CompressionType::NONE, 0, &segment.data));
        continue;
      }
      external.resize((external.size() + 15) / 16 * 16);
      rodata_offsets.push_back(schema::CreateRodataSegment(builder, schema::CompressionType::NONE, 0, 0,
                                                           segment.offset.value_or(external.size()),
                                                           segment.length.value_or(segment.data.size())));
      external.insert(external.end(), segment.data.begin(), segment.data.end());
    }

    std::vector<flatbuffers::Offset<schema::FunctionSourceMap>> source_maps;
    std::vector<schema::Location> location_kinds;
    std::vector<flatbuffers::Offset<void>> locations;
    for (uint32_t function = 0; function < debug_names.size(); ++function) {
      std::vector<schema::BytecodeLocation> of_function;
      for (const DebugLocation& each : debug_locations) {
        if (each.function != function) continue;
        of_function.emplace_back(each.pc, static_cast<int32_t>(locations.size()));
        location_kinds.push_back(schema::Location::FileLineColLocation);
        locations.push_back(
            schema::CreateFileLineColLocationDirect(builder, each.file.c_str(), each.line, each.column)
                .Union());
        if (!all_location_kinds) continue;
        const auto child = static_cast<int32_t>(locations.size()) - 1;
        const std::vector<int32_t> children = {child, child};
        const auto add = [&](schema::Location kind, auto location) {
          of_function.emplace_back(each.pc + static_cast<int32_t>(location_kinds.size()) - child,
                                   static_cast<int32_t>(locations.size()));
          location_kinds.push_back(kind);
          locations.push_back(location.Union());
        };
        add(schema::Location::NameLocation, schema::CreateNameLocationDirect(builder, "named", child));
        add(schema::Location::FusedLocation, schema::CreateFusedLocationDirect(builder, "fused", &children));
        add(schema::Location::CallSiteLocation, schema::CreateCallSiteLocation(builder, child, child));
      }
      source_maps.push_back(
          schema::CreateFunctionSourceMapDirect(builder, debug_names[function].c_str(), &of_function));
    }
    const auto state = schema::CreateModuleState(builder, global_bytes, global_refs);
    const auto kinds_vector = builder.CreateVector(location_kinds);
    const auto locations_vector = builder.CreateVector(locations);
    flatbuffers::Offset<schema::DebugDatabase> database = 0;
    if (debug_database)
      database = debug_database(builder);
    else if (!debug_names.empty())
      database = schema::CreateDebugDatabase(builder, kinds_vector, locations_vector,
                                             builder.CreateVector(source_maps));

    const auto name_offset = builder.CreateString(name);
    const auto attribute_offset = attribute_vector(attributes);
    const auto type_vector = table_vector(type_offsets);
    const auto dependency_vector = table_vector(dependency_offsets);
    const auto import_vector = table_vector(import_offsets);
    const auto export_vector = table_vector(export_offsets);
    const auto signature_vector = table_vector(signature_offsets);
    const auto rodata_vector = table_vector(rodata_offsets);
    const auto descriptor_vector = descriptors.empty() ? 0 : builder.CreateVectorOfStructs(descriptors);
    const auto bytecode_vector = bytecode.empty() ? 0 : builder.CreateVector(bytecode);
    schema::FinishSizePrefixedBytecodeModuleBuffer(
        builder, schema::CreateBytecodeModule(builder, name_offset, version,
                                              static_cast<schema::FeatureBits>(features), attribute_offset,
                                              type_vector, dependency_vector, import_vector, export_vector,
                                              signature_vector, rodata_vector, 0, state, descriptor_vector,
                                              bytecode_version, bytecode_vector, database));

    std::vector<uint8_t> file(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
    if (!external.empty()) {
      file.resize((file.size() + 63) / 64 * 64);
      file.insert(file.end(), external.begin(), external.end());
    }
    return file;
  }
};

}  // namespace halyard::vm::test
