// Creates programs with one instruction each.
#include "opcode_edges.h"

#include <algorithm>

#include "vm/module/bytecode_module.h"

namespace halyard::vm::test {

namespace {

constexpr int kGlobalBytes = 16;
constexpr int kGlobalRefs = 3;  // initially a buffer, a list and a probe
constexpr uint32_t kRodata = 2;

// The functions that the calls refer to: internal functions, then imports.
struct EdgeCallee {
  const char* name;  // of an import
  std::string_view arguments;
  std::string_view results;
  std::string_view span = {};
};
constexpr EdgeCallee kCallees[] = {
    {nullptr, "iIr", "rIi"},      {"native.mix", "iIfFr", "FrfIi"}, {"native.swap", "rr", "rr"},
    {"native.later", "i", "i"},   {"native.pause", "i", ""},        {"native.refuse", "i", ""},
    {"native.missing", "i", "i"}, {"native.sum", "i", "I", "rI"},
};
constexpr uint32_t kFirstImport = 1;

class EdgeWriter {
 public:
  EdgeWriter(Op op, uint32_t version, const EdgeShape& shape) : op_(op), version_(version), shape_(shape) {}

  std::optional<EdgeProgram> write() {
    const OpInfo& opcode = info(op_);
    if ((opcode.flags & (MARKER | PREFIX)) || opcode.since > version_) return {};
    // The initial state of every program: two values and the ref globals.
    state_[0] = value_register(Bank::i64);
    state_[1] = value_register(Bank::i64);
    for (uint16_t& ref : state_refs_) ref = ref_register();
    code_.block();
    code_.op(Op::global_store_i64).u32(0).u16(state_[0]);
    code_.op(Op::global_store_i64).u32(8).u16(state_[1]);
    constexpr uint32_t kTypes[] = {kTypeBuffer, kTypeListOfAny, kTypeProbe};
    for (uint32_t i = 0; i < kGlobalRefs; ++i)
      code_.op(Op::global_store_ref).u32(i).u32(kTypes[i]).u16(state_refs_[i]);
    result_.start = code_.pc();
    if (op_ == Op::return_) {
      return_everything(shape_.moves);
      std::vector<Bank> banks(values_, Bank::i64);
      banks.insert(banks.end(), refs_ + 1, Bank::ref);
      banks.push_back(Bank::i32);  // the marker
      fields_of_list(banks);
      result_.ref_fields = refs_;
      result_.end = code_.pc();
      return finish();
    }
    if (!instruction()) return {};
    result_.end = code_.pc();
    if (!opcode.terminator()) return_everything(0);
    if (op_ == Op::fail) add_target();  // the continuation
    for (const uint32_t at : targets_) {
      code_.patch_u32(at, code_.pc());
      add_target();
    }
    return finish();
  }

 private:
  uint16_t value_register(Bank bank) {
    result_.arguments.push_back(bank);
    return static_cast<uint16_t>(2 * values_++);
  }
  uint16_t ref_register() {
    result_.arguments.push_back(Bank::ref);
    return static_cast<uint16_t>(kRefBit | refs_++);
  }

  void field(OperandKind kind, Bank bank) { result_.fields.push_back({code_.pc(), kind, bank}); }
  // Writes the fields of the entries of the list that was just written, with their `banks`.
  void fields_of_list(const std::vector<Bank>& banks) {
    for (size_t i = 0; i < banks.size(); ++i) {
      const auto from_end = static_cast<uint32_t>(2 * (banks.size() - i));
      result_.fields.push_back({code_.pc() - from_end, OperandKind::reg_list, banks[i]});
    }
  }

  // A separate register for an operand, or the register of the first operand of its kind.
  uint16_t operand(Bank bank) {
    if (bank != Bank::ref) {
      if (!shape_.aliased || !shared_value_) shared_value_ = value_register(bank);
      return *shared_value_;
    }
    if (!shape_.aliased || !shared_ref_) shared_ref_ = ref_register();
    const bool moves = shape_.moves >> std::min(result_.ref_fields++, 31u) & 1;
    return moves ? *shared_ref_ | kMoveBit : *shared_ref_;
  }
  uint16_t moved_by_shape(uint16_t ref) {
    return shape_.moves >> std::min(result_.ref_fields++, 31u) & 1 ? ref | kMoveBit : ref;
  }

  bool instruction() {
    const OpInfo& opcode = info(op_);
    code_.op(op_);
    const EdgeCallee* callee = nullptr;
    for (size_t i = 0; i < opcode.operand_count; ++i) {
      const Operand& each = opcode.operands[i];
      switch (each.kind) {
        case OperandKind::global_bytes:
        case OperandKind::global_ref:
        case OperandKind::type:
        case OperandKind::rodata:
        case OperandKind::func:
          field(each.kind, Bank::none);
          break;
        default:
          break;
      }
      switch (each.kind) {
        case OperandKind::reg:
          field(each.kind, each.bank);
          code_.u16(operand(each.bank));
          break;
        case OperandKind::reg_list:
          if (callee) {
            call_list(each.writes ? callee->results : callee->arguments, each.writes ? "" : callee->span);
          } else {
            list(each.bank);
          }
          break;
        case OperandKind::immediate:
          is_wide(each.bank) ? code_.u64(shape_.immediate)
                             : code_.u32(static_cast<uint32_t>(shape_.immediate));
          break;
        case OperandKind::global_bytes:
          if (shape_.ordinal + (is_wide(opcode.operands[1].bank) ? 8 : 4) > kGlobalBytes) return false;
          code_.u32(shape_.ordinal);
          break;
        case OperandKind::global_ref:
          code_.u32(shape_.ordinal % kGlobalRefs);
          break;
        case OperandKind::type:
          code_.u32(shape_.ordinal /
                    (i > 0 && opcode.operands[0].kind == OperandKind::global_ref ? kGlobalRefs : 1) %
                    kTypeCount);
          break;
        case OperandKind::rodata:
          code_.u32(shape_.ordinal % kRodata);
          break;
        case OperandKind::func:
          callee = &kCallees[shape_.ordinal % std::size(kCallees)];
          if (!may_call(*callee)) return false;
          code_.u32(callee->name ? kImportBit | static_cast<uint32_t>(callee - kCallees - kFirstImport) : 1);
          break;
        case OperandKind::string:
          code_.string("edge");
          break;
        case OperandKind::u16_list: {
          std::vector<uint16_t> segments(callee->arguments.size(), 0xFFFF);
          if (!callee->span.empty()) segments.push_back(static_cast<uint16_t>(shape_.list_size));
          code_.list(segments);
          break;
        }
        case OperandKind::block:
          target();
          break;
        case OperandKind::remap:
          remap();
          break;
        case OperandKind::cases:
          code_.u16(static_cast<uint16_t>(shape_.list_size));
          for (uint32_t n = 0; n < shape_.list_size; ++n) {
            target();
            remap();
          }
          break;
      }
    }
    return true;
  }

  bool may_call(const EdgeCallee& callee) const {
    if (op_ == Op::import_resolved) return callee.name;
    // Native functions access registers in place, so a moved register is not named twice.
    const bool several_refs = callee.arguments == "rr" || callee.span.find('r') != callee.span.npos;
    if (shape_.aliased && shape_.moves && several_refs) return false;
    const bool variadic = op_ == Op::call_variadic || op_ == Op::call_variadic_yieldable;
    return variadic ? callee.name != nullptr : callee.span.empty();
  }
  void list(Bank bank) {
    std::vector<uint16_t> entries;
    for (uint32_t i = 0; i < shape_.list_size; ++i) {
      if (bank != Bank::any) {
        entries.push_back(operand(bank));
      } else {  // those with a value and with a ref
        entries.push_back(operand(i % 2 == 0 ? Bank::ref : Bank::i32));
      }
    }
    code_.list(entries);
    fields_of_list(std::vector<Bank>(entries.size(), bank));
  }
  void call_list(std::string_view types, std::string_view span) {
    std::string flat(types);
    for (uint32_t i = 0; i < shape_.list_size && !span.empty(); ++i) flat += span;
    std::vector<uint16_t> entries;
    std::vector<Bank> banks;
    for (const char type : flat) {
      banks.push_back(type == 'r'   ? Bank::ref
                      : type == 'I' ? Bank::i64
                      : type == 'F' ? Bank::f64
                      : type == 'f' ? Bank::f32
                                    : Bank::i32);
      entries.push_back(operand(banks.back()));
    }
    code_.list(entries);
    fields_of_list(banks);
  }

  void target() {
    field(OperandKind::block, Bank::none);
    targets_.push_back(code_.pc());
    code_.u32(0);
  }
  // Swapped values, halves of them, refs.
  void remap() {
    using Pair = std::pair<uint16_t, uint16_t>;
    const uint16_t a = state_[0];
    const uint16_t b = state_[1];
    std::vector<Pair> moves = {{a, b}, {b, a}, {b + 1, a + 1}, {a, a}};
    moves.push_back({moved_by_shape(state_refs_[0]), state_refs_[1]});
    moves.push_back({moved_by_shape(state_refs_[2]), state_refs_[2]});
    moves.push_back({moved_by_shape(state_refs_[1]), static_cast<uint16_t>(state_refs_[2] | kMoveBit)});
    code_.remap(moves);
    for (size_t i = 0; i < 2 * moves.size(); ++i) {
      const auto from_end = static_cast<uint32_t>(2 * (2 * moves.size() - i));
      const bool is_ref = (i % 2 ? moves[i / 2].second : moves[i / 2].first) & kRefBit;
      result_.fields.push_back({code_.pc() - from_end, OperandKind::remap, is_ref ? Bank::ref : Bank::i32});
    }
  }
  // Adds a block that records that it was reached.
  void add_target() {
    ++blocks_;
    code_.block();
    code_.op(Op::const_i32).u32(0xB10C0000u + static_cast<uint32_t>(blocks_)).u16(marker());
    return_everything(0);
  }
  uint16_t marker() const { return kMarker; }

  void return_everything(uint32_t moves) {
    std::vector<uint16_t> list;
    std::string results;
    for (uint32_t i = 0; i < values_; ++i) {
      list.push_back(static_cast<uint16_t>(2 * i));
      results += 'I';
    }
    for (uint32_t i = 0; i < refs_; ++i) {
      list.push_back(static_cast<uint16_t>(kRefBit | (moves >> i & 1 ? kMoveBit : 0) | i));
      results += 'r';
    }
    list.push_back(kRefBit);  // repeated
    list.push_back(marker());
    code_.op(Op::return_).list(list);
    results_ = results + "ri";
  }

  std::optional<EdgeProgram> finish() {
    ModuleParts parts;
    parts.name = "main";
    parts.bytecode_version = version_ << 16;
    parts.types = module_types();
    parts.global_bytes = kGlobalBytes;
    parts.global_refs = kGlobalRefs;
    parts.rodata = {{.data = {}}, {.data = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}};
    std::string arguments;
    for (const Bank bank : result_.arguments) arguments += bank == Bank::ref ? 'r' : 'I';
    parts.functions.push_back({.code = code_.bytes(),
                               .convention = "0" + arguments + "_" + results_,
                               .values = kMarker + 1,
                               .refs = static_cast<int>(refs_),
                               .blocks = blocks_,
                               .features = kFeatureF32 | kFeatureF64});
    parts.functions.push_back(
        {.code = CodeBuilder().block().op(Op::add_i64, {2, 2, 2}).ret({moved(0), 2, 0}).bytes(),
         .convention = "0iIr_rIi",
         .values = 4,
         .refs = 1});
    for (const EdgeCallee& callee : kCallees) {
      if (!callee.name) continue;
      const std::string span = callee.span.empty() ? "" : "C" + std::string(callee.span) + "D";
      const std::string results(callee.results.empty() ? "v" : callee.results);
      parts.imports.push_back({.name = callee.name,
                               .convention = "0" + std::string(callee.arguments) + span + "_" + results,
                               .flags = callee.name == std::string_view("native.missing") ? 2u : 1u});
    }
    parts.exports.emplace_back("main", 0);
    result_.program.modules.push_back(std::move(parts));
    return std::move(result_);
  }

  static constexpr uint16_t kMarker = 60;

  const Op op_;
  const uint32_t version_;
  const EdgeShape shape_;
  EdgeProgram result_;
  CodeBuilder code_;
  std::string results_;
  uint32_t values_ = 0;  // pairs
  uint32_t refs_ = 0;
  int blocks_ = 1;
  uint16_t state_[2] = {};
  uint16_t state_refs_[kGlobalRefs] = {};
  std::optional<uint16_t> shared_value_;
  std::optional<uint16_t> shared_ref_;
  std::vector<uint32_t> targets_;  // pcs of the targets
};

}  // namespace

std::optional<EdgeProgram> edge_program(Op op, uint32_t version, const EdgeShape& shape) {
  return EdgeWriter(op, version, shape).write();
}

uint32_t ordinal_count(Op op) {
  uint32_t count = 1;
  const OpInfo& opcode = info(op);
  for (size_t i = 0; i < opcode.operand_count; ++i) {
    switch (opcode.operands[i].kind) {
      case OperandKind::global_bytes:
        return kGlobalBytes;
      case OperandKind::global_ref:
        count *= kGlobalRefs;
        break;
      case OperandKind::type:
        count *= kTypeCount;
        break;
      case OperandKind::rodata:
        count *= kRodata;
        break;
      case OperandKind::func:
        return std::size(kCallees);
      default:
        break;
    }
  }
  return count;
}

}  // namespace halyard::vm::test
