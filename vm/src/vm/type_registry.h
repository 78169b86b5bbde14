// The ref types that modules may name. One registry per host; built-in: vm.buffer and vm.list. Filled before
// modules are loaded, then only read (any thread).
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/object.h"
#include "base/status.h"

namespace halyard::vm {

class TypeRegistry {
 public:
  TypeRegistry();
  void add(const ObjectType* type);  // `type` outlives the registry; of one name the first stays
  const ObjectType* find(std::string_view name) const;  // "hal.buffer"; null where unknown
  std::span<const ObjectType* const> all() const { return types_; }

 private:
  std::vector<const ObjectType*> types_;
  std::unordered_map<std::string_view, const ObjectType*> by_name_;
};

}  // namespace halyard::vm
