// Writes the three nests one after the other, each as loops or as one loop that divides its counter.
#include "sums_generator.h"

#include <fmt/core.h>

#include <iterator>
#include <utility>

namespace halyard::vm::test {

namespace {

// Registers: pairs, but for those of elements.
constexpr const char* kCount = "%i0:1";  // arguments
constexpr const char* kFrom = "%i2:3";
constexpr const char* kOne = "%i6:7";
constexpr const char* kRow = "%i8:9";
constexpr const char* kRows = "%i10:11";
constexpr const char* kOutput = "%i12:13";
constexpr const char* kOutputs = "%i14:15";
constexpr const char* kTerm = "%i16:17";
constexpr const char* kTerms = "%i18:19";
constexpr const char* kBoth = "%i20:21";  // of a loop that divides its counter
constexpr const char* kAll = "%i22:23";
constexpr const char* kIndex = "%i24:25";
constexpr const char* kFactor = "%i26:27";
constexpr const char* kCondition = "%i28";
constexpr const char* kTime = "%i4:5";  // of a loop around the nests
constexpr const char* kTimes = "%i46:47";
constexpr const char* kHash = "%i40:41";
constexpr const char* kWord = "%i42";
constexpr const char* kWide = "%i44:45";
// Buffers: 3 of the function's own, of this many words, or an argument in the place of one.
constexpr int kWords = 512;

struct Element {
  const char* access;  // suffix of loads
  const char* store;
  const char* type;
  bool is_wide, is_float;
  const char* factor = nullptr;  // suffix of loads of factors, if they are smaller than sums
};
constexpr Element kElements[] = {
    {"f32", "f32", "f32", false, true},          {"f32", "f32", "f32", false, true},
    {"f64", "f64", "f64", true, true},           {"i32", "i32", "i32", false, false},
    {"i16.s", "i16", "i32", false, false},       {"i32", "i32", "i32", false, false, "i8.s"},
    {"i32", "i32", "i32", false, false, "i8.u"}, {"i32", "i32", "i32", false, false, "i16.s"}};

struct SumsWriter {
  Choices& choices;
  Element element = kElements[0];
  std::string text = {};
  int blocks = 1;
  bool is_coalesced = false;
  // The buffers of the sums, of what they read, and of the results.
  uint32_t sums = 0, from = 1, results = 2;
  int64_t row_of_sums = 0, row_of_results = 0;

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text += "  " + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }
  void constant(const char* reg, int64_t number) { line("{} = vm.const.i64 {}", reg, number); }
  std::string value(int number) const {
    const int reg = 30 + 2 * number;
    return element.is_wide ? fmt::format("%i{}:{}", reg, reg + 1) : fmt::format("%i{}", reg);
  }
  void load(int number, uint32_t buffer) {
    line("{} = vm.buffer.load.{} %r{}, {}", value(number), element.access, buffer, kIndex);
  }
  // Loads a factor, and adds or subtracts an offset if there is one: a constant, or an argument.
  void load_factor(int number, const char* access, uint32_t offset) {
    line("{} = vm.buffer.load.{} %r{}, {}", value(number), access, from, kIndex);
    if (offset == 1) line("%i48 = vm.const.i32 {}", number == 1 ? -128 : 7);
    if (offset == 2) line("%i48 = vm.trunc.i64.i32 {}", number == 1 ? kFrom : kCount);
    if (offset != 0)
      line("{} = vm.{}.i32 {}, %i48", value(number), number == 1 ? "sub" : "add", value(number));
  }
  void store(int number, uint32_t buffer) {
    line("vm.buffer.store.{} {}, %r{}, {}", element.store, value(number), buffer, kIndex);
  }
  // kIndex = row * `factor` + another.
  void index(int64_t factor, const char* other) {
    constant(kFactor, factor);
    line("{} = vm.fma.i64 {}, {}, {}", kIndex, kRow, kFactor, other);
  }
  void add(const char* other) { line("{} = vm.add.i64 {}, {}", kIndex, kIndex, other); }

  void loop(const char* counter, const char* limit, auto&& body) {
    const int head = blocks++, inside = blocks++, after = blocks++;
    line("{} = vm.const.i64.zero", counter);
    line("vm.br ^bb{}", head);
    text += fmt::format("^bb{}:\n", head);
    line("{} = vm.cmp.lt.i64.s {}, {}", kCondition, counter, limit);
    line("vm.cond_br {}, ^bb{}, ^bb{}", kCondition, inside, after);
    text += fmt::format("^bb{}:\n", inside);
    body();
    line("{} = vm.add.i64 {}, {}", counter, counter, kOne);
    line("vm.br ^bb{}", head);
    text += fmt::format("^bb{}:\n", after);
  }
  // Executes the body if the number is 0.
  void only_if(const char* number, auto&& body) {
    const int inside = blocks++, after = blocks++;
    constant(kIndex, 0);
    line("{} = vm.cmp.eq.i64 {}, {}", kCondition, number, kIndex);
    line("vm.cond_br {}, ^bb{}, ^bb{}", kCondition, inside, after);
    text += fmt::format("^bb{}:\n", inside);
    body();
    line("vm.br ^bb{}", after);
    text += fmt::format("^bb{}:\n", after);
  }
  // For each row and output.
  void nest(auto&& body, const char* rows = kRows) {
    if (!is_coalesced) return loop(kRow, rows, [&] { loop(kOutput, kOutputs, body); });
    line("{} = vm.mul.i64 {}, {}", kAll, kRows, kOutputs);
    loop(kBoth, kAll, [&] {
      line("{} = vm.div.i64.s {}, {}", kRow, kBoth, kOutputs);
      line("{} = vm.rem.i64.s {}, {}", kOutput, kBoth, kOutputs);
      body();
    });
  }

  void fill() {
    const int64_t row = choices.one_in(8) ? row_of_sums + 1 : row_of_sums;
    const char* const rows = choices.one_in(8) ? kFrom : kRows;  // perhaps fewer or more than there are sums
    nest(
        [&] {
          index(row, kOutput);
          store(0, sums);
        },
        rows);
  }
  void add_terms() {
    const int64_t of_rows = choices.one_of<int64_t>({1, 3, 9}),
                  of_terms = choices.one_of<int64_t>({1, 4, 17});
    const bool is_transposed = choices.one_in(4);
    const char* const first = element.factor ? element.factor : element.access;
    const char* const second = element.factor && choices.one_in(3) ? "i8.s" : first;
    const uint32_t offset = element.factor ? choices.below(4) : 0;
    nest([&] {
      loop(kTerm, kTerms, [&] {
        index(of_rows, kTerm);
        if (of_rows != 9) add(kFrom);
        load_factor(1, first, offset);
        constant(kFactor, is_transposed ? 9 : of_terms);
        line("{} = vm.fma.i64 {}, {}, {}", kIndex, is_transposed ? kOutput : kTerm, kFactor,
             is_transposed ? kTerm : kOutput);
        load_factor(2, second, offset);
        index(row_of_sums, kOutput);
        load(3, sums);
        line("{} = vm.fma.{} {}, {}, {}", value(3), element.type, value(1), value(2), value(3));
        store(3, sums);
      });
    });
  }
  void compute_results() {
    const uint32_t other = choices.one_in(3) ? results : from;
    const bool is_of_row = choices.one_in(3), is_moved = choices.one_in(2), is_kept = choices.one_in(2);
    const bool is_in_place = other == results && choices.one_in(2);
    if (!is_kept && other != from && from != sums && from != results) line("vm.discard.refs %r{}", from);
    nest([&] {
      index(row_of_sums, kOutput);
      load(1, sums);
      if (is_in_place) {
        index(row_of_results, kOutput);
        if (is_moved && results != sums) add(kFrom);
      } else if (!is_of_row) {
        line("{} = vm.add.i64 {}, {}", kIndex, kOutput, kOne);
      }
      load(2, other);
      line("{} = vm.{}.{} {}, {}", value(1), choices.one_of({"add", "sub", "mul"}), element.type, value(1),
           value(2));
      if (element.is_float) line("{} = vm.max.{} {}, {}", value(1), element.type, value(1), value(0));
      index(row_of_results, kOutput);
      if (is_moved && results != sums) add(kFrom);
      store(1, results);
    });
  }

  void allocate() {
    constant(kIndex, 4 * kWords);
    line("{} = vm.const.i32.zero", kWord);
    for (const uint32_t buffer : {3, 4, 5}) line("%r{} = vm.buffer.alloc {}, {}", buffer, kIndex, kWord);
    // The memory of an earlier call, of which only some bytes were written, must be 0.
    const uint32_t left = choices.one_in(3) ? choices.one_of<uint32_t>({3, 5}) : 0;
    // Floats near 1, of 32 and of 64 bits.
    constant(kAll, kWords);
    loop(kBoth, kAll, [&] {
      constant(kFactor, 1234567);
      line("{} = vm.mul.i64 {}, {}", kWide, kBoth, kFactor);
      constant(kFactor, 0x7FFFFF);
      line("{} = vm.and.i64 {}, {}", kWide, kWide, kFactor);
      constant(kFactor, 0x3F000000);
      line("{} = vm.add.i64 {}, {}", kWide, kWide, kFactor);
      line("{} = vm.trunc.i64.i32 {}", kWord, kWide);
      for (const uint32_t buffer : {3, 4, 5})
        if (buffer != left) line("vm.buffer.store.i32 {}, %r{}, {}", kWord, buffer, kBoth);
    });
  }
  void hash(uint32_t buffer) {
    constant(kAll, kWords);
    constant(kFactor, 31);
    loop(kBoth, kAll, [&] {
      line("{} = vm.buffer.load.i32 %r{}, {}", kWord, buffer, kBoth);
      line("{} = vm.ext.i32.i64.s {}", kWide, kWord);
      line("{} = vm.fma.i64 {}, {}, {}", kHash, kHash, kFactor, kWide);
    });
  }

  std::string write() {
    element = kElements[choices.below(std::size(kElements))];
    is_coalesced = choices.one_in(3);
    const auto argument = [&](uint32_t buffer) { return choices.one_in(12) ? 0 : buffer; };
    sums = argument(3);
    from = choices.one_in(8) ? sums : argument(4);
    results = choices.one_in(2) ? sums : argument(5);
    constant(kOne, 1);
    line("{} = vm.const.i64.zero", kHash);
    allocate();
    constant(kFactor, 7);
    line("{} = vm.and.i64 {}, {}", kRows, kCount, kFactor);
    if (choices.one_in(2)) constant(kRows, choices.one_of<int64_t>({1, 2, 5, 12, 26, 30}));
    if (!choices.one_in(4)) line("{} = vm.and.i64 {}, {}", kFrom, kFrom, kFactor);
    const int64_t outputs = choices.one_of<int64_t>({3, 4, 8, 16, 17, 20});
    constant(kOutputs, outputs);
    constant(kTerms, choices.one_of<int64_t>({0, 1, 3, 9, 70, 300}));
    row_of_sums = outputs + (choices.one_in(4) ? choices.one_of<int64_t>({-1, 1, 4}) : 0);
    row_of_results = results == sums ? row_of_sums : outputs + choices.one_of<int64_t>({0, 0, 3, -2});
    line("{} = vm.const.{}{}", value(0), element.type, element.is_float ? " 0.5" : " 3");
    const bool has_fill = !choices.one_in(6), has_results = !choices.one_in(6);
    const auto nests = [&](bool first_fill_only) {
      if (has_fill && first_fill_only) {
        only_if(kTime, [&] { fill(); });
      } else if (has_fill) {
        fill();
      }
      add_terms();
      if (has_results) compute_results();
    };
    if (choices.one_in(4)) {
      constant(kTimes, 2);
      const bool first_fill_only = choices.one_in(2);
      loop(kTime, kTimes, [&] { nests(first_fill_only); });
    } else {
      nests(false);
    }
    // Whether the sums are read again, by compiled code or by the interpreter.
    if (results == sums || choices.one_in(3)) {
      hash(3);
    } else if (choices.one_in(4)) {
      constant(kIndex, 0);
      constant(kFactor, 4 * kWords);
      line("{} = vm.buffer.hash %r3, {}, {}", kHash, kIndex, kFactor);
    }
    hash(5);
    line("vm.return {}", kHash);
    return fmt::format(
        "vm.module @m\nvm.type !vm.buffer\nvm.type f32\nvm.type f64\nvm.export @f\n"
        "vm.func @f(%r0: !vm.ref<?>, %r1: !vm.ref<?>, %r2: !vm.ref<?>, {}: i64, {}: i64, %i4:5: i64) -> "
        "(i64) "
        "{{\n  .requires ext_f32, ext_f64\n{}}}\n",
        kCount, kFrom, text);
  }
};

}  // namespace

std::string generate_sums(Choices& choices) { return SumsWriter{choices}.write(); }

}  // namespace halyard::vm::test
