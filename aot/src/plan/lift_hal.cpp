// The imports of hal that make and ask objects: the objects change when the program is translated.
#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "halyard/wildcards.hpp"
#include "plan/lifter.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;
using Kind = Object::Kind;

namespace {

// As aot/support/hal_buffers.c.
constexpr uint32_t kUsageOfConstants = 0x80000;

}  // namespace

ObjectId Lifter::of_kind(ObjectId id, Kind kind) {
  if (id == kNull || id == kUnknownObject || objects_[id].kind != kind) {
    give_up("an object of another type is used");
    return kNull;
  }
  return id;
}

uint64_t Lifter::constant_of(ValueId id) {
  if (!values_.is_constant(id)) {
    give_up("a number of a device call is not known");
    return 0;
  }
  return values_[id].bits;
}

// The characters of a constant.
std::string_view Lifter::text_of(ObjectId id) {
  const Object* const buffer = bytes(id);
  if (buffer == nullptr || memories_[buffer->place.memory].kind != MemoryKind::constant) {
    give_up("a text is not a constant");
    return {};
  }
  const std::span<const uint8_t> all = plan_->module.rodata()[memories_[buffer->place.memory].index]->span();
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

MemoryId Lifter::constant_memory(uint32_t ordinal) {
  const auto [found, is_new] = constants_.try_emplace({plan_, ordinal}, kNoMemory);
  if (is_new) {
    const uint64_t size = plan_->module.rodata()[ordinal]->span().size();
    found->second = add_memory(
        {.kind = MemoryKind::constant, .bytes = i64(size), .index = ordinal, .is_read_only = true});
  }
  return found->second;
}

ObjectId Lifter::allocate(ValueId length, uint32_t type, uint32_t usage, Nodes& out) {
  const MemoryId memory =
      add_memory({.kind = current == 0 ? MemoryKind::state : MemoryKind::transient, .bytes = length});
  if (!values_.is_constant(length)) {
    // The bytes after those of known buffers.
    if (current == 0 || branches_ != 0) give_up("the size of a buffer depends on a branch");
    out.push_back({.kind = Node::Kind::allocate,
                   .text = memory_name(memory),
                   .uses = {length},
                   .accesses = {{.memory = memory}}});
  } else if (values_[length].bits > (uint64_t{1} << 40)) {
    give_up("a buffer is larger than any memory");
  }
  Object made = {.kind = Kind::buffer, .place = {memory, i64(0), length}};
  made.type = type == 0 ? 0x3E : type | 0x16;
  made.usage = (usage == 0 ? 0xC03 : usage) | 0x3000000;
  return add_object(std::move(made));
}

// A part of a place; all bytes are UINT64_MAX.
Place Lifter::part(const Place& place, ValueId offset, ValueId length, Nodes& out) {
  if (is_stuck() || place.memory == kNoMemory) return {};
  if (values_.is_constant(length, UINT64_MAX))
    length = operate(Op::sub_i64, Bank::i64, {place.length, offset, kNoValue}, out);
  if (values_.is_constant(offset) && values_.is_constant(length) && values_.is_constant(place.length)) {
    const uint64_t from = values_[offset].bits;
    const uint64_t count = values_[length].bits;
    const uint64_t room = values_[place.length].bits;
    if (from > room || count > room - from) give_up("a range is not within its buffer");
  } else if (!(values_.is_constant(offset, 0) && length == place.length)) {
    check_range(offset, length, place.length, 1, out);
  }
  return {place.memory, sum(place.offset, offset, out), length};
}

ObjectId Lifter::create_executable(ObjectId format, ObjectId data, ObjectId constants) {
  std::string_view name = text_of(format);
  while (name.ends_with('\0')) name.remove_suffix(1);
  if (name != kKernelFormat && !(name == kStaticFormat && has_static(kernels_)))
    give_up("an executable has another format");
  const Object* const code = bytes(data);
  if (code == nullptr || (constants != kNull && (bytes(constants) == nullptr ||
                                                 !values_.is_constant(bytes(constants)->place.length, 0)))) {
    give_up("an executable has constants");
    return kNull;
  }
  const Memory& memory = memories_[code->place.memory];
  for (size_t i = 0; i < kernels_.size(); ++i)
    if (memory.kind == MemoryKind::constant && host_.constant(memory.index) == kernels_[i].constant)
      return add_object({.kind = Kind::executable, .kernels = i});
  give_up("an executable is not among the constants");
  return kNull;
}

void Lifter::dispatch(size_t kernels, uint32_t function, const std::array<ValueId, 3>& counts,
                      std::vector<ValueId> constants, std::vector<Place> bindings, Nodes& out) {
  if (is_stuck()) return;
  if (!kernels_[kernels].library.empty())
    return dispatch_static(kernels_[kernels], function, counts, constants, bindings, out);
  Node node = {.kind = Node::Kind::dispatch};
  node.site = sites_.size();
  node.uses.assign(counts.begin(), counts.end());
  node.uses.insert(node.uses.end(), constants.begin(), constants.end());
  for (const Place& place : bindings) {
    node.uses.push_back(place.offset);
    node.uses.push_back(place.length);
    node.accesses.push_back({.memory = place.memory, .writes = true});
  }
  sites_.push_back({kernels, function, counts, std::move(constants), std::move(bindings), current});
  out.push_back(std::move(node));
}

// A kernel of an object file is called through the query function of its library. It may write to all memory
// but constants and arguments, which it only reads, as programs of compilers do.
void Lifter::dispatch_static(const Kernels& library, uint32_t function, const std::array<ValueId, 3>& counts,
                             const std::vector<ValueId>& constants, const std::vector<Place>& bindings,
                             Nodes& out) {
  Node node = {.kind = Node::Kind::attempt};
  node.uses.assign(counts.begin(), counts.end());
  std::string words;
  std::string addresses;
  std::string lengths;
  for (const ValueId id : constants) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ", values_.text(id, Bank::i32));
    node.uses.push_back(id);
  }
  for (const Place& place : bindings) {
    Memory& memory = memories_[place.memory];
    const bool writes = memory.kind != MemoryKind::constant && memory.kind != MemoryKind::argument;
    memory.is_read = true;
    memory.is_written |= writes;
    addresses += fmt::format("{}{}", addresses.empty() ? "" : ", ", address(place, i64(0), 1));
    lengths += fmt::format("{}{}", lengths.empty() ? "" : ", ", values_.size_text(place.length));
    node.uses.push_back(place.offset);
    node.uses.push_back(place.length);
    node.accesses.push_back({.memory = place.memory, .writes = writes});
  }
  const auto list = [](std::string_view type, const std::string& items) {
    return items.empty() ? std::string("NULL") : fmt::format("({}[]){{{}}}", type, items);
  };
  node.text = fmt::format("hal_static_dispatch(s, {}, {}u, {}, {}, {}, {}, {}, {}, {}, {}, VM_LOCAL_BEGIN)",
                          library.library, function, values_.text(counts[0], Bank::i32),
                          values_.text(counts[1], Bank::i32), values_.text(counts[2], Bank::i32),
                          constants.size(), list("const uint32_t", words), bindings.size(),
                          list("const void* const", addresses), list("const size_t", lengths));
  out.push_back(std::move(node));
}

// ---- views

// A dimension of a view. That of an argument is a parameter until the program states the type.
ValueId Lifter::dimension(ObjectId id, uint32_t index) {
  const Object& view = objects_[id];
  if (view.argument == SIZE_MAX) return index < view.shape.size() ? view.shape[index] : i64(0);
  Argument& argument = arguments[view.argument];
  if (argument.is_checked) return index < argument.shape.size() ? argument.shape[index] : i64(0);
  while (argument.asked.size() <= index) argument.asked.push_back(kNoValue);
  if (argument.asked[index] == kNoValue)
    argument.asked[index] =
        parameter(Bank::i64, fmt::format("d{}_{}", view.argument, index), {0, INT32_MAX, 1});
  return argument.asked[index];
}

void Lifter::assert_view(Call& call, Nodes& out) {
  const ObjectId id = of_kind(call.arguments[0].object, Kind::view);
  if (is_stuck()) return;
  const std::string_view message = text_of(call.arguments[1].object);
  const auto element_type = static_cast<uint32_t>(constant_of(call.arguments[2].value));
  const auto encoding = static_cast<uint32_t>(constant_of(call.arguments[3].value));
  const uint32_t rank = call.counts[0];
  const Object view = objects_[id];
  if (view.argument != SIZE_MAX && !arguments[view.argument].is_checked) {
    Argument& argument = arguments[view.argument];
    argument.is_checked = true;
    argument.element_type = element_type;
    argument.encoding = encoding;
    argument.name = message;
    if (argument.asked.size() > rank) return give_up("an argument has more dimensions than its type");
    argument.asked.resize(rank, kNoValue);
    for (uint32_t i = 0; i < rank; ++i) {
      const ValueId wanted = call.arguments[4 + i].value;
      const ValueId asked = argument.asked[i];
      if (asked == kNoValue && values_.is_constant(wanted)) {
        argument.shape.push_back(wanted);
        continue;
      }
      const ValueId own = asked != kNoValue ? asked
                                            : parameter(Bank::i64, fmt::format("d{}_{}", view.argument, i),
                                                        {0, INT32_MAX, 1});
      argument.shape.push_back(own);
      if (own == wanted) continue;
      out.push_back(
          {.kind = Node::Kind::check,
           .text = fmt::format("{} != {}", values_.text(own, Bank::i64), values_.text(wanted, Bank::i64)),
           .failure = fmt::format(
               "vm_fail_of(s, {}, 3, \"@ shape dimension mismatch; expected $ but have $\", {}, {})",
               quoted(message), values_.text(wanted, Bank::i64), values_.text(own, Bank::i64)),
           .uses = {own, wanted}});
    }
    objects_[id].shape = argument.shape;
    objects_[id].element_type = i32(element_type);
    objects_[id].encoding = i32(encoding);
    return;
  }
  const std::vector<ValueId>& shape = view.argument != SIZE_MAX ? arguments[view.argument].shape : view.shape;
  bool same = shape.size() == rank && values_.is_constant(view.element_type, element_type) &&
              values_.is_constant(view.encoding, encoding);
  for (uint32_t i = 0; same && i < rank; ++i) same = shape[i] == call.arguments[4 + i].value;
  if (!same) give_up("a view has another type than the program expects");
}

ObjectId Lifter::make_view(ObjectId buffer, const Call& call, size_t first, Nodes& out) {
  const ObjectId from = of_kind(buffer, Kind::buffer);
  if (is_stuck()) return kNull;
  Object range = objects_[from];
  range.place = part(range.place, call.arguments[first].value, call.arguments[first + 1].value, out);
  Object view = {.kind = Kind::view};
  view.buffer = add_object(std::move(range));
  view.element_type = call.arguments[first + 2].value;
  view.encoding = call.arguments[first + 3].value;
  for (uint32_t i = 0; i < call.counts[0]; ++i) view.shape.push_back(call.arguments[first + 4 + i].value);
  return add_object(std::move(view));
}

// ---- imports

bool Lifter::import(Call& call, Nodes& out) {
  std::string_view& callee = call.callee;
  // Functions of hal 0.5 differ in types and flags alone, except for those whose arguments are elsewhere.
  if (callee.starts_with("vmvx_")) return import_microkernel(call, out);
  if (callee.starts_with("io_parameters_")) return import_parameters(call, out);
  if (import_device(call, out) || is_stuck()) return true;
  if (import_queue(call, out) || is_stuck()) return true;
  if (import_commands(call, out) || is_stuck()) return true;
  return import_inline(call, out);
}

bool Lifter::import_device(Call& call, Nodes& out) {
  const std::string_view callee = call.callee;
  const auto number = [&](ValueId id) {
    call.results.push_back({.value = id});
    return true;
  };
  if (callee == "hal_devices_count") return number(i32(static_cast<uint32_t>(devices.size())));
  if (callee == "hal_devices_get") {
    const uint64_t index = constant_of(call.value(0));
    if (is_stuck() || index >= devices.size()) return call.give(kNull);
    if (devices[index].device == kNull) devices[index].device = add_object({.kind = Kind::device});
    return call.give(devices[index].device);
  }
  if (callee == "hal_device_allocator") {
    const ObjectId device = of_kind(call.object(0), Kind::device);
    if (is_stuck()) return true;
    Device& of = *std::ranges::find(devices, device, &Device::device);
    if (of.allocator == kNull) of.allocator = add_object({.kind = Kind::allocator});
    return call.give(of.allocator);
  }
  if (callee == "hal_allocator_select") {
    if (call.counts[0] == 0) give_up("allocator.select has no candidates");
    if (is_stuck()) return true;
    call.give(of_kind(call.object(3), Kind::device));
    return number(call.value(4));
  }
  if (callee == "hal_buffer_view_trace") return true;
  if (callee == "hal_device_query_i64") {
    of_kind(call.object(0), Kind::device);
    const std::string_view category = text_of(call.object(1));
    const std::string_view key = text_of(call.object(2));
    uint64_t answer = 0;
    bool known = true;
    if (category == "hal.device.id")
      answer = matches_device_id(key, "local-sync");
    else if (category == "hal.executable.format")
      answer = key == kKernelFormat || (key == kStaticFormat && has_static(kernels_));
    else if ((category == "hal.device" || category == "hal.dispatch") && key == "concurrency")
      answer = 1;
    else
      known = false;
    number(i32(known));
    return number(i64(answer));
  }
  if (callee == "hal_allocator_allocate") {
    of_kind(call.object(0), Kind::allocator);
    return call.give(allocate(call.value(4), static_cast<uint32_t>(constant_of(call.value(2))),
                              static_cast<uint32_t>(constant_of(call.value(3))), out));
  }
  if (callee == "hal_allocator_import") {
    of_kind(call.object(0), Kind::allocator);
    const Object* const source = bytes(call.object(5));
    const auto usage = static_cast<uint32_t>(constant_of(call.value(4)));
    if (source == nullptr) return true;
    const Place from = source->place;
    if (memories_[from.memory].is_read_only && !(usage & kUsageOfConstants))
      give_up("a constant is imported to be written");
    if (constant_of(call.value(6)) % 64 != 0) give_up("a constant is not aligned");
    Object made = {.kind = Kind::buffer, .place = part(from, call.value(6), call.value(7), out)};
    made.type = static_cast<uint32_t>(constant_of(call.value(3)));
    made.usage = usage;
    made.is_import = true;
    return call.give(add_object(std::move(made)));
  }
  if (callee == "hal_buffer_assert") {
    const ObjectId buffer = of_kind(call.object(0), Kind::buffer);
    of_kind(call.object(2), Kind::allocator);
    if (is_stuck()) return true;
    const Object checked = objects_[buffer];
    const auto type = static_cast<uint32_t>(constant_of(call.value(4)));
    const auto usage = static_cast<uint32_t>(constant_of(call.value(5)));
    if ((checked.type & type) != type || (checked.usage & usage) != usage)
      give_up("a buffer has another type than the program expects");
    const ValueId minimum = call.value(3);
    const ValueId length = checked.place.length;
    if (values_.is_constant(minimum) && values_.is_constant(length)) {
      if (values_[length].bits < values_[minimum].bits)
        give_up("a buffer is smaller than the program expects");
    } else if (length != minimum) {
      out.push_back(
          {.kind = Node::Kind::check,
           .text = fmt::format("{} < {}", values_.text(length, Bank::i64), values_.text(minimum, Bank::i64)),
           .failure = fmt::format(
               "vm_fail_of(s, {}, 3, \"@ buffer byte length $ less than expected minimum $\", {}, {})",
               quoted(text_of(call.object(1))), values_.text(length, Bank::i64),
               values_.text(minimum, Bank::i64)),
           .uses = {length, minimum}});
    }
    return true;
  }
  if (callee == "hal_buffer_subspan") {
    const ObjectId buffer = of_kind(call.object(0), Kind::buffer);
    if (is_stuck()) return true;
    Object made = objects_[buffer];
    made.place = part(made.place, call.value(1), call.value(2), out);
    return call.give(add_object(std::move(made)));
  }
  if (callee == "hal_buffer_length") {
    const ObjectId buffer = of_kind(call.object(0), Kind::buffer);
    return is_stuck() || number(objects_[buffer].place.length);
  }
  if (callee == "hal_buffer_load") {
    const ObjectId buffer = of_kind(call.object(0), Kind::buffer);
    const uint64_t size = constant_of(call.value(2));
    if (is_stuck() || (size != 1 && size != 2 && size != 4)) return false;
    const Place place = part(objects_[buffer].place, call.value(1), i64(size), out);
    memories_[place.memory].is_read = true;
    const char* const form = size == 1 ? "vm_get_8({})" : size == 2 ? "vm_get_16({})" : "vm_get_32({})";
    const Range range = size == 1 ? Range{0, 255, 1} : size == 2 ? Range{0, 65535, 1} : Range::of(Bank::i32);
    return number(let(Bank::i32, fmt::format(fmt::runtime(form), address(place, i64(0), 1)), {place.offset},
                      true, out, range, {{.memory = place.memory}}));
  }
  if (callee == "hal_buffer_store") {
    const ObjectId buffer = of_kind(call.object(1), Kind::buffer);
    const uint64_t size = constant_of(call.value(3));
    if (is_stuck() || objects_[buffer].is_import || (size != 1 && size != 2 && size != 4)) return false;
    const Place place = part(objects_[buffer].place, call.value(2), i64(size), out);
    memories_[place.memory].is_written = true;
    const std::string low = values_.text(call.value(0), Bank::i32);
    out.push_back({.kind = Node::Kind::effect,
                   .text = size == 4 ? fmt::format("vm_set_32({}, {});", address(place, i64(0), 1), low)
                           : size == 2
                               ? fmt::format("vm_set_16({}, (uint16_t)({}));", address(place, i64(0), 1), low)
                               : fmt::format("vm_set_8({}, (uint8_t)({}));", address(place, i64(0), 1), low),
                   .uses = {place.offset, call.value(0)},
                   .accesses = {{.memory = place.memory, .writes = true}}});
    return true;
  }
  if (callee == "hal_buffer_view_create") return call.give(make_view(call.object(0), call, 1, out));
  if (callee == "hal_buffer_view_assert") {
    assert_view(call, out);
    return true;
  }
  if (callee.starts_with("hal_buffer_view_")) {
    const ObjectId id = of_kind(call.object(0), Kind::view);
    if (is_stuck()) return true;
    const Object view = objects_[id];
    if (callee == "hal_buffer_view_buffer") {
      if (view.argument != SIZE_MAX) {
        // The bytes of the argument are those of its type.
        Argument& argument = arguments[view.argument];
        if (!argument.is_checked) give_up("the program does not state the type of an argument");
        if (is_stuck()) return true;
        Memory& memory = memories_[argument.memory];
        if (memory.bytes == kNoValue) {
          const uint32_t bits = argument.element_type & 0xFF;
          ValueId size = i64(bits == 0 ? 1 : (bits + 7) / 8);
          for (const ValueId each : argument.shape)
            size = operate(Op::mul_i64, Bank::i64, {size, each, kNoValue}, out);
          memories_[argument.memory].bytes = size;
          if (values_.is_constant(size)) {
            memories_[argument.memory].has_size = true;
            memories_[argument.memory].size = values_[size].bits;
          }
          objects_[view.buffer].place = {argument.memory, i64(0), size};
        }
      }
      return call.give(view.buffer);
    }
    if (view.argument != SIZE_MAX && !arguments[view.argument].is_checked &&
        callee != "hal_buffer_view_dim") {
      give_up("the program reads the type of an argument");
      return true;
    }
    if (callee == "hal_buffer_view_element_type") return number(view.element_type);
    if (callee == "hal_buffer_view_encoding_type") return number(view.encoding);
    if (callee == "hal_buffer_view_rank") return number(i32(static_cast<uint32_t>(view.shape.size())));
    if (callee == "hal_buffer_view_dim")
      return number(dimension(id, static_cast<uint32_t>(constant_of(call.value(1)))));
  }
  if (callee == "hal_executable_create")
    return call.give(create_executable(call.object(2), call.object(3), call.object(4)));
  if (callee == "hal_executable_create_5")
    return call.give(create_executable(call.object(1), call.object(2), call.object(3)));
  if (callee == "hal_executable_lookup_function") {
    const ObjectId id = of_kind(call.object(0), Kind::executable);
    const std::string_view name = text_of(call.object(1));
    if (is_stuck()) return true;
    if (kernels_[objects_[id].kernels].module.get() == nullptr) {
      give_up("the names of the kernels of an object file are known when it is linked");
      return true;
    }
    uint64_t index = 0;
    for (const vm::Export& each : kernels_[objects_[id].kernels].module->exports()) {
      if (each.name.starts_with("__")) continue;
      if (each.name == name) return number(i64(index));
      ++index;
    }
    give_up("a kernel is not in its executable");
    return true;
  }
  return false;
}

}  // namespace halyard::aot
