#include "vm/type_registry.h"

#include "vm/buffer.h"
#include "vm/list.h"

namespace halyard::vm {

TypeRegistry::TypeRegistry() {
  add(&Buffer::kType);
  add(&List::kType);
}

void TypeRegistry::add(const ObjectType* type) {
  if (by_name_.emplace(type->name, type).second) types_.push_back(type);
}

const ObjectType* TypeRegistry::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace halyard::vm
