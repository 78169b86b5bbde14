// Chooses the shape of a nest, then writes the nests of one function, one after the other.
#include "contraction_generator.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace halyard::vm::test {

namespace {

// The constants of a module: bytes from which buffers are filled; floats of either size among which some are
// zero, denormal, huge or infinite; and tables of numbers of iterations, whose values no compiler knows.
enum Segment : uint32_t { kPlain, kSpecial32, kSpecial64, kRowCounts, kOutputCounts, kTermCounts };
constexpr uint32_t kBufferBytes = 8192;
constexpr uint32_t kMostShift = 0x7F8;  // of the bytes that are copied
constexpr uint32_t kTableEntries = 32;
constexpr uint32_t kSpecialBytes = 512;
// The most iterations of the innermost loop: the reference machine executes some 12 instructions for each.
constexpr int64_t kMostTerms = 12'000;
constexpr int64_t kMostDeepTerms = 60'000;  // if they may be added in blocks

struct SumElement {
  const char* load;  // suffixes
  const char* store;
  const char* type;    // of sums
  const char* factor;  // suffix of loads of factors
  const char* factor_type;
  uint32_t bytes;
  bool is_float() const { return type[0] == 'f'; }
  bool is_wide() const { return type[1] == '6'; }
  bool is_converted() const { return is_float() && factor_type[0] == 'i'; }
  bool is_small() const { return factor[1] != type[1]; }  // factors have fewer bits than sums
};
constexpr SumElement kSumElements[] = {
    {"f32", "f32", "f32", "f32", "f32", 4},    {"f32", "f32", "f32", "f32", "f32", 4},
    {"f32", "f32", "f32", "f32", "f32", 4},    {"f64", "f64", "f64", "f64", "f64", 8},
    {"i32", "i32", "i32", "i32", "i32", 4},    {"i64", "i64", "i64", "i64", "i64", 8},
    {"i32", "i32", "i32", "i8.s", "i32", 4},   {"i32", "i32", "i32", "i8.u", "i32", 4},
    {"i32", "i32", "i32", "i8.s", "i32", 4},   {"i32", "i32", "i32", "i16.s", "i32", 4},
    {"i16.s", "i16", "i32", "i8.s", "i32", 4}, {"f32", "f32", "f32", "i8.s", "i32", 4}};

// A loop of a nest.
struct NestLoop {
  enum Role : uint8_t { row, output, term } role = row;
  std::string counter, begin, limit;  // registers; no begin: 0
  int64_t most = 1;                   // iterations
  bool is_known = false;              // when it is compiled
};
using NestLoops = std::vector<NestLoop>;

// An index: a register that is known before the nest, plus counters times strides. All are registers; a
// stride without a register is 1.
struct NestIndex {
  struct Stride {
    std::string counter, factor;
  };
  std::string start;
  std::vector<Stride> strides = {};
};

class ContractionWriter {
 public:
  ContractionWriter(Choices& choices, uint32_t number) : choices_(choices), number_(number) {}
  std::string write();

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += "  " + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }
  template <typename... Arguments>
  void head_line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    head_ += "  " + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }
  void begin_block(int block) { text_ += fmt::format("^bb{}:\n", block); }
  std::string new_pair() {
    registers_ += registers_ % 2 + 2;
    return fmt::format("%i{}:{}", registers_ - 2, registers_ - 1);
  }
  std::string new_single() { return fmt::format("%i{}", registers_++); }
  std::string new_value(std::string_view type) { return type[1] == '6' ? new_pair() : new_single(); }
  // A register with this number, which is set before everything else.
  std::string constant(int64_t number) {
    std::string& reg = constants_[number];
    if (reg.empty()) {
      reg = new_pair();
      head_line("{} = vm.const.i64 {}", reg, number);
    }
    return reg;
  }
  std::string float_or_integer(double number, std::string_view type) {
    const std::string reg = new_value(type);
    if (type[0] == 'f') {
      head_line("{} = vm.const.{} {}", reg, type, number);
    } else {
      head_line("{} = vm.const.{} {}", reg, type, static_cast<int64_t>(number * 4));
    }
    return reg;
  }
  // A number between 0 and `mask` that follows from the arguments.
  std::string number_of_arguments(int64_t mask);
  // One of the table of a segment.
  std::string number_of_table(Segment segment);

  void fill_buffers();
  NestLoop new_loop(NestLoop::Role role, int64_t count, Segment table);
  NestLoops choose_loops();
  void limit_terms(NestLoops& loops, int64_t most);
  // The register of the largest of these strides with which `count` elements fit in what is left.
  std::string fitting(std::initializer_list<int64_t> candidates, int64_t count, int64_t& left);

  void loop(const NestLoop& of, auto&& body);
  void coalesced(const NestLoops& loops, size_t count, auto&& body);
  void nest(const NestLoops& loops, const std::vector<NestIndex>& indices, auto&& body);
  void loops_from(const NestLoops& loops, size_t level, const std::vector<NestIndex>& indices,
                  const std::vector<std::string>& partial, auto&& body);
  void only_if(const std::string& condition, auto&& body);
  void advance(const NestIndex& index, const NestLoop& of, std::string& partial);

  NestIndex sums_index(const NestLoops& loops);
  NestIndex rows_index(const NestLoops& loops);
  NestIndex outputs_index(const NestLoops& loops);
  std::string load_factor(uint32_t buffer, const char* access, const std::string& index,
                          const std::string& offset, bool is_subtracted);
  std::string load_padded(uint32_t buffer, const std::string& index);
  std::string term(const std::string& a, const std::string& b, const std::string& sum);

  void fill(const NestLoops& loops);
  void add_terms(const NestLoops& loops);
  void add_in_register(const NestLoops& loops);
  void compute_results(const NestLoops& loops);
  void chain(const NestLoops& loops);
  void contraction();
  void hash(uint32_t buffer);
  static NestLoops without_terms(const NestLoops& loops) {
    NestLoops left;
    std::copy_if(loops.begin(), loops.end(), std::back_inserter(left),
                 [](const NestLoop& loop) { return loop.role != NestLoop::term; });
    return left;
  }
  // As many elements as a buffer has, of sums and of factors.
  int64_t elements() const { return kBufferBytes / element_.bytes; }

  Choices& choices_;
  const uint32_t number_;
  SumElement element_ = kSumElements[0];
  std::string head_, text_;  // head_: what is computed first
  int blocks_ = 1;
  uint32_t registers_ = 6;
  std::map<int64_t, std::string> constants_;
  std::string mixed_;  // follows from all numbers
  std::string hash_, condition_;
  size_t coalesced_ = 0;     // of the outermost loops, 0 or at least 2
  bool is_hoisted_ = false;  // indices are computed in the outermost loops that they need
  bool tests_last_ = false;  // loops test at their ends
  // One of this many numbers of iterations is not known when the function is compiled. If many are not, loops
  // check the stop word inside, and are no contraction.
  uint32_t unknown_counts_ = 4;
  // Buffers: of rows (A), of outputs (B), of sums, of results, and of what results need besides.
  uint32_t a_ = 0, b_ = 0, sums_ = 0, results_ = 0, other_ = 0;
  NestIndex to_sums_, to_results_;
  std::vector<uint32_t> chained_;  // the last buffer of the chain, if there is one
};

constexpr uint32_t kPlainRef = 3, kTableRef = 4, kFirstOwn = 5, kOwn = 5, kFirstChained = kFirstOwn + kOwn;
constexpr uint32_t kMostChained = 4;

std::string ContractionWriter::number_of_arguments(int64_t mask) {
  const std::string reg = new_pair();
  // Odd factors, so that each number follows from all bits.
  const int64_t factor = static_cast<int64_t>(choices_.bits(6) | 1);
  head_line("{} = vm.mul.i64 {}, {}", reg, mixed_, constant(factor));
  const std::string amount = new_single();
  head_line("{} = vm.const.i32 {}", amount, 40);
  head_line("{} = vm.shr.i64.u {}, {}", reg, reg, amount);
  head_line("{} = vm.and.i64 {}, {}", reg, reg, constant(mask));
  return reg;
}

std::string ContractionWriter::number_of_table(Segment segment) {
  const std::string reg = number_of_arguments(kTableEntries - 1);
  head_line("%r{} = vm.const.ref.rodata {}", kTableRef, static_cast<uint32_t>(segment));
  head_line("{} = vm.buffer.load.i64 %r{}, {}", reg, kTableRef, reg);
  return reg;
}

void ContractionWriter::fill_buffers() {
  const std::string zero = new_single();
  head_line("{} = vm.const.i32.zero", zero);
  head_line("%r{} = vm.const.ref.rodata {}", kPlainRef, static_cast<uint32_t>(kPlain));
  // Sometimes all buffers are so small that accesses fail.
  const int64_t bytes = choices_.one_in(16) ? 1024 : kBufferBytes;
  for (uint32_t buffer = kFirstOwn; buffer < kFirstOwn + kOwn; ++buffer) {
    head_line("%r{} = vm.buffer.alloc {}, {}", buffer, constant(bytes), zero);
    // The memory of an earlier call, of which only some bytes were written, must be 0.
    if (choices_.one_in(6)) continue;
    head_line("vm.buffer.copy %r{}, {}, %r{}, {}, {}", kPlainRef, number_of_arguments(kMostShift), buffer,
              constant(0), constant(bytes));
  }
  if (!element_.is_float() || element_.is_converted()) return;
  // In some calls.
  const std::string number = number_of_arguments(3);
  head_line("{} = vm.cmp.eq.i64 {}, {}", condition_, number, constant(0));
  const int inside = blocks_++, after = blocks_++;
  head_line("vm.cond_br {}, ^bb{}, ^bb{}", condition_, inside, after);
  head_ += fmt::format("^bb{}:\n", inside);
  head_line("%r{} = vm.const.ref.rodata {}", kTableRef,
            static_cast<uint32_t>(element_.bytes == 4 ? kSpecial32 : kSpecial64));
  head_line("vm.buffer.copy %r{}, {}, %r{}, {}, {}", kTableRef, constant(0), kFirstOwn + choices_.below(3),
            number_of_arguments(0xF8), constant(kSpecialBytes));
  head_line("vm.br ^bb{}", after);
  head_ += fmt::format("^bb{}:\n", after);
}

NestLoop ContractionWriter::new_loop(NestLoop::Role role, int64_t count, Segment table) {
  NestLoop made{.role = role, .counter = new_pair(), .begin = "", .limit = "", .most = count};
  if (!choices_.one_in(unknown_counts_)) {
    made.limit = constant(count);
    made.is_known = true;
  } else if (choices_.one_in(3)) {
    made.limit = number_of_table(table);
    made.most = std::max<int64_t>(count, 8);
  } else {  // bounded
    made.most = count <= 4 ? 3 : count <= 8 ? 7 : 15;
    made.limit = number_of_arguments(made.most);
  }
  if (choices_.one_in(20)) made.begin = choices_.one_in(2) ? constant(1) : number_of_arguments(3);
  return made;
}

// From outside in.
NestLoops ContractionWriter::choose_loops() {
  NestLoops loops;
  unknown_counts_ = choices_.one_of({2u, 4u, 4u, UINT32_MAX});
  const bool is_deep = choices_.one_in(5);  // so that terms are added in blocks
  if (is_deep) unknown_counts_ = choices_.one_of({4u, UINT32_MAX});
  const uint32_t row_loops =
      is_deep ? 1 + choices_.below(2) : choices_.one_of({0u, 1u, 1u, 1u, 1u, 2u, 2u, 2u, 3u});
  const uint32_t term_loops = is_deep ? 1 + choices_.below(2) : choices_.one_of({1u, 1u, 1u, 2u, 2u, 3u});
  for (uint32_t i = 0; i < row_loops; ++i) {
    const int64_t count = is_deep && i + 1 == row_loops ? choices_.one_of<int64_t>({24, 25, 26, 30, 33})
                          : row_loops == 1              ? choices_.one_of<int64_t>({1, 2, 3, 5, 8, 9, 12, 26})
                                                        : choices_.one_of<int64_t>({1, 2, 3, 4, 7});
    loops.push_back(new_loop(NestLoop::row, count, kRowCounts));
  }
  const int64_t outputs =
      is_deep ? choices_.one_of<int64_t>({4, 5, 8, 8, 12, 16, 17})
              : choices_.one_of<int64_t>({3, 4, 5, 7, 8, 12, 16, 16, 17, 20, 24, 31, 32, 33, 40, 48, 64});
  loops.push_back(new_loop(NestLoop::output, outputs, kOutputCounts));
  for (uint32_t i = 0; i < term_loops; ++i) {
    const int64_t count = !is_deep ? choices_.one_of<int64_t>({0, 1, 2, 3, 4, 5, 7, 9, 16, 17})
                          : i == 0 ? choices_.one_of<int64_t>({64, 65, 70, 128, 257, 300})
                                   : choices_.one_of<int64_t>({1, 2, 3});
    loops.push_back(new_loop(NestLoop::term, term_loops == 1 || is_deep ? count : count % 6, kTermCounts));
    NestLoop& made = loops.back();
    if (is_deep && !made.is_known) made.limit = constant(made.most = count), made.is_known = true;
  }
  if (is_deep && choices_.one_in(2)) std::rotate(loops.end() - term_loops, loops.end() - 1, loops.end());
  limit_terms(loops, is_deep ? kMostDeepTerms : kMostTerms);
  if (choices_.one_in(12)) {
    const uint32_t from = choices_.below(static_cast<uint32_t>(loops.size()));
    std::rotate(loops.begin() + from, loops.end() - 1, loops.end());
  }
  return loops;
}

// Makes the longest loops over rows and outputs shorter, until the nest is short enough.
void ContractionWriter::limit_terms(NestLoops& loops, int64_t most) {
  const auto terms = [&] {
    int64_t all = 1;
    for (const NestLoop& loop : loops) all *= std::max<int64_t>(loop.most, 1);
    return all;
  };
  const auto least = [](const NestLoop& loop) { return loop.role == NestLoop::output ? 4 : 1; };
  while (terms() > most) {
    NestLoop* longest = nullptr;
    for (NestLoop& loop : loops)
      if (loop.role != NestLoop::term && loop.most > least(loop) && (!longest || loop.most > longest->most))
        longest = &loop;
    if (!longest) return;
    longest->most = std::max<int64_t>(longest->most > 26 ? 25 : longest->most * 2 / 3, least(*longest));
    longest->limit = constant(longest->most);
    longest->is_known = true;
  }
}

std::string ContractionWriter::fitting(std::initializer_list<int64_t> candidates, int64_t count,
                                       int64_t& left) {
  std::vector<int64_t> fit;
  for (const int64_t stride : candidates)
    if (stride * (count - 1) <= left) fit.push_back(stride);
  const int64_t stride = fit.empty() ? 0 : choices_.pick(fit);
  left -= stride * std::max<int64_t>(count - 1, 0);
  return stride == 1 ? "" : constant(stride);
}

// ---- loops

void ContractionWriter::loop(const NestLoop& of, auto&& body) {
  const int head = blocks_++, inside = blocks_++, after = blocks_++;
  line("{} = vm.{}", of.counter,
       of.begin.empty() ? "const.i64.zero" : fmt::format("add.i64 {}, {}", of.begin, constant(0)));
  const auto test = [&] {
    line("{} = vm.cmp.lt.i64.s {}, {}", condition_, of.counter, of.limit);
    line("vm.cond_br {}, ^bb{}, ^bb{}", condition_, inside, after);
  };
  if (tests_last_) {
    test();
  } else {
    line("vm.br ^bb{}", head);
    begin_block(head);
    test();
  }
  begin_block(inside);
  body();
  line("{} = vm.add.i64 {}, {}", of.counter, of.counter, constant(1));
  if (tests_last_)
    test();
  else
    line("vm.br ^bb{}", head);
  begin_block(after);
}

// One loop for several, which divides its counter.
void ContractionWriter::coalesced(const NestLoops& loops, size_t count, auto&& body) {
  NestLoop all{.counter = new_pair(), .begin = "", .limit = new_pair()};
  line("{} = vm.mul.i64 {}, {}", all.limit, loops[0].limit, loops[1].limit);
  for (size_t i = 2; i < count; ++i) line("{} = vm.mul.i64 {}, {}", all.limit, all.limit, loops[i].limit);
  const std::string rest = new_pair();
  loop(all, [&] {
    // From the innermost one outwards.
    std::string from = all.counter;
    for (size_t i = count - 1; i > 0; --i) {
      line("{} = vm.rem.i64.s {}, {}", loops[i].counter, from, loops[i].limit);
      const std::string& to = i == 1 ? loops[0].counter : rest;
      line("{} = vm.div.i64.s {}, {}", to, from, loops[i].limit);
      from = to;
    }
    body();
  });
}

void ContractionWriter::only_if(const std::string& condition, auto&& body) {
  const int inside = blocks_++, after = blocks_++;
  line("vm.cond_br {}, ^bb{}, ^bb{}", condition, inside, after);
  begin_block(inside);
  body();
  line("vm.br ^bb{}", after);
  begin_block(after);
}

// Adds what a loop's counter adds to the index.
void ContractionWriter::advance(const NestIndex& index, const NestLoop& of, std::string& partial) {
  for (const auto& [counter, factor] : index.strides) {
    if (counter != of.counter) continue;
    const std::string next = new_pair();
    if (factor.empty())
      line("{} = vm.add.i64 {}, {}", next, partial, counter);
    else
      line("{} = vm.fma.i64 {}, {}, {}", next, counter, factor, partial);
    partial = next;
  }
}

// Writes the body, to which it gives the registers of the indices.
void ContractionWriter::nest(const NestLoops& loops, const std::vector<NestIndex>& indices, auto&& body) {
  std::vector<std::string> partial;
  for (const NestIndex& index : indices) partial.push_back(index.start);
  const size_t together = std::min(coalesced_, loops.size());
  if (together < 2) return loops_from(loops, 0, indices, partial, body);
  coalesced(loops, together, [&] {
    std::vector<std::string> inner = partial;
    for (size_t level = 0; is_hoisted_ && level < together; ++level)
      for (size_t i = 0; i < indices.size(); ++i) advance(indices[i], loops[level], inner[i]);
    loops_from(loops, together, indices, inner, body);
  });
}

void ContractionWriter::loops_from(const NestLoops& loops, size_t level,
                                   const std::vector<NestIndex>& indices,
                                   const std::vector<std::string>& partial, auto&& body) {
  if (level == loops.size()) {
    std::vector<std::string> all = partial;
    for (size_t i = 0; !is_hoisted_ && i < indices.size(); ++i)
      for (const NestLoop& loop : loops) advance(indices[i], loop, all[i]);
    return body(all);
  }
  loop(loops[level], [&] {
    std::vector<std::string> inner = partial;
    if (is_hoisted_)
      for (size_t i = 0; i < indices.size(); ++i) advance(indices[i], loops[level], inner[i]);
    loops_from(loops, level + 1, indices, inner, body);
  });
}

// ---- indices

// One row after the other, perhaps with elements between them; sometimes rows overlap.
NestIndex ContractionWriter::sums_index(const NestLoops& loops) {
  NestIndex index{.start = choices_.one_in(3) ? number_of_arguments(7) : constant(0)};
  const NestLoop* inner = nullptr;
  std::string stride;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    if (loop->role == NestLoop::term) continue;
    if (inner) {
      const std::string next = new_pair();
      head_line("{} = vm.mul.i64 {}, {}", next, stride.empty() ? constant(1) : stride, inner->limit);
      if (choices_.one_in(8))
        head_line(
            "{} = vm.add.i64 {}, {}", next, next,
            choices_.one_in(2) ? constant(choices_.one_of<int64_t>({-1, 1, 3, -2})) : number_of_arguments(3));
      stride = next;
    }
    index.strides.push_back({loop->counter, stride});
    inner = &*loop;
  }
  std::reverse(index.strides.begin(), index.strides.end());
  return index;
}

// Of A: windows over rows and terms; or, as in depthwise convolutions, with the outputs contiguous.
NestIndex ContractionWriter::rows_index(const NestLoops& loops) {
  NestIndex index{.start = choices_.one_in(2) ? number_of_arguments(7) : constant(0)};
  int64_t left = elements() - 8;
  const bool has_outputs = choices_.one_in(5);
  const NestLoop* innermost = nullptr;
  for (const NestLoop& loop : loops)
    if (loop.role == NestLoop::term) innermost = &loop;
  for (const NestLoop& loop : loops) {
    if (loop.role == NestLoop::output) {
      if (!has_outputs) continue;
      left -= loop.most;
      index.strides.push_back({loop.counter, ""});
    } else if (loop.role == NestLoop::row) {
      index.strides.push_back({loop.counter, fitting({1, 2, 3, 17, 32, 70}, loop.most, left)});
    } else {
      index.strides.push_back({loop.counter, &loop == innermost && !has_outputs && !choices_.one_in(4)
                                                 ? ""
                                                 : fitting({1, 2, 3, 5, 16, 20}, loop.most, left)});
    }
  }
  if (choices_.one_in(24)) index.strides.erase(index.strides.begin());  // the same for all
  return index;
}

// Of B: outputs are contiguous, or terms are, or neither; sometimes each row has a matrix of its own.
NestIndex ContractionWriter::outputs_index(const NestLoops& loops) {
  NestIndex index{.start = choices_.one_in(3) ? number_of_arguments(7) : constant(0)};
  int64_t left = elements() - 8;
  const uint32_t form = choices_.below(8);  // up to 4: outputs are contiguous; 5 and 6: terms; 7: neither
  const bool has_rows = choices_.one_in(6);
  const NestLoop* innermost = nullptr;
  for (const NestLoop& loop : loops)
    if (loop.role == NestLoop::term) innermost = &loop;
  for (const NestLoop& loop : loops) {
    if (loop.role == NestLoop::row) {
      if (has_rows && index.strides.empty())
        index.strides.push_back({loop.counter, fitting({4, 9, 20}, loop.most, left)});
    } else if (loop.role == NestLoop::output) {
      if (form <= 4) {
        left -= loop.most;
        index.strides.push_back({loop.counter, ""});
      } else if (form <= 6 && innermost->is_known && innermost->most * loop.most <= left) {
        left -= innermost->most * loop.most;
        index.strides.push_back({loop.counter, innermost->limit});
      } else {
        index.strides.push_back({loop.counter, fitting({2, 3, 5, 12}, loop.most, left)});
      }
    } else if (&loop == innermost && form > 4 && form <= 6) {
      index.strides.push_back({loop.counter, ""});
    } else {
      index.strides.push_back({loop.counter, fitting({1, 4, 9, 16, 17, 24, 32, 48}, loop.most, left)});
    }
  }
  return index;
}

// ---- bodies

std::string ContractionWriter::load_factor(uint32_t buffer, const char* access, const std::string& index,
                                           const std::string& offset, bool is_subtracted) {
  std::string value = new_value(element_.factor_type);
  line("{} = vm.buffer.load.{} %r{}, {}", value, access, buffer, index);
  if (!offset.empty())
    line("{} = vm.{}.{} {}, {}", value, is_subtracted ? "sub" : "add", element_.factor_type, value, offset);
  if (!element_.is_converted()) return value;
  const std::string converted = new_value(element_.type);
  line("{} = vm.cast.si32.f32 {}", converted, value);
  return converted;
}

// The element, or 0 at the padded edge.
std::string ContractionWriter::load_padded(uint32_t buffer, const std::string& index) {
  const std::string shifted = new_pair(), kept = new_pair(), value = new_value(element_.type);
  const std::string padding = new_value(element_.type), inside = new_single();
  line("{} = vm.sub.i64 {}, {}", shifted, index, constant(5));
  line("{} = vm.max.i64.s {}, {}", kept, shifted, constant(0));
  line("{} = vm.buffer.load.{} %r{}, {}", value, element_.factor, buffer, kept);
  line("{} = vm.cmp.lt.i64.s {}, {}", inside, shifted, constant(0));
  line("{} = vm.const.{}.zero", padding, element_.type);
  line("{} = vm.select.{} {} ? {} : {}", value, element_.type, inside, padding, value);
  return value;
}

// The sum with one more term.
std::string ContractionWriter::term(const std::string& a, const std::string& b, const std::string& sum) {
  const std::string product = new_value(element_.type);
  const char* const type = element_.type;
  const auto binary = [&](std::string_view name, const std::string& x, const std::string& y) {
    line("{} = vm.{}.{} {}, {}", product, name, type, x, y);
  };
  const std::string_view suffix = element_.is_float() ? "" : ".s";
  const auto choose = [&](std::string_view name, const std::string& x, const std::string& y) {
    line("{} = vm.{}.{}{} {}, {}", product, name, type, suffix, x, y);
  };
  switch (element_.is_small() ? choices_.below(3) : choices_.below(12)) {
    case 8:
      binary("mul", a, b);
      binary("sub", sum, product);
      break;
    case 9:
      choose(choices_.one_of({"max", "min"}), sum, a);
      break;
    case 10:
      binary("add", sum, choices_.one_in(2) ? a : b);
      break;
    case 11:
      binary("sub", a, b);
      line("{} = vm.abs.{} {}", product, type, product);
      if (!element_.is_float() && choices_.one_in(2))
        binary("xor", sum, product);
      else
        binary("add", sum, product);
      break;
    case 7:
      binary("mul", b, a);
      binary("add", product, sum);
      break;
    default:
      line("{} = vm.fma.{} {}, {}, {}", product, type, a, b, sum);
  }
  return product;
}

void ContractionWriter::fill(const NestLoops& loops) {
  const NestLoops own = [&] {
    NestLoops made = without_terms(loops);
    if (choices_.one_in(10)) made.front().limit = number_of_arguments(15);  // perhaps fewer or more than sums
    return made;
  }();
  const NestIndex index = choices_.one_in(12) ? sums_index(own) : to_sums_;
  const std::string value = float_or_integer(choices_.one_of({0.0, 0.5, -1.0}), element_.type);
  nest(own, {index}, [&](const std::vector<std::string>& at) {
    line("vm.buffer.store.{} {}, %r{}, {}", element_.store, value, sums_, at[0]);
  });
}

void ContractionWriter::add_terms(const NestLoops& loops) {
  std::vector<NestIndex> indices = {rows_index(loops), outputs_index(loops), to_sums_};
  const bool has_second = !element_.is_small() && choices_.one_in(10);
  if (has_second) indices.push_back(outputs_index(loops));
  const bool has_two_sums = has_second && choices_.one_in(2);
  const bool is_padded = !element_.is_small() && choices_.one_in(10);
  const uint32_t offsets = element_.is_small() ? choices_.below(4) : 0;
  std::string of_a, of_b;
  if (offsets & 1) of_a = float_or_integer(-32, element_.factor_type);
  if (offsets & 2) {
    const std::string wide = number_of_arguments(choices_.one_in(4) ? 0x7FFF : 0xFF);
    of_b = new_value(element_.factor_type);
    head_line("{} = vm.trunc.i64.i32 {}", of_b, wide);
  }
  const char* const second = element_.factor[1] == '8' && choices_.one_in(3) ? "i8.s" : element_.factor;
  const bool is_guarded = choices_.one_in(20);
  nest(loops, indices, [&](const std::vector<std::string>& at) {
    const auto add = [&] {
      const std::string a = is_padded && !element_.is_small()
                                ? load_padded(a_, at[0])
                                : load_factor(a_, element_.factor, at[0], of_a, true);
      const std::string b = load_factor(b_, second, at[1], of_b, false);
      const std::string sum = new_value(element_.type);
      line("{} = vm.buffer.load.{} %r{}, {}", sum, element_.load, sums_, at[2]);
      std::string added = term(a, b, sum);
      if (has_second) {
        const std::string c = load_factor(b_, element_.factor, at[3], "", false);
        if (has_two_sums) {
          const std::string other = new_value(element_.type);
          line("{} = vm.buffer.load.{} %r{}, {}", other, element_.load, results_, at[2]);
          line("vm.buffer.store.{} {}, %r{}, {}", element_.store, term(a, c, other), results_, at[2]);
        } else {
          added = term(a, c, added);
        }
      }
      line("vm.buffer.store.{} {}, %r{}, {}", element_.store, added, sums_, at[2]);
    };
    if (!is_guarded) return add();
    const std::string inside = new_single();
    line("{} = vm.cmp.lt.i64.s {}, {}", inside, at[0], constant(elements() / 2));
    only_if(inside, add);
  });
}

// As a compiler may write it if sums need not be in memory: the loops over terms are in those over outputs,
// and add in a register.
void ContractionWriter::add_in_register(const NestLoops& loops) {
  const NestLoops around = without_terms(loops);
  NestLoops terms;
  std::copy_if(loops.begin(), loops.end(), std::back_inserter(terms),
               [](const NestLoop& loop) { return loop.role == NestLoop::term; });
  const NestIndex of_a = rows_index(loops), of_b = outputs_index(loops);
  nest(around, {to_sums_}, [&](const std::vector<std::string>& at) {
    const std::string sum = new_value(element_.type);
    line("{} = vm.buffer.load.{} %r{}, {}", sum, element_.load, sums_, at[0]);
    std::vector<std::string> begin = {of_a.start, of_b.start};
    for (const NestLoop& loop : around) {
      advance(of_a, loop, begin[0]);
      advance(of_b, loop, begin[1]);
    }
    std::vector<std::string> index = begin;
    std::function<void(size_t)> add_from = [&](size_t level) {
      if (level == terms.size()) {
        const std::string a = load_factor(a_, element_.factor, index[0], "", false);
        const std::string b = load_factor(b_, element_.factor, index[1], "", false);
        line("{} = vm.fma.{} {}, {}, {}", sum, element_.type, a, b, sum);
        return;
      }
      const std::vector<std::string> outer = index;
      loop(terms[level], [&] {
        advance(of_a, terms[level], index[0]);
        advance(of_b, terms[level], index[1]);
        add_from(level + 1);
      });
      index = outer;
    };
    add_from(0);
    line("vm.buffer.store.{} {}, %r{}, {}", element_.store, sum, sums_, at[0]);
  });
}

void ContractionWriter::compute_results(const NestLoops& loops) {
  const NestLoops own = without_terms(loops);
  const bool is_in_place = results_ == sums_;
  const bool is_same = is_in_place || choices_.one_in(2);
  const uint32_t form = choices_.below(4);  // bias, residual, one for each row, none
  std::vector<NestIndex> indices = {to_sums_, is_same ? to_sums_ : sums_index(own)};
  NestIndex of_other{.start = constant(choices_.below(3))};
  for (const NestLoop& loop : own)
    if (form == 0 ? loop.role == NestLoop::output : form == 2 && loop.role == NestLoop::row)
      of_other.strides.push_back({loop.counter, ""});
  if (form == 1) of_other = indices[choices_.below(2)];
  to_results_ = indices[1];
  indices.push_back(of_other);
  const uint32_t other = form == 1 && choices_.one_in(3) ? results_ : other_;
  const uint32_t activation = choices_.below(4);
  const std::string low = float_or_integer(0, element_.type), high = float_or_integer(6, element_.type);
  const char* const combine = choices_.one_of({"add", "add", "sub", "mul"});
  const bool calls = element_.bytes == 4 && element_.is_float() && choices_.one_in(12);
  const bool is_discarded =
      choices_.one_in(3) && b_ >= kFirstOwn && b_ != a_ && b_ != sums_ && b_ != results_ && b_ != other;
  if (is_discarded) line("vm.discard.refs %r{}", b_);
  nest(own, indices, [&](const std::vector<std::string>& at) {
    const std::string value = new_value(element_.type), addend = new_value(element_.type);
    line("{} = vm.buffer.load.{} %r{}, {}", value, element_.load, sums_, at[0]);
    if (form != 3) {
      line("{} = vm.buffer.load.{} %r{}, {}", addend, element_.load, other, at[2]);
      line("{} = vm.{}.{} {}, {}", value, combine, element_.type, value, addend);
    }
    const std::string_view suffix = element_.is_float() ? "" : ".s";
    if (activation != 0) line("{} = vm.max.{}{} {}, {}", value, element_.type, suffix, value, low);
    if (activation > 1) line("{} = vm.min.{}{} {}, {}", value, element_.type, suffix, value, high);
    if (calls) line("{} = vm.exp.f32 {}", value, value);
    line("vm.buffer.store.{} {}, %r{}, {}", element_.store, value, results_, at[1]);
  });
  if (is_discarded) line("%r{} = vm.const.ref.rodata {}", b_, static_cast<uint32_t>(kPlain));
}

// Nests after the results. Each stores elements that follow from those of the nest before it, and perhaps
// from others. Their buffers have the size that the loops fill, if it is known.
void ContractionWriter::chain(const NestLoops& loops) {
  const NestLoops own = without_terms(loops);
  NestIndex dense{.start = constant(0)};
  int64_t elements = 1;
  for (auto loop = own.rbegin(); loop != own.rend(); ++loop) {
    dense.strides.insert(dense.strides.begin(), {loop->counter, elements == 1 ? "" : constant(elements)});
    elements *= std::max<int64_t>(loop->most, 1);
  }
  const std::string alignment = new_single();
  head_line("{} = vm.const.i32.zero", alignment);
  struct Stored {
    uint32_t buffer;
    NestIndex at;
  };
  std::vector<Stored> stored = {{results_, to_results_}};
  // More loops would take too long to compile.
  const uint32_t count = 1 + choices_.below(own.size() <= 2 ? 4 : 2);
  for (uint32_t i = 0; i < count; ++i) {
    const auto next = static_cast<uint32_t>(kFirstChained + stored.size() - 1);
    const bool is_old = choices_.one_in(8);
    Stored to = {is_old ? kFirstOwn + choices_.below(kOwn) : next,
                 choices_.one_in(8) ? sums_index(own) : dense};
    if (!is_old)
      head_line("%r{} = vm.buffer.alloc {}, {}", to.buffer,
                constant(elements * element_.bytes + (choices_.one_in(6) ? choices_.one_of({-4, 4, 64}) : 0)),
                alignment);
    const Stored from = choices_.one_in(6) ? choices_.pick(stored) : stored.back();
    const Stored other = choices_.one_in(3) ? Stored{other_, to_sums_} : choices_.pick(stored);
    const char* const combine = choices_.one_of({"add", "mul", "sub"});
    const bool has_other = choices_.one_in(2);
    const std::string factor = float_or_integer(0.75, element_.type);
    nest(own, {from.at, other.at, to.at}, [&](const std::vector<std::string>& at) {
      const std::string value = new_value(element_.type), second = new_value(element_.type);
      line("{} = vm.buffer.load.{} %r{}, {}", value, element_.load, from.buffer, at[0]);
      if (has_other) line("{} = vm.buffer.load.{} %r{}, {}", second, element_.load, other.buffer, at[1]);
      line("{} = vm.{}.{} {}, {}", value, combine, element_.type, value, has_other ? second : factor);
      line("vm.buffer.store.{} {}, %r{}, {}", element_.store, value, to.buffer, at[2]);
    });
    stored.push_back(to);
  }
  chained_.push_back(stored.back().buffer);
}

// ---- the function

void ContractionWriter::contraction() {
  const auto own = [&](uint32_t buffer) {
    return choices_.one_in(40) ? choices_.below(3)
                               : kFirstOwn + (choices_.one_in(24) ? choices_.below(kOwn) : buffer);
  };
  const auto read = [&](uint32_t buffer) { return choices_.one_in(10) ? kPlainRef : own(buffer); };
  a_ = read(0);
  b_ = choices_.one_in(12) ? a_ : read(1);
  sums_ = own(2);
  results_ = choices_.one_in(3) ? sums_ : own(3);
  other_ = read(4);
  const NestLoops loops = choose_loops();
  const size_t around = without_terms(loops).size();
  coalesced_ = choices_.one_in(7) && around >= 2 ? 2 + choices_.below(static_cast<uint32_t>(around) - 1) : 0;
  // Loops that begin elsewhere cannot be coalesced, and coalesced ones are the outermost.
  for (size_t level = 0; level < coalesced_; ++level)
    if (!loops[level].begin.empty() || loops[level].role == NestLoop::term) coalesced_ = 0;
  is_hoisted_ = choices_.one_in(3);
  tests_last_ = choices_.one_in(4);
  to_sums_ = sums_index(loops);
  const bool has_fill = !choices_.one_in(4), has_results = !choices_.one_in(4);
  const auto all = [&](bool fills) {
    if (fills) fill(loops);
    if (choices_.one_in(16))
      add_in_register(loops);
    else
      add_terms(loops);
    to_results_ = to_sums_;
    if (has_results) compute_results(loops);
    if (!has_results) results_ = sums_;
    if (loops.size() <= 5 && choices_.one_in(3)) chain(loops);
  };
  switch (choices_.below(12)) {
    case 0: {  // twice
      const NestLoop times{.counter = new_pair(), .begin = "", .limit = constant(2)};
      loop(times, [&] { all(has_fill); });
      break;
    }
    case 1: {  // if a number says so
      const std::string number = number_of_arguments(1), inside = new_single();
      head_line("{} = vm.cmp.eq.i64 {}, {}", inside, number, constant(0));
      only_if(inside, [&] { all(has_fill); });
      break;
    }
    default:
      all(has_fill);
  }
}

void ContractionWriter::hash(uint32_t buffer) {
  const std::string of_buffer = new_pair(), bytes = new_pair();
  line("{} = vm.buffer.length %r{}", bytes, buffer);
  line("{} = vm.buffer.hash %r{}, {}, {}", of_buffer, buffer, constant(0), bytes);
  line("{} = vm.fma.i64 {}, {}, {}", hash_, hash_, constant(31), of_buffer);
}

std::string ContractionWriter::write() {
  element_ = kSumElements[choices_.below(std::size(kSumElements))];
  mixed_ = new_pair();
  hash_ = new_pair();
  condition_ = new_single();
  head_line("{} = vm.fma.i64 %i0:1, {}, %i2:3", mixed_, constant(0x10001));
  head_line("{} = vm.fma.i64 {}, {}, %i4:5", mixed_, mixed_, constant(0x9E3779B97F4A7C1));
  head_line("{} = vm.const.i64.zero", hash_);
  fill_buffers();
  contraction();
  // Sums are not needed after their results are computed, unless they are hashed.
  std::vector<uint32_t> hashed = {results_};
  if (choices_.one_in(2)) hashed.push_back(sums_);
  if (chained_.empty() && choices_.one_in(5)) {
    contraction();
    hashed.push_back(results_);
    if (choices_.one_in(2)) hashed.push_back(sums_);
  }
  hashed.insert(hashed.end(), chained_.begin(), chained_.end());
  for (uint32_t buffer = kFirstOwn; buffer < kFirstChained + kMostChained; ++buffer)
    if (std::find(hashed.begin(), hashed.end(), buffer) != hashed.end()) hash(buffer);
  line("vm.return {}", hash_);
  return fmt::format(
      "vm.func @f{}(%r0: !vm.ref<?>, %r1: !vm.ref<?>, %r2: !vm.ref<?>, %i0:1: i64, %i2:3: i64, %i4:5: i64) "
      "-> "
      "(i64) {{\n  .requires ext_f32, ext_f64\n{}{}}}\n",
      number_, head_, text_);
}

std::string hex_of(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

template <typename T>
void append(std::vector<uint8_t>& bytes, T number) {
  const auto* const first = reinterpret_cast<const uint8_t*>(&number);
  bytes.insert(bytes.end(), first, first + sizeof number);
}

// Words that are floats of either sign between 1/4 and 8; as f64, two of them are small numbers, too.
void append_plain(std::vector<uint8_t>& bytes, size_t count, Choices& choices) {
  for (size_t i = 0; i < count; ++i)
    append(bytes, static_cast<uint32_t>((choices.bits(4) & 0x81FFFFFF) + 0x3E800000));
}

std::vector<uint8_t> segment_of(Segment segment, Choices& choices) {
  std::vector<uint8_t> bytes;
  const auto table = [&](std::initializer_list<int64_t> numbers) {
    for (uint32_t i = 0; i < kTableEntries; ++i) append(bytes, choices.one_of(numbers));
  };
  switch (segment) {
    case kPlain:
      append_plain(bytes, (kBufferBytes + kMostShift + 8) / 4, choices);
      break;
    case kSpecial32:
      while (bytes.size() < kSpecialBytes) {
        append_plain(bytes, choices.below(20), choices);
        append(bytes, choices.one_of<uint32_t>(
                          {0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF000001}));
      }
      break;
    case kSpecial64:
      while (bytes.size() < kSpecialBytes) {
        append_plain(bytes, 2 * choices.below(10), choices);
        append(bytes,
               choices.one_of<uint64_t>({0, 0x8000000000000000, 1, 0x800FFFFFFFFFFFFF, 0x7FF0000000000000,
                                         0xFFF0000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFE0000000000001}));
      }
      break;
    case kRowCounts:
      table({-1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 25});
      break;
    case kOutputCounts:
      table({0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 31, 33, 48});
      break;
    case kTermCounts:
      table({0, 1, 1, 2, 3, 4, 5, 8, 9});
      break;
  }
  if (segment == kSpecial32 || segment == kSpecial64) bytes.resize(kSpecialBytes);
  return bytes;
}

}  // namespace

std::string generate_contractions(Choices& choices, uint32_t functions) {
  std::string text = "vm.module @m\nvm.type !vm.buffer\nvm.type f32\nvm.type f64\n";
  for (const Segment segment : {kPlain, kSpecial32, kSpecial64, kRowCounts, kOutputCounts, kTermCounts})
    text += fmt::format("vm.rodata[{}] = {}\n", static_cast<uint32_t>(segment),
                        hex_of(segment_of(segment, choices)));
  for (uint32_t i = 0; i < functions; ++i) text += fmt::format("vm.export @f{}\n", i);
  for (uint32_t i = 0; i < functions; ++i) text += ContractionWriter(choices, i).write();
  return text;
}

}  // namespace halyard::vm::test
