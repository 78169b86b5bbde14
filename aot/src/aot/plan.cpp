#include "aot/plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "vm/module/calling_convention.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/verify/verifier.h"

namespace halyard::aot {

namespace {

// The functions and imports that a function names.
struct Uses {
  std::set<uint32_t> functions;
  std::set<uint32_t> imports;
  std::set<uint32_t> constants;
};

Result<Uses> uses_of(const vm::BytecodeModule& module, uint32_t ordinal) {
  HALYARD_TRY(vm::verify_function(module, ordinal));
  const vm::Function& function = module.functions()[ordinal];
  Uses uses;
  for (uint32_t pc = 0; vm::has_instruction(function.bytecode, pc);) {
    const vm::Instruction instruction = HALYARD_TRY(
        vm::read_instruction(function.bytecode, pc, module.bytecode_version(), function.features));
    pc = instruction.next_pc;
    const vm::OpInfo& op = vm::info(instruction.op);
    for (size_t i = 0; i < op.operand_count; ++i) {
      const uint32_t index = instruction.operands[i].index;
      if (op.operands[i].kind == vm::OperandKind::func)
        (index & vm::kImportBit ? uses.imports : uses.functions).insert(index & ~vm::kImportBit);
      if (op.operands[i].kind == vm::OperandKind::rodata) uses.constants.insert(index);
    }
  }
  return uses;
}

// Removes what cannot be part of a cycle: functions that call none of the others, or are called by none.
std::set<uint32_t> cycles(std::map<uint32_t, std::set<uint32_t>> calls) {
  for (const bool reverse : {false, true}) {
    if (reverse) {
      std::map<uint32_t, std::set<uint32_t>> callers;
      for (const auto& [caller, callees] : calls) {
        callers[caller];
        for (const uint32_t callee : callees)
          if (calls.contains(callee)) callers[callee].insert(caller);
      }
      calls = std::move(callers);
    }
    for (bool changed = true; changed;) {
      const auto is_leaf = [&](const auto& each) {
        return std::ranges::none_of(each.second, [&](uint32_t callee) { return calls.contains(callee); });
      };
      changed = false;
      for (auto each = calls.begin(); each != calls.end();) {
        if (is_leaf(*each)) {
          each = calls.erase(each);
          changed = true;
        } else {
          ++each;
        }
      }
    }
  }
  std::set<uint32_t> found;
  for (const auto& [function, callees] : calls) found.insert(function);
  return found;
}

Result<ImportPlan> plan_import(const vm::Import& import) {
  if (import.optional) return ImportPlan();
  const size_t odd = import.convention.find_first_of("rC");
  if (odd != std::string_view::npos)
    return fail(Code::UNIMPLEMENTED,
                "import '{}' ({}) takes or returns {}; without a runtime, a program can pass only numbers to "
                "functions outside of it",
                import.name, import.convention, import.convention[odd] == 'r' ? "objects" : "a span");
  return ImportPlan{.callee = identifier(import.name)};
}

}  // namespace

Result<Plan> Plan::of(const vm::BytecodeModule& module, std::string_view name) {
  Plan plan{.module = module, .prefix = identifier(name)};
  plan.functions.resize(module.functions().size());
  plan.imports.resize(module.imports().size());
  plan.types = {{&vm::Buffer::kType, "&vm_buffer_type"}, {&vm::List::kType, "&vm_list_type"}};
  std::map<uint32_t, std::set<uint32_t>> calls;
  std::set<uint32_t> imports;
  std::vector<uint32_t> left;
  for (const vm::Export& each : module.exports()) left.push_back(each.function);
  while (!left.empty()) {
    const uint32_t function = left.back();
    left.pop_back();
    if (calls.contains(function)) continue;
    Uses uses = HALYARD_TRY(uses_of(module, function));
    left.insert(left.end(), uses.functions.begin(), uses.functions.end());
    imports.insert(uses.imports.begin(), uses.imports.end());
    plan.constants.insert(uses.constants.begin(), uses.constants.end());
    calls[function] = std::move(uses.functions);
  }
  for (const uint32_t import : imports)
    plan.imports[import] = HALYARD_TRY(plan_import(module.imports()[import]));
  for (const auto& [function, callees] : calls) {
    const std::string_view function_name = module.function_name(function);
    plan.functions[function] = function_name.empty()
                                   ? fmt::format("f{}", function)
                                   : fmt::format("f{}_{}", function, identifier(function_name));
  }
  plan.recursive = cycles(std::move(calls));
  return plan;
}

uint32_t Plan::constant(uint32_t ordinal) const {
  return static_cast<uint32_t>(std::distance(constants.begin(), constants.find(ordinal)));
}

std::string Plan::type(uint32_t ordinal) const {
  const ObjectType* const object = module.types()[ordinal].object;
  return object && types.contains(object) ? types.at(object) : "NULL";
}

std::string Plan::element_type(uint32_t ordinal) const {
  constexpr const char* kNames[] = {"VM_NONE", "VM_I8", "VM_I16", "VM_I32", "VM_I64", "VM_F32", "VM_F64"};
  return fmt::format("{}, {}", kNames[static_cast<size_t>(module.types()[ordinal].value)], type(ordinal));
}

}  // namespace halyard::aot
