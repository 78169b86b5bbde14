// A table behind a lock: modules may be loaded while others add their types.
#include "vm/type_registry.h"

#include <algorithm>
#include <mutex>

#include "vm/buffer.h"
#include "vm/list.h"

namespace halyard::vm {

struct TypeRegistry::Table {
  mutable std::mutex mutex;
  std::vector<const ObjectType*> types;
  std::vector<Ref<NativeType>> native_types;  // those of `types` that are counted

  const ObjectType* find(std::string_view name) const {
    const auto found =
        std::ranges::find_if(types, [&](const ObjectType* type) { return type->name == name; });
    return found == types.end() ? nullptr : *found;
  }
};

TypeRegistry::TypeRegistry() : table_(std::make_shared<Table>()) {
  table_->types = {&Buffer::kType, &List::kType};
}

void TypeRegistry::add(const ObjectType* type) {
  const std::lock_guard lock(table_->mutex);
  auto& types = table_->types;
  if (std::ranges::find(types, type) == types.end()) types.push_back(type);
}

Result<std::vector<Ref<NativeType>>> TypeRegistry::add(std::vector<Ref<NativeType>> types) {
  const std::lock_guard lock(table_->mutex);
  Table& table = *table_;
  const size_t before = table.native_types.size();
  for (Ref<NativeType>& type : types) {
    const ObjectType* const present = table.find(type->of_objects().name);
    if (!present) {
      table.types.push_back(&type->of_objects());
      table.native_types.push_back(type);
      continue;
    }
    const auto same = std::ranges::find_if(table.native_types, [&](const Ref<NativeType>& known) {
      return &known->of_objects() == present && known->destroy() == type->destroy();
    });
    if (same == table.native_types.end()) {
      const std::string name = type->of_objects().name;
      table.types.resize(table.types.size() - (table.native_types.size() - before));
      table.native_types.resize(before);
      return fail(Code::ALREADY_EXISTS,
                  "the type '{}' is there already, defined by something else; load one of the two in an "
                  "instance of its own",
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
