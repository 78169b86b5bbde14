// Effects of `hal` other than queue work and recordings: devices, buffers, views, executables, fences. A
// device is assumed to be what the program asks for: a query of its id or of an executable format is true.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/program.h"

namespace halyard::analysis {

namespace {

// More than a program has. Programs look for the n-th device of a kind.
constexpr int64_t kDevices = 16;

void remember(std::vector<std::string>& list, std::string_view text) {
  if (!text.empty() && list.size() < 256 && std::ranges::find(list, text) == list.end())
    list.emplace_back(text.substr(0, 256));
}

uint32_t device_of(const Ref& ref) {
  const auto device = as<DeviceObject>(ref);
  return device ? device->number : 0;
}

void devices_count(Program&, Call& call) { call.give(0, Expression(kDevices)); }

void devices_get(Program&, Call& call) {
  const auto index = call.number(0).constant();
  call.give(0, std::make_shared<DeviceObject>(
                   index && *index >= 0 && *index < kDevices ? static_cast<uint32_t>(*index) : 0));
}

void device_allocator(Program&, Call& call) { call.give(0, call.ref(0)); }

// Unknown queries have no answer, so that the program uses its default.
void query(Program& program, Call& call, size_t category) {
  const std::string_view asked = program.constant_text(call.ref(category));
  const std::string_view key = program.constant_text(call.ref(category + 1));
  const bool is_id = asked == "hal.device.id";
  const bool is_format = asked == "hal.executable.format";
  if (is_id) remember(program.analysis.device_ids, key);
  if (is_format) remember(program.analysis.formats, key);
  call.give(0, Expression(is_id || is_format ? 1 : 0));
  call.give(1, Expression(is_id || is_format ? 1 : 0));
}
void device_query(Program& program, Call& call) { query(program, call, 1); }

void allocator_select(Program&, Call& call) {
  const auto candidates = call.span(0);
  if (candidates.empty() || candidates.front().size() < 2) return;
  call.give(0, candidates.front()[0].ref);
  call.give(1, candidates.front()[1].number);
}

void allocator_allocate(Program& program, Call& call) {
  Allocation allocation;
  allocation.source = Allocation::Source::allocate;
  allocation.size = call.number(4);
  allocation.place = call.place;
  allocation.device = device_of(call.ref(0));
  call.give(0, program.allocate(std::move(allocation)));
}

void allocator_import(Program& program, Call& call) {
  const auto bytes = call.object<BytesObject>(5);
  Allocation allocation;
  allocation.source = Allocation::Source::imported;
  allocation.in_place = true;
  allocation.size = call.number(7);
  if (allocation.size.is(-1)) allocation.size = bytes ? bytes->length : Expression(0);
  allocation.place = call.place;
  allocation.device = device_of(call.ref(0));
  if (bytes && bytes->constant) {
    allocation.constant = bytes->constant;
    program.analysis.constant_uses[*bytes->constant] = "imported";
  }
  call.give(0, program.allocate(std::move(allocation)));
}

void buffer_subspan(Program& program, Call& call) {
  const auto buffer = call.object<BufferObject>(0);
  if (!buffer) return call.give(0, std::make_shared<Unknown>());
  auto part = std::make_shared<BufferObject>();
  part->memory = buffer->memory;
  part->offset = program.symbols().add(buffer->offset, call.number(1));
  part->length =
      call.number(2).is(-1) ? program.symbols().subtract(buffer->length, call.number(1)) : call.number(2);
  call.give(0, std::move(part));
}

void buffer_length(Program& program, Call& call) {
  const auto buffer = call.object<BufferObject>(0);
  call.give(0, buffer ? buffer->length
                      : program.symbols().fresh("a length, read at " + program.where(call.place), true));
}

void buffer_load(Program& program, Call& call) {
  call.give(0, program.symbols().fresh("an element, read at " + program.where(call.place), true));
}

void view_create(Program&, Call& call) {
  auto view = std::make_shared<ViewObject>();
  view->buffer = call.object<BufferObject>(0);
  view->element_type = call.number(3);
  for (const auto& tuple : call.span(0)) view->dimensions.push_back(tuple[0].number);
  call.give(0, std::move(view));
}

uint64_t bits_of(const Expression& element_type) {
  const auto number = element_type.constant();
  return number ? static_cast<uint64_t>(*number) & 0xFF : 0;  // hal-types.md: the low byte
}

// What the program expects of an argument without a declaration.
void view_assert(Program& program, Call& call) {
  const auto view = call.object<ViewObject>(0);
  if (!view || view->argument.empty()) return;
  if (!view->element_type) view->element_type = call.number(2);
  if (view->element_bits == 0) view->element_bits = bits_of(call.number(2));
  if (view->is_ranked) return;
  view->is_ranked = true;
  for (const auto& tuple : call.span(0)) view->dimensions.push_back(tuple[0].number);
  (void)program;
}

void view_dimension(Program& program, Call& call) {
  const auto view = call.object<ViewObject>(0);
  const auto index = call.number(1).constant();
  if (view && index && view->is_ranked && *index >= 0 &&
      static_cast<uint64_t>(*index) < view->dimensions.size())
    return call.give(0, view->dimensions[static_cast<size_t>(*index)]);
  call.give(0, view && index && !view->argument.empty()
                   ? program.symbols().named(fmt::format("{}[{}]", view->argument, *index), true)
                   : program.symbols().fresh("a dimension, read at " + program.where(call.place), true));
}

void view_rank(Program& program, Call& call) {
  const auto view = call.object<ViewObject>(0);
  call.give(0, view && view->is_ranked
                   ? Expression(static_cast<int64_t>(view->dimensions.size()))
                   : program.symbols().fresh("a rank, read at " + program.where(call.place), true));
}

void view_element_type(Program& program, Call& call) {
  const auto view = call.object<ViewObject>(0);
  call.give(0, view && view->element_type
                   ? *view->element_type
                   : program.symbols().fresh("an element type, read at " + program.where(call.place), true));
}

void view_encoding(Program&, Call& call) { call.give(0, Expression(1)); }  // dense, row-major

void view_buffer(Program& program, Call& call) {
  const auto view = call.object<ViewObject>(0);
  if (!view) return call.give(0, std::make_shared<Unknown>());
  if (!view->buffer && !view->argument.empty()) {
    Allocation allocation;
    allocation.source = Allocation::Source::argument;
    allocation.origin = Origin::argument;
    allocation.name = view->argument;
    if (view->is_ranked && view->element_bits != 0) {
      Expression bits = static_cast<int64_t>(view->element_bits);
      for (const Expression& size : view->dimensions) bits = program.symbols().multiply(bits, size);
      allocation.size = program.symbols().divide(program.symbols().add(bits, bits.constant() ? 7 : 0), 8);
    } else {
      allocation.size = program.symbols().named("bytes of " + view->argument, true);
    }
    view->buffer = program.allocate(std::move(allocation));
  }
  call.give(0, view->buffer ? Ref(view->buffer) : std::make_shared<Unknown>());
}

// The executable is the constant that is passed as data, after its format.
void create_executable(Program& program, Call& call, size_t format) {
  auto executable = std::make_shared<ExecutableObject>();
  remember(program.analysis.formats, program.constant_text(call.ref(format)));
  if (const auto data = call.object<BytesObject>(format + 1); data && data->constant) {
    executable->constant = data->constant;
    program.analysis.constant_uses[*data->constant] = "executable";
  }
  call.give(0, std::move(executable));
}
void executable_create(Program& program, Call& call) {
  create_executable(program, call, call.size() == 4 ? 1 : 2);
}
void executable_load(Program& program, Call& call) { create_executable(program, call, 0); }

void executable_lookup(Program& program, Call& call) {
  const auto executable = call.object<ExecutableObject>(0);
  const std::string_view name = program.constant_text(call.ref(1));
  call.give(0, executable && executable->constant
                   ? Expression(static_cast<int64_t>(program.kernels.index_of(*executable->constant, name)))
                   : program.symbols().fresh("a kernel's number"));
}

void query_support(Program& program, Call& call) {
  remember(program.analysis.formats, program.constant_text(call.ref(0)));
  call.give(0, Expression(1));
}

void inline_query(Program& program, Call& call) { query(program, call, 0); }

void channel_ranks(Program& program, Call& call) {
  call.give(0, program.symbols().named("rank", true));
  call.give(1, program.symbols().named("ranks", true));
}

// Succeeds without an effect on memory; a status is 0.
void nothing(Program&, Call& call) {
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (call.result_types[i] == 'r') {
      call.give(i, std::make_shared<Unknown>());
    } else {
      call.give(i, Expression(0));
    }
  }
}

void is_one(Program&, Call& call) { call.give(0, Expression(1)); }

constexpr Effect kEffects[] = {
    {"hal.allocator.select", allocator_select},
    {"hal.allocator.allocate", allocator_allocate},
    {"hal.allocator.import", allocator_import},
    {"hal.buffer.assert", nothing},
    {"hal.buffer.allocation.preserve", nothing},
    {"hal.buffer.allocation.discard", is_one},
    {"hal.buffer.allocation.is_terminal", is_one},
    {"hal.buffer.subspan", buffer_subspan},
    {"hal.buffer.length", buffer_length},
    {"hal.buffer.load", buffer_load},
    {"hal.buffer.store", nothing},
    {"hal.buffer_view.create", view_create},
    {"hal.buffer_view.assert", view_assert},
    {"hal.buffer_view.buffer", view_buffer},
    {"hal.buffer_view.element_type", view_element_type},
    {"hal.buffer_view.encoding_type", view_encoding},
    {"hal.buffer_view.rank", view_rank},
    {"hal.buffer_view.dim", view_dimension},
    {"hal.buffer_view.trace", nothing},
    {"hal.channel.create", nothing},
    {"hal.channel.split", nothing},
    {"hal.channel.rank_and_count", channel_ranks},
    {"hal.device.allocator", device_allocator},
    {"hal.device.query.i64", device_query},
    {"hal.device.queue.flush", nothing},
    {"hal.devices.count", devices_count},
    {"hal.devices.get", devices_get},
    {"hal.ex.file.from_memory", nothing},
    {"hal.executable.create", executable_create},
    {"hal.executable.lookup.function", executable_lookup},
    {"hal.fence.create", nothing},
    {"hal.fence.join", nothing},
    {"hal.fence.query", nothing},
    {"hal.fence.signal", nothing},
    {"hal.fence.fail", nothing},
    {"hal.fence.await", nothing},
    {"hal_inline.buffer.subspan", buffer_subspan},
    {"hal_inline.buffer.length", buffer_length},
    {"hal_inline.buffer_view.create", view_create},
    {"hal_inline.buffer_view.assert", view_assert},
    {"hal_inline.buffer_view.buffer", view_buffer},
    {"hal_inline.buffer_view.element_type", view_element_type},
    {"hal_inline.buffer_view.encoding_type", view_encoding},
    {"hal_inline.buffer_view.rank", view_rank},
    {"hal_inline.buffer_view.dim", view_dimension},
    {"hal_inline.buffer_view.trace", nothing},
    {"hal_inline.device.query.i64", inline_query},
    {"hal_loader.executable.query_support", query_support},
    {"hal_loader.executable.load", executable_load},
    {"hal_loader.executable.lookup.function", executable_lookup},
};

}  // namespace

bool call_hal(Program& program, Call& call) { return apply_effect(kEffects, program, call); }

}  // namespace halyard::analysis
