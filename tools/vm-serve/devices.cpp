// Checks a device with a program that makes an empty submission.
#include "devices.h"

namespace halyard::tools::serve {

namespace {

// A barrier that signals a fence, and an await with a time limit. The result is a status code.
constexpr std::string_view kProbe = R"(vm.module @probe
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.queue.barrier cconv "0rIrrI_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.export @probe
vm.func @probe() -> (i32) {
  %i0 = vm.const.i32.zero
  %i2:3 = vm.const.i64.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.call @hal.fence.create(%r0, %i2:3)
  %r2 = vm.const.ref.zero
  vm.call @hal.device.queue.barrier(%r0, %i2:3, %r2, %r1, %i2:3)
  %i1 = vm.const.i32 200
  %i0 = vm.call.variadic @hal.fence.await segments[65535, 65535, 1](%i1, %i2:3, %r1)
  vm.return %i0
}
)";

Result<int32_t> call_probe(const Instance& instance, const Module& module, const Device& device) {
  const Context context = TOOL_TRY(Context::create(instance, {.modules = {module}, .devices = {device}}));
  return check(TOOL_TRY(context.find("probe")).call<int32_t>());
}

}  // namespace

Result<std::shared_ptr<Devices>> Devices::open(const Flags& flags, const Program& program,
                                               std::vector<Module> modules) {
  std::shared_ptr<Devices> made(new Devices);
  made->program_.instance = program.instance;
  made->program_.warnings = program.warnings;
  made->program_.modules = std::move(modules);
  TOOL_TRY(open_devices(flags, made->program_));
  made->program_.modules.clear();
  if (const auto bytes = assemble(kProbe))
    made->probe_ = TOOL_TRY(Module::load(program.instance, std::span(bytes->data(), bytes->size())));
  return made;
}

bool Devices::check_loss() {
  if (!probe_) return false;
  for (const auto& device : list()) {
    const Result<int32_t> answer = call_probe(program_.instance, probe_, device);
    // A device that is busy until the time limit still works.
    const int32_t code = answer ? *answer : static_cast<int32_t>(answer.error().code);
    if (code != HALYARD_OK && code != HALYARD_DEADLINE_EXCEEDED && code != HALYARD_RESOURCE_EXHAUSTED)
      return !is_lost_.exchange(true);
  }
  return false;
}

}  // namespace halyard::tools::serve
