// For tests of the assembler: assembles text to a module whose parts can be inspected, or returns an error.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bytecode_module_generated.h"
#include "vm/text/assembler.h"

namespace halyard::vm {

using ByteVector = std::vector<uint8_t>;

// An assembled module and its root table.
struct Assembled {
  ByteVector bytes;
  const schema::BytecodeModule* module = nullptr;

  ByteVector code(uint32_t function) const {
    const auto* descriptor = module->function_descriptors()->Get(function);
    const auto* data = module->bytecode_data()->data() + descriptor->bytecode_offset();
    return {data, data + descriptor->bytecode_length()};
  }
  std::string convention(uint32_t function) const {
    return module->function_signatures()->Get(function)->calling_convention()->str();
  }
  std::string rodata(uint32_t segment) const {
    const auto* data = module->rodata_segments()->Get(segment)->embedded_data();
    return {data->begin(), data->end()};
  }
};

inline Assembled assembled(const std::string& text, uint32_t version = 17) {
  Assembled result;
  auto bytes = assemble(text, {version, "t.vmasm"});
  if (!bytes) {
    ADD_FAILURE() << bytes.error().text() << "\n" << text;
    return result;
  }
  result.bytes = std::move(*bytes);
  flatbuffers::Verifier verifier(result.bytes.data(), result.bytes.size());
  EXPECT_TRUE(schema::VerifySizePrefixedBytecodeModuleBuffer(verifier));
  result.module = schema::GetSizePrefixedBytecodeModule(result.bytes.data());
  return result;
}

// The body of the only function of a module.
inline std::string in_function(const std::string& body, const std::string& arguments = "") {
  return "vm.module @m\nvm.func @f(" + arguments + ") -> () {\n" + body + "\nvm.return\n}\n";
}

// Expects that the body assembles to the entry block's marker, these bytes, and an empty return.
inline void expect_code(const std::string& body, const ByteVector& bytes) {
  const auto result = assembled(in_function(body));
  if (!result.module) return;
  ByteVector expected = {0x79};
  expected.insert(expected.end(), bytes.begin(), bytes.end());
  expected.push_back(0x5A);
  if (expected.size() % 2) expected.push_back(0);
  expected.insert(expected.end(), {0, 0});
  EXPECT_EQ(result.code(0), expected) << body;
}

inline std::string error_of(const std::string& text, Code code = Code::INVALID_ARGUMENT,
                            uint32_t version = 17) {
  const auto result = assemble(text, {version, "t.vmasm"});
  if (result) {
    ADD_FAILURE() << "assembled, must not:\n" << text;
    return "";
  }
  EXPECT_EQ(result.error().code(), code) << result.error().text() << "\n" << text;
  return result.error().message();
}

// The smallest function, for texts about other statements.
inline constexpr const char* kFunction = "vm.func @f() -> () {\nvm.return\n}\n";

}  // namespace halyard::vm
