// Finds functions, creates dispatches, compares words.
#include "kernels.h"

#include <cstring>

#include "bytes.h"

namespace halyard::cts {

void each_function(Session& s, Executable executable, const UseFunction& use) {
  const uint32_t count = s.table().executable_function_count(executable);
  for (uint32_t i = 0; i < count; ++i) {
    halyard_function_info_t info = {.struct_size = sizeof info};
    s.must("executable_function_info", fmt::format("executable_function_info of function {} of {}", i, count),
           s.take(s.table().executable_function_info(executable, i, &info)));
    use(i, info, {info.name.data, info.name.size});
  }
}

std::vector<Kernel> kernels(Session& s, std::string_view name, uint32_t bindings, uint32_t constants) {
  std::vector<Kernel> found;
  for (const Program* program : s.programs()) {
    const Executable executable = s.executable(*program);
    each_function(s, executable, [&](uint32_t function, const auto& info, std::string_view its_name) {
      if (its_name != name) return;
      if (info.binding_count != HALYARD_COUNT_UNDECLARED)
        s.equal("R93", fmt::format("binding_count of '{}'", name), bindings, info.binding_count);
      s.equal("R93", fmt::format("constant_count of '{}'", name), constants, info.constant_count);
      found.push_back({executable, function});
    });
  }
  if (found.empty()) unsupported(fmt::format("no program at hand has a function '{}'", name));
  return found;
}

halyard_command_dispatch_t command(const Kernel& kernel, const Dispatch& d) {
  halyard_command_dispatch_t made = {};
  made.header = {sizeof made, HALYARD_COMMAND_DISPATCH};
  made.executable = kernel.executable;
  made.function = kernel.function;
  made.workgroups[0] = d.x;
  made.workgroups[1] = d.y;
  made.workgroups[2] = d.z;
  made.constant_count = static_cast<uint32_t>(d.constants.size());
  made.constants = d.constants.data();
  made.binding_count = static_cast<uint32_t>(d.bindings.size());
  made.bindings = d.bindings.data();
  if (d.indirect) {
    made.flags = HALYARD_DISPATCH_INDIRECT;
    made.indirect = *d.indirect;
  }
  return made;
}

Memory words(Session& s, const Words& values) { return s.allocate(bytes_of(values)); }

bool words_are(Session& s, std::string_view rule, const std::string& what, const Words& expected,
               const Memory& memory) {
  const std::vector<uint8_t> bytes = s.read(memory, 0, expected.size() * 4);
  Words found(expected.size());
  if (!found.empty()) std::memcpy(found.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (expected[i] != found[i])
      return s.check(rule, false, fmt::format("{}: word {}", what, i), fmt::format("{}", expected[i]),
                     fmt::format("{}", found[i]));
  return s.check(rule, true, what, "", "");
}

Words iota(size_t count, uint32_t base, uint32_t step) {
  Words values(count);
  for (size_t i = 0; i < count; ++i) values[i] = base + static_cast<uint32_t>(i) * step;
  return values;
}

}  // namespace halyard::cts
