// Serializes the assembled module as a FlatBuffer in the flat archive form (module-format.md, sections 2.3
// and 3). Empty fields are omitted.
#include "bytecode_module_generated.h"
#include "vm/text/assembler_module.h"

namespace halyard::vm::assembler {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// The alignment of rodata from the start of the file: sufficient for kernels and nested archives, and
// possible in mapped memory.
constexpr size_t kRodataAlignment = 16;

template <typename T>
using TableVector = Offset<flatbuffers::Vector<Offset<T>>>;

// One table for each item; no field if there are none.
template <typename T, typename Items, typename Create>
TableVector<T> tables(FlatBufferBuilder& builder, const Items& items, Create create) {
  if (items.empty()) return 0;
  std::vector<Offset<T>> offsets;
  offsets.reserve(items.size());
  for (const auto& item : items) offsets.push_back(create(item));
  return builder.CreateVector(offsets);
}

TableVector<schema::Attribute> attribute_tables(FlatBufferBuilder& builder,
                                                const std::vector<Attribute>& attributes) {
  return tables<schema::Attribute>(builder, attributes, [&](const Attribute& attribute) {
    const auto key = builder.CreateString(attribute.key);
    return schema::CreateAttribute(builder, key, builder.CreateString(attribute.value));
  });
}

// Indexed by function, up to the last one with a name; empty if none has a name.
Offset<schema::DebugDatabase> debug_database(FlatBufferBuilder& builder,
                                             const std::vector<Function>& functions) {
  size_t count = functions.size();
  while (count > 0 && functions[count - 1].debug_name.empty()) --count;
  if (count == 0) return 0;
  std::vector<Offset<schema::FunctionSourceMap>> maps;
  maps.reserve(count);
  for (size_t i = 0; i < count; ++i)
    maps.push_back(schema::CreateFunctionSourceMap(builder, builder.CreateString(functions[i].debug_name)));
  return schema::CreateDebugDatabase(builder, 0, 0, builder.CreateVector(maps));
}

}  // namespace

std::vector<uint8_t> flat_archive(const Module& module) {
  FlatBufferBuilder builder(module.bytecode.size() + 1024);

  const auto rodata =
      tables<schema::RodataSegment>(builder, module.rodata, [&](const std::vector<uint8_t>& bytes) {
        builder.ForceVectorAlignment(bytes.size(), sizeof(uint8_t), kRodataAlignment);
        const auto data = builder.CreateVector(bytes);
        return schema::CreateRodataSegment(builder, schema::CompressionType::NONE, 0, data);
      });
  builder.ForceVectorAlignment(module.bytecode.size(), sizeof(uint8_t), kRodataAlignment);
  const auto bytecode = builder.CreateVector(module.bytecode);

  const auto attributes = attribute_tables(builder, module.attributes);
  const auto types = tables<schema::Type>(builder, module.types, [&](const std::string& name) {
    return schema::CreateType(builder, builder.CreateString(name));
  });
  const auto dependencies =
      tables<schema::ModuleDependency>(builder, module.dependencies, [&](const Dependency& dependency) {
        const auto name = builder.CreateString(dependency.name);
        return schema::CreateModuleDependency(builder, name, dependency.minimum_version,
                                              static_cast<schema::ModuleDependencyFlags>(dependency.flags));
      });
  const auto imports = tables<schema::ImportFunction>(builder, module.imports, [&](const Import& import) {
    const auto name = builder.CreateString(import.full_name);
    const auto signature =
        schema::CreateFunctionSignature(builder, builder.CreateString(import.calling_convention));
    return schema::CreateImportFunction(builder, name, signature,
                                        static_cast<schema::ImportFlags>(import.flags));
  });
  const auto exports = tables<schema::ExportFunction>(builder, module.exports, [&](const Export& item) {
    const auto name = builder.CreateString(item.name);
    return schema::CreateExportFunction(builder, name,
                                        static_cast<int32_t>(module.function_ordinals.at(item.target)));
  });
  const auto signatures =
      tables<schema::FunctionSignature>(builder, module.functions, [&](const Function& function) {
        const auto convention = builder.CreateString(function.calling_convention);
        return schema::CreateFunctionSignature(builder, convention,
                                               attribute_tables(builder, function.attributes));
      });

  uint32_t requirements = 0;  // default: those of all functions together
  std::vector<schema::FunctionDescriptor> descriptors;
  for (const Function& function : module.functions) {
    requirements |= function.requirements;
    descriptors.emplace_back(
        static_cast<int32_t>(function.offset), static_cast<int32_t>(function.length), function.requirements,
        function.reserved, static_cast<int16_t>(function.block_count),
        static_cast<int16_t>(function.value_registers), static_cast<int16_t>(function.ref_registers));
  }
  const auto descriptor_vector = builder.CreateVectorOfStructs(descriptors);
  requirements = module.requirements.value_or(requirements);
  const auto debug = debug_database(builder, module.functions);

  Offset<schema::ModuleState> state = 0;
  if (module.global_bytes || module.global_refs)
    state = schema::CreateModuleState(builder, static_cast<int32_t>(module.global_bytes),
                                      static_cast<int32_t>(module.global_refs));
  const auto name = builder.CreateString(module.name);

  schema::BytecodeModuleBuilder root(builder);
  root.add_name(name);
  root.add_version(module.version);
  root.add_requirements(static_cast<schema::FeatureBits>(requirements));
  root.add_attributes(attributes);
  root.add_types(types);
  root.add_dependencies(dependencies);
  root.add_imported_functions(imports);
  root.add_exported_functions(exports);
  root.add_function_signatures(signatures);
  root.add_rodata_segments(rodata);
  root.add_module_state(state);
  root.add_function_descriptors(descriptor_vector);
  root.add_bytecode_version(module.bytecode_version << 16);
  root.add_bytecode_data(bytecode);
  root.add_debug_database(debug);
  schema::FinishSizePrefixedBytecodeModuleBuffer(builder, root.Finish());
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

}  // namespace halyard::vm::assembler
