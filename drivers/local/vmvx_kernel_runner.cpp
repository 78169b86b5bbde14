// Calls a kernel for each workgroup of a tile.
#include "vmvx_kernel_runner.h"

#include <fmt/ranges.h>

#include <cstring>
#include <limits>

namespace halyard::local {

namespace {

enum Argument : size_t { kLocalMemory, kConstants, kBindings, kId, kSize = kId + 3, kCount = kSize + 3 };

// An empty range with a valid address.
std::span<uint8_t> nothing() {
  static constexpr uint8_t kNothing[1] = {};
  return {const_cast<uint8_t*>(kNothing), 0};
}

// Only the kernels of a runner refer to it, one after the other.
template <typename T>
Ref<T> confined(Ref<T> object) {
  object->confine();
  return object;
}

vm::Variant new_buffer() { return vm::Variant::ref(confined(vm::Buffer::wrap(nothing(), false, {}))); }

vm::Variant number(uint32_t value) { return vm::Variant::i32(static_cast<int32_t>(value)); }

}  // namespace

Result<std::unique_ptr<KernelRunner>> VmvxKernelRunner::create(const Ref<vm::NativeModule>& microkernels,
                                                               const Ref<vm::LoadedModule>& module,
                                                               const Ref<Budget>& memory) {
  vm::Limits limits;
  limits.memory = memory;
  auto context = vm::Context::create(std::move(limits));
  context->keep_spare_blocks();
  HALYARD_TRY(context->add(microkernels));
  auto& state = *static_cast<vmvx::State*>(context->modules().back()->native_state.pointer);
  HALYARD_TRY(context->add(module));
  vm::ModuleInstance* instance = context->modules().back().get();
  auto runner = std::make_unique<VmvxKernelRunner>(std::move(context), state);
  for (const vm::Export& kernel : module->exports())
    runner->callables_.push_back(HALYARD_TRY(runner->context_->callable(instance, kernel)));
  for (size_t i = 0; i < 3; ++i) runner->arguments_[kSize + i] = number(1);
  return runner;
}

Result<> VmvxKernelRunner::begin(const Kernel& kernel, std::span<const uint32_t> constants,
                                 uint32_t binding_count) {
  HALYARD_TRY(local_memory_charge_.grow_to(kernel.local_memory, "local memory of a kernel"));
  if (!local_memory_.reserve(kernel.local_memory))
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for the {} bytes of local memory of kernel '{}'",
                kernel.local_memory, kernel.name);
  // Clears data that a dispatch of another request has left in the memory.
  if (kernel.local_memory) std::memset(local_memory_.bytes(), 0, kernel.local_memory);
  if (arguments_[kLocalMemory].empty()) arguments_[kLocalMemory] = new_buffer();
  static_cast<vm::Buffer*>(arguments_[kLocalMemory].object())
      ->rebind(kernel.local_memory ? std::span(local_memory_.bytes(), kernel.local_memory) : nothing(), true);

  if (arguments_[kConstants].empty()) arguments_[kConstants] = new_buffer();
  // The cast is safe, because the kernel can only read the buffer.
  auto* constant_bytes = reinterpret_cast<uint8_t*>(const_cast<uint32_t*>(constants.data()));
  static_cast<vm::Buffer*>(arguments_[kConstants].object())
      ->rebind(constants.empty() ? nothing() : std::span(constant_bytes, constants.size_bytes()), false);

  if (arguments_[kBindings].empty())
    arguments_[kBindings] =
        vm::Variant::ref(confined(vm::List::create({vm::ValueType::none, &vm::Buffer::kType})));
  if (bindings_.size() < binding_count) bindings_.resize(binding_count);
  read_only_.clear();
  auto* list = static_cast<vm::List*>(arguments_[kBindings].object());
  if (list->size() == binding_count) return {};
  return list->resize(binding_count, std::numeric_limits<uint32_t>::max());
}

Result<> VmvxKernelRunner::bind(uint32_t index, std::span<uint8_t> bytes, bool writable) {
  Ref<vm::Buffer>& buffer = bindings_[index];
  if (!buffer) buffer = confined(vm::Buffer::wrap(nothing(), true, {}));
  buffer->rebind(bytes, writable);
  if (!writable) read_only_.push_back(index);
  auto* list = static_cast<vm::List*>(arguments_[kBindings].object());
  // The list still holds the buffer of the last dispatch, unless the kernel has replaced it.
  if (list->held(index) == buffer.get()) return {};
  return list->set_ref(index, buffer);
}

Result<> VmvxKernelRunner::run(uint32_t function, const WorkgroupCount& count, Tile& tile,
                               const std::atomic<uint64_t>& end, const uint32_t* stop,
                               const halyard_jit_sharing_t* sharing) {
  invocation_.set_stop(stop);
  invocation_.set_sharing(sharing);
  microkernels_.stop = stop;
  for (size_t i = 0; i < 3; ++i) arguments_[kCount + i] = number(count[i]);
  GridPosition at(tile.first, count);
  for (; tile.first < tile.last && tile.first < end.load(std::memory_order_relaxed); ++tile.first) {
    HALYARD_TRY(go_on_unless_stopped(stop));
    arguments_[kId] = number(at.x);
    arguments_[kId + 1] = number(at.y);
    arguments_[kId + 2] = number(at.z);
    Result<> result = call(function);
    if (!result)
      return with_note(
          Result<>(std::unexpected(explain(std::move(result).error()))),
          fmt::format("in kernel '{}', workgroup {},{},{} of {},{},{}", callables_[function].function->name,
                      at.x, at.y, at.z, count[0], count[1], count[2]));
    at.next(count);
  }
  return {};
}

// Adds to a PERMISSION_DENIED failure the bindings that must not be written.
Status VmvxKernelRunner::explain(Status failure) const {
  if (failure.code() != Code::PERMISSION_DENIED || read_only_.empty()) return failure;
  return std::move(failure).note(fmt::format(
      "{} {} {} constant data of the program, which kernels may not write to on this device (option "
      "validate=1)",
      read_only_.size() == 1 ? "binding" : "bindings", fmt::join(read_only_, ", "),
      read_only_.size() == 1 ? "holds" : "hold"));
}

Result<> VmvxKernelRunner::call(uint32_t function) {
  if (HALYARD_TRY(invocation_.begin(callables_[function], arguments_)) != vm::Outcome::done) {
    invocation_.drop();
    return fail(Code::FAILED_PRECONDITION, "the kernel yielded; expected it to run to its end");
  }
  invocation_.take_results({});
  return {};
}

// A kernel may have stored one of its arguments in a global. Such an object is emptied, and the next dispatch
// gets a new one. Otherwise only the list and this runner refer to the bindings, which are reused.
void VmvxKernelRunner::end() {
  auto* list = cast<vm::List>(arguments_[kBindings].object());
  if (list && !list->unique()) {
    (void)list->resize(0, std::numeric_limits<uint32_t>::max());  // cannot fail, because it shrinks
    arguments_[kBindings] = vm::Variant();
    list = nullptr;
  }
  for (const size_t i : {kLocalMemory, kConstants}) {
    auto* buffer = cast<vm::Buffer>(arguments_[i].object());
    if (!buffer || buffer->unique()) continue;
    buffer->rebind(nothing(), false);
    arguments_[i] = vm::Variant();
  }
  for (uint32_t i = 0; i < bindings_.size(); ++i) {
    Ref<vm::Buffer>& binding = bindings_[i];
    if (!binding) continue;
    const bool is_listed = list && i < list->size() && list->held(i) == binding.get();
    if (binding->references() == (is_listed ? 2 : 1)) continue;
    binding->rebind(nothing(), false);
    binding = nullptr;
  }
}

}  // namespace halyard::local
