// What the effects of imports share.
#include "analysis/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace halyard::analysis {

ListObject::~ListObject() {
  static thread_local std::vector<Ref>* pending = nullptr;
  std::vector<Ref> own;
  const bool is_outermost = pending == nullptr;
  if (is_outermost) pending = &own;
  try {
    for (Element& element : elements)
      if (Ref* const ref = std::get_if<Ref>(&element.value); ref && *ref) pending->push_back(std::move(*ref));
  } catch (const std::bad_alloc&) {  // then they are destroyed here
  }
  if (!is_outermost) return;
  while (!own.empty()) {
    const Ref next = std::move(own.back());
    own.pop_back();
  }
  pending = nullptr;
}

void Program::break_circles() {
  for (const std::weak_ptr<ListObject>& list : lists)
    if (const auto alive = list.lock()) alive->elements.clear();
  lists.clear();
}

std::string Program::where(const Place& place) const {
  const std::string_view name = module().function_name(place.function);
  return name.empty() ? fmt::format("@{}+{:08X}", place.function, place.pc)
                      : fmt::format("{}+{:08X}", name, place.pc);
}

std::string_view Program::constant_text(const Ref& ref) const {
  const auto bytes = as<BytesObject>(ref);
  if (!bytes || !bytes->constant || *bytes->constant >= module().rodata().size()) return {};
  const std::span<const uint8_t> segment = view.segment(*bytes->constant);
  return {reinterpret_cast<const char*>(segment.data()), segment.size()};
}

std::shared_ptr<BufferObject> Program::allocate(Allocation allocation) {
  auto buffer = std::make_shared<BufferObject>();
  buffer->length = allocation.size;
  analysis.devices = std::max(analysis.devices, allocation.device + 1);
  const uint32_t number = timeline->allocate(std::move(allocation));
  buffer->memory = std::make_shared<Memory>(timeline, number);
  return buffer;
}

bool apply_effect(std::span<const Effect> effects, Program& program, Call& call) {
  const auto found = std::ranges::find(effects, call.name, &Effect::name);
  if (found == effects.end()) return false;
  found->apply(program, call);
  return true;
}

Target binding_of(const Kernel* kernel, size_t index, size_t count) {
  Target target;
  if (kernel && kernel->bindings && index < kernel->bindings->size()) {
    target.reads = (*kernel->bindings)[index].reads;
    target.writes = (*kernel->bindings)[index].writes;
  } else {
    target.is_assumed = true;
    target.writes = index + 1 == count;
  }
  return target;
}

void add_uses(Program& program, Step& step, std::span<const Target> targets) {
  for (const Target& target : targets) {
    Use use;
    use.reads = target.reads;
    use.writes = target.writes;
    use.is_assumed = target.is_assumed;
    use.offset = target.offset;
    use.length = target.length;
    if (target.buffer && target.buffer->memory) {
      use.allocation = target.buffer->memory->allocation;
      use.offset = program.symbols().add(target.buffer->offset, target.offset);
      // -1: the rest of the buffer.
      if (target.length.is(-1)) use.length = program.symbols().subtract(target.buffer->length, target.offset);
    }
    step.uses.push_back(std::move(use));
  }
}

}  // namespace halyard::analysis
