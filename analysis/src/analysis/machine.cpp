// Instructions, calls and branches.
#include "analysis/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "vm/format/bytecode_reader.h"
#include "vm/format/opcode_traits.h"
#include "vm/module/calling_convention.h"

namespace halyard::analysis {

namespace {

using vm::Bank;
using vm::Op;
using vm::OperandKind;

bool is_integer(Bank bank) { return bank == Bank::i32 || bank == Bank::i64; }

// The registers of the arguments in a new frame.
template <typename Each>
void for_each_argument(std::string_view types, Each each) {
  uint16_t value = 0;
  uint16_t ref = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == 'r') {
      each(i, static_cast<uint16_t>(vm::kRefBit | ref++));
      continue;
    }
    const bool is_wide = vm::is_wide(types[i]);
    if (is_wide) value = static_cast<uint16_t>((value + 1) / 2 * 2);
    each(i, value);
    value = static_cast<uint16_t>(value + (is_wide ? 2 : 1));
  }
}

void write_value(Registers& registers, char type, uint16_t reg, const Value& value) {
  switch (type) {
    case 'r':
      return registers.set_ref(reg, value.ref);
    case 'i':
      return registers.write32(reg, value.number);
    case 'I':
      return registers.write64(reg, value.number);
    default:
      return registers.write_unknown(vm::is_wide(type), reg);
  }
}

Value read_value(Registers& registers, char type, uint16_t reg) {
  switch (type) {
    case 'r':
      return {{}, registers.ref(reg)};
    case 'i':
      return {registers.read32(reg), nullptr};
    case 'I':
      return {registers.read64(reg), nullptr};
    default:
      return {};
  }
}

std::string flat_types(const std::vector<vm::ConventionItem>& items) {
  std::string types;
  for (const vm::ConventionItem& item : items) types += item.type;
  return types;
}

}  // namespace

bool Choices::advance() {
  while (!made.empty() && made.back().taken + 1 >= made.back().ways) made.pop_back();
  if (made.empty()) return false;
  ++made.back().taken;
  return true;
}

Machine::Machine(Program& program, Choices& choices, Budget& budget)
    : program_(program), choices_(&choices), budget_(budget) {}

Expression Machine::unknown(const Frame& frame, const vm::Instruction& at, std::string_view what) {
  return program_.symbols().fresh(
      fmt::format("{}, computed at {}", what, program_.where({frame.function, at.pc})), true);
}

Result<std::vector<Value>> Machine::run(uint32_t function, std::vector<Value> arguments) {
  has_failed_ = false;
  return enter(function, std::move(arguments), 0);
}

Result<std::vector<Value>> Machine::enter(uint32_t function, std::vector<Value> arguments, uint32_t depth) {
  if (depth >= kMaxDepth)
    return fail(Code::UNIMPLEMENTED, "calls nest deeper than {} at {}", kMaxDepth,
                program_.where({function, 0}));
  if (!budget_.verified.contains(function)) {
    HALYARD_TRY(program_.view.verify(function));
    budget_.verified.insert(function);
  }
  const vm::Function& body = program_.module().functions()[function];
  Frame frame{
      function, body,
      Registers(program_.symbols(), size_t{body.value_registers} + 2, size_t{body.ref_registers} + 1)};
  const vm::Convention convention = HALYARD_TRY(vm::Convention::parse(body.convention));
  for_each_argument(flat_types(convention.arguments), [&](size_t i, uint16_t reg) {
    if (i < arguments.size()) write_value(frame.registers, convention.arguments[i].type, reg, arguments[i]);
  });
  arguments.clear();
  return follow(frame, depth);
}

void Machine::take(Frame& frame, const vm::RemapList& moves) {
  for (size_t i = 0; i < moves.size(); ++i) frame.registers.move(moves[i].source, moves[i].destination);
}

// Whether nothing but a failure follows.
bool Machine::only_fails(const Frame& frame, uint32_t pc) const {
  for (int steps = 0; steps < 64 && vm::has_instruction(frame.body.bytecode, pc); ++steps) {
    const auto at = vm::read_instruction(frame.body.bytecode, pc, program_.module().bytecode_version(),
                                         frame.body.features);
    if (!at) return false;
    if (at->op == Op::fail) return true;
    if (vm::has_trait(at->op, vm::CALLS)) return false;
    if (at->op == Op::br) {
      pc = at->operands[0].index;
    } else if (vm::info(at->op).terminator()) {
      return false;
    } else {
      pc = at->next_pc;
    }
  }
  return false;
}

uint32_t Machine::choose(const Frame& frame, uint32_t pc, const std::vector<uint32_t>& targets) {
  std::vector<uint32_t> ways;
  for (uint32_t i = 0; i < targets.size(); ++i)
    if (!only_fails(frame, targets[i])) ways.push_back(i);
  if (ways.empty()) return 0;
  if (ways.size() == 1) return ways.front();
  Repeats& repeats = repeats_[{frame.function, pc}];
  repeats.taken.resize(targets.size());
  // The first pass may differ from those after it.
  const bool is_repeated = std::ranges::any_of(repeats.taken, [](uint32_t times) { return times > 1; });
  const Expression& live = program_.timeline->live();
  if (is_repeated && !(live == repeats.live)) {
    const Expression growth = program_.symbols().subtract(live, repeats.live);
    if (!program_.symbols().is_non_negative(program_.symbols().subtract(0, growth)) && !repeats.grows) {
      repeats.grows = true;
      program_.notes.insert(fmt::format(
          "memory grows by {} from one pass of a loop to the next, at {}; the number of passes is "
          "not known before the run",
          program_.symbols().text(growth), program_.where({frame.function, pc})));
    }
  }
  repeats.live = live;
  const size_t before = ways.size();
  std::erase_if(ways, [&](uint32_t way) { return repeats.taken[way] >= kMaxRepeats; });
  if (ways.size() != before)
    program_.notes.insert(fmt::format("the branch at {} depends on data; it was followed {} times in one way",
                                      program_.where({frame.function, pc}), kMaxRepeats));
  if (ways.empty()) return 0;
  if (choices_->next == choices_->made.size())
    choices_->made.push_back({0, static_cast<uint32_t>(ways.size())});
  Choices::Choice& choice = choices_->made[choices_->next++];
  const uint32_t way = ways[std::min<size_t>(choice.taken, ways.size() - 1)];
  ++repeats.taken[way];
  return way;
}

Result<std::vector<Value>> Machine::follow(Frame& frame, uint32_t depth) {
  const std::span<const uint8_t> code = frame.body.bytecode;
  const uint32_t version = program_.module().bytecode_version();
  Registers& registers = frame.registers;
  vm::Instruction at;
  for (uint32_t pc = 0; vm::has_instruction(code, pc);) {
    if (budget_.steps == 0 || program_.timeline->is_full() || program_.symbols().work() > budget_.arithmetic)
      return fail(Code::RESOURCE_EXHAUSTED,
                  "the program does too much to be followed to its end; it was left at {}",
                  program_.where({frame.function, pc}));
    --budget_.steps;
    HALYARD_TRY(vm::read_instruction(code, pc, version, frame.body.features, at));
    const auto& operands = at.operands;
    pc = at.next_pc;
    switch (at.op) {
      case Op::block:
        break;
      case Op::br:
      case Op::yield:
      case Op::break_:
        take(frame, operands[1].remap);
        pc = operands[0].index;
        break;
      case Op::cond_break:
        take(frame, operands[2].remap);
        pc = operands[1].index;
        break;
      case Op::cond_br: {
        const auto condition = registers.read32(operands[0].reg).constant();
        const uint32_t way = condition ? (*condition != 0 ? 0 : 1)
                                       : choose(frame, at.pc, {operands[1].index, operands[3].index});
        take(frame, operands[way == 0 ? 2 : 4].remap);
        pc = operands[way == 0 ? 1 : 3].index;
        break;
      }
      case Op::br_table: {
        std::vector<uint32_t> targets;
        std::vector<vm::RemapList> moves;
        for (const vm::CaseEntry entry : operands[3].cases) {
          targets.push_back(entry.target);
          moves.push_back(entry.remap);
        }
        targets.push_back(operands[1].index);
        moves.push_back(operands[2].remap);
        const auto index = registers.read32(operands[0].reg).constant();
        const auto last = static_cast<uint32_t>(targets.size() - 1);
        const uint32_t way = !index                         ? choose(frame, at.pc, targets)
                             : *index >= 0 && *index < last ? static_cast<uint32_t>(*index)
                                                            : last;
        take(frame, moves[way]);
        pc = targets[way];
        break;
      }
      case Op::fail: {
        const auto status = registers.read32(operands[0].reg).constant();
        if (!status || *status == 0) break;  // an unknown status is assumed to be OK
        has_failed_ = true;
        return fail(Code::FAILED_PRECONDITION, "the program fails at {}: {}",
                    program_.where({frame.function, at.pc}), operands[1].string.substr(0, 300));
      }
      case Op::return_: {
        const vm::Convention convention = HALYARD_TRY(vm::Convention::parse(frame.body.convention));
        std::vector<Value> results;
        for (size_t i = 0; i < operands[0].regs.size() && i < convention.results.size(); ++i)
          results.push_back(read_value(registers, convention.results[i].type, operands[0].regs[i]));
        return results;
      }
      default:
        if (vm::has_trait(at.op, vm::CALLS)) {
          HALYARD_TRY(call(frame, at, depth));
          for (size_t i = 0; i < vm::info(at.op).operand_count; ++i)
            if (vm::info(at.op).operands[i].kind == OperandKind::block) pc = operands[i].index;
        } else if (!access_global(frame, at) && !access_list(frame, at) && !access_bytes(frame, at) &&
                   !handle_refs(frame, at)) {
          compute(frame, at);
        }
    }
  }
  return fail(Code::INTERNAL, "function {} has no end", program_.where({frame.function, 0}));
}

// ---- Calls

Result<> Machine::call(Frame& frame, const vm::Instruction& at, uint32_t depth) {
  const vm::OpInfo& op = vm::info(at.op);
  uint32_t callee = 0;
  vm::RegList segments;
  vm::RegList arguments;
  vm::RegList results;
  for (size_t i = 0; i < op.operand_count; ++i) {
    if (op.operands[i].kind == OperandKind::func) callee = at.operands[i].index;
    if (op.operands[i].kind == OperandKind::u16_list) segments = at.operands[i].regs;
    if (op.operands[i].kind == OperandKind::reg_list)
      (op.operands[i].writes ? results : arguments) = at.operands[i].regs;
  }
  const bool is_import = (callee & vm::kImportBit) != 0;
  const uint32_t number = callee & ~vm::kImportBit;
  const std::string_view text = is_import ? program_.module().imports()[number].convention
                                          : program_.module().functions()[number].convention;
  const vm::Convention convention = HALYARD_TRY(vm::Convention::parse(text));
  const std::string result_types = convention.result_types();
  Registers& registers = frame.registers;

  Call call;
  call.place = {frame.function, at.pc};
  call.result_types = result_types;
  call.results.resize(result_types.size());
  size_t next = 0;
  const auto read = [&](char type) {
    return next < arguments.size() ? read_value(registers, type, arguments[next++]) : Value{};
  };
  for (const vm::ConventionItem& item : convention.arguments) {
    Argument argument;
    if (item.type != 'C') {
      argument.value = read(item.type);
    } else {
      argument.is_span = true;
      const uint32_t tuples = item.segment < segments.size() ? segments[item.segment] : 0;
      for (uint32_t tuple = 0; tuple < tuples; ++tuple) {
        std::vector<Value> values;
        for (const char type : item.span) values.push_back(read(type));
        argument.tuples.push_back(std::move(values));
      }
    }
    call.arguments.push_back(std::move(argument));
  }

  std::vector<Value> given;
  if (is_import) {
    given = HALYARD_TRY(call_import(number, std::move(call)));
  } else {
    std::vector<Value> passed;
    for (Argument& argument : call.arguments) passed.push_back(std::move(argument.value));
    call.arguments.clear();
    given = HALYARD_TRY(enter(number, std::move(passed), depth + 1));
  }
  for (size_t i = 0; i < results.size() && i < result_types.size(); ++i)
    write_value(registers, result_types[i], results[i], i < given.size() ? given[i] : Value{});
  return {};
}

Result<std::vector<Value>> Machine::call_import(uint32_t number, Call call) {
  const vm::Import& import = program_.module().imports()[number];
  call.name = import.name;
  if (import.convention.empty())
    return fail(Code::UNIMPLEMENTED,
                "import '{}' states no calling convention, so its arguments are not known",
                import.name.substr(0, 200));
  if (call_hal(program_, call) || call_queue(program_, call) || call_commands(program_, call) ||
      call_inline(program_, call) || call_parameters(program_, call))
    return std::move(call.results);
  program_.notes.insert(fmt::format("the effect of '{}' on memory is not known", import.name.substr(0, 200)));
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (call.result_types[i] == 'r') {
      call.results[i].ref = std::make_shared<Unknown>();
    } else {
      call.results[i].number = program_.symbols().fresh(fmt::format(
          "a result of '{}', called at {}", import.name.substr(0, 200), program_.where(call.place)));
    }
  }
  return std::move(call.results);
}

// ---- Instructions

void Machine::compute(Frame& frame, const vm::Instruction& at) {
  const vm::OpInfo& op = vm::info(at.op);
  std::vector<Expression> in;
  Bank bank = Bank::none;
  int64_t immediate = 0;
  bool is_integers = true;
  for (size_t i = 0; i < op.operand_count; ++i) {
    const vm::Operand& operand = op.operands[i];
    if (operand.kind == OperandKind::immediate) {
      bank = operand.bank;
      immediate = operand.bank == Bank::i32 ? static_cast<int32_t>(at.operands[i].immediate)
                                            : static_cast<int64_t>(at.operands[i].immediate);
      is_integers = is_integers && is_integer(operand.bank);
    }
    if (operand.kind != OperandKind::reg || operand.writes) continue;
    is_integers = is_integers && is_integer(operand.bank);
    if (!is_integer(operand.bank)) continue;
    if (bank == Bank::none) bank = operand.bank;
    in.push_back(frame.registers.read(operand.bank, at.operands[i].reg));
  }
  for (size_t i = 0; i < op.operand_count; ++i) {
    const vm::Operand& operand = op.operands[i];
    if (operand.kind != OperandKind::reg || !operand.writes) continue;
    const uint16_t reg = at.operands[i].reg;
    if (operand.bank == Bank::ref) {
      frame.registers.set_ref(reg, std::make_shared<Unknown>());
    } else if (!is_integer(operand.bank)) {
      frame.registers.write_unknown(vm::is_wide(operand.bank), reg);
    } else if (!is_integers) {
      frame.registers.write(operand.bank, reg, unknown(frame, at, "a number"));
    } else {
      if (bank == Bank::none) bank = operand.bank;
      const std::string where =
          fmt::format("a number, computed at {}", program_.where({frame.function, at.pc}));
      frame.registers.write(operand.bank, reg,
                            result_of(program_.symbols(), at.op, bank, in, immediate, where));
    }
  }
}

bool Machine::access_global(Frame& frame, const vm::Instruction& at) {
  Registers& registers = frame.registers;
  const auto& operands = at.operands;
  switch (at.op) {
    case Op::global_load_i32:
      registers.set_slot(operands[1].reg, globals_[operands[0].index]);
      return true;
    case Op::global_store_i32:
      globals_[operands[0].index] = registers.slot(operands[1].reg);
      return true;
    case Op::global_load_i64:
      registers.set_slot(operands[1].reg, globals_[operands[0].index]);
      registers.set_slot(static_cast<uint16_t>(operands[1].reg + 1), globals_[operands[0].index + 4]);
      return true;
    case Op::global_store_i64:
      globals_[operands[0].index] = registers.slot(operands[1].reg);
      globals_[operands[0].index + 4] = registers.slot(static_cast<uint16_t>(operands[1].reg + 1));
      return true;
    case Op::global_load_ref: {
      Ref& place = global_refs_[operands[0].index];
      registers.set_ref(operands[2].reg,
                        (operands[2].reg & vm::kMoveBit) != 0 ? std::exchange(place, nullptr) : place);
      return true;
    }
    case Op::global_store_ref:
      global_refs_[operands[0].index] = registers.ref(operands[2].reg);
      return true;
    case Op::global_load_indirect_ref:
    case Op::global_store_indirect_ref: {
      const auto index = registers.read32(operands[0].reg).constant();
      const bool is_load = at.op == Op::global_load_indirect_ref;
      const bool is_known =
          index && *index >= 0 && static_cast<uint64_t>(*index) < program_.module().global_refs();
      if (is_load) {
        registers.set_ref(operands[2].reg, is_known ? global_refs_[static_cast<uint32_t>(*index)]
                                                    : std::make_shared<Unknown>());
      } else {
        Ref stored = registers.ref(operands[2].reg);
        if (is_known) global_refs_[static_cast<uint32_t>(*index)] = std::move(stored);
      }
      return true;
    }
    case Op::global_load_indirect_i32:
    case Op::global_load_indirect_i64: {
      const auto index = registers.read32(operands[0].reg).constant();
      const bool is_wide = at.op == Op::global_load_indirect_i64;
      if (!index || *index < 0 || *index > UINT32_MAX - 8) {
        registers.write(is_wide ? Bank::i64 : Bank::i32, operands[1].reg, unknown(frame, at, "a global"));
        return true;
      }
      registers.set_slot(operands[1].reg, globals_[static_cast<uint32_t>(*index)]);
      if (is_wide)
        registers.set_slot(static_cast<uint16_t>(operands[1].reg + 1),
                           globals_[static_cast<uint32_t>(*index) + 4]);
      return true;
    }
    case Op::global_store_indirect_i32:
    case Op::global_store_indirect_i64: {
      const auto index = registers.read32(operands[0].reg).constant();
      if (!index || *index < 0 || *index > UINT32_MAX - 8) {
        // Any of them may have changed.
        for (auto& [offset, slot] : globals_) slot = {Slot::Form::unknown, 0, {}};
        return true;
      }
      globals_[static_cast<uint32_t>(*index)] = registers.slot(operands[1].reg);
      if (at.op == Op::global_store_indirect_i64)
        globals_[static_cast<uint32_t>(*index) + 4] =
            registers.slot(static_cast<uint16_t>(operands[1].reg + 1));
      return true;
    }
    default:
      return false;
  }
}

bool Machine::access_list(Frame& frame, const vm::Instruction& at) {
  Registers& registers = frame.registers;
  const auto& operands = at.operands;
  const auto element = [&]() -> Element* {
    const auto list = as<ListObject>(registers.peek(operands[0].reg));
    const auto index = registers.read32(operands[1].reg).constant();
    if (!list || !index || *index < 0 || static_cast<uint64_t>(*index) >= list->elements.size())
      return nullptr;
    return &list->elements[static_cast<size_t>(*index)];
  };
  switch (at.op) {
    case Op::list_alloc: {
      auto list = std::make_shared<ListObject>();
      program_.lists.push_back(list);
      registers.set_ref(operands[2].reg, std::move(list));
      return true;
    }
    case Op::list_reserve:
      return true;
    case Op::list_size: {
      const auto list = as<ListObject>(registers.peek(operands[0].reg));
      registers.write32(operands[1].reg, list ? Expression(static_cast<int64_t>(list->elements.size()))
                                              : unknown(frame, at, "the size of a list"));
      return true;
    }
    case Op::list_resize: {
      const auto list = as<ListObject>(registers.peek(operands[0].reg));
      const auto size = registers.read32(operands[1].reg).constant();
      if (list && size && *size >= 0 && static_cast<uint64_t>(*size) <= budget_.elements) {
        budget_.elements -= static_cast<uint64_t>(*size);
        list->elements.resize(static_cast<size_t>(*size));
      }
      return true;
    }
    case Op::list_get_i32:
    case Op::list_get_i64: {
      const Element* const found = element();
      const auto* number = found ? std::get_if<Expression>(&found->value) : nullptr;
      registers.write(at.op == Op::list_get_i64 ? Bank::i64 : Bank::i32, operands[2].reg,
                      number ? *number : unknown(frame, at, "an element of a list"));
      return true;
    }
    case Op::list_set_i32:
    case Op::list_set_i64:
      if (Element* const found = element())
        found->value = registers.read(at.op == Op::list_set_i64 ? Bank::i64 : Bank::i32, operands[2].reg);
      return true;
    case Op::list_get_ref: {
      Element* const found = element();
      Ref* const ref = found ? std::get_if<Ref>(&found->value) : nullptr;
      const bool takes = (operands[3].reg & vm::kMoveBit) != 0;
      registers.set_ref(operands[3].reg, !found ? std::make_shared<Unknown>()
                                         : !ref ? nullptr
                                                : (takes ? std::exchange(*ref, nullptr) : *ref));
      return true;
    }
    case Op::list_set_ref: {
      Element* const found = element();
      Ref stored = registers.ref(operands[2].reg);
      if (found) found->value = std::move(stored);
      return true;
    }
    default:
      return false;
  }
}

bool Machine::access_bytes(Frame& frame, const vm::Instruction& at) {
  Registers& registers = frame.registers;
  const auto& operands = at.operands;
  const std::string_view name = vm::info(at.op).mnemonic();
  if (!name.starts_with("buffer.")) return false;
  if (at.op == Op::buffer_alloc) {
    auto bytes = std::make_shared<BytesObject>();
    bytes->length = registers.read64(operands[0].reg);
    registers.set_ref(operands[2].reg, std::move(bytes));
    return true;
  }
  if (at.op == Op::buffer_clone) {
    auto bytes = std::make_shared<BytesObject>();
    bytes->length = registers.read64(operands[2].reg);
    registers.set_ref(operands[4].reg, std::move(bytes));
    return true;
  }
  const auto bytes = as<BytesObject>(registers.peek(operands[0].reg));
  if (at.op == Op::buffer_length) {
    registers.write64(operands[1].reg, bytes ? bytes->length : unknown(frame, at, "the length of a buffer"));
    return true;
  }
  if (vm::elements_of(at.op).access != vm::ElementAccess::load) return false;
  const Bank bank = vm::info(at.op).operands[2].bank;
  const auto index = registers.read64(operands[1].reg).constant();
  const std::string_view constant = program_.constant_text(registers.peek(operands[0].reg));
  if (bank == Bank::f32 || bank == Bank::f64) {
    registers.write_unknown(vm::is_wide(bank), operands[2].reg);
    return true;
  }
  const uint32_t size = vm::elements_of(at.op).bytes;
  if (!index || *index < 0 || static_cast<uint64_t>(*index) >= constant.size() / size) {
    registers.write(bank, operands[2].reg, unknown(frame, at, "an element of a buffer"));
    return true;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, constant.data() + static_cast<uint64_t>(*index) * size, size);
  const uint32_t unused = 64 - 8 * size;
  const auto value =
      name.ends_with(".u") ? static_cast<int64_t>(bits) : static_cast<int64_t>(bits << unused) >> unused;
  registers.write(bank, operands[2].reg, value);
  return true;
}

bool Machine::handle_refs(Frame& frame, const vm::Instruction& at) {
  Registers& registers = frame.registers;
  const auto& operands = at.operands;
  const auto release = [&](const vm::RegList& regs, bool always) {
    for (size_t i = 0; i < regs.size(); ++i)
      if ((regs[i] & vm::kRefBit) != 0 && (always || (regs[i] & vm::kMoveBit) != 0))
        registers.set_ref(regs[i], nullptr);
  };
  switch (at.op) {
    case Op::const_ref_zero:
      registers.set_ref(operands[0].reg, nullptr);
      return true;
    case Op::const_ref_rodata: {
      auto bytes = std::make_shared<BytesObject>();
      bytes->constant = operands[0].index;
      bytes->length = static_cast<int64_t>(program_.view.segment(operands[0].index).size());
      registers.set_ref(operands[1].reg, std::move(bytes));
      return true;
    }
    case Op::select_ref: {
      const auto condition = registers.read32(operands[0].reg).constant();
      Ref first = registers.ref(operands[2].reg);
      Ref second = registers.ref(operands[3].reg);
      if (condition) {
        registers.set_ref(operands[4].reg, *condition != 0 ? first : second);
      } else {
        // Not known which: the first that is not null.
        registers.set_ref(operands[4].reg, first ? first : second);
        program_.notes.insert("the object that is selected at " + program_.where({frame.function, at.pc}) +
                              " depends on data; the first one was followed");
      }
      return true;
    }
    case Op::switch_ref: {
      const auto index = registers.read32(operands[0].reg).constant();
      Ref chosen = registers.ref(operands[2].reg);
      const vm::RegList values = operands[3].regs;
      for (size_t i = 0; i < values.size(); ++i) {
        Ref value = registers.ref(values[i]);
        if (index && *index == static_cast<int64_t>(i)) chosen = std::move(value);
      }
      registers.set_ref(operands[4].reg, std::move(chosen));
      return true;
    }
    case Op::switch_i32:
    case Op::switch_i64: {
      const Bank bank = at.op == Op::switch_i64 ? Bank::i64 : Bank::i32;
      const auto index = registers.read32(operands[0].reg).constant();
      const vm::RegList values = operands[2].regs;
      registers.write(bank, operands[3].reg,
                      !index ? unknown(frame, at, "a number")
                      : *index >= 0 && static_cast<uint64_t>(*index) < values.size()
                          ? registers.read(bank, values[static_cast<size_t>(*index)])
                          : registers.read(bank, operands[1].reg));
      return true;
    }
    case Op::cmp_eq_ref:
    case Op::cmp_ne_ref: {
      const bool is_same = registers.peek(operands[0].reg) == registers.peek(operands[1].reg);
      registers.write32(operands[2].reg, is_same == (at.op == Op::cmp_eq_ref) ? 1 : 0);
      return true;
    }
    case Op::cmp_nz_ref:
      registers.write32(operands[1].reg, registers.peek(operands[0].reg) ? 1 : 0);
      return true;
    case Op::cast_any_ref: {
      Ref moved = registers.ref(operands[0].reg);
      registers.set_ref(operands[2].reg, std::move(moved));
      return true;
    }
    case Op::assign_ref: {
      Ref moved = registers.ref(operands[0].reg);
      registers.set_ref(operands[1].reg, std::move(moved));
      return true;
    }
    case Op::discard_refs:
      release(operands[0].regs, true);
      return true;
    case Op::trace:
    case Op::print:
      release(operands[1].regs, false);
      return true;
    case Op::import_resolved:
      registers.write32(operands[1].reg, 1);
      return true;
    default:
      return false;
  }
}

}  // namespace halyard::analysis
