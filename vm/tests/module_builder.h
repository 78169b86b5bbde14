// Loads modules made from parts (module_parts.h).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "module_parts.h"
#include "status_testing.h"
#include "vm/compile/loaded_module.h"

namespace halyard::vm::test {

// Loads the file. Tests may pass their own types.
inline Result<Ref<LoadedModule>> load(const std::vector<uint8_t>& file, const TypeRegistry& types = {}) {
  return LoadedModule::load(Bytes::copy(file), types);
}

// A module with one function, exported as "main".
inline ModuleParts one_function(FunctionParts function) {
  ModuleParts parts;
  parts.functions.push_back(std::move(function));
  parts.exports.emplace_back("main", 0);
  return parts;
}

}  // namespace halyard::vm::test
