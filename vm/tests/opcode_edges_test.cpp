// Every opcode of the table in every version that has it, with edge cases of its operands and with every MOVE
// bit: the machine behaves like the reference machine. Also the loading rules of the table: the first version
// of an opcode, its requirements, and that it must not be truncated.
#include "opcode_edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "differential.h"
#include "module_builder.h"
#include "vm/compile/loaded_module.h"

namespace halyard::vm::test {
namespace {

// ---- values

const std::vector<uint64_t>& integers_32() {
  static const std::vector<uint64_t> values = [] {
    std::vector<uint64_t> all = {31,         32,         33,         63,        64,     0x7F,
                                 0x80,       0xFF,       0x7FFF,     0x8000,    0xFFFF, 0x7FFFFFFF,
                                 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF};
    for (uint64_t small = 0; small < 20; ++small) all.push_back(small);
    return all;
  }();
  return values;
}
const std::vector<uint64_t>& integers_64() {
  static const std::vector<uint64_t> values = {0,
                                               1,
                                               2,
                                               3,
                                               4,
                                               7,
                                               8,
                                               9,
                                               15,
                                               16,
                                               17,
                                               31,
                                               32,
                                               63,
                                               64,
                                               65,
                                               0x7FFFFFFF,
                                               0x80000000,
                                               0xFFFFFFFF,
                                               0x100000000,
                                               uint64_t{1} << 61,
                                               uint64_t{1} << 62,
                                               0x7FFFFFFFFFFFFFFF,
                                               0x8000000000000000,
                                               0x8000000000000001,
                                               0xFFFFFFFFFFFFFFFE,
                                               0xFFFFFFFFFFFFFFFF};
  return values;
}
template <typename Float, typename Bits>
std::vector<uint64_t> floats() {
  std::vector<uint64_t> bits;
  for (const double value : {0.0,          1.0,
                             0.5,          0.4,
                             1.5,          2.5,
                             3.5,          0.49999997,
                             100.25,       16777217.0,
                             2147483647.0, 2147483648.0,
                             4294967040.0, 4294967295.0,
                             4294967296.0, 9.2233720368547758e18,
                             1e19,         1.8446744073709552e19,
                             1e30,         1e-40,
                             3e38}) {
    bits.push_back(std::bit_cast<Bits>(static_cast<Float>(value)));
    bits.push_back(std::bit_cast<Bits>(static_cast<Float>(-value)));
  }
  bits.push_back(std::bit_cast<Bits>(std::numeric_limits<Float>::infinity()));
  bits.push_back(std::bit_cast<Bits>(-std::numeric_limits<Float>::infinity()));
  bits.push_back(std::bit_cast<Bits>(std::numeric_limits<Float>::quiet_NaN()));
  bits.push_back(std::bit_cast<Bits>(std::numeric_limits<Float>::denorm_min()));
  bits.push_back(std::bit_cast<Bits>(std::numeric_limits<Float>::max()));
  return bits;
}

// Kinds of refs, with objects of each kind: null, mutable and read-only buffers, lists.
const std::vector<ProgramArgument>& objects() {
  static const std::vector<ProgramArgument> all = {{Kind::any, 0},   {Kind::buffer, 1}, {Kind::buffer, 3},
                                                   {Kind::probe, 1}, {Kind::values, 1}, {Kind::values, 2},
                                                   {Kind::leaf, 1},  {Kind::outer, 1}};
  return all;
}

// The number of choices for an argument, and one of them. The other half of a 32-bit operand's pair is noise
// that must not change.
size_t choice_count(Bank bank) {
  switch (bank) {
    case Bank::i32:
      return integers_32().size();
    case Bank::i64:
      return integers_64().size();
    case Bank::f32:
    case Bank::f64:
      return floats<float, uint32_t>().size();
    default:
      return objects().size();
  }
}
ProgramArgument chosen(Bank bank, size_t index) {
  static const std::vector<uint64_t> narrow_floats = floats<float, uint32_t>();
  static const std::vector<uint64_t> wide_floats = floats<double, uint64_t>();
  constexpr uint64_t kNoise = 0xA5A5A5A500000000;
  switch (bank) {
    case Bank::i32:
      return {Kind::i64, kNoise | integers_32()[index]};
    case Bank::i64:
      return {Kind::i64, integers_64()[index]};
    case Bank::f32:
      return {Kind::i64, kNoise | narrow_floats[index]};
    case Bank::f64:
      return {Kind::i64, wide_floats[index]};
    default:
      return objects()[index];
  }
}

// The first arguments are the state of every program: two values, a buffer, a list and a probe.
constexpr size_t kStateArguments = 5;
std::vector<ProgramArgument> state(Choices& choices) {
  return {{Kind::i64, choices.bits(8)},
          {Kind::i64, choices.bits(8)},
          {Kind::buffer, choices.below(4)},
          {choices.one_of({Kind::values, Kind::leaf}), choices.below(4)},
          {Kind::probe, choices.below(3)}};
}

// ---- running

struct Tally {
  uint64_t calls = 0;
  uint64_t not_compared = 0;
  std::array<uint64_t, kOpCount> executed = {};
  std::array<std::set<int>, kOpCount> codes;  // of the instructions' results
};

constexpr size_t kCallsOfAProgram = 24;

// Calls the program with all combinations of its operands, or with `most` random ones.
void run(Op op, EdgeProgram& edge, size_t most, Choices& choices, Tally& tally) {
  size_t combinations = 1;
  for (size_t i = kStateArguments; i < edge.arguments.size(); ++i)
    combinations = std::min<size_t>(combinations * choice_count(edge.arguments[i]), 1u << 20);
  const bool all = combinations <= most;
  const size_t count = all ? combinations : most;
  for (size_t first = 0; first < count; first += kCallsOfAProgram) {
    edge.program.calls.clear();
    for (size_t call = first; call < std::min(count, first + kCallsOfAProgram); ++call) {
      std::vector<ProgramArgument> arguments = state(choices);
      size_t rest = call;
      for (size_t i = kStateArguments; i < edge.arguments.size(); ++i) {
        const size_t among = choice_count(edge.arguments[i]);
        arguments.push_back(
            chosen(edge.arguments[i], all ? rest % among : choices.below(static_cast<uint32_t>(among))));
        rest /= among;
      }
      edge.program.calls.push_back({.arguments = std::move(arguments)});
    }
    edge.program.fuse = !choices.one_in(4);
    // After a call that cannot be compared, later calls cannot either, so they are run again separately.
    for (size_t from = 0; from < edge.program.calls.size();) {
      Program part = {.modules = edge.program.modules, .calls = {}, .fuse = edge.program.fuse};
      part.calls.assign(edge.program.calls.begin() + static_cast<ptrdiff_t>(from), edge.program.calls.end());
      const Comparison comparison = compare_machines(part);
      ASSERT_EQ(comparison.difference, "") << describe(part);
      size_t compared = 0;
      for (size_t code = 0; code < comparison.codes.size(); ++code) {
        compared += comparison.codes[code];
        if (comparison.codes[code]) tally.codes[static_cast<size_t>(op)].insert(static_cast<int>(code));
      }
      for (size_t i = 0; i < kOpCount; ++i) tally.executed[i] += comparison.executed[i];
      tally.not_compared += !comparison.not_compared.empty();
      from += compared + !comparison.not_compared.empty();
    }
    tally.calls += edge.program.calls.size();
  }
}

// All shapes that an opcode distinguishes.
std::vector<EdgeShape> shapes_of(Op op, uint32_t version) {
  std::vector<EdgeShape> shapes;
  const OpInfo& opcode = info(op);
  const auto has = [&](OperandKind kind) {
    return std::any_of(opcode.operands.begin(), opcode.operands.begin() + opcode.operand_count,
                       [&](const Operand& operand) { return operand.kind == kind; });
  };
  std::vector<uint32_t> list_sizes = {3};
  if (has(OperandKind::reg_list) || has(OperandKind::cases)) list_sizes = {0, 1, 3};
  std::vector<uint64_t> immediates = {0};
  if (has(OperandKind::immediate))
    immediates = {0, 1, 0xFFFFFFFFFFFFFFFF, 0x7FF8000000000001, 0x123456789ABCDEF0, 0x80000000};
  for (uint32_t ordinal = 0; ordinal < ordinal_count(op); ++ordinal) {
    for (const uint32_t list_size : list_sizes) {
      for (const uint64_t immediate : immediates) {
        EdgeShape shape = {.list_size = list_size, .ordinal = ordinal, .immediate = immediate};
        const auto edge = edge_program(op, version, shape);
        if (!edge) continue;
        const uint32_t refs = std::min(edge->ref_fields, 4u);
        for (shape.moves = 0; shape.moves < 1u << refs; ++shape.moves) {
          shape.aliased = false;
          shapes.push_back(shape);
          if (op == Op::list_set_ref) continue;  // a list that contains itself would never be released
          shape.aliased = true;
          shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

class OpcodeEdges : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Bytecode, OpcodeEdges, testing::Values(15, 16, 17));

TEST_P(OpcodeEdges, TheMachineDoesWhatTheReferenceDoes) {
  const uint32_t version = GetParam();
  Tally tally;
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    SCOPED_TRACE(info(op).mnemonic());
    const std::vector<EdgeShape> shapes = shapes_of(op, version);
    Choices choices(i);
    for (const EdgeShape& shape : shapes) {
      auto edge = edge_program(op, version, shape);
      if (!edge) continue;
      // With few shapes, many values for each.
      run(op, *edge, std::max<size_t>(24, 900 / shapes.size()), choices, tally);
      if (HasFatalFailure()) return;
    }
  }
  for (size_t i = 0; i < kOpCount; ++i)
    EXPECT_EQ(tally.executed[i] > 0, kOps[i].since <= version) << kOps[i].mnemonic();
  std::cout << tally.calls << " calls, " << tally.not_compared << " not compared\n";
  EXPECT_LT(tally.not_compared * 50, tally.calls);
  // Every kind of failure has occurred.
  const auto ended = [&](Op op, Code code) {
    EXPECT_TRUE(tally.codes[static_cast<size_t>(op)].contains(static_cast<int>(code)))
        << info(op).mnemonic() << " never ended with " << name(code);
  };
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).since > version || (info(op).flags & (MARKER | PREFIX))) continue;
    const std::string_view mnemonic = info(op).mnemonic();
    ended(op, Code::OK);
    if (mnemonic.starts_with("div.i") || mnemonic.starts_with("rem.i")) ended(op, Code::INVALID_ARGUMENT);
    if (mnemonic.starts_with("buffer.")) ended(op, Code::INVALID_ARGUMENT);
    if (mnemonic.starts_with("buffer.") && op != Op::buffer_length)
      ended(op, op == Op::buffer_alloc ? Code::RESOURCE_EXHAUSTED : Code::OUT_OF_RANGE);
    if (mnemonic.starts_with("buffer.store") || mnemonic.starts_with("buffer.fill") || op == Op::buffer_copy)
      ended(op, Code::PERMISSION_DENIED);
    if (mnemonic.starts_with("list.") && op != Op::list_alloc) ended(op, Code::INVALID_ARGUMENT);
    if (mnemonic.starts_with("list.get") || mnemonic.starts_with("list.set")) {
      ended(op, Code::OUT_OF_RANGE);
      ended(op, Code::FAILED_PRECONDITION);
    }
    if (mnemonic.find("indirect") != mnemonic.npos) ended(op, Code::OUT_OF_RANGE);
    if (mnemonic.starts_with("global.") && mnemonic.ends_with("ref")) ended(op, Code::INVALID_ARGUMENT);
  }
  for (const Op op : {Op::list_alloc, Op::list_reserve, Op::list_resize}) ended(op, Code::RESOURCE_EXHAUSTED);
  for (const Op op : {Op::select_ref, Op::switch_ref, Op::cast_any_ref}) ended(op, Code::INVALID_ARGUMENT);
  for (int code = 1; code <= 18; ++code) {
    if (code != 17) ended(Op::fail, static_cast<Code>(code));
  }
  ended(Op::call, Code::NOT_FOUND);
  ended(Op::call, Code::UNAVAILABLE);
  ended(Op::call, Code::UNIMPLEMENTED);  // a deferred import whose result is needed
}

// ---- loading

Result<Ref<LoadedModule>> load_eagerly(const ModuleParts& parts) {
  return LoadedModule::load(Bytes::own(parts.build()), known_types(), {.verify_eagerly = true});
}

// Programs with all opcodes in version 17, and in the first version that has them.
template <typename Each>
void for_each_program(Each each) {
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const auto edge = edge_program(
        op, 17,
        {.ordinal = op == Op::call_variadic || op == Op::import_resolved || op == Op::call_variadic_yieldable
                        ? 1u
                        : 0u});
    if (!edge) {
      EXPECT_TRUE(info(op).flags & (MARKER | PREFIX)) << info(op).mnemonic();
      continue;
    }
    SCOPED_TRACE(info(op).mnemonic());
    each(op, *edge);
  }
}

TEST(OpcodeLoads, FromItsVersionOn) {
  for_each_program([](Op op, const EdgeProgram& edge) {
    ModuleParts parts = edge.program.modules[0];
    for (const uint32_t version : {15u, 16u, 17u}) {
      parts.bytecode_version = version << 16;
      if (version >= info(op).since) {
        EXPECT_OK(load_eagerly(parts));
      } else {
        EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("exists since bytecode {}", info(op).since),
                     load_eagerly(parts));
      }
    }
  });
}

TEST(OpcodeLoads, WithTheFeatureOfItsSet) {
  for_each_program([](Op op, const EdgeProgram& edge) {
    ModuleParts parts = edge.program.modules[0];
    for (const uint32_t features : {0u, 1u, 2u, 3u}) {
      parts.functions[0].features = features;
      uint32_t needed = 0;
      if (info(op).set == OpSet::F32) needed = kFeatureF32;
      if (info(op).set == OpSet::F64) needed = kFeatureF64;
      if ((features & needed) == needed) {
        EXPECT_OK(load_eagerly(parts));
      } else {
        EXPECT_FAILS(INVALID_ARGUMENT, "requirements of the function lack", load_eagerly(parts));
      }
    }
  });
}

// One byte after the last instruction is ignored, so a cut after the first byte leaves no instruction.
TEST(OpcodeLoads, NotCutAnywhere) {
  for_each_program([](Op op, const EdgeProgram& edge) {
    ModuleParts parts = edge.program.modules[0];
    const std::vector<uint8_t> whole = parts.functions[0].code;
    for (uint32_t end = edge.start + 2; end < edge.end; ++end) {
      parts.functions[0].code.assign(whole.begin(), whole.begin() + end);
      EXPECT_FAILS(OUT_OF_RANGE, info(op).mnemonic().size() ? "past the end" : "", load_eagerly(parts))
          << end - edge.start << " of " << edge.end - edge.start;
    }
  });
}

// Needed by the next test: every kind of operand that can refer to an entity has fields.
TEST(OpcodeLoads, EveryOperandHasItsFields) {
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const OpInfo& opcode = info(op);
    if (opcode.flags & (PREFIX | MARKER)) continue;
    std::map<OperandKind, ptrdiff_t> wanted;
    for (const Operand& operand : std::span(opcode.operands).first(opcode.operand_count)) {
      if (operand.kind == OperandKind::cases) {
        ++wanted[OperandKind::block];
        ++wanted[OperandKind::remap];
      } else if (operand.kind != OperandKind::immediate && operand.kind != OperandKind::string &&
                 operand.kind != OperandKind::u16_list) {
        ++wanted[operand.kind];
      }
    }
    // Not every callee has arguments or results.
    std::map<OperandKind, ptrdiff_t> most;
    for (uint32_t ordinal = 0; ordinal < ordinal_count(op); ++ordinal) {
      const auto edge = edge_program(op, 17, {.ordinal = ordinal});
      if (!edge) continue;
      for (const auto& [kind, count] : wanted)
        most[kind] =
            std::max<ptrdiff_t>(most[kind], std::ranges::count(edge->fields, kind, &EdgeField::kind));
    }
    for (const auto& [kind, count] : wanted)
      EXPECT_GE(most[kind], count) << opcode.mnemonic() << ", operands of kind " << static_cast<int>(kind);
  }
}

// Corrupts one field after another in every possible way.
TEST(OpcodeLoads, NotWithAFieldThatIsWrong) {
  size_t wrong = 0;
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    for (uint32_t ordinal = 0; ordinal < ordinal_count(op); ++ordinal) {
      if (info(op).operand_count && info(op).operands[0].kind != OperandKind::func && ordinal > 0) break;
      const auto edge = edge_program(op, 17, {.ordinal = ordinal});
      if (!edge) continue;
      ModuleParts parts = edge->program.modules[0];
      std::vector<uint8_t>& code = parts.functions[0].code;
      const std::vector<uint8_t> good = code;
      const auto refused = [&](const EdgeField& field, uint32_t value, size_t size, Code status) {
        ++wrong;
        code = good;
        std::memcpy(code.data() + field.offset, &value, size);
        EXPECT_TRUE(fails_with(load_eagerly(parts), status, fmt::format("at main.main+{:08X}", edge->start)))
            << info(op).mnemonic() << " byte " << field.offset - edge->start << " is " << value;
      };
      const auto slots = std::bit_ceil(static_cast<uint32_t>(parts.functions[0].values));
      const auto refs = std::bit_ceil(static_cast<uint32_t>(parts.functions[0].refs));
      for (const EdgeField& field : edge->fields) {
        const bool wide = field.bank == Bank::i64 || field.bank == Bank::f64;
        const bool is_ref = field.bank == Bank::ref;
        switch (field.kind) {
          case OperandKind::reg:
          case OperandKind::reg_list:
          case OperandKind::remap:
            if (is_ref || field.bank == Bank::any) {
              refused(field, kRefBit | refs, 2, Code::OUT_OF_RANGE);
              refused(field, kRefBit | kMoveBit | kRefOrdinalMask, 2, Code::OUT_OF_RANGE);
            }
            if (!is_ref) {
              refused(field, slots, 2, Code::OUT_OF_RANGE);
              refused(field, 0x7FFE, 2, Code::OUT_OF_RANGE);
            }
            if (field.bank != Bank::any) refused(field, is_ref ? 0 : kRefBit, 2, Code::INVALID_ARGUMENT);
            if (wide) refused(field, 1, 2, Code::INVALID_ARGUMENT);
            break;
          case OperandKind::global_bytes:
            refused(field, static_cast<uint32_t>(parts.global_bytes) - 3, 4, Code::OUT_OF_RANGE);
            refused(field, 0xFFFFFFFC, 4, Code::OUT_OF_RANGE);
            break;
          case OperandKind::global_ref:
            refused(field, static_cast<uint32_t>(parts.global_refs), 4, Code::OUT_OF_RANGE);
            refused(field, 0xFFFFFFFF, 4, Code::OUT_OF_RANGE);
            break;
          case OperandKind::type:
            refused(field, static_cast<uint32_t>(parts.types.size()), 4, Code::OUT_OF_RANGE);
            refused(field, 0xFFFFFFFF, 4, Code::OUT_OF_RANGE);
            break;
          case OperandKind::rodata:
            refused(field, static_cast<uint32_t>(parts.rodata.size()), 4, Code::OUT_OF_RANGE);
            refused(field, 0xFFFFFFFF, 4, Code::OUT_OF_RANGE);
            break;
          case OperandKind::func:
            refused(field, kImportBit | static_cast<uint32_t>(parts.imports.size()), 4,
                    Code::INVALID_ARGUMENT);
            refused(field, static_cast<uint32_t>(parts.functions.size()), 4, Code::INVALID_ARGUMENT);
            refused(field, 0xFFFFFFFF, 4, Code::INVALID_ARGUMENT);
            break;
          case OperandKind::block:
            refused(field, 0x00FFFFFF, 4, Code::OUT_OF_RANGE);
            refused(field, 0xFFFFFFFF, 4, Code::OUT_OF_RANGE);
            refused(field, static_cast<uint32_t>(code.size()), 4, Code::INVALID_ARGUMENT);
            break;
          default:
            ADD_FAILURE() << "a field of an unknown kind";
        }
      }
    }
  }
  EXPECT_GT(wrong, 2500u);
}

// The MOVE bit is accepted on every ref field, whether or not it has an effect.
TEST(OpcodeLoads, WithTheMoveBitAnywhere) {
  for (size_t i = 0; i < kOpCount; ++i) {
    for (const uint32_t version : {15u, 16u, 17u}) {
      const Op op = static_cast<Op>(i);
      for (uint32_t ordinal = 0; ordinal < ordinal_count(op); ++ordinal) {
        const auto edge = edge_program(op, version, {.moves = 0xFFFFFFFF, .ordinal = ordinal});
        if (!edge) continue;
        EXPECT_OK(load_eagerly(edge->program.modules[0])) << info(op).mnemonic();
      }
    }
  }
}

}  // namespace
}  // namespace halyard::vm::test
