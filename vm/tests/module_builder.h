// Loads modules made from parts (module_parts.h), and matchers for results.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "module_parts.h"
#include "vm/compile/loaded_module.h"

namespace halyard::vm::test {

// Loads the file. Tests may pass their own types.
inline Result<Ref<LoadedModule>> load(const std::vector<uint8_t>& file, const TypeRegistry& types = {}) {
  return LoadedModule::load(Bytes::copy(file), types);
}

template <typename T>
testing::AssertionResult fails_with(const Result<T>& result, Code code, std::string_view part_of_message) {
  if (result) return testing::AssertionFailure() << "succeeded; expected " << name(code);
  const std::string text = result.error().text();
  if (result.error().code() != code)
    return testing::AssertionFailure() << text << "; expected " << name(code);
  if (text.find(part_of_message) == std::string::npos)
    return testing::AssertionFailure() << text << "; expected it to say \"" << part_of_message << '"';
  return testing::AssertionSuccess();
}

template <typename T>
testing::AssertionResult succeeds(const Result<T>& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().text();
}

// A module with one function, exported as "main".
inline ModuleParts one_function(FunctionParts function) {
  ModuleParts parts;
  parts.functions.push_back(std::move(function));
  parts.exports.emplace_back("main", 0);
  return parts;
}

}  // namespace halyard::vm::test
