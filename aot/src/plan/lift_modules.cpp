// The imports of hal_inline, hal_loader, io_parameters and vmvx.
#include <fmt/core.h>

#include <algorithm>

#include "plan/lifter.h"

namespace halyard::aot {

using vm::Bank;
using Kind = Object::Kind;

bool Lifter::import_inline(Call& call, Nodes& out) {
  const std::string_view callee = call.callee;
  const auto storage = [&](const Place& place) {
    Object made = {.kind = Kind::bytes, .place = place};
    return add_object(std::move(made));
  };
  if (callee == "hal_inline_buffer_allocate" || callee == "hal_inline_buffer_allocate_initialized") {
    const bool has_source = callee != "hal_inline_buffer_allocate";
    const uint64_t alignment = constant_of(call.value(0));
    if ((alignment & (alignment - 1)) != 0 || alignment > 64)
      give_up("a buffer is aligned in an unusual way");
    Place source;
    if (has_source) {
      const Object* const from = bytes(call.object(1));
      if (from == nullptr) return true;
      source = part(from->place, call.value(2), call.value(3), out);
    }
    if (is_stuck()) return true;
    const ObjectId buffer = allocate(call.value(has_source ? 3 : 1), 0, 0, out);
    const Place place = objects_[buffer].place;
    if (has_source) {
      copy(source, place, out);
    } else if (!values_.is_constant(place.length, 0)) {
      memories_[place.memory].is_zeroed = true;
      out.push_back({.kind = Node::Kind::effect,
                     .text = fmt::format("memset({}, 0, {});", memory_name(place.memory),
                                         values_.size_text(place.length)),
                     .uses = {place.length},
                     .accesses = {{.memory = place.memory, .writes = true}}});
    }
    call.give(buffer);
    return call.give(storage(place));
  }
  if (callee == "hal_inline_buffer_wrap") {
    const Object* const from = bytes(call.object(0));
    if (from == nullptr) return true;
    Object made = {.kind = Kind::buffer, .place = part(from->place, call.value(1), call.value(2), out)};
    made.type = 0x3E;
    made.usage = 0x3000C03;
    return call.give(add_object(std::move(made)));
  }
  if (callee == "hal_storage") {
    const ObjectId buffer = of_kind(call.object(0), Kind::buffer);
    return is_stuck() || call.give(storage(objects_[buffer].place));
  }
  if (callee == "hal_loader_query_support") {
    const std::string_view format = text_of(call.object(0));
    const bool is_known = format == kKernelFormat || (format == kStaticFormat && has_static(kernels_));
    call.results.push_back({.value = i32(is_known)});
    return true;
  }
  if (callee == "hal_loader_load")
    return call.give(create_executable(call.object(0), call.object(1), call.object(2)));
  if (callee == "hal_loader_dispatch") {
    const ObjectId id = of_kind(call.object(0), Kind::executable);
    const auto function = static_cast<uint32_t>(constant_of(call.value(1)));
    if (is_stuck()) return true;
    std::vector<ValueId> constants;
    std::vector<Place> bindings;
    for (uint32_t i = 0; i < call.counts[0]; ++i) constants.push_back(call.value(5 + i));
    for (uint32_t i = 0; i < call.counts[1]; ++i) {
      const size_t first = 5 + call.counts[0] + 3 * size_t{i};
      const Object* const from = bytes(call.object(first));
      if (from == nullptr) return true;
      bindings.push_back(part(from->place, call.value(first + 1), call.value(first + 2), out));
    }
    if (!is_stuck())
      dispatch(objects_[id].kernels, function, {call.value(2), call.value(3), call.value(4)},
               std::move(constants), std::move(bindings), out);
    return true;
  }
  return false;
}

// Parameters are constants of the program, or bytes that its caller gives.
bool Lifter::import_parameters(Call& call, Nodes& out) {
  if (call.callee == "io_parameters_scatter") return false;
  const bool loads = call.callee == "io_parameters_load";
  of_kind(call.object(0), Kind::device);
  const std::string scope = call.object(4) == kNull ? std::string() : std::string(text_of(call.object(4)));
  const std::string_view table = text_of(call.object(loads ? 8 : 6));
  const std::string_view keys = text_of(call.object(loads ? 9 : 7));
  const std::string_view spans = text_of(call.object(loads ? 10 : 8));
  if (is_stuck()) return true;
  if (current != 0) give_up("parameters are loaded after the start");
  const auto word = [](std::string_view text, size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(text[at + i])} << (8 * i);
    return value;
  };
  const size_t count = spans.size() / 24;
  if (table.size() < 8 * count) give_up("a table of parameters is too short");
  Object list = {.kind = Kind::list};
  for (size_t i = 0; i < count && !is_stuck(); ++i) {
    const uint64_t begin = word(table, 8 * i, 4);
    const uint64_t length = word(table, 8 * i + 4, 4);
    if (begin > keys.size() || length > keys.size() - begin) {
      give_up("a key of a parameter is outside of its table");
      return true;
    }
    const std::string key(keys.substr(begin, length));
    const uint64_t from = word(spans, 24 * i, 8);
    const uint64_t to = word(spans, 24 * i + 8, 8);
    const uint64_t size = word(spans, 24 * i + 16, 8);
    if (from > (uint64_t{1} << 40) || size > (uint64_t{1} << 40) || (loads && to != 0))
      give_up("a range of a parameter is too large");
    auto found = std::ranges::find_if(
        parameters, [&](const UsedParameter& each) { return each.scope == scope && each.key == key; });
    if (found == parameters.end()) {
      UsedParameter used = {.scope = scope, .key = key};
      for (const ParameterBytes& each : given)
        if (used.baked == nullptr && each.scope == scope && each.key == key) used.baked = &each;
      parameters.push_back(used);
      found = parameters.end() - 1;
    }
    if (found->baked != nullptr && (from > found->baked->length || size > found->baked->length - from))
      give_up(fmt::format("parameter '{}' of scope '{}' has {} bytes; the program reads {} bytes at {}", key,
                          scope, found->baked->length, size, from));
    if (is_stuck()) return true;
    found->length = std::max(found->length, from + size);
    const auto index = static_cast<size_t>(found - parameters.begin());
    MemoryId memory = kNoMemory;
    for (MemoryId id = 0; id < memories_.size(); ++id)
      if (memories_[id].parameter == index) memory = id;
    if (memory == kNoMemory)
      memory = add_memory(
          {.kind = MemoryKind::constant, .bytes = i64(0), .is_read_only = true, .parameter = index});
    memories_[memory].size = found->length;
    if (!loads) {
      const ObjectId target = of_kind(call.object(5), Kind::buffer);
      if (is_stuck()) return true;
      const Place place = part(objects_[target].place, i64(to), i64(size), out);
      if (!is_stuck()) copy({memory, i64(from), i64(size)}, place, out);
      continue;
    }
    Object made = {.kind = Kind::buffer, .place = {memory, i64(from), i64(size)}};
    const auto type = static_cast<uint32_t>(constant_of(call.arguments[6].value));
    const auto usage = static_cast<uint32_t>(constant_of(call.arguments[7].value));
    made.type = type == 0 ? 0x3E : type | 0x16;
    made.usage = (usage == 0 ? 0xC03 : usage) | 0x3000000;
    list.elements.push_back(add_object(std::move(made)));
  }
  if (loads) call.results.push_back({.object = add_object(std::move(list)), .is_ref = true});
  return true;
}

// Microkernels work on buffers, which are made for the call.
bool Lifter::import_microkernel(Call& call, Nodes& out) {
  if (call.callee == "vmvx_query_tile_sizes_2d") {
    const uint64_t role = constant_of(call.arguments[2].value) & 0xFF;
    if (role < 1 || role > 3) give_up("an operand of tiles is not known");
    call.results.push_back({.value = i64(8)});
    call.results.push_back({.value = i64(role == 3 ? 8 : 1)});
    return true;
  }
  std::string arguments;
  std::vector<ValueId> uses;
  std::vector<Access> accesses;
  size_t last = 0;
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (call.arguments[i].is_ref) last = i;
  const std::string_view convention = [&]() -> std::string_view {
    for (const vm::Import& each : plan_->module.imports()) {
      std::string name = each.name.empty() ? "" : std::string(each.name);
      std::ranges::replace(name, '.', '_');
      if (name == call.callee) return each.convention;
    }
    return "";
  }();
  if (convention.empty()) return false;
  const Types types = types_of(convention);
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (!call.arguments[i].is_ref) {
      arguments += ", " + values_.text(call.arguments[i].value, bank_of(types.arguments[i]));
      uses.push_back(call.arguments[i].value);
      continue;
    }
    const Object* const buffer = bytes(call.arguments[i].object);
    if (buffer == nullptr) return true;
    const Place place = buffer->place;
    const bool writes = i == last;
    if (writes && memories_[place.memory].is_read_only)
      give_up("the program writes to a buffer that is read-only");
    (writes ? memories_[place.memory].is_written : memories_[place.memory].is_read) = true;
    if (writes) memories_[place.memory].is_read = true;
    const ValueId id = values_.add({.name = fmt::format("h{}", values_.size())});
    out.push_back({.kind = Node::Kind::effect,
                   .text = fmt::format("vm_buffer {} = vm_bytes({}, {}, {});", values_[id].name,
                                       address(place, i64(0), 1), values_.text(place.length, Bank::i64),
                                       writes ? 1 : 0),
                   .uses = {place.offset, place.length},
                   .accesses = {{.memory = place.memory, .writes = writes}}});
    arguments += fmt::format(", &{}.object", values_[id].name);
    accesses.push_back({.memory = place.memory, .writes = writes});
  }
  out.push_back({.kind = Node::Kind::attempt,
                 .text = fmt::format("{}(s{})", call.callee, arguments),
                 .uses = std::move(uses),
                 .accesses = std::move(accesses)});
  return true;
}

}  // namespace halyard::aot
