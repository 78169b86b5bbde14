#include "aot/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "aot/c_text.h"
#include "aot/support.h"
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

struct KnownImport {
  std::string_view name;
  std::string_view convention;
  std::string_view callee;
};
constexpr KnownImport kImports[] = {
#define IMPORT(name, convention, callee) {name, convention, #callee},
#include "aot/imports.inc"
#undef IMPORT
};
// Modules whose functions nobody but a runtime can define.
constexpr std::string_view kModules[] = {"hal.",           "hal_inline.", "hal_loader.",
                                         "io_parameters.", "check.",      "vmvx."};

Result<ImportPlan> plan_import(const vm::Import& import) {
  for (const KnownImport& known : kImports)
    if (import.name == known.name && import.convention == known.convention)
      return ImportPlan{.callee = std::string(known.callee), .takes_state = true};
  if (import.optional) return ImportPlan();
  std::string expected;
  for (const KnownImport& known : kImports)
    if (import.name == known.name)
      expected += fmt::format("{}{}", expected.empty() ? "" : " or ", known.convention);
  if (!expected.empty() && import.convention.empty())
    return fail(Code::UNIMPLEMENTED,
                "import '{}' states no calling convention; state it where the module is made", import.name);
  if (!expected.empty())
    return fail(Code::INCOMPATIBLE, "import '{}' has the calling convention {}; expected {}", import.name,
                import.convention, expected);
  const size_t odd = import.convention.find_first_of("rC");
  const bool is_known =
      std::ranges::any_of(kModules, [&](std::string_view module) { return import.name.starts_with(module); });
  if (is_known)
    return fail(Code::NOT_FOUND,
                "import '{}' ({}) is not a function of its module, as far as this version of Halyard knows",
                import.name, import.convention);
  if (odd != std::string_view::npos)
    return fail(Code::UNIMPLEMENTED,
                "import '{}' ({}) takes or returns objects; functions that you define in C take and return "
                "numbers only",
                import.name, import.convention);
  return ImportPlan{.callee = identifier(import.name)};
}

// Functions that the user defines, each for one import, have names of C that nothing else has.
Result<> check_names(const Plan& plan) {
  const std::vector<std::string> own = own_names(plan.prefix);
  std::map<std::string_view, const vm::Import*> users;
  for (size_t i = 0; i < plan.imports.size(); ++i) {
    const std::string_view callee = plan.imports[i].callee;
    const vm::Import& import = plan.module.imports()[i];
    if (callee.empty() || plan.imports[i].takes_state) continue;
    if (callee.starts_with("vm_") || is_support_word(callee) || std::ranges::find(own, callee) != own.end() ||
        std::ranges::find(plan.functions, callee) != plan.functions.end())
      return fail(Code::UNIMPLEMENTED,
                  "import '{}' would be the function {} in C, but the program has this name for itself; give "
                  "the module of the import another name where the program is made",
                  import.name, callee);
    const vm::Import& other = *users.try_emplace(callee, &import).first->second;
    if (other.name != import.name || other.convention != import.convention)
      return fail(Code::UNIMPLEMENTED,
                  "imports '{}' ({}) and '{}' ({}) would both be the function {} in C; give one of them "
                  "another name where the program is made",
                  other.name, other.convention, import.name, import.convention, callee);
  }
  return {};
}

// The version of hal whose functions aot/support has.
constexpr uint32_t kHalVersion = 7;

Result<> check_dependencies(const vm::BytecodeModule& module) {
  for (const vm::Dependency& each : module.dependencies())
    if (each.name == "hal" && each.required && each.minimum_version > kHalVersion)
      return fail(Code::NOT_FOUND, "the program needs version {} of module 'hal'; vm-cc has version {}",
                  each.minimum_version, kHalVersion);
  return {};
}

// A program that opens a channel when it begins needs other processes: it could never start.
Result<> check_beginning(const vm::BytecodeModule& module,
                         const std::map<uint32_t, std::set<uint32_t>>& calls,
                         const std::map<uint32_t, std::set<uint32_t>>& imports,
                         const std::vector<ImportPlan>& planned) {
  std::vector<uint32_t> left;
  std::set<uint32_t> seen;
  for (const vm::Export& each : module.exports())
    if (each.name == "__init") left.push_back(each.function);
  while (!left.empty()) {
    const uint32_t function = left.back();
    left.pop_back();
    if (!seen.insert(function).second) continue;
    for (const uint32_t import : imports.at(function))
      if (planned[import].callee.starts_with("hal_channel_create"))
        return fail(Code::UNIMPLEMENTED,
                    "the program opens a channel to other processes when it begins (import '{}'), which C "
                    "without a runtime cannot have; use --runtime=hal",
                    module.imports()[import].name);
    left.insert(left.end(), calls.at(function).begin(), calls.at(function).end());
  }
  return {};
}

// Names of types, and their descriptors in C.
struct KnownType {
  ObjectType type;
  const char* descriptor;
};
constexpr KnownType kTypes[] = {
    {{"hal.allocator", nullptr}, "&hal_allocator_type"},
    {{"hal.buffer", nullptr}, "&hal_buffer_type"},
    {{"hal.buffer_view", nullptr}, "&hal_view_type"},
    {{"hal.channel", nullptr}, "&hal_channel_type"},
    {{"hal.command_buffer", nullptr}, "&hal_command_buffer_type"},
    {{"hal.device", nullptr}, "&hal_device_type"},
    {{"hal.executable", nullptr}, "&hal_executable_type"},
    {{"hal.fence", nullptr}, "&hal_fence_type"},
    {{"hal.file", nullptr}, "&hal_file_type"},
    {{"hal.semaphore", nullptr}, "NULL"},
};

}  // namespace

const vm::TypeRegistry& known_types() {
  static const vm::TypeRegistry types = [] {
    vm::TypeRegistry all;
    for (const KnownType& known : kTypes) all.add(&known.type);
    return all;
  }();
  return types;
}

std::vector<std::string> own_names(std::string_view prefix) {
  std::vector<std::string> names;
  for (const char* const end : {"init", "state", "tensor", "parameter", "parameters", "arena_was_zero", "H_",
                                "CONST_BYTES", "ARENA_BYTES", "STACK_BYTES"})
    names.push_back(fmt::format("{}_{}", prefix, end));
  return names;
}

Result<Plan> Plan::of(const vm::BytecodeModule& module, Role role, std::string_view prefix) {
  if (role != Role::program) HALYARD_TRY(check_dependencies(module));
  Plan plan{.module = module, .role = role, .prefix = std::string(prefix)};
  plan.functions.resize(module.functions().size());
  plan.imports.resize(module.imports().size());
  std::map<uint32_t, std::set<uint32_t>> calls;
  std::map<uint32_t, std::set<uint32_t>> imports_of;
  std::set<uint32_t> imports;
  std::vector<uint32_t> left;
  for (const vm::Export& each : module.exports())
    if (role != Role::kernels || !each.name.starts_with("__")) left.push_back(each.function);
  while (!left.empty()) {
    const uint32_t function = left.back();
    left.pop_back();
    if (calls.contains(function)) continue;
    Uses uses = HALYARD_TRY(uses_of(module, function));
    left.insert(left.end(), uses.functions.begin(), uses.functions.end());
    imports.insert(uses.imports.begin(), uses.imports.end());
    imports_of[function] = std::move(uses.imports);
    plan.constants.insert(uses.constants.begin(), uses.constants.end());
    calls[function] = std::move(uses.functions);
  }
  for (const uint32_t import : imports)
    if (role != Role::program) plan.imports[import] = HALYARD_TRY(plan_import(module.imports()[import]));
  if (role == Role::host) HALYARD_TRY(check_beginning(module, calls, imports_of, plan.imports));
  const std::string begin = role == Role::kernels ? plan.prefix + "_" : "";
  for (const auto& [function, callees] : calls) {
    const std::string_view name = module.function_name(function);
    plan.functions[function] = name.empty() ? fmt::format("{}fn{}", begin, function)
                                            : fmt::format("{}fn{}_{}", begin, function, identifier(name));
  }
  HALYARD_TRY(check_names(plan));
  plan.recursive = cycles(calls);
  // Kernels are called through a table, and programs over a host have places and limits of its own.
  std::set<uint32_t> kept;
  if (role == Role::kernels)
    for (const vm::Export& each : module.exports()) kept.insert(each.function);
  if (role != Role::program) plan.direct = direct_functions(module, calls, plan.recursive, kept);
  return plan;
}

std::string Plan::call(uint32_t function) const {
  if (!direct.bounded.contains(function)) return functions[function] + "(s";
  return fmt::format("{}(s, VM_MAX_DEPTH - s->depth{}", functions[function],
                     recursive.contains(function) ? " - 1" : "");
}

uint32_t Plan::constant(uint32_t ordinal) const {
  return first_constant + static_cast<uint32_t>(std::distance(constants.begin(), constants.find(ordinal)));
}

std::string Plan::type(uint32_t ordinal) const {
  if (role == Role::program) return fmt::format("{}u", ordinal);
  const ObjectType* const object = module.types()[ordinal].object;
  if (object == &vm::Buffer::kType) return "&vm_buffer_type";
  if (object == &vm::List::kType) return "&vm_list_type";
  for (const KnownType& known : kTypes)
    if (object == &known.type) return known.descriptor;
  return "NULL";
}

std::string Plan::element_type(uint32_t ordinal) const {
  if (role == Role::program) return type(ordinal);
  constexpr const char* kNames[] = {"VM_NONE", "VM_I8", "VM_I16", "VM_I32", "VM_I64", "VM_F32", "VM_F64"};
  return fmt::format("{}, {}", kNames[static_cast<size_t>(module.types()[ordinal].value)], type(ordinal));
}

}  // namespace halyard::aot
