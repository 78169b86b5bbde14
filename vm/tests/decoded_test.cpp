// Compares decoded code with kept text: which instructions are fused, which constants and moves need no
// instruction, how frames are laid out. Without this, a lost optimization would be seen only in benchmarks.
//
// decoded/NAME.txt has a program, a line of dashes, and each function as it is decoded. A second comment
// line may have options: "version=15", "fuse=no", "entries=calls", "entries=loops", "tiers".
// HALYARD_WRITE_DECODED=1 writes the texts anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fixtures.h"
#include "machine_testing.h"
#include "vm/decode/code.h"
#include "vm/decode/frame.h"
#include "vm/decode/words.h"
#include "vm/format/opcode_traits.h"

namespace halyard::vm::test {
namespace {

constexpr std::string_view kDashes = "----\n";

const char* name_of(uint16_t op) {
  static const char* const decoded[] = {
#define DECODED(name) #name,
#define IMMEDIATE(op) #op "_imm",
#define IMMEDIATE_LEFT(op) #op "_imm_left",
#define BRANCH(op) "br_" #op,
#define BRANCH_IMMEDIATE(op) "br_" #op "_imm",
#define BRANCH_IMMEDIATE_LEFT(op) "br_" #op "_imm_left",
#define LOOP(op) "loop_" #op,
#define LOOP_BY(op) "loop_by_" #op,
#define ARITHMETIC(type, first, second) #first "_" #second "_" #type,
#define ARITHMETIC_RIGHT(type, first, second) #first "_" #second "_right_" #type,
#define ARITHMETIC_OF_THREE(type, first, second, third) #first "_" #second "_" #third "_" #type,
#define LAST_OF(kind, first, loop) #first "_last_of_" #loop,
#define INDEXED(op) #op "_at_sum",
#define INDEXED_KEPT(op) #op "_at_kept_sum",
#define INDEXED_PRODUCT(op) #op "_at_product",
#include "vm/decode/decoded_ops.inc"
  };
  return op < kOpCount ? kOps[op].mnemonic().data() : decoded[op - kOpCount];
}

// What follows the first word of an instruction that exists only in decoded code.
enum class Rest { nothing, fields, distances, site };
Rest rest_of(uint16_t op) {
  static const Rest rests[] = {
#define DECODED(name) Rest::nothing,
#define IMMEDIATE(op) Rest::nothing,
#define IMMEDIATE_LEFT(op) Rest::nothing,
#define BRANCH(op) Rest::distances,
#define BRANCH_IMMEDIATE(op) Rest::distances,
#define BRANCH_IMMEDIATE_LEFT(op) Rest::distances,
#define LOOP(op) Rest::distances,
#define LOOP_BY(op) Rest::distances,
#define ARITHMETIC(type, first, second) Rest::fields,
#define ARITHMETIC_RIGHT(type, first, second) Rest::fields,
#define ARITHMETIC_OF_THREE(type, first, second, third) Rest::fields,
#define LAST_OF(kind, first, loop) \
  static_cast<uint16_t>(kind::first) < kOpCount ? Rest::nothing : Rest::fields,
#define INDEXED(op) Rest::fields,
#define INDEXED_KEPT(op) Rest::fields,
#define INDEXED_PRODUCT(op) Rest::fields,
#include "vm/decode/decoded_ops.inc"
  };
  return op == static_cast<uint16_t>(DecodedOp::call_import) ? Rest::site : rests[op - kOpCount];
}

std::string entry_text(uint16_t entry) {
  if (entry & kRefBit) return fmt::format("r{}{}", entry & kRegisterMask, entry & kMoveBit ? " moved" : "");
  return fmt::format("{}{}", entry & kRegisterMask, entry & kWideBit ? " wide" : "");
}

std::string list_text(const FunctionCode& code, uint32_t first, uint32_t count) {
  std::string text = "[";
  for (uint32_t i = 0; i < count; ++i) text += (i ? ", " : "") + entry_text(code.lists[first + i]);
  return text + "]";
}

std::string site_text(const FunctionCode& code, const CallSite& site) {
  std::string text =
      fmt::format(" {} {}, returns to {}, {} -> {}", site.is_import ? "import" : "function", site.function,
                  site.return_pc, list_text(code, site.arguments, site.argument_count),
                  list_text(code, site.results, site.result_count));
  if (site.yieldable) text += ", may wait";
  if (!site.is_import) return text;
  text += fmt::format(", bare {}, releases {}", list_text(code, site.bare_arguments, site.argument_count),
                      list_text(code, site.releases, site.release_count));
  for (uint32_t at = site.segments; site.variadic && at < site.releases; ++at)
    text += fmt::format("{}{}", at == site.segments ? ", segments " : " ", code.lists[at]);
  return text;
}

std::string fields_text(const Word& word) {
  return fmt::format(" {} {} {} {}", word.op, word.a, word.b, word.c);
}

// The instruction at word `at`; `end` is behind it.
std::string instruction_text(const FunctionCode& code, uint32_t at, uint32_t& end) {
  const Word* const word = &code.words[at];
  std::string text = fmt::format("{:3} {}", at, name_of(word->op));
  const auto to = [&](int32_t distance) {
    text += fmt::format(" -> {}", static_cast<int64_t>(at) + distance);
  };
  end = at + word_count(*word);
  if (word->op >= kOpCount) {
    const Rest rest = rest_of(word->op);
    if (rest == Rest::site) return text + fmt::format(" {}", word->a) + site_text(code, call_site(word));
    text += fmt::format(" {} {} {}", word->a, word->b, word->c);
    if (rest == Rest::nothing) return text;
    end = at + 2;
    if (rest == Rest::fields) return text + fields_text(word[1]);
    to(word[1].distance_if());
    to(word[1].distance_else());
    return text;
  }
  switch (static_cast<Op>(word->op)) {
    case Op::br:
    case Op::yield:
      to(word->distance());
      return text;
    case Op::cond_br:
      text += fmt::format(" {}", word->a);
      to(word[1].distance_if());
      to(word[1].distance_else());
      return text;
    case Op::br_table:
      text += fmt::format(" {}", word->a);
      for (uint32_t i = 0; i <= word->wide(); ++i) to(word[1 + i].distance());
      return text;
    case Op::call:
      return text + fmt::format(" {} frame {}", word->a, word->wide()) + site_text(code, call_site(word));
    case Op::return_:
    case Op::discard_refs:
      return text + " " + list_text(code, word->wide(), word->a);
    case Op::fail:
      return text +
             fmt::format(" {} '{}'", word->a, std::string_view(word[1].pointer<const char>(), word->b));
    default:
      break;
  }
  const OpInfo& op = info(static_cast<Op>(word->op));
  if (has_trait(static_cast<Op>(word->op), PICKS)) {
    text += fmt::format(" {} {} {} {}", word->a, word->b, word->c,
                        list_text(code, word[1].distance_else(), word[1].low()));
    return end == at + 3 ? text + " " + std::string(word[2].pointer<const ObjectType>()->name) : text;
  }
  text += fmt::format(" {} {} {}", word->a, word->b, word->c);
  if (kWordShapes[word->op].registers > 3) text += fields_text(word[1]);
  for (size_t i = 0; i < op.operand_count; ++i)
    if (op.operands[i].kind == OperandKind::immediate && is_wide(op.operands[i].bank))
      text += fmt::format(" {:#x}", word[end - at - 1].bits());
  return text;
}

std::string decoded_text(const FunctionCode& code) {
  std::string text = fmt::format(
      "function {}: {} values, {} refs, refs at {}, frame {}, zero from {}, results {}, arguments [",
      code.function, code.value_slots, code.ref_slots, code.refs_offset, code.frame_bytes - sizeof(Frame),
      code.zero_from, code.result_count);
  for (size_t i = 0; i < code.arguments.size(); ++i) text += (i ? ", " : "") + entry_text(code.arguments[i]);
  text += fmt::format("]{}{}{}\n", code.has_convention ? "" : ", no convention",
                      code.legacy_floats ? ", legacy floats" : "",
                      code.has_compiled_loop ? ", has a compiled loop" : "");
  size_t place = 0;
  for (uint32_t at = 0, end = 0; at < code.words.size(); at = end) {
    for (; place < code.places.size() && code.places[place].word <= at; ++place)
      text += fmt::format("  pc {}{}\n", code.places[place].pc,
                          code.places[place].word < at ? fmt::format(" at {}", code.places[place].word) : "");
    text += instruction_text(code, at, end) + "\n";
  }
  if (!code.tier) return text;
  for (const LoopHead& head : code.tier->heads)
    text += fmt::format("head at {}: pc {}\n", head.word, head.pc);
  for (const FoldedConstant& folded : code.tier->folded)
    text += fmt::format("folded {} = {:#x}\n", folded.slot, folded.bits);
  return text;
}

// Every function of a program, decoded with the options of its second line.
std::string decoded(const std::string& program) {
  const size_t first = program.find('\n') + 1;
  const std::string options = program.substr(first, program.find('\n', first) - first);
  const auto has = [&](std::string_view option) { return options.find(option) != std::string::npos; };
  const DecodeOptions how = {.fuse = !has("fuse=no"),
                             .entries = has("entries=calls")   ? Entries::calls
                                        : has("entries=loops") ? Entries::loops
                                                               : Entries::none,
                             .tiers = has("tiers")};
  Machine machine;
  const auto module = machine.load(program, has("version=15") ? 15 : 17);
  if (!module) return module.error().text();
  std::string text;
  for (uint32_t i = 0; i < (*module)->functions().size(); ++i) {
    if (const auto verified = (*module)->code(i); !verified) return verified.error().text();
    const auto code = decode_function(**module, i, how);
    text += code ? decoded_text(**code) : code.error().text();
  }
  return text;
}

std::vector<std::filesystem::path> programs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(HALYARD_SOURCE_DIR "/vm/tests/decoded"))
    paths.push_back(file.path());
  std::ranges::sort(paths);
  return paths;
}

TEST(Decoded, ProgramsDecodeToTheKeptText) {
  if (sizeof(void*) != 8) GTEST_SKIP() << "the kept frames have refs of 64 bits";
  for (const std::filesystem::path& path : programs()) {
    const std::string text = file_text(path);
    const size_t dashes = text.find(kDashes);
    ASSERT_NE(dashes, std::string::npos) << path;
    const std::string found = decoded(text.substr(0, dashes));
    if (std::getenv("HALYARD_WRITE_DECODED"))
      std::ofstream(path, std::ios::binary) << text.substr(0, dashes + kDashes.size()) << found;
    else
      EXPECT_EQ(found, text.substr(dashes + kDashes.size())) << path;
  }
}

}  // namespace
}  // namespace halyard::vm::test
