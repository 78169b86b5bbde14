// vulkan-pack: makes an executable for Vulkan devices of SPIR-V modules that were compiled by hand, one
// function for each. docs/vulkan.md shows how to use it.
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/files.h"
#include "common/tool.h"
#include "vulkan_executable_generated.h"

namespace halyard::tools {

namespace {

namespace format = halyard::vulkan::format;

namespace flag {
constexpr Toggle bare = {"bare", "Leaves out the header, as compilers did up to IREE 3.8.", "--bare"};
constexpr Toggle bda = {"bda", "Kernels find their bindings by address: the format is vulkan-spirv-bda-v1.",
                        "--bda"};
constexpr Number subgroup = {"subgroup", "N",
                             "The kernels need subgroups of N invocations. 0, the default: of any size.",
                             "--subgroup=32"};
}  // namespace flag

constexpr const Flag* kFlags[] = {&flag::bare, &flag::bda, &flag::subgroup};
constexpr FlagGroup kGroups[] = {{"", kFlags}};

constexpr std::string_view kFunctionForm = "NAME:BINDINGS:CONSTANTS=FILE.spv";

constexpr ToolDescription kTool = {
    "vulkan-pack",
    "vulkan-pack OUT [flags] NAME:BINDINGS:CONSTANTS=FILE.spv...",
    "Makes an executable for Vulkan devices of SPIR-V compute shaders. Each file becomes one function, with "
    "so "
    "many bindings (storage buffers 0 to BINDINGS - 1 of set 0) and 32-bit constants. The format is "
    "vulkan-spirv-fb, or vulkan-spirv-bda-v1 with --bda.",
    kGroups,
    "  vulkan-pack mul.bin mul:3:1=mul.spv   of glslangValidator -V -e mul --source-entrypoint main -o "
    "mul.spv ...\n"
    "  vulkan-pack sums.bin --subgroup=32 rows:2:1=rows.spv columns:2:1=columns.spv\n",
    kUsualExitCodes,
    "FILE"};

constexpr uint32_t kStorageBuffer = 7;
constexpr uint32_t kCompute = 0x20;
constexpr uint32_t kRootSize = 32;  // bytes of push constants before the constants of the address form

struct Function {
  std::string name;
  uint32_t bindings = 0;
  uint32_t constants = 0;
  std::string file;
};

struct Layout {
  bool by_address = false;
  uint32_t subgroup_size = 0;
};

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<Function> parse_function(std::string_view text) {
  const size_t first = text.find(':');
  const size_t second = text.find(':', first + 1);
  const size_t equals = text.find('=', second + 1);
  if (first != 0 && first != std::string_view::npos && second != std::string_view::npos &&
      equals != std::string_view::npos) {
    const auto bindings = number(text.substr(first + 1, second - first - 1));
    const auto constants = number(text.substr(second + 1, equals - second - 1));
    if (bindings && constants)
      return Function{std::string(text.substr(0, first)), *bindings, *constants,
                      std::string(text.substr(equals + 1))};
  }
  return fail(HALYARD_INVALID_ARGUMENT, "'{}' is no function; expected {}", text, kFunctionForm);
}

Result<std::vector<uint32_t>> read_words(const std::string& path) {
  const FileContents file = TOOL_TRY(FileContents::open(path));
  const std::span<const uint8_t> bytes = file.bytes();
  if (bytes.empty() || bytes.size() % sizeof(uint32_t) != 0)
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "'{}' is no SPIR-V module: it has {} bytes, expected a multiple of {}; compile the shader with "
        "'glslangValidator -V'",
        path, bytes.size(), sizeof(uint32_t));
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  constexpr uint32_t kMagic = 0x07230203;
  if (words[0] != kMagic)
    return fail(HALYARD_INVALID_ARGUMENT,
                "'{}' is no SPIR-V module: its first word is {:#010x}, expected {:#010x}; compile the shader "
                "with 'glslangValidator -V'",
                path, words[0], kMagic);
  return words;
}

// Adds one function with its own layout.
Result<> add(const Layout& form, const Function& function, format::ExecutableT& executable) {
  auto module = std::make_unique<format::ShaderModuleT>();
  module->code = TOOL_TRY(read_words(function.file));
  auto layout = std::make_unique<format::PipelineLayoutT>();
  const uint32_t constants = function.constants * 4 + (form.by_address ? kRootSize : 0);
  if (constants != 0) layout->push_constants.emplace_back(kCompute, 0, constants);
  auto pipeline = std::make_unique<format::PipelineT>();
  pipeline->shader_module = static_cast<uint32_t>(executable.shader_modules.size());
  pipeline->layout = static_cast<uint32_t>(executable.pipeline_layouts.size());
  pipeline->entry_point = function.name;
  pipeline->subgroup_size = form.subgroup_size;
  if (form.by_address) {
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
  return {};
}

std::string with_header(const format::ExecutableT& executable, bool is_bare) {
  flatbuffers::FlatBufferBuilder builder;
  format::FinishExecutableBuffer(builder, format::Executable::Pack(builder, &executable));
  std::string file;
  if (!is_bare) {
    constexpr size_t kHeaderSize = 64;
    file = format::ExecutableIdentifier();
    file.resize(8, '\0');  // version 0
    const uint64_t size = builder.GetSize();
    file.append(reinterpret_cast<const char*>(&size), sizeof size);
    file.resize(kHeaderSize, '\0');
  }
  return file.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

Result<int> pack(const Flags& flags) {
  const std::vector<std::string>& arguments = flags.positional();
  if (arguments.size() < 2)
    return fail(HALYARD_INVALID_ARGUMENT,
                "expected an output file and at least one {}, found {} arguments; usage: {}", kFunctionForm,
                arguments.size(), kTool.usage);
  const uint64_t subgroup_size = TOOL_TRY(flags[flag::subgroup]);
  constexpr uint64_t kMaxSubgroup = 1024;
  if (subgroup_size > kMaxSubgroup || (subgroup_size & (subgroup_size - 1)) != 0)
    return wrong_value(flag::subgroup, flags.given(flag::subgroup).back(),
                       "0, or a power of two up to 1024 invocations");
  const Layout form = {flags[flag::bda], static_cast<uint32_t>(subgroup_size)};
  format::ExecutableT executable;
  for (size_t i = 1; i < arguments.size(); ++i)
    TOOL_TRY(add(form, TOOL_TRY(parse_function(arguments[i])), executable));
  const std::string file = with_header(executable, flags[flag::bare]);
  TOOL_TRY(
      write_file(arguments.front(), false, {reinterpret_cast<const uint8_t*>(file.data()), file.size()}));
  return 0;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::pack);
}
