#include "aot/waits.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "vm/verify/verifier.h"

namespace halyard::aot {

namespace {

// Modules of the host. Their functions wait only where the program allows it.
constexpr std::string_view kHostModules[] = {"hal.",           "hal_inline.", "hal_loader.",
                                             "io_parameters.", "check.",      "vmvx."};

}  // namespace

ImportWait import_wait(const vm::BytecodeModule& module, const vm::Instruction& instruction) {
  const CallOperands call(instruction);
  if (vm::has_trait(instruction.op, vm::SUSPENDS) || call.results.empty()) return ImportWait::always;
  const std::string_view name = module.imports()[call.callee].name;
  const bool is_of_host =
      std::ranges::any_of(kHostModules, [&](std::string_view each) { return name.starts_with(each); });
  return is_of_host ? ImportWait::never : ImportWait::for_programs;
}

std::set<uint32_t> waiting_functions(const Plan& plan) {
  const vm::BytecodeModule& module = plan.module;
  std::map<uint32_t, std::vector<uint32_t>> callers;
  std::vector<uint32_t> left;
  for (uint32_t i = 0; i < plan.functions.size(); ++i) {
    if (plan.functions[i].empty()) continue;
    const vm::Function& function = module.functions()[i];
    bool waits = false;
    for (uint32_t pc = 0; vm::has_instruction(function.bytecode, pc);) {
      // The plan has verified the function.
      const vm::Instruction instruction =
          *vm::read_instruction(function.bytecode, pc, module.bytecode_version(), function.features);
      pc = instruction.next_pc;
      waits |= instruction.op == vm::Op::yield;
      if (!vm::has_trait(instruction.op, vm::CALLS)) continue;
      const CallOperands call(instruction);
      if (call.is_import) {
        waits |= import_wait(module, instruction) != ImportWait::never;
      } else {
        callers[call.callee].push_back(i);
      }
    }
    if (waits) left.push_back(i);
  }
  std::set<uint32_t> found;
  while (!left.empty()) {
    const uint32_t function = left.back();
    left.pop_back();
    if (!found.insert(function).second) continue;
    const std::vector<uint32_t>& of = callers[function];
    left.insert(left.end(), of.begin(), of.end());
  }
  return found;
}

}  // namespace halyard::aot
