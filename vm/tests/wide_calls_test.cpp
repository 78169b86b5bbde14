// Values of 32 and 64 bits through internal calls: every sequence of up to four of them, as arguments and,
// reversed, as results, keeps all bits.
#include <fmt/ranges.h>

#include <algorithm>

#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

struct Kind {
  const char* type;
  ValueType value;
  bool wide;
};
constexpr Kind kKinds[] = {{"i32", ValueType::i32, false},
                           {"i64", ValueType::i64, true},
                           {"f32", ValueType::f32, false},
                           {"f64", ValueType::f64, true}};

using Order = std::vector<Kind>;

std::vector<Order> all_orders(size_t most) {
  std::vector<Order> orders = {{}};
  for (size_t begin = 0, length = 1; length <= most; ++length) {
    const size_t end = orders.size();
    for (; begin < end; ++begin) {
      for (const Kind& kind : kKinds) {
        Order longer = orders[begin];
        longer.push_back(kind);
        orders.push_back(std::move(longer));
      }
    }
  }
  return orders;
}

// Registers from `first` on; pairs are at even ones.
std::vector<std::string> registers(const Order& order, uint32_t first) {
  std::vector<std::string> names;
  for (const Kind& kind : order) {
    if (kind.wide) first = (first + 1) / 2 * 2;
    names.push_back(kind.wide ? fmt::format("%i{}:{}", first, first + 1) : fmt::format("%i{}", first));
    first += kind.wide ? 2 : 1;
  }
  return names;
}

std::string function(const std::string& name, const Order& order, const std::string& body) {
  const std::vector<std::string> names = registers(order, 0);
  std::string arguments;
  std::string results;
  for (size_t i = 0; i < order.size(); ++i)
    arguments += fmt::format("{}{}: {}", i ? ", " : "", names[i], order[i].type);
  for (size_t i = order.size(); i-- > 0;)
    results += fmt::format("{}{}", results.empty() ? "" : ", ", order[i].type);
  return fmt::format("vm.func @{}({}) -> ({}) {{\n{}}}\n", name, arguments, results, body);
}

// All bytes of a value differ, and so do the values.
uint64_t bits_of(size_t index) { return 0x0102030405060708 + index * 0x1111111111111111; }

TEST(WideCalls, EveryOrderKeepsAllBits) {
  const std::vector<Order> orders = all_orders(4);
  ASSERT_EQ(orders.size(), 341u);
  std::string text = "vm.module @m\n";
  for (size_t i = 0; i < orders.size(); ++i) {
    const Order& order = orders[i];
    Order reversed = order;
    std::ranges::reverse(reversed);
    std::vector<std::string> turned = registers(order, 0);
    std::ranges::reverse(turned);
    const std::string arguments = fmt::format("{}", fmt::join(registers(order, 0), ", "));
    const std::string results = fmt::format("{}", fmt::join(registers(reversed, 21), ", "));
    text += fmt::format("vm.export @outer{}\n", i);
    text += function(fmt::format("outer{}", i), order,
                     fmt::format("  {}vm.call @inner{}({})\n  vm.return {}\n",
                                 results.empty() ? "" : results + " = ", i, arguments, results));
    text +=
        function(fmt::format("inner{}", i), order, fmt::format("  vm.return {}\n", fmt::join(turned, ", ")));
  }
  for (const uint32_t version : {15u, 16u, 17u}) {
    Machine machine(text, version);
    for (size_t i = 0; i < orders.size(); ++i) {
      Values arguments;
      for (size_t k = 0; k < orders[i].size(); ++k)
        arguments.push_back(Variant::value(
            orders[i][k].value, orders[i][k].wide ? bits_of(k) : static_cast<uint32_t>(bits_of(k))));
      Values results = arguments;
      std::ranges::reverse(results);
      SCOPED_TRACE(fmt::format("order {} in version {}", i, version));
      machine.expect(fmt::format("outer{}", i), arguments, results);
    }
  }
}

}  // namespace
}  // namespace halyard::vm::test
