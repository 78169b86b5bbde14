#include "vm/text/module_view.h"

#include <bytecode_module_generated.h>
#include <fmt/core.h>

#include <unordered_set>

#include "vm/verify/verifier.h"

namespace halyard::vm {
namespace {

// Longer names are not compared: strings of a FlatBuffer may overlap, so all names together can be far longer
// than the file.
constexpr size_t kMaxName = 1024;
constexpr size_t kMaxTypeBytes = size_t{16} << 20;  // of copied names

template <typename Vector>
uint32_t count(const Vector* vector) {
  return vector ? vector->size() : 0;
}

std::string_view view(const flatbuffers::String* string) {
  return string ? std::string_view(string->c_str(), string->size()) : std::string_view();
}

}  // namespace

Result<ModuleView> ModuleView::open(Ref<Bytes> bytes) {
  ModuleView result;
  result.archive_ = HALYARD_TRY(open_archive(bytes));
  const schema::BytecodeModule& source = *result.archive_.module;
  size_t type_bytes = 0;
  for (uint32_t i = 0; i < count(source.types()); ++i) {
    const std::string_view name = view(source.types()->Get(i)->full_name());
    type_bytes += name.size();
    if (type_bytes > kMaxTypeBytes)
      return fail(Code::RESOURCE_EXHAUSTED, "the names of types have more than {} bytes in all",
                  kMaxTypeBytes);
    if (!name.starts_with('!') || name.find('\0') != std::string_view::npos) continue;
    if (result.types_.find(name.substr(1))) continue;
    const std::string& kept = result.type_names_.emplace_back(name.substr(1));
    result.types_.add(&result.placeholders_.emplace_back(ObjectType{kept.c_str(), [](Object*) {}}));
  }
  result.module_ = HALYARD_TRY(BytecodeModule::load(std::move(bytes), result.types_));
  return result;
}

uint32_t ModuleView::import_flags(uint32_t import) const {
  return static_cast<uint32_t>(archive_.module->imported_functions()->Get(import)->flags());
}

uint32_t ModuleView::dependency_flags(uint32_t dependency) const {
  return static_cast<uint32_t>(archive_.module->dependencies()->Get(dependency)->flags());
}

FunctionFields ModuleView::function_fields(uint32_t function) const {
  const schema::FunctionDescriptor& descriptor = *archive_.module->function_descriptors()->Get(function);
  return {descriptor.reserved(), static_cast<uint16_t>(descriptor.i32_register_count()),
          static_cast<uint16_t>(descriptor.ref_register_count())};
}

std::vector<Attribute> ModuleView::function_attributes(uint32_t function) const {
  std::vector<Attribute> attributes;
  const auto* source = archive_.module->function_signatures()->Get(function)->attributes();
  for (uint32_t i = 0; i < count(source); ++i)
    attributes.push_back({view(source->Get(i)->key()), view(source->Get(i)->value())});
  return attributes;
}

std::string_view ModuleView::debug_name(uint32_t function) const {
  const uint32_t entry = module_->debug_entry(function);
  if (entry == BytecodeModule::kNoDebugEntry) return {};
  return view(archive_.module->debug_database()->functions()->Get(entry)->local_name());
}

uint32_t ModuleView::source_locations() const {
  const schema::DebugDatabase* database = archive_.module->debug_database();
  return database ? count(database->location_table()) : 0;
}

uint32_t ModuleView::bytecode_bytes() const { return count(archive_.module->bytecode_data()); }

bool ModuleView::is_embedded(uint32_t segment) const {
  return archive_.module->rodata_segments()->Get(segment)->embedded_data() != nullptr;
}

Result<> ModuleView::verify(uint32_t function) const { return verify_function(*module_, function); }

std::vector<std::string_view> ModuleView::function_names(std::deque<std::string>& made_up) const {
  std::vector<std::string_view> names(module_->functions().size());
  std::unordered_set<std::string_view> taken;
  const auto take = [&](uint32_t function, std::string_view name) {
    if (names[function].empty() && !name.empty() && name.size() <= kMaxName && taken.insert(name).second)
      names[function] = name;
  };
  for (const Export& item : module_->exports()) take(item.function, item.name);
  for (uint32_t i = 0; i < names.size(); ++i) {
    take(i, debug_name(i));
    if (!names[i].empty()) continue;
    std::string& name = made_up.emplace_back(fmt::format("func_{}", i));
    while (taken.contains(name)) name += '_';
    take(i, name);
  }
  return names;
}

}  // namespace halyard::vm
