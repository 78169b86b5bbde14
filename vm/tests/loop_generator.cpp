// Generates loops as text. The innermost loop reads, computes and writes elements of one type.
#include "loop_generator.h"

#include <fmt/core.h>

#include <algorithm>

namespace halyard::vm::test {

namespace {

// Registers. Those of a loop begin at kLoop + 8 * its depth.
constexpr uint32_t kCount = 0;  // arguments: pairs
constexpr uint32_t kFrom = 2;
constexpr uint32_t kStep = 4;
constexpr uint32_t kOne = 6;
constexpr uint32_t kCondition = 8;
constexpr uint32_t kSum = 10;    // the integer that is returned
constexpr uint32_t kValue = 12;  // pairs, of the element's type
constexpr uint32_t kOther = 14;
constexpr uint32_t kAccumulator = 16;
constexpr uint32_t kIndex = 18;
constexpr uint32_t kScratch = 20;
constexpr uint32_t kLoop = 24;

struct Element {
  const char* load;
  const char* store;
  const char* type;  // of the register
  bool wide;
};
constexpr Element kElements[] = {{"i8.s", "i8", "i32", false},   {"i8.u", "i8", "i32", false},
                                 {"i16.s", "i16", "i32", false}, {"i16.u", "i16", "i32", false},
                                 {"i32", "i32", "i32", false},   {"i64", "i64", "i64", true},
                                 {"f32", "f32", "f32", false},   {"f64", "f64", "f64", true}};

struct LoopWriter {
  Choices& choices;
  Element element = kElements[0];
  std::string text = {};
  uint32_t blocks = 1;
  // For a contraction: sums or products in a nest that contains only loops, one for each iteration of the
  // loop `outputs`.
  bool is_contraction = false;
  uint32_t outputs = 0;

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text += "  " + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }
  uint32_t new_block() { return blocks++; }
  void begin_block(uint32_t block) { text += fmt::format("^bb{}:\n", block); }
  static std::string pair(uint32_t reg) { return fmt::format("%i{}:{}", reg, reg + 1); }
  std::string value(uint32_t reg) const { return element.wide ? pair(reg) : fmt::format("%i{}", reg); }
  bool is_float() const { return element.type[0] == 'f'; }
  static uint32_t counter(uint32_t depth) { return kLoop + 8 * depth; }
  static uint32_t limit(uint32_t depth) { return counter(depth) + 2; }
  static uint32_t stride(uint32_t depth) { return counter(depth) + 4; }

  void constant(uint32_t reg, int64_t number) { line("{} = vm.const.i64 {}", pair(reg), number); }

  std::string write() {
    element = choices.one_of({kElements[0], kElements[1], kElements[2], kElements[3], kElements[4],
                              kElements[4], kElements[5], kElements[6], kElements[6], kElements[7]});
    uint32_t depth = 1 + choices.below(3);
    is_contraction = choices.one_in(3);
    if (is_contraction) {
      depth = 2 + choices.below(3);
      outputs = choices.below(depth - 1);
    }
    const bool is_coalesced = !is_contraction && choices.one_in(6);
    constant(kOne, 1);
    line("{} = vm.const.i64.zero", pair(kSum));
    for (const uint32_t reg : {kValue, kOther, kAccumulator})
      line("{} = vm.const.{}.zero", value(reg), element.type);
    // Only single loops are long.
    if (depth > 1 || !choices.one_in(4)) {
      constant(kScratch, depth == 1 ? 127 : depth == 2 ? 31 : 7);
      line("{} = vm.and.i64 {}, {}", pair(kCount), pair(kCount), pair(kScratch));
    }
    if (!choices.one_in(4)) small(kFrom, 15);
    if (!choices.one_in(4)) small(kStep, 3);
    if (is_coalesced) {
      coalesced();
    } else {
      loop(0, depth);
    }
    line("vm.return {}", pair(kSum));
    return module_of(text);
  }
  // Writes many copies of one construct. Counters are those of loop().
  std::string write_much() {
    element = kElements[4];
    constant(kOne, 1);
    line("{} = vm.const.i64.zero", pair(kSum));
    for (const uint32_t reg : {kValue, kOther, kAccumulator})
      line("{} = vm.const.{}.zero", value(reg), element.type);
    // Half of the numbers are small.
    const auto many = [&] { return 1 + choices.below(1u << choices.below(10)); };
    uint32_t loops = many();
    const uint32_t statements = many() / loops;
    const uint32_t deepest = choices.one_of({1u, 2u, 4u, 12u});
    while (loops > 0) nest(0, deepest, loops, statements);
    line("vm.return {}", pair(kSum));
    return module_of(text);
  }
  void nest(uint32_t depth, uint32_t deepest, uint32_t& loops, uint32_t statements) {
    --loops;
    const uint32_t body = new_block();
    const uint32_t after = new_block();
    line("{} = vm.const.i64.zero", pair(counter(depth)));
    constant(limit(depth), depth < 2 ? 2 : 1);
    line("vm.br ^bb{}", body);
    begin_block(body);
    for (uint32_t i = 0; i <= statements; ++i) {
      line("{} = vm.buffer.load.{} %r{}, {}", value(kValue), element.load, choices.below(3),
           pair(counter(depth)));
      if (choices.one_in(2)) arithmetic();
      line("vm.buffer.store.{} {}, %r{}, {}", element.store, value(kOther), choices.below(3),
           pair(counter(depth)));
    }
    while (loops > 0 && depth + 1 < deepest && !choices.one_in(3))
      nest(depth + 1, deepest, loops, statements);
    line("{} = vm.add.i64 {}, {}", pair(counter(depth)), pair(counter(depth)), pair(kOne));
    test(depth, body, after);
    begin_block(after);
  }

  static std::string module_of(const std::string& body) {
    std::string head = "vm.module @m\nvm.type !vm.buffer\nvm.type f32\nvm.type f64\nvm.export @f\n";
    head += fmt::format(
        "vm.func @f(%r0: !vm.ref<?>, %r1: !vm.ref<?>, %r2: !vm.ref<?>, {}: i64, {}: i64, {}: i64) -> (i64) "
        "{{\n  .requires ext_f32, ext_f64\n",
        pair(kCount), pair(kFrom), pair(kStep));
    return head + body + "}\n";
  }
  void small(uint32_t reg, int64_t mask) {
    constant(kScratch, mask);
    line("{} = vm.and.i64 {}, {}", pair(reg), pair(reg), pair(kScratch));
  }

  // Writes one loop and, in it, the next loop or the body.
  void loop(uint32_t depth, uint32_t most) {
    const uint32_t body = new_block();
    const uint32_t head = new_block();
    const uint32_t after = new_block();
    const bool tests_first = !choices.one_in(3);
    if (!is_contraction && choices.one_in(5)) {
      line("{} = vm.add.i64 {}, {}", pair(counter(depth)), pair(kFrom), pair(kOne));
    } else {
      line("{} = vm.const.i64.zero", pair(counter(depth)));
    }
    switch (choices.below(4)) {
      case 0:
      case 1:
        constant(limit(depth), is_contraction && depth == outputs
                                   ? choices.one_of<int64_t>({3, 4, 8, 16, 17, 32, 40})
                                   : choices.one_of<int64_t>({0, 1, 2, 3, 4, 8, 9, 16}));
        break;
      case 2:
        if (depth > 0 && !is_contraction) {
          line("{} = vm.add.i64 {}, {}", pair(limit(depth)), pair(counter(depth - 1)), pair(kOne));
          break;
        }
        [[fallthrough]];
      default:
        line("{} = vm.add.i64 {}, {}", pair(limit(depth)), pair(kCount), pair(kOne));
        break;
    }
    constant(stride(depth),
             is_contraction && depth == outputs ? 1 : choices.one_of<int64_t>({1, 1, 1, 2, 3, 7}));
    line("vm.br ^bb{}", tests_first ? head : body);
    if (tests_first) {
      begin_block(head);
      test(depth, body, after);
    }
    begin_block(body);
    if (!is_contraction && choices.one_in(4)) statement(depth);
    if (depth + 1 < most) {
      loop(depth + 1, most);
      if (!is_contraction && choices.one_in(3)) statement(depth);
    } else if (is_contraction) {
      contraction(depth);
    } else {
      for (uint32_t n = 1 + choices.below(4); n > 0; --n) statement(depth);
    }
    line("{} = vm.add.i64 {}, {}", pair(counter(depth)), pair(counter(depth)), pair(stride(depth)));
    if (tests_first) {
      line("vm.br ^bb{}", head);
    } else {
      test(depth, body, after);
    }
    begin_block(after);
  }
  void test(uint32_t depth, uint32_t body, uint32_t after) {
    line("%i{} = vm.cmp.lt.i64.{} {}, {}", kCondition, choices.one_in(4) ? "u" : "s", pair(counter(depth)),
         pair(limit(depth)));
    line("vm.cond_br %i{}, ^bb{}, ^bb{}", kCondition, body, after);
  }

  // kIndex = a sum of the outer loops' counters, times constants, and of invariant values.
  void index(uint32_t depth) {
    line("{} = vm.add.i64 {}, {}", pair(kIndex), pair(counter(depth)),
         choices.one_in(2) ? pair(kFrom) : pair(counter(choices.below(depth + 1))));
    for (uint32_t n = choices.below(3); n > 0; --n) {
      const std::string term = pair(counter(choices.below(depth + 1)));
      switch (choices.below(5)) {
        case 0:
          line("{} = vm.fma.i64 {}, {}, {}", pair(kIndex), term, pair(kStep), pair(kIndex));
          break;
        case 1:
          constant(kScratch, choices.one_of<int64_t>({2, 4, 8, 16}));
          line("{} = vm.fma.i64 {}, {}, {}", pair(kIndex), term, pair(kScratch), pair(kIndex));
          break;
        case 2:
          line("{} = vm.sub.i64 {}, {}", pair(kIndex), pair(kIndex), term);
          break;
        case 3:
          line("{} = vm.mul.i64 {}, {}", pair(kIndex), pair(kIndex), pair(kStep));
          break;
        default:
          constant(kScratch, choices.one_of<int64_t>({1, 2, 5, 31, -1}));
          line("{} = vm.{}.i64 {}, {}", pair(kIndex), choices.one_in(6) ? "and" : "add", pair(kIndex),
               pair(kScratch));
          break;
      }
    }
  }

  // Writes one loop instead of two or three, perhaps with a loop inside. Divisions of its counter replace
  // their counters.
  void coalesced() {
    const uint32_t body = new_block();
    const uint32_t head = new_block();
    const uint32_t after = new_block();
    const uint32_t inner = limit(1);
    const uint32_t middle = limit(2);
    const uint32_t both = stride(2);
    for (const uint32_t reg : {inner, middle}) {
      constant(reg, choices.one_of<int64_t>({1, 2, 3, 4, 8, 16, -2}));
      if (choices.one_in(3))
        line("{} = vm.add.i64 {}, {}", pair(reg), pair(choices.one_in(2) ? kFrom : kStep), pair(kOne));
    }
    line("{} = vm.const.i64.zero", pair(counter(0)));
    line("{} = vm.mul.i64 {}, {}", pair(limit(0)), pair(inner), pair(kCount));
    if (choices.one_in(2)) line("{} = vm.mul.i64 {}, {}", pair(limit(0)), pair(limit(0)), pair(middle));
    constant(kScratch, 4095);
    line("{} = vm.and.i64 {}, {}", pair(limit(0)), pair(limit(0)), pair(kScratch));
    constant(stride(0), 1);
    line("vm.br ^bb{}", head);
    begin_block(head);
    test(0, body, after);
    begin_block(body);
    if (choices.one_in(4)) {
      line("{} = vm.div.i64.s {}, {}", pair(counter(2)), pair(counter(0)), pair(inner));
    } else {
      line("{} = vm.mul.i64 {}, {}", pair(both), pair(inner), pair(middle));
      line("{} = vm.rem.i64.s {}, {}", pair(counter(2)), pair(counter(0)), pair(both));
      line("{} = vm.div.i64.s {}, {}", pair(counter(2)), pair(counter(2)), pair(inner));
    }
    line("{} = vm.rem.i64.s {}, {}", pair(counter(1)), pair(counter(0)), pair(inner));
    if (choices.one_in(2)) {
      contraction(2);
    } else {
      is_contraction = true;
      outputs = 1;
      loop(3, 4);
    }
    line("{} = vm.add.i64 {}, {}", pair(counter(0)), pair(counter(0)), pair(stride(0)));
    line("vm.br ^bb{}", head);
    begin_block(after);
    if (choices.one_in(2)) line("{} = vm.add.i64 {}, {}", pair(kSum), pair(kSum), pair(counter(0)));
  }

  // Writes an element for each output: c[n] = op(a[...], b[...], c[n]), sometimes with another c on the
  // right.
  void contraction(uint32_t depth) {
    const uint32_t written = choices.below(3);
    // Outputs of different iterations of the loop around them are the same, overlap, or are apart.
    const int64_t row = outputs == 0 ? 0 : choices.one_of<int64_t>({0, 3, 16, 40, 64, -40});
    const auto output = [&] {
      line("{} = vm.add.i64 {}, {}", pair(kIndex), pair(counter(outputs)),
           pair(choices.one_in(2) ? kFrom : kSum));
      if (row == 0) return;
      constant(kScratch, row);
      line("{} = vm.fma.i64 {}, {}, {}", pair(kIndex), pair(counter(outputs - 1)), pair(kScratch),
           pair(kIndex));
    };
    for (const uint32_t reg : {kValue, kOther}) {
      switch (choices.below(5)) {
        case 0:
          index(depth);
          break;
        case 3:  // contiguous along the terms alone
          constant(kScratch, choices.one_of<int64_t>({4, 8, 17}));
          line("{} = vm.fma.i64 {}, {}, {}", pair(kIndex), pair(counter(outputs)), pair(kScratch),
               pair(counter(depth)));
          break;
        case 1:
          line("{} = vm.add.i64 {}, {}", pair(kIndex), pair(counter(depth)), pair(counter(outputs)));
          break;
        case 2:
          line("{} = vm.add.i64 {}, {}", pair(kIndex), pair(counter(depth)), pair(counter(0)));
          break;
        default:
          line("{} = vm.fma.i64 {}, {}, {}", pair(kIndex), pair(counter(depth)), pair(kStep),
               pair(counter(outputs)));
          break;
      }
      const uint32_t other = (written + 1 + choices.below(2)) % 3;
      line("{} = vm.buffer.load.{} %r{}, {}", value(reg), element.load, choices.one_in(8) ? written : other,
           pair(kIndex));
    }
    output();
    line("{} = vm.buffer.load.{} %r{}, {}", value(kAccumulator), element.load, written, pair(kIndex));
    for (uint32_t n = 1 + choices.below(2); n > 0; --n) arithmetic();
    if (choices.one_in(8)) output();
    line("vm.buffer.store.{} {}, %r{}, {}", element.store, value(kAccumulator), written, pair(kIndex));
  }

  void statement(uint32_t depth) {
    switch (choices.below(9)) {
      case 0:
      case 1:
      case 2:
        index(depth);
        line("{} = vm.buffer.load.{} %r{}, {}", value(choices.one_of({kValue, kOther})), element.load,
             choices.below(3), pair(kIndex));
        return;
      case 3:
      case 4:
      case 5:
        index(depth);
        line("vm.buffer.store.{} {}, %r{}, {}", element.store,
             value(choices.one_of({kValue, kOther, kAccumulator})), choices.below(3), pair(kIndex));
        return;
      case 6: {  // a part of the body that is not always executed
        const uint32_t inside = new_block();
        const uint32_t after = new_block();
        line("%i{} = vm.cmp.{} {}, {}", kCondition, comparison(), value(kValue), value(kOther));
        line("vm.cond_br %i{}, ^bb{}, ^bb{}", kCondition, inside, after);
        begin_block(inside);
        arithmetic();
        if (choices.one_in(2)) {
          index(depth);
          line("vm.buffer.store.{} {}, %r{}, {}", element.store, value(kOther), choices.below(3),
               pair(kIndex));
        }
        line("vm.br ^bb{}", after);
        begin_block(after);
        return;
      }
      case 7:
        line("{} = vm.add.i64 {}, {}", pair(kSum), pair(kSum), pair(counter(depth)));
        return;
      default:
        arithmetic();
        return;
    }
  }
  std::string comparison() {
    if (choices.one_in(3))
      return fmt::format("{}.{}{}", choices.one_of<const char*>({"eq", "ne"}), element.type,
                         is_float() ? ".o" : "");
    return fmt::format("lt.{}.{}", element.type, is_float() ? "o" : choices.one_in(2) ? "s" : "u");
  }
  void arithmetic() {
    const char* op = is_float() ? choices.one_of<const char*>({"add", "sub", "mul", "min", "max"})
                                : choices.one_of<const char*>({"add", "sub", "mul", "and", "xor"});
    const uint32_t result = choices.one_of({kValue, kOther, kAccumulator});
    if (choices.one_in(3)) {
      line("{} = vm.fma.{} {}, {}, {}", value(kAccumulator), element.type, value(kValue), value(kOther),
           value(kAccumulator));
    } else {
      line("{} = vm.{}.{} {}, {}", value(result), op, element.type, value(kValue),
           value(choices.one_of({kOther, kAccumulator})));
    }
  }
};

}  // namespace

std::string generate_loops(Choices& choices) { return LoopWriter{choices}.write(); }
std::string generate_much(Choices& choices) { return LoopWriter{choices}.write_much(); }

}  // namespace halyard::vm::test
