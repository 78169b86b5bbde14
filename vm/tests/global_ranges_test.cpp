// The limits of the globals: every width at every offset around both ends, and at offsets that wrap if the
// width is added in 32 bits.
#include <limits>

#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

struct Access {
  const char* type;
  ValueType value;
  int64_t width;  // bytes
  uint64_t bits;  // with different bytes
};
constexpr Access kAccesses[] = {
    {"i32", ValueType::i32, 4, 0x44332211},
    {"f32", ValueType::f32, 4, 0x44332211},
    {"i64", ValueType::i64, 8, 0x7766554433221100},
    {"f64", ValueType::f64, 8, 0x7766554433221100},
};

std::string module_with(int64_t words) {
  std::string text = "vm.module @m\n";
  for (int64_t i = 0; i < words; ++i) text += fmt::format("vm.global.i32 mutable @g{}\n", i);
  for (const Access& access : kAccesses) {
    const char* const value = access.width == 8 ? "%i2:3" : "%i2";
    text += fmt::format(
        "vm.export @load_{0}\nvm.func @load_{0}(%i0: i32) -> ({0}) {{\n  {1} = vm.global.load.indirect.{0} "
        "%i0\n"
        "  vm.return {1}\n}}\n"
        "vm.export @store_{0}\nvm.func @store_{0}(%i0: i32, {2}: {0}) -> () {{\n"
        "  vm.global.store.indirect.{0} %i0, {2}\n  vm.return\n}}\n",
        access.type, value, access.width == 8 ? "%i2:3" : "%i1");
  }
  return text;
}

TEST(GlobalRanges, EveryWidthAtEveryOffset) {
  for (const int64_t words : {1, 2, 3, 5}) {
    Machine machine(module_with(words));
    const int64_t size = 4 * words;
    std::vector<int64_t> offsets = {std::numeric_limits<int32_t>::min(),
                                    std::numeric_limits<int32_t>::max() - 3,
                                    std::numeric_limits<int32_t>::max()};
    for (int64_t offset = -12; offset <= size + 12; ++offset) offsets.push_back(offset);
    for (const Access& access : kAccesses) {
      const std::string load = std::string("load_") + access.type;
      const std::string store = std::string("store_") + access.type;
      const Variant stored = Variant::value(access.value, access.bits);
      const Variant zero = Variant::value(access.value, 0);
      for (const int64_t offset : offsets) {
        SCOPED_TRACE(fmt::format("{} at {} of {} bytes", access.type, offset, size));
        if (offset >= 0 && offset + access.width <= size) {
          machine.expect(store, {i32(offset), stored}, {});
          machine.expect(load, {i32(offset)}, {stored});
          machine.expect(store, {i32(offset), zero}, {});
        } else {
          machine.expect_failure(load, {i32(offset)}, Code::OUT_OF_RANGE);
          machine.expect_failure(store, {i32(offset), stored}, Code::OUT_OF_RANGE);
        }
      }
      // A rejected access has changed nothing.
      for (int64_t word = 0; word < words; ++word) machine.expect("load_i32", {i32(4 * word)}, {i32(0)});
    }
  }
}

}  // namespace
}  // namespace halyard::vm::test
