#include "vm/type_registry.h"

#include <algorithm>

#include "vm/buffer.h"
#include "vm/list.h"

namespace halyard::vm {

TypeRegistry::TypeRegistry() : types_{&Buffer::kType, &List::kType} {}

void TypeRegistry::add(const ObjectType* type) {
  if (std::ranges::find(types_, type) == types_.end()) types_.push_back(type);
}

const ObjectType* TypeRegistry::find(std::string_view name) const {
  const auto found = std::ranges::find_if(types_, [&](const ObjectType* type) { return type->name == name; });
  return found == types_.end() ? nullptr : *found;
}

}  // namespace halyard::vm
