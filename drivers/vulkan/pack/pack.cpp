// vulkan-pack: creates an executable in the format vulkan-spirv-fb (or, with --bda, vulkan-spirv-bda-v1) from
// SPIR-V modules that were compiled by hand, one function for each:
//
//   vulkan-pack OUT [--bare] [--bda] [--subgroup=N] NAME:BINDINGS:CONSTANTS=FILE.spv...
//
// Bindings are storage buffers 0..BINDINGS-1 of set 0. --bare omits the header, as in releases up to v3.8.
// docs/vulkan.md shows how to use it.
#include <fmt/core.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vulkan_executable_generated.h"

namespace {

namespace format = halyard::vulkan::format;

constexpr uint32_t kStorageBuffer = 7;
constexpr uint32_t kCompute = 0x20;
constexpr uint32_t kRootSize = 32;  // bytes of push constants before the constants of the address form

struct Function {
  std::string name;
  uint32_t bindings = 0;
  uint32_t constants = 0;
  std::string file;
};

struct Request {
  std::string output;
  bool bare = false;
  bool by_address = false;
  uint32_t subgroup_size = 0;
  std::vector<Function> functions;
};

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Function> parse_function(std::string_view text) {
  const size_t first = text.find(':');
  const size_t second = text.find(':', first + 1);
  const size_t equals = text.find('=', second + 1);
  if (first == 0 || first == std::string_view::npos || second == std::string_view::npos ||
      equals == std::string_view::npos)
    return std::nullopt;
  const auto bindings = number(text.substr(first + 1, second - first - 1));
  const auto constants = number(text.substr(second + 1, equals - second - 1));
  if (!bindings || !constants) return std::nullopt;
  return Function{std::string(text.substr(0, first)), *bindings, *constants,
                  std::string(text.substr(equals + 1))};
}

// nullopt, with a message, if the file is not SPIR-V.
std::optional<std::vector<uint32_t>> read_words(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fmt::print(stderr, "vulkan-pack: cannot read '{}': {}; check the path\n", path, std::strerror(errno));
    return std::nullopt;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || bytes.empty() || bytes.size() % 4 != 0) {
    fmt::print(stderr, "vulkan-pack: '{}' is no SPIR-V module; expected a file of 32-bit words\n", path);
    return std::nullopt;
  }
  std::vector<uint32_t> words(bytes.size() / 4);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(words.data()));
  return words;
}

// Adds one function with its own layout.
bool add(const Request& request, const Function& function, format::ExecutableT& executable) {
  const auto words = read_words(function.file);
  if (!words) return false;
  auto module = std::make_unique<format::ShaderModuleT>();
  module->code = *words;
  auto layout = std::make_unique<format::PipelineLayoutT>();
  const uint32_t constants = function.constants * 4 + (request.by_address ? kRootSize : 0);
  if (constants != 0) layout->push_constants.emplace_back(kCompute, 0, constants);
  auto pipeline = std::make_unique<format::PipelineT>();
  pipeline->shader_module = static_cast<uint32_t>(executable.shader_modules.size());
  pipeline->layout = static_cast<uint32_t>(executable.pipeline_layouts.size());
  pipeline->entry_point = function.name;
  pipeline->subgroup_size = request.subgroup_size;
  if (request.by_address) {
    pipeline->abi = format::Abi::Addresses;
    pipeline->addresses = std::make_unique<format::AddressLayoutT>();
    pipeline->addresses->constant_count = function.constants;
    pipeline->addresses->binding_count = function.bindings;
  } else {
    auto set = std::make_unique<format::SetLayoutT>();
    for (uint32_t i = 0; i < function.bindings; ++i) {
      auto binding = std::make_unique<format::BindingT>();
      binding->binding = i;
      binding->type = kStorageBuffer;
      binding->count = 1;
      binding->stages = kCompute;
      set->bindings.push_back(std::move(binding));
    }
    layout->sets.push_back(static_cast<uint32_t>(executable.set_layouts.size()));
    executable.set_layouts.push_back(std::move(set));
  }
  executable.shader_modules.push_back(std::move(module));
  executable.pipeline_layouts.push_back(std::move(layout));
  executable.pipelines.push_back(std::move(pipeline));
  return true;
}

int run(const Request& request) {
  format::ExecutableT executable;
  for (const Function& function : request.functions)
    if (!add(request, function, executable)) return 1;
  flatbuffers::FlatBufferBuilder builder;
  format::FinishExecutableBuffer(builder, format::Executable::Pack(builder, &executable));
  std::ofstream file(request.output, std::ios::binary);
  if (!request.bare) {
    constexpr size_t kHeaderSize = 64;
    std::string header(format::ExecutableIdentifier());
    header.resize(8, '\0');  // version 0
    const uint64_t size = builder.GetSize();
    header.append(reinterpret_cast<const char*>(&size), sizeof size);
    header.resize(kHeaderSize, '\0');
    file << header;
  }
  file.write(reinterpret_cast<const char*>(builder.GetBufferPointer()),
             static_cast<std::streamsize>(builder.GetSize()));
  file.flush();
  if (file) return 0;
  fmt::print(stderr, "vulkan-pack: cannot write '{}'\n", request.output);
  return 1;
}

constexpr char kUsage[] =
    R"(usage: vulkan-pack OUT [--bare] [--bda] [--subgroup=N] NAME:BINDINGS:CONSTANTS=FILE.spv...

Makes an executable for `vulkan` devices of SPIR-V compute shaders, each one function with so many bindings
and 32-bit constants.

  --bare        without the header, as compilers wrote it up to IREE 3.8
  --bda         bindings are found by address (format vulkan-spirv-bda-v1)
  --subgroup=N  demand subgroups of N invocations

Example:
  glslangValidator -V --target-env vulkan1.2 -e mul --source-entrypoint main -o mul.spv mul.comp
  vulkan-pack mul.bin mul:3:1=mul.spv
)";

int usage(std::string_view wrong) {
  fmt::print(stderr, "vulkan-pack: {}; see vulkan-pack --help\n", wrong);
  return 1;
}

int not_understood(std::string_view argument) {
  return usage(fmt::format("'{}' is not understood; expected NAME:BINDINGS:CONSTANTS=FILE.spv or an option",
                           argument));
}

}  // namespace

int main(int count, char** arguments) {
  Request request;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    constexpr std::string_view kSubgroup = "--subgroup=";
    if (argument == "--help") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (argument == "--bare") {
      request.bare = true;
    } else if (argument == "--bda") {
      request.by_address = true;
    } else if (argument.starts_with(kSubgroup)) {
      const auto size = number(argument.substr(kSubgroup.size()));
      if (!size) return usage(fmt::format("'{}': expected a number of invocations", argument));
      request.subgroup_size = *size;
    } else if (request.output.empty()) {
      request.output = argument;
    } else if (const auto function = parse_function(argument)) {
      request.functions.push_back(*function);
    } else {
      return not_understood(argument);
    }
  }
  if (request.functions.empty()) return usage("no function to pack");
  return run(request);
}
