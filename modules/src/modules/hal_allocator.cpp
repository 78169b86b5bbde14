// hal.allocator.*: memory on the host's timeline. Specified by hal-module.md, "Allocator".
#include <algorithm>

#include "hal/device/external_memory.h"
#include "hal/device/sharing.h"
#include "modules/caller_makes.h"
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {
namespace {

constexpr size_t kMaxCandidates = 64;  // that a policy examines

Result<hal::Device*> candidate(Object* object, size_t index) {
  if (!object)
    return fail(Code::INVALID_ARGUMENT, "candidate {} of allocator.select is null; expected a hal.device",
                index);
  hal::Device* device = cast<hal::Device>(object);
  if (!device)
    return fail(Code::INVALID_ARGUMENT, "candidate {} of allocator.select is a {}; expected a hal.device",
                index, object->type()->name);
  return device;
}

// Whether all candidates can use memory of `owner` without a copy.
Result<bool> reaches_all(const hal::Device& owner, const Span<Object*, uint64_t>& candidates) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    const hal::Device* user = HALYARD_TRY(candidate(std::get<0>(candidates[i]), i));
    if (hal::sharing(owner, *user) == hal::Sharing::none) return false;
  }
  return true;
}

bool has_several_drivers(const HalOptions& state) {
  return std::ranges::any_of(
      state.devices, [&](const auto& device) { return &device->library() != &state.devices[0]->library(); });
}

}  // namespace

// The host's choice if there is one; otherwise the first candidate or, with devices of several drivers, the
// first whose memory all other candidates can use.
Result<std::tuple<Ref<hal::Device>, uint64_t>> allocator_select(HalOptions& state, uint32_t, uint32_t,
                                                                uint64_t,
                                                                Span<Object*, uint64_t> candidates) {
  if (candidates.empty())
    return fail(Code::INVALID_ARGUMENT, "allocator.select has no candidates; expected one or more devices");
  size_t chosen = 0;
  if (state.lead_allocator) {
    if (candidates.size() > kMaxCandidates)
      return fail(Code::RESOURCE_EXHAUSTED, "allocator.select has {} candidates; expected at most {}",
                  candidates.size(), kMaxCandidates);
    for (size_t i = candidates.size(); i-- > 0;) {
      const hal::Device* device = HALYARD_TRY(candidate(std::get<0>(candidates[i]), i));
      if (*state.lead_allocator < state.devices.size() &&
          device == state.devices[*state.lead_allocator].get())
        chosen = i;
    }
  } else if (has_several_drivers(state)) {
    for (size_t i = candidates.size(); i-- > 0;) {
      const hal::Device* device = HALYARD_TRY(candidate(std::get<0>(candidates[i]), i));
      if (HALYARD_TRY(reaches_all(*device, candidates))) chosen = i;
    }
  }
  const auto [object, affinity] = candidates[chosen];
  return std::tuple(Ref<hal::Device>::share(HALYARD_TRY(candidate(object, chosen))), affinity);
}

Result<Ref<hal::Buffer>> allocator_allocate(HalOptions& state, vm::CallContext& call,
                                            hal::Allocator& allocator, uint64_t affinity,
                                            uint32_t memory_types, uint32_t usage, uint64_t size) {
  const CallerMakes caller(allocator.device(), call);
  return hal::Buffer::allocate(allocator.device(), affinity, memory_types, usage, size, state.memory.get(),
                               state.owner);
}

Result<Ref<hal::Buffer>> allocator_import(HalOptions& state, hal::Allocator& allocator, uint32_t try_only,
                                          uint64_t affinity, uint32_t memory_types, uint32_t usage,
                                          vm::Buffer& source, uint64_t offset, uint64_t length) {
  if (length == hal::kWholeLength) length = source.length();
  if (offset > source.length() || length > source.length() - offset)
    return fail(Code::INVALID_ARGUMENT,
                "expected a range within the {} bytes of the source, found {} bytes at offset {}",
                source.length(), length, offset);
  const bool immutable = usage & HALYARD_USAGE_SHARING_IMMUTABLE;
  if (!source.is_mutable() && !immutable)
    return fail(Code::PERMISSION_DENIED,
                "constant data can be imported with usage SHARING_IMMUTABLE only, found usage {}",
                hal::usage_text(usage));
  uint32_t access = immutable ? hal::kRead : hal::kRead | hal::kWrite;
  // Kernels may write to constants (ruling 31).
  if (immutable && source.may_be_written_by_devices()) access |= HALYARD_MAP_PRIVATE;
  auto buffer =
      hal::import_host(allocator.device(), affinity, memory_types, usage, access, source.data() + offset,
                       length, Ref<Object>::share(&source), state.memory.get());
  if (!buffer && try_only) return Ref<hal::Buffer>();
  return buffer;
}

}  // namespace halyard::modules::hal_functions
