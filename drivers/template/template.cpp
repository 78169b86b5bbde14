// The template in C++: a device in host memory whose work runs on its own thread, written with the kit
// (halyard/driver.hpp). Copy the folder, choose a name, and change what your device does differently
// (README.md). The kit's HostDevice has memory, transfers, and the loops of dispatches; here are the kernels
// and the format of executables, which is yours.
#include <algorithm>

#include "halyard/driver.hpp"

namespace {

namespace kit = halyard::kit;
using kit::Failure;
using kit::Result;

// ---- Kernels: yours come from your executables. An executable of this format names some of these functions.

// A word of a binding; null behind its end. The host cannot know which bytes a kernel uses.
uint32_t* word(const kit::Dispatch& dispatch, size_t binding, uint64_t index) {
  const std::span<uint8_t> bytes = dispatch.bindings[binding];
  return index < bytes.size() / sizeof(uint32_t) ? reinterpret_cast<uint32_t*>(bytes.data()) + index
                                                 : nullptr;
}
uint64_t number_of(const kit::Dispatch& dispatch, const kit::Workgroup& group) {
  return (uint64_t{group[2]} * dispatch.workgroups[1] + group[1]) * dispatch.workgroups[0] + group[0];
}
Failure outside() { return {HALYARD_OUT_OF_RANGE, "a workgroup is outside of its binding; bind more bytes"}; }

struct Kernel {
  std::string_view name;
  uint32_t bindings;
  uint32_t constants;
  uint64_t read_only;  // bit n: binding n
  Result<> (*run)(const kit::Dispatch& dispatch, const kit::Workgroup& group);
};
// constexpr, because no static object of a driver may have a destructor [R9].
constexpr Kernel kKernels[] = {
    {"iota", 1, 2, 0,
     [](const kit::Dispatch& dispatch, const kit::Workgroup& group) -> Result<> {
       const uint64_t i = number_of(dispatch, group);
       uint32_t* const out = word(dispatch, 0, i);
       if (!out) return outside();
       *out = dispatch.constants[0] + static_cast<uint32_t>(i) * dispatch.constants[1];
       return {};
     }},
    {"add", 3, 0, 0b011,
     [](const kit::Dispatch& dispatch, const kit::Workgroup& group) -> Result<> {
       const uint32_t* const a = word(dispatch, 0, group[0]);
       const uint32_t* const b = word(dispatch, 1, group[0]);
       uint32_t* const out = word(dispatch, 2, group[0]);
       if (!a || !b || !out) return outside();
       *out = *a + *b;
       return {};
     }},
    {"increment", 1, 0, 0,
     [](const kit::Dispatch& dispatch, const kit::Workgroup& group) -> Result<> {
       uint32_t* const out = word(dispatch, 0, group[0]);
       if (!out) return outside();
       ++*out;
       return {};
     }},
    {"place", 1, 0, 0,
     [](const kit::Dispatch& dispatch, const kit::Workgroup& group) -> Result<> {
       uint32_t* const out = word(dispatch, 0, number_of(dispatch, group));
       if (!out) return outside();
       *out = group[0] + (group[1] << 8) + (group[2] << 16);
       return {};
     }},
    {"refuse", 0, 0, 0,
     [](const kit::Dispatch&, const kit::Workgroup&) -> Result<> {
       return Failure{HALYARD_OUT_OF_RANGE, "refused by the kernel"};
     }},
};

// ---- Executables: the format "template-text" has the name of one function in each line

constexpr std::string_view kFormat = "template-text";

// INVALID_ARGUMENT: a line is no function. The data come from a file, so nothing in them is trusted [R91].
Result<std::vector<const Kernel*>> parse(std::string_view text) {
  std::vector<const Kernel*> kernels;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    const auto found = std::ranges::find_if(kKernels, [&](const Kernel& it) { return it.name == name; });
    if (found == std::end(kKernels))
      return Failure{HALYARD_INVALID_ARGUMENT,
                     "line " + std::to_string(kernels.size() + 1) +
                         " is no function; expected iota, add, increment, place or refuse"};
    kernels.push_back(found);
  }
  if (kernels.empty())
    return Failure{HALYARD_INVALID_ARGUMENT, "no line; expected the name of a function in each"};
  return kernels;
}

class TemplateExecutable final : public kit::HostExecutable {
 public:
  TemplateExecutable(const kit::Services& services, std::vector<const Kernel*> kernels)
      : HostExecutable(services, functions(kernels)), kernels_(std::move(kernels)) {}
  Result<> run(const kit::Dispatch& dispatch, const kit::Workgroup& group) const override {
    return kernels_[dispatch.function]->run(dispatch, group);
  }

 private:
  static std::vector<kit::HostFunction> functions(const std::vector<const Kernel*>& kernels) {
    std::vector<kit::HostFunction> functions;
    for (const Kernel* it : kernels)
      functions.push_back({std::string(it->name), it->bindings, it->constants, it->read_only});
    return functions;
  }
  const std::vector<const Kernel*> kernels_;
};

// ---- The device

class TemplateDevice final : public kit::HostDevice {
 public:
  using HostMemoryDevice::HostMemoryDevice;

  uint32_t grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const override {
    if (format != kFormat) {
      reason = "this device runs " + std::string(kFormat) + ", not '" + std::string(format) + "'";
      return HALYARD_GRADE_NO;
    }
    if (data.empty()) return HALYARD_GRADE_NATIVE;  // of the format alone
    const auto kernels = parse({reinterpret_cast<const char*>(data.data()), data.size()});
    if (!kernels) reason = kernels.failure().message;
    return kernels ? HALYARD_GRADE_NATIVE : HALYARD_GRADE_NO;
  }

 protected:
  Result<std::unique_ptr<kit::HostExecutable>> load_kernels(const halyard_executable_args_t& args) override {
    if (kit::view(args.format) != kFormat)
      return Failure{HALYARD_NOT_FOUND, "format '" + std::string(kit::view(args.format)) +
                                            "' is unknown; expected " + std::string(kFormat)};
    return std::make_unique<TemplateExecutable>(
        services(), HALYARD_KIT_TRY(parse({static_cast<const char*>(args.data), args.data_size})));
  }
};

// ---- The instance

class TemplateInstance final : public kit::Instance {
 public:
  using Instance::Instance;

  std::vector<halyard_device_info_t> devices() const override {
    halyard_device_info_t info = {};
    info.kind = "template";
    info.path = "";
    info.name = "a thread in host memory";
    return {info};
  }
  Result<std::unique_ptr<kit::Device>> open(const halyard_device_open_args_t& args) override {
    if (args.path.size > 0)
      return Failure{HALYARD_NOT_FOUND,
                     "no device '" + std::string(kit::view(args.path)) + "'; the only one is template://"};
    kit::Options options(args);  // options.number("streams", 1, 1, 64) reads an option
    HALYARD_KIT_TRY(options.finish());
    auto device = std::make_unique<TemplateDevice>(services());
    device->start();
    return std::unique_ptr<kit::Device>(std::move(device));
  }
};

}  // namespace

HALYARD_KIT_DRIVER(TemplateInstance, "template", "1.0", "template",
                   {"template", "Runs functions of its own on a thread in host memory"})
