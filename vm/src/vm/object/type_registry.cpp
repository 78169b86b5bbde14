// A table with a lock, because modules may be loaded while others add their types.
#include "vm/object/type_registry.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "vm/object/buffer.h"
#include "vm/object/list.h"

namespace halyard::vm {

struct TypeRegistry::Table {
  mutable std::mutex mutex;
  std::vector<const ObjectType*> types;
  std::vector<Ref<NativeType>> native_types;  // references to those of `types` that are counted

  std::unordered_map<std::string_view, const ObjectType*> by_name;

  // The first type of a name wins.
  bool add(const ObjectType* type) {
    if (!by_name.emplace(type->name, type).second) return false;
    types.push_back(type);
    return true;
  }
  void resize(size_t count) {
    for (size_t i = count; i < types.size(); ++i) by_name.erase(types[i]->name);
    types.resize(count);
  }
  const ObjectType* find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
};

TypeRegistry::TypeRegistry() : table_(std::make_shared<Table>()) {
  add(&Buffer::kType);
  add(&List::kType);
}

void TypeRegistry::add(const ObjectType* type) {
  const std::lock_guard lock(table_->mutex);
  table_->add(type);
}

Result<std::vector<Ref<NativeType>>> TypeRegistry::add(std::vector<Ref<NativeType>> types) {
  const std::lock_guard lock(table_->mutex);
  Table& table = *table_;
  const size_t before = table.native_types.size();
  for (Ref<NativeType>& type : types) {
    const ObjectType* const present = table.find(type->of_objects().name);
    if (!present) {
      table.add(&type->of_objects());
      table.native_types.push_back(type);
      continue;
    }
    const auto same = std::ranges::find_if(table.native_types, [&](const Ref<NativeType>& known) {
      return &known->of_objects() == present && known->destroy() == type->destroy();
    });
    if (same == table.native_types.end()) {
      const std::string name = type->of_objects().name;
      table.resize(table.types.size() - (table.native_types.size() - before));
      table.native_types.resize(before);
      return fail(
          Code::ALREADY_EXISTS,
          "the type '{}' is already defined by another module; load one of the two in an instance of its own",
          name);
    }
    type = *same;
  }
  return types;
}

const ObjectType* TypeRegistry::find(std::string_view name) const {
  const std::lock_guard lock(table_->mutex);
  return table_->find(name);
}

std::vector<const ObjectType*> TypeRegistry::all() const {
  const std::lock_guard lock(table_->mutex);
  return table_->types;
}

}  // namespace halyard::vm
