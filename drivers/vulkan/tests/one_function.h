// Executables made by tests: one function in the format vulkan-spirv-fb, which a test can modify.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vulkan_executable_generated.h"

namespace halyard::vulkan_tests {

namespace format = vulkan::format;
using Change = std::function<void(format::ExecutableT&)>;

// The words of a file that the build creates from the shaders of these tests.
std::vector<uint32_t> kernel_words(const std::string& name);

// An executable with one function, modified by `change`, without a header.
std::vector<uint8_t> one_function(const std::string& shader, uint32_t bindings, uint32_t push,
                                  const Change& change = {});

}  // namespace halyard::vulkan_tests
