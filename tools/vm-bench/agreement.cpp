// Uses a sum over the ranks, in which each rank has its own elements.
#include "agreement.h"

#include <algorithm>
#include <string_view>

#include "bench_flags.h"
#include "benchmark_flags.h"
#include "common/ranks.h"

namespace halyard::tools {

namespace {

// Like examples/collectives/all_reduce.vmasm, but for f64, and with a separate channel name.
constexpr std::string_view kProgram = R"(
vm.module @agreement
vm.dependency @hal 7
vm.rodata[0] = "vm-bench"
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.channel.create cconv "0rIIrrii_r"
vm.import @hal.command_buffer.create cconv "0riiIi_r"
vm.import @hal.command_buffer.collective cconv "0rriiiirrIIIII_v"
vm.import @hal.command_buffer.finalize cconv "0r_v"
vm.import @hal.buffer_view.buffer cconv "0r_r"
vm.import @hal.buffer.length cconv "0r_I"
vm.import @hal.device.queue.execute cconv "0rIrrrI_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.export @__init
vm.func @__init() -> () {
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %i2:3 = vm.const.i64 -1
  %i4:5 = vm.const.i64.zero
  %i6 = vm.const.i32 -1
  %r1 = vm.const.ref.zero
  %r2 = vm.const.ref.rodata 0
  %r3 = vm.call @hal.channel.create(%r0, %i2:3, %i4:5, %r1, %r2, %i6, %i6)
  vm.global.store.ref %r3, .refs[0] : !hal.channel
  vm.discard.refs %r0, %r1, %r2, %r3
  vm.return
}
vm.export @sum
vm.func @sum(%r0: !hal.buffer_view) -> () {
  %i0 = vm.const.i32.zero
  %i1 = vm.const.i32 1
  %r1 = vm.call @hal.devices.get(%i0)
  %r2 = vm.global.load.ref .refs[0] : !hal.channel
  %r3 = vm.call @hal.buffer_view.buffer(%r0)
  %i2:3 = vm.call @hal.buffer.length(%r3)
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 -1
  %i8 = vm.const.i32 3
  %i9 = vm.const.i32 0xA0101
  %i10:11 = vm.shr.i64.u %i2:3, %i8
  %r4 = vm.call @hal.command_buffer.create(%r1, %i1, %i8, %i6:7, %i0)
  vm.call @hal.command_buffer.collective(%r4, %r2, %i9, %i0, %i0, %i0, %r3, %r3, %i4:5, %i2:3, %i4:5, %i2:3, %i10:11)
  vm.call @hal.command_buffer.finalize(%r4)
  %r5 = vm.const.ref.zero
  %r6 = vm.call @hal.fence.create(%r1, %i4:5)
  vm.call @hal.device.queue.execute(%r1, %i6:7, %r5, %r6, %r4, %i4:5)
  %i12 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i12, %i4:5, %r6) -> ^bb1(%i13)
^bb1:
  vm.cond_br %i13, ^bb2, ^bb3
^bb2:
  vm.fail %i13, "the ranks of vm-bench could not agree"
^bb3:
  vm.discard.refs %r0, %r1, %r2, %r3, %r4, %r5, %r6
  vm.return
}
)";

}  // namespace

Result<> check_flags_for_ranks(const Flags& flags) {
  for (const Flag* const flag :
       {static_cast<const Flag*>(&flag::against), static_cast<const Flag*>(&flag::benchmark_min_warmup_time),
        static_cast<const Flag*>(&flag::benchmark_enable_random_interleaving)})
    if (flags.has(*flag))
      return fail(
          HALYARD_INVALID_ARGUMENT,
          "{} must not be given with several ranks, because all ranks must make the same calls; remove it",
          *flag);
  return {};
}

Result<std::unique_ptr<Agreement>> Agreement::make(const Flags& flags, const Program& program) {
  std::unique_ptr<Agreement> made(new Agreement);
  const halyard_launch_t rank = TOOL_TRY(rank_of(flags));
  made->rank_ = rank.rank;
  made->count_ = rank.count;
  const Instance& instance = program.instance;
  made->device_ = TOOL_TRY(instance.open("local-sync"));
  const Bytes bytes = TOOL_TRY(assemble(kProgram, "the agreement of vm-bench"));
  const Module module =
      TOOL_TRY(Module::load(instance, std::span(bytes.data(), bytes.size()), HALYARD_MODULE_PRELOAD));
  const Context context = TOOL_TRY(Context::create(
      instance, {.modules = {module}, .devices = {made->device_}, .channels = TOOL_TRY(channels_of(flags))}));
  made->sum_ = TOOL_TRY(context.find("sum"));
  return made;
}

Result<std::vector<double>> Agreement::gather(std::span<const double> own) {
  std::vector<double> all(own.size() * count_);
  std::ranges::copy(own, all.begin() + static_cast<ptrdiff_t>(own.size() * rank_));
  const auto tensor = TOOL_TRY(Tensor::create(device_, {static_cast<int64_t>(all.size())}, all));
  TOOL_TRY(sum_.call<>(tensor));
  TOOL_TRY(tensor.read_bytes(std::as_writable_bytes(std::span(all))));
  return all;
}

Result<double> Agreement::largest(double own) {
  const std::vector<double> all = TOOL_TRY(gather({&own, 1}));
  return *std::ranges::max_element(all);
}

}  // namespace halyard::tools
