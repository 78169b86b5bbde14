// Bytecode kernels: exports of a nested module, and the bindings that their instructions access.
#include "analysis/kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/native_names.h"
#include "vm/format/bytecode_reader.h"
#include "vm/module/calling_convention.h"

namespace halyard::analysis {

namespace {

constexpr size_t kMaxKernels = 65'536;

// What a ref register of a kernel refers to.
struct Held {
  enum class Kind : uint8_t { other, bindings, binding };
  Kind kind = Kind::other;
  uint32_t binding = 0;
};

class BindingScan {
 public:
  BindingScan(const vm::BytecodeModule& module, uint32_t function)
      : module_(module), function_(module.functions()[function]) {
    // local memory, constants, bindings
    held_[2].kind = Held::Kind::bindings;
  }

  std::vector<Kernel::Binding> scan() {
    for (uint32_t pc = 0; vm::has_instruction(function_.bytecode, pc);) {
      const auto instruction =
          vm::read_instruction(function_.bytecode, pc, module_.bytecode_version(), function_.features);
      if (!instruction) break;
      pc = instruction->next_pc;
      follow(*instruction);
    }
    return std::move(bindings_);
  }

 private:
  static uint16_t ordinal(uint16_t reg) { return reg & vm::kRefOrdinalMask; }

  void access(uint16_t reg, bool writes) {
    const auto found = held_.find(ordinal(reg));
    if (found == held_.end() || found->second.kind != Held::Kind::binding) return;
    Kernel::Binding& binding = bindings_[found->second.binding];
    (writes ? binding.writes : binding.reads) = true;
  }

  void follow(const vm::Instruction& at) {
    using vm::Op;
    const vm::OpInfo& op = vm::info(at.op);
    if (vm::has_trait(at.op, vm::CALLS)) return call(at);
    if (at.op == Op::const_i32 || at.op == Op::const_i32_zero) {
      const bool has_value = at.op == Op::const_i32;
      numbers_[at.operands[has_value ? 1 : 0].reg] =
          has_value ? static_cast<uint32_t>(at.operands[0].immediate) : 0;
      return;
    }
    if (at.op == Op::list_get_ref) {
      const auto list = held_.find(ordinal(at.operands[0].reg));
      const auto index = numbers_.find(at.operands[1].reg);
      Held held;
      if (list != held_.end() && list->second.kind == Held::Kind::bindings && index != numbers_.end() &&
          index->second < 256) {
        held = {Held::Kind::binding, index->second};
        if (bindings_.size() <= index->second) bindings_.resize(index->second + 1);
      }
      held_[ordinal(at.operands[3].reg)] = held;
      return;
    }
    const std::string_view name = op.mnemonic();
    if (name.starts_with("buffer.store") || name.starts_with("buffer.fill")) {
      access(at.operands[0].reg, true);
    } else if (at.op == Op::buffer_copy) {
      access(at.operands[0].reg, false);
      access(at.operands[2].reg, true);
    } else if (name.starts_with("buffer.") && op.operand_count > 0 && op.operands[0].bank == vm::Bank::ref &&
               !op.operands[0].writes) {
      access(at.operands[0].reg, false);
    }
    for (size_t i = 0; i < op.operand_count; ++i) {
      const vm::Operand& operand = op.operands[i];
      if (operand.kind != vm::OperandKind::reg || !operand.writes) continue;
      if (operand.bank == vm::Bank::ref) {
        held_.erase(ordinal(at.operands[i].reg));
      } else {
        numbers_.erase(at.operands[i].reg);
      }
    }
  }

  // A microkernel writes its last buffer, and reads the others.
  void call(const vm::Instruction& at) {
    const vm::OpInfo& op = vm::info(at.op);
    std::vector<uint16_t> refs;
    for (size_t i = 0; i < op.operand_count; ++i) {
      if (op.operands[i].kind != vm::OperandKind::reg_list) continue;
      for (size_t j = 0; j < at.operands[i].regs.size(); ++j) {
        const uint16_t reg = at.operands[i].regs[j];
        if (op.operands[i].writes) {
          numbers_.erase(reg);
        } else if ((reg & vm::kRefBit) != 0) {
          refs.push_back(reg);
        }
      }
    }
    for (size_t i = 0; i < refs.size(); ++i) access(refs[i], i + 1 == refs.size());
  }

  const vm::BytecodeModule& module_;
  const vm::Function& function_;
  std::map<uint16_t, Held> held_;
  std::map<uint16_t, uint32_t> numbers_;  // constants in registers
  std::vector<Kernel::Binding> bindings_;
};

std::vector<Kernel> kernels_of(std::span<const uint8_t> bytes) {
  std::vector<Kernel> kernels;
  if (bytes.size() < 16) return kernels;
  if (const auto module = vm::ModuleView::open(Bytes::borrow(bytes, {}))) {
    constexpr std::string_view kConvention = "0rrriiiiiiiii_v";
    for (const vm::Export& kernel : module->module().exports()) {
      if (kernels.size() >= kMaxKernels) break;
      kernels.push_back({std::string(kernel.name), {}});
      if (kernel.convention == kConvention && module->verify(kernel.function))
        kernels.back().bindings = bindings_of(module->module(), kernel.function);
    }
    return kernels;
  }
  for (std::string& name : native_names(bytes)) kernels.push_back({std::move(name), {}});
  return kernels;
}

}  // namespace

std::vector<Kernel::Binding> bindings_of(const vm::BytecodeModule& module, uint32_t function) {
  return BindingScan(module, function).scan();
}

const std::vector<Kernel>& Kernels::of(uint32_t constant) {
  const auto [place, is_new] = known_.try_emplace(constant);
  if (is_new && constant < view_.module().rodata().size())
    place->second = kernels_of(view_.segment(constant));
  return place->second;
}

const std::vector<vm::KernelCounts::Range>* Kernels::ranges(uint32_t constant, uint64_t entry,
                                                            const std::vector<uint32_t>& constants,
                                                            const std::vector<uint64_t>& binding_lengths,
                                                            const std::array<uint32_t, 3>& workgroups) {
  constexpr size_t kMaxDispatches = 2'000;
  constexpr uint64_t kMaxSteps = 20'000;  // of each
  const Kernel* const kernel = find(constant, entry);
  if (!kernel || !kernel->bindings) return nullptr;
  Dispatch dispatch{constant, entry, constants, binding_lengths, workgroups};
  const auto known = ranges_.find(dispatch);
  if (known != ranges_.end()) return known->second ? &*known->second : nullptr;
  if (ranges_.size() >= kMaxDispatches) return nullptr;
  auto& made = ranges_[std::move(dispatch)];
  auto [module, is_new] = modules_.try_emplace(constant);
  if (is_new)
    if (auto opened = vm::ModuleView::open(Bytes::borrow(view_.segment(constant), {})))
      module->second.emplace(*std::move(opened));
  if (!module->second) return nullptr;
  vm::KernelArguments arguments;
  arguments.constants = std::as_bytes(std::span(constants));
  arguments.binding_lengths = binding_lengths;
  arguments.workgroups = workgroups;
  arguments.max_steps = kMaxSteps;
  const vm::BytecodeModule& code = module->second->module();
  auto counts = vm::count_kernel(code, code.exports()[entry].function, arguments);
  if (!counts || !counts->bytes) return nullptr;
  made = std::move(counts->ranges);
  return &*made;
}

const Kernel* Kernels::find(uint32_t constant, uint64_t entry) {
  const std::vector<Kernel>& kernels = of(constant);
  return entry < kernels.size() ? &kernels[entry] : nullptr;
}

uint64_t Kernels::index_of(uint32_t constant, std::string_view name) {
  of(constant);
  std::vector<Kernel>& kernels = known_[constant];
  const auto found = std::ranges::find(kernels, name, &Kernel::name);
  if (found == kernels.end() && kernels.size() < kMaxKernels) {
    kernels.push_back({std::string(name), {}});
    return kernels.size() - 1;
  }
  return static_cast<uint64_t>(found - kernels.begin());
}

}  // namespace halyard::analysis
