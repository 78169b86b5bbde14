// Estimates from the counts of a dispatch, which follow from the kernel's bytecode and arguments.
#include "early_compilation.h"

#include "dispatch_counts.h"

namespace halyard::local {

namespace {

// Nothing is done for dispatches with fewer bytes: to look into the cache takes 60 us, an estimate 200 us.
constexpr uint64_t kMinBytes = 32 << 10;
constexpr uint8_t kMaxEstimates = 2;   // of a kernel
constexpr uint64_t kMaxSteps = 8'000;  // of an estimate: 1.6 ms

// The interpreter takes 2 to 5 ns for an operation with its loads, stores and address computations, and at
// least 1 ns for each byte.
constexpr uint64_t kNanosecondsOfOperation = 3;
constexpr uint64_t kNanosecondsOfByte = 1;

constexpr uint64_t kWorthCompiling = 40'000'000;  // the compiler takes 20 to 100 ms

// Microkernels are not interpreted.
std::optional<uint64_t> no_operations(std::string_view, std::span<const std::optional<int64_t>>) { return 0; }

uint64_t bytes_of(const halyard_command_dispatch_t& dispatch) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < dispatch.binding_count; ++i)
    if (__builtin_add_overflow(bytes, dispatch.bindings[i].length, &bytes)) return UINT64_MAX;
  return bytes;
}

}  // namespace

EarlyCompilation::EarlyCompilation(vm::LoadedModule& module)
    : module_(module), states_(std::make_unique<State[]>(module.exports().size())) {}

std::optional<uint64_t> EarlyCompilation::interpreted_nanoseconds(const halyard_command_dispatch_t& dispatch,
                                                                  const Kernel& kernel) const {
  const Result<vm::KernelCounts> counts =
      counts_of_dispatch(module_, kernel, dispatch, workgroups_of(dispatch), no_operations, kMaxSteps);
  if (!counts) return std::nullopt;
  const uint64_t bytes = counts->bytes ? counts->bytes->read + counts->bytes->written : 0;
  uint64_t nanoseconds = 0;
  if (__builtin_mul_overflow(counts->operations, kNanosecondsOfOperation, &nanoseconds) ||
      __builtin_add_overflow(nanoseconds, bytes * kNanosecondsOfByte, &nanoseconds))
    return UINT64_MAX;
  return nanoseconds;
}

EarlyCompilation::Choice EarlyCompilation::choose(const halyard_command_dispatch_t& dispatch,
                                                  const Kernel& kernel, uint8_t estimates) {
  vm::CodeStore& store = module_.store();
  const uint32_t function = module_.exports()[dispatch.function].function;
  if (estimates == 0 && store.take_from_cache(function)) return Choice::settled;
  const std::optional<uint64_t> estimate = interpreted_nanoseconds(dispatch, kernel);
  if (estimate ? *estimate >= kWorthCompiling : is_large_.load(std::memory_order_relaxed)) {
    store.request_early(function, estimate.value_or(kWorthCompiling));
    // The other kernels of a large program are probably needed soon.
    if (!is_large_.exchange(true, std::memory_order_relaxed))
      for (const vm::Export& other : module_.exports()) store.request_early(other.function, 0);
    return Choice::waits;
  }
  return estimates + 1 < kMaxEstimates ? Choice::undecided : Choice::settled;
}

void EarlyCompilation::foresee(const halyard_command_dispatch_t& dispatch, const Kernel& kernel) {
  State& state = states_[dispatch.function];
  if (state.choice.load(std::memory_order_relaxed) != Choice::undecided) return;
  if (bytes_of(dispatch) < kMinBytes) return;
  const uint8_t estimates = state.estimates.fetch_add(1, std::memory_order_relaxed);
  if (estimates >= kMaxEstimates) return;  // another thread makes the last one
  const Choice choice = choose(dispatch, kernel, estimates);
  if (choice != Choice::undecided) state.choice.store(choice, std::memory_order_relaxed);
}

void EarlyCompilation::settle(uint32_t kernel, const uint32_t* stop) {
  State& state = states_[kernel];
  if (state.choice.load(std::memory_order_relaxed) != Choice::waits) return;
  module_.store().finish_request(module_.exports()[kernel].function, stop);
  state.choice.store(Choice::settled, std::memory_order_relaxed);
}

}  // namespace halyard::local
