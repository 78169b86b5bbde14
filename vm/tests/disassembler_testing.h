// For tests of the disassembler: converts a module to text and back, and compares all facts that text
// preserves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "status_testing.h"
#include "vm/text/assembler.h"
#include "vm/text/disassembler.h"
#include "vm/text/module_view.h"
#include "vm/text/vmasm_text.h"

namespace halyard::vm::test {

// All facts of a module that text preserves, one per line, including nested modules, whose layout may change.
inline void collect_facts(const std::vector<uint8_t>& file, std::vector<std::string>& facts) {
  const auto view = ASSERT_VALUE(ModuleView::open(Bytes::copy(file)));
  const BytecodeModule& module = view.module();
  const auto fact = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    facts.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  fact("module {} {} {} {}", string_text(module.name()), module.version(), module.bytecode_version(),
       module.features());
  fact("state {} {}", module.global_bytes(), module.global_refs());
  for (const Attribute& attribute : module.attributes())
    fact("attribute {} {}", attribute.key, attribute.value);
  for (const std::string_view type : module.type_names()) fact("type {}", type);
  for (uint32_t i = 0; i < module.dependencies().size(); ++i)
    fact("dependency {} {} {}", module.dependencies()[i].name, module.dependencies()[i].minimum_version,
         view.dependency_flags(i));
  for (uint32_t i = 0; i < module.imports().size(); ++i)
    fact("import {} {} {}", module.imports()[i].name, module.imports()[i].convention, view.import_flags(i));
  for (const Export& item : module.exports()) fact("export {} {}", item.name, item.function);
  for (uint32_t i = 0; i < module.functions().size(); ++i) {
    const Function& function = module.functions()[i];
    const FunctionFields fields = view.function_fields(i);
    fact("function {} '{}' {} {} {} {} {}", function.convention, view.debug_name(i), function.features,
         function.block_count, fields.value_registers, fields.ref_registers, fields.reserved);
    fact("code {}", hex_text(function.bytecode));
    for (const Attribute& attribute : view.function_attributes(i))
      fact("of it {} {}", string_text(attribute.key), string_text(attribute.value));
  }
  for (uint32_t i = 0; i < module.rodata().size(); ++i) {
    const std::vector<uint8_t> bytes(view.segment(i).begin(), view.segment(i).end());
    if (!ModuleView::open(Bytes::copy(bytes))) {
      fact("rodata {}", hex_text(bytes));
    } else {
      fact("rodata, a module");
      collect_facts(bytes, facts);
    }
  }
}

inline std::vector<std::string> facts_of(const std::vector<uint8_t>& file) {
  std::vector<std::string> facts;
  collect_facts(file, facts);
  return facts;
}

inline std::string disassembled(const std::vector<uint8_t>& file, const DisassembleOptions& options = {}) {
  auto text = disassemble(Bytes::copy(file), options);
  if (text) return std::move(*text);
  ADD_FAILURE() << text.error().text();
  return "";
}

// The text of a module, after checking that assembling it gives the same text and facts.
inline std::string round_trip(const std::vector<uint8_t>& file) {
  const std::string text = disassembled(file);
  const auto again = assemble(text, {0, "t.vmasm"});
  if (!again) {
    ADD_FAILURE() << again.error().text() << "\n" << text.substr(0, 4000);
    return text;
  }
  EXPECT_EQ(disassembled(*again), text);
  const auto expected = facts_of(file);
  const auto found = facts_of(*again);
  EXPECT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    EXPECT_TRUE(found[i] == expected[i]) << found[i].substr(0, 400) << "\nexpected\n"
                                         << expected[i].substr(0, 400);
  return text;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace halyard::vm::test
