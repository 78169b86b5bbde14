// The ref types that modules may name. One registry per host; built-in: vm.buffer and vm.list; native modules
// add theirs as they are loaded. Copies are the same registry. Any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "vm/native/native_object.h"

namespace halyard::vm {

class TypeRegistry {
 public:
  TypeRegistry();
  void add(const ObjectType* type);  // `type` outlives the registry; of one name the first stays
  // Adds all or none. What is there already, equal in name and destroy, is given instead of what was passed:
  // a module loaded twice has one set of types. ALREADY_EXISTS: the name stands for another type.
  Result<std::vector<Ref<NativeType>>> add(std::vector<Ref<NativeType>> types);
  // "hal.buffer"; null where unknown. The type lives at least as long as the registry.
  const ObjectType* find(std::string_view name) const;
  std::vector<const ObjectType*> all() const;

 private:
  struct Table;
  std::shared_ptr<Table> table_;
};

}  // namespace halyard::vm
