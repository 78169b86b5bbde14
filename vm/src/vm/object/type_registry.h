// The ref types that modules may name. A host has one registry, with vm.buffer and vm.list; native modules
// add their types when they are loaded. Copies share the registry. Thread-safe.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "vm/object/native_object.h"

namespace halyard::vm {

class TypeRegistry {
 public:
  TypeRegistry();
  void add(const ObjectType* type);  // `type` must outlive the registry; the first type of a name wins
  // Adds all types or none. If a type with the same name and destroy function is registered, it replaces the
  // given one, so that a module that is loaded twice has one set of types. ALREADY_EXISTS: another type has
  // the name.
  Result<std::vector<Ref<NativeType>>> add(std::vector<Ref<NativeType>> types);
  // For example "hal.buffer"; null if unknown. The type lives at least as long as the registry.
  const ObjectType* find(std::string_view name) const;
  std::vector<const ObjectType*> all() const;

 private:
  struct Table;
  std::shared_ptr<Table> table_;
};

}  // namespace halyard::vm
