// Dispatches of the functions in docs/hal-cts.md, and memory of words for them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "session.h"

namespace halyard::cts {

using Words = std::vector<uint32_t>;

// Calls `use` for each of its functions, with its number and name, before it asks for the next one.
using UseFunction =
    std::function<void(uint32_t number, const halyard_function_info_t& info, std::string_view name)>;
void each_function(Session& s, Executable executable, const UseFunction& use);

// The names of the functions that cases dispatch.
inline constexpr std::string_view kFunctions[] = {"iota", "add", "increment", "spread", "place", "refuse"};

struct Kernel {
  Executable executable = nullptr;
  uint32_t function = 0;
};

// The function of that name in each program that has it; it must declare these counts. Unsupported: no
// program has it.
std::vector<Kernel> kernels(Session& s, std::string_view name, uint32_t bindings, uint32_t constants);

struct Dispatch {
  uint32_t x = 1, y = 1, z = 1;
  Words constants;
  std::vector<halyard_range_t> bindings;
  const halyard_range_t* indirect = nullptr;
};

// Borrows the constants and bindings.
halyard_command_dispatch_t command(const Kernel& kernel, const Dispatch& d);

Memory words(Session& s, const Words& values);
// Reports the first word that differs. Returns whether all words are equal.
bool words_are(Session& s, std::string_view rule, const std::string& what, const Words& expected,
               const Memory& memory);
Words iota(size_t count, uint32_t base, uint32_t step);

}  // namespace halyard::cts
