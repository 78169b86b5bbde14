// Effects of `hal_inline` and `hal_loader`: buffers of the host's memory, and kernels that run during the
// call.
#include "analysis/program.h"

namespace halyard::analysis {

namespace {

std::shared_ptr<BufferObject> storage_of(const Ref& ref) {
  const auto bytes = as<BytesObject>(ref);
  return bytes ? bytes->buffer : nullptr;
}

void give_buffer(Program& program, Call& call, Expression size) {
  Allocation allocation;
  allocation.source = Allocation::Source::inline_buffer;
  allocation.size = std::move(size);
  allocation.place = call.place;
  const auto buffer = program.allocate(std::move(allocation));
  auto storage = std::make_shared<BytesObject>();
  storage->length = buffer->length;
  storage->buffer = buffer;
  call.give(0, Ref(buffer));
  call.give(1, Ref(std::move(storage)));
}

void allocate(Program& program, Call& call) { give_buffer(program, call, call.number(1)); }
void allocate_initialized(Program& program, Call& call) { give_buffer(program, call, call.number(3)); }

void wrap(Program& program, Call& call) {
  const auto bytes = call.object<BytesObject>(0);
  if (bytes && bytes->buffer) {
    auto part = std::make_shared<BufferObject>();
    part->memory = bytes->buffer->memory;
    part->offset = program.symbols().add(bytes->buffer->offset, call.number(1));
    part->length = call.number(2);
    return call.give(0, Ref(std::move(part)));
  }
  Allocation allocation;
  allocation.source = Allocation::Source::imported;
  allocation.in_place = true;
  allocation.size = call.number(2);
  allocation.place = call.place;
  if (bytes && bytes->constant) {
    allocation.constant = bytes->constant;
    program.analysis.constant_uses[*bytes->constant] = "imported";
  }
  call.give(0, Ref(program.allocate(std::move(allocation))));
}

void storage(Program&, Call& call) {
  auto bytes = std::make_shared<BytesObject>();
  bytes->buffer = call.object<BufferObject>(0);
  if (bytes->buffer) bytes->length = bytes->buffer->length;
  call.give(0, Ref(std::move(bytes)));
}

void dispatch(Program& program, Call& call) {
  const auto executable = call.object<ExecutableObject>(0);
  Step step;
  step.place = call.place;
  step.submission = program.submissions++;
  const auto entry = call.number(1).constant();
  step.entry = entry && *entry >= 0 ? static_cast<uint64_t>(*entry) : 0;
  if (executable) step.executable = executable->constant;
  step.workgroups = {call.number(2), call.number(3), call.number(4)};
  for (const auto& constant : call.span(0)) step.constants.push_back(constant[0].number);
  const Kernel* kernel = step.executable ? program.kernels.find(*step.executable, step.entry) : nullptr;
  if (kernel) step.name = kernel->name;
  std::vector<Target> targets;
  const auto bindings = call.span(1);
  for (size_t i = 0; i < bindings.size(); ++i) {
    Target target = binding_of(kernel, i, bindings.size());
    target.buffer = storage_of(bindings[i][0].ref);
    target.offset = bindings[i][1].number;
    target.length = bindings[i][2].number;
    targets.push_back(std::move(target));
  }
  add_uses(program, step, targets);
  program.timeline->add(std::move(step));
}

constexpr Effect kInlineEffects[] = {
    {"hal_inline.buffer.allocate", allocate},
    {"hal_inline.buffer.allocate.initialized", allocate_initialized},
    {"hal_inline.buffer.wrap", wrap},
    {"hal_inline.buffer.storage", storage},
    {"hal_loader.executable.dispatch", dispatch},
};

}  // namespace

bool call_inline(Program& program, Call& call) { return apply_effect(kInlineEffects, program, call); }

}  // namespace halyard::analysis
