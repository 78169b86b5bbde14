// Calls a function for each workgroup of a tile.
#include "native_kernel_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "processor.h"

namespace halyard::local {

namespace {

constexpr uint32_t kMaxConstants = std::numeric_limits<decltype(abi::DispatchState::constant_count)>::max();
constexpr uint32_t kMaxBindings = std::numeric_limits<decltype(abi::DispatchState::binding_count)>::max();
constexpr uint32_t kMaxZ = std::numeric_limits<decltype(abi::DispatchState::workgroup_count_z)>::max();

}  // namespace

std::string kernel_label(const Kernel& kernel, uint32_t function) {
  return kernel.name.empty() ? fmt::format("number {}", function) : fmt::format("'{}'", kernel.name);
}

Result<> NativeKernelRunner::begin(const Kernel& kernel, std::span<const uint32_t> constants,
                                   uint32_t binding_count) {
  if (constants.size() > kMaxConstants || binding_count > kMaxBindings)
    return fail(Code::INVALID_ARGUMENT,
                "a dispatch with {} constants and {} bindings; native executables take at most {} and {}",
                constants.size(), binding_count, kMaxConstants, kMaxBindings);
  HALYARD_TRY(local_memory_charge_.grow_to(kernel.local_memory, "local memory of a kernel"));
  if (!local_memory_.reserve(kernel.local_memory))
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for {} bytes of local memory", kernel.local_memory);
  // Clears data that a dispatch of another request has left in the memory.
  if (kernel.local_memory) std::memset(local_memory_.bytes(), 0, kernel.local_memory);
  if (bindings_.size() < binding_count) {
    bindings_.resize(binding_count);
    binding_sizes_.resize(binding_count);
  }
  dispatch_.constant_count = static_cast<uint16_t>(constants.size());
  dispatch_.constants = constants.data();
  dispatch_.binding_count = static_cast<uint8_t>(binding_count);
  dispatch_.bindings = bindings_.data();
  dispatch_.binding_sizes = binding_sizes_.data();
  workgroup_.local_memory = kernel.local_memory ? local_memory_.bytes() : nullptr;
  workgroup_.local_memory_size = static_cast<uint32_t>(kernel.local_memory);
  return {};
}

Result<> NativeKernelRunner::bind(uint32_t index, std::span<uint8_t> bytes, bool writable) {
  bindings_[index] = bytes.data();
  binding_sizes_[index] = bytes.size();
  if (writable || bytes.empty()) return {};
  Guarded& guarded = guarded_.emplace_back(Guarded{index, bytes});
  if (!guarded.copy.reserve(bytes.size()))
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for a copy of the {} bytes of binding {}", bytes.size(),
                index);
  std::memcpy(guarded.copy.bytes(), bytes.data(), bytes.size());
  bindings_[index] = guarded.copy.bytes();
  return {};
}

Result<> NativeKernelRunner::check_guarded(const Kernel& kernel, uint32_t function) const {
  for (const Guarded& guarded : guarded_) {
    const auto found =
        std::ranges::mismatch(guarded.bytes, std::span(guarded.copy.bytes(), guarded.bytes.size()));
    if (found.in1 == guarded.bytes.end()) continue;
    return fail(Code::PERMISSION_DENIED,
                "kernel {} writes to byte {} of binding {}, which is constant data of the program; this "
                "device refuses that (option validate=1)",
                kernel_label(kernel, function), found.in1 - guarded.bytes.begin(), guarded.binding);
  }
  return {};
}

Result<> NativeKernelRunner::run(uint32_t function, const WorkgroupCount& count, Tile& tile,
                                 const std::atomic<uint64_t>& end, const uint32_t* stop,
                                 const halyard_jit_sharing_t* /*sharing*/) {
  const Kernel& kernel = kernels_[function];
  if (count[2] > kMaxZ)
    return fail(Code::OUT_OF_RANGE,
                "a dispatch of kernel {} with {} workgroups in z; native executables count at most {}",
                kernel_label(kernel, function), count[2], kMaxZ);
  // Set to 1, because dispatches have no workgroup size, and compiled functions do not read it.
  dispatch_.workgroup_size_x = dispatch_.workgroup_size_y = dispatch_.workgroup_size_z = 1;
  dispatch_.workgroup_count_x = count[0];
  dispatch_.workgroup_count_y = count[1];
  dispatch_.workgroup_count_z = static_cast<uint16_t>(count[2]);
  dispatch_.concurrency = kernel.sequential ? 1 : concurrency_;
  const abi::EntryFunction entry = functions_[function];
  GridPosition at(tile.first, count);
  const KernelFloatMode float_mode;
  for (; tile.first < tile.last && tile.first < end.load(std::memory_order_relaxed); ++tile.first) {
    HALYARD_TRY(go_on_unless_stopped(stop));
    workgroup_.x = at.x;
    workgroup_.y = at.y;
    workgroup_.z = static_cast<uint16_t>(at.z);
    if (const int result = entry(&environment_, &dispatch_, &workgroup_); result != 0) [[unlikely]]
      return fail(Code::INTERNAL,
                  "kernel {} failed with {} in workgroup {},{},{} of {},{},{}; 0 is success, other values "
                  "are defined by its compiler",
                  kernel_label(kernel, function), result, at.x, at.y, at.z, count[0], count[1], count[2]);
    at.next(count);
  }
  return check_guarded(kernel, function);
}

void NativeKernelRunner::end() {
  dispatch_.constants = nullptr;
  std::fill_n(bindings_.begin(), dispatch_.binding_count, nullptr);
  guarded_.clear();
}

}  // namespace halyard::local
