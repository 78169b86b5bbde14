// Grades and loads native executables.
#include "native_executable.h"

#include <algorithm>
#include <iterator>

#include "device.h"
#include "elf_architecture.h"
#include "library.h"
#include "native_kernel_runner.h"
#include "plugins.h"

namespace halyard::local {

namespace {

// A loader, and the prefix of the formats that it loads.
struct Loader {
  std::string_view prefix;
  Result<std::unique_ptr<NativeCode>> (*load)(FileBytes file);
  Result<> (*judge)(FileBytes file);
};
constexpr Loader kLoaders[] = {
    {"embedded-elf-", load_embedded_library,
     [](FileBytes file) { return judge_embedded_library(file, abi::kLibraryQuery); }},
    {"system-elf-", load_system_library, judge_system_library},
};
// The architectures that compilers append to the prefix.
constexpr std::string_view kArchitectures[] = {"x86_64",   "x86_32",   "arm_64",  "arm_32",
                                               "riscv_64", "riscv_32", "wasm_64", "wasm_32"};

struct Format {
  const Loader* loader = nullptr;  // null: not a native executable
  std::string_view architecture;   // the host's, if the format names it
};

Format parse(std::string_view format) {
  for (const Loader& loader : kLoaders) {
    if (!format.starts_with(loader.prefix)) continue;
    format.remove_prefix(loader.prefix.size());
    // Text after the architecture is ignored.
    for (const std::string_view architecture : kArchitectures)
      if (format.starts_with(architecture)) return {&loader, architecture};
  }
  return {};
}

std::string formats() {
  const ElfArchitecture* host = host_architecture();
  std::string text;
  if (!host) return text;
  for (const Loader& loader : kLoaders)
    text += fmt::format("{}'{}{}'", text.empty() ? "" : ", ", loader.prefix, host->name);
  return text;
}

bool accepts(std::string_view format) { return parse(format).loader != nullptr; }

Result<const Loader*> find_loader(const Device& device, std::string_view text) {
  const Format format = parse(text);
  if (!device.options.native)
    return fail(Code::PERMISSION_DENIED,
                "executable format '{}' is native code, which this device refuses (option native=0); "
                "compile the program for 'vmvx-bytecode-fb', or allow native code if you trust its origin",
                text);
  const ElfArchitecture* host = host_architecture();
  if (!host || format.architecture != host->name)
    return fail(Code::NOT_FOUND,
                "executable format '{}' is for {} processors, this device is {}; compile the program for it",
                text, format.architecture,
                host ? host->name : "of an architecture without native executables");
  return format.loader;
}

Result<> judge(const Device& device, std::string_view format, std::span<const uint8_t> data) {
  const Loader* loader = HALYARD_TRY(find_loader(device, format));
  return data.data() ? loader->judge(data) : Result<>();
}

int call_import(abi::ImportFunction function, void* parameters, void* context, void* reserved) {
  return function(parameters, context, reserved);
}

class NativeExecutable final : public halyard_driver_executable {
 public:
  NativeExecutable(const Device& device, std::unique_ptr<NativeCode> code, Ref<Budget> memory)
      : halyard_driver_executable(device.services(), std::move(memory)),
        code_(std::move(code)),
        concurrency_(static_cast<uint8_t>(std::clamp<uint32_t>(device.options.workers, 1, UINT8_MAX))) {}

  kit::TraceDispatch describe(const halyard_command_dispatch_t& dispatch, const WorkgroupCount&) override {
    return {.code = HALYARD_CODE_NATIVE,
            .uncounted = "machine code",
            .source = kernels_[dispatch.function].source};
  }

  // Called once, before any kernel runner is created.
  Result<> start(const Device& device, std::span<const uint32_t> constants) {
    constants_.assign(constants.begin(), constants.end());
    environment_ = new_environment();
    environment_.constants = constants_.empty() ? nullptr : constants_.data();
    library_ = HALYARD_TRY(query_library(*code_, environment_));
    if (library_.constant_count != constants.size())
      return fail(Code::FAILED_PRECONDITION, "the executable takes {} constants, but {} were given",
                  library_.constant_count, constants.size());
    kernels_ = library_.kernels;
    return import(device.plugins);
  }

 private:
  Result<> import(const Plugins& plugins) {
    for (const char* symbol : library_.imports) {
      if (!symbol)
        return fail(Code::FAILED_PRECONDITION, "an import of the library has no name; it is damaged");
      const Plugins::Import import = HALYARD_TRY(plugins.resolve(symbol));
      functions_.push_back(import.function);
      contexts_.push_back(import.context);
    }
    if (functions_.empty()) return {};
    environment_.thunk = call_import;
    environment_.functions = functions_.data();
    environment_.contexts = contexts_.data();
    return {};
  }

  Result<std::unique_ptr<KernelRunner>> create_runner() const override {
    return std::make_unique<NativeKernelRunner>(environment_, library_.functions, kernels_, concurrency_,
                                                memory());
  }

  std::unique_ptr<NativeCode> code_;
  const uint8_t concurrency_;
  std::vector<uint32_t> constants_;
  std::vector<abi::ImportFunction> functions_;
  std::vector<void*> contexts_;
  abi::Environment environment_ = {};
  Library library_;
};

Result<std::unique_ptr<halyard_driver_executable>> create(const Device& device,
                                                          const halyard_executable_args_t& args) {
  const Loader* loader = HALYARD_TRY(find_loader(device, view(args.format)));
  const FileBytes file = {static_cast<const uint8_t*>(args.data), static_cast<size_t>(args.data_size)};
  auto executable =
      std::make_unique<NativeExecutable>(device, HALYARD_TRY(loader->load(file)), budget_of(args));
  HALYARD_TRY(executable->start(device, {args.constants, args.constant_count}));
  return executable;
}

}  // namespace

constexpr ExecutableKind kNativeExecutables = {formats, accepts, judge, create};

}  // namespace halyard::local
