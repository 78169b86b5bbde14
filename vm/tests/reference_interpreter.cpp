// The other instructions of the reference machine: control flow, calls, refs, lists, buffers, globals.
#include "reference_interpreter.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/object/siphash.h"

namespace halyard::vm::test {

namespace {

// The characters of one half of a calling convention, including the brackets of spans.
std::string half_of(std::string_view convention, bool results) {
  if (convention.empty()) return "";
  const size_t separator = std::min(convention.find('_'), convention.size());
  const std::string_view half = results ? convention.substr(std::min(separator + 1, convention.size()))
                                        : convention.substr(1, separator - 1);
  return half == "v" ? "" : std::string(half);
}

bool is_wide(char type) { return type == 'I' || type == 'F'; }

// The types without stray voids, with spans repeated by their segment sizes.
std::string spread(std::string_view types, std::span<const uint16_t> segments) {
  std::string flat;
  size_t item = 0;
  for (size_t i = 0; i < types.size(); ++i, ++item) {
    if (types[i] == 'v') continue;
    if (types[i] != 'C') {
      flat += types[i];
      continue;
    }
    const size_t end = std::min(types.find('D', i), types.size());
    const std::string_view tuple = types.substr(i + 1, end - i - 1);
    for (uint16_t n = segments[item]; n > 0; --n) flat += tuple;
    i = end;
  }
  return flat;
}

// The next free registers when a function is entered.
struct Places {
  uint16_t value = 0;
  uint16_t ref = 0;

  uint16_t next(char type) {
    if (type == 'r') return static_cast<uint16_t>(kRefBit | ref++);
    if (is_wide(type)) value += value % 2;
    const uint16_t place = value;
    value += is_wide(type) ? 2 : 1;
    return place;
  }
};

// Copies one value of this type between registers of two frames.
void pass(ReferenceFrame& from, uint16_t source, ReferenceFrame& to, uint16_t destination, char type,
          bool honours_move) {
  if (type == 'r') {
    to.ref(destination) = from.read_ref(source, honours_move);
  } else if (is_wide(type)) {
    to.set_wide(destination, from.wide(source));
  } else {
    to.set_narrow(destination, from.narrow(source));
  }
}

// isa.md, 5.4.
bool passes(const Ref<Object>& object, const ElementType& declared) {
  return !object || (declared.object != nullptr && object->type() == declared.object);
}

// Copies or moves between registers. No effect if they are the same.
void transfer(ReferenceFrame& frame, uint16_t source, uint16_t destination, bool honours_move) {
  if ((source & kRefOrdinalMask) == (destination & kRefOrdinalMask)) return;
  frame.ref(destination) = frame.read_ref(source, honours_move);
}

template <typename T>
Code code_of(const Result<T>& result) {
  return result ? Code::OK : result.error().code();
}

// What the name of an instruction says, looked up once, because most loops access buffers.
struct NameFacts {
  uint32_t width = 4;
  bool loads = false, fills = false, extends_sign = false;
  enum Kind : uint8_t { list, buffer, global, ref } kind = ref;
};
const NameFacts& facts_of(Op op) {
  static const std::array<NameFacts, kOpCount> all = [] {
    std::array<NameFacts, kOpCount> made;
    for (size_t i = 0; i < kOpCount; ++i) {
      const std::string_view name = info(static_cast<Op>(i)).mnemonic();
      const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
      made[i].width = has("i8") ? 1 : has("i16") ? 2 : has("64") ? 8 : 4;
      made[i].loads = has("load");
      made[i].fills = has("fill");
      made[i].extends_sign = name.ends_with(".s");
      made[i].kind = name.starts_with("list.")     ? NameFacts::list
                     : name.starts_with("buffer.") ? NameFacts::buffer
                     : name.starts_with("global.") ? NameFacts::global
                                                   : NameFacts::ref;
    }
    return made;
  }();
  return all[static_cast<size_t>(op)];
}

ValueType value_type_of(Op op) {
  switch (op) {
    case Op::list_get_i32:
    case Op::list_set_i32:
      return ValueType::i32;
    case Op::list_get_i64:
    case Op::list_set_i64:
      return ValueType::i64;
    case Op::list_get_f32:
    case Op::list_set_f32:
      return ValueType::f32;
    default:
      return ValueType::f64;
  }
}

// isa.md, 5.6, in elements of `width` bytes. 128 bits cannot wrap.
bool in_range(const Buffer& buffer, uint64_t offset, uint64_t count, uint32_t width) {
  return (static_cast<unsigned __int128>(offset) + count) * width <= buffer.length();
}

}  // namespace

Code ReferenceMachine::call(ReferenceInstance& instance, uint32_t ordinal, std::span<const Variant> arguments,
                            std::vector<Variant>& results) {
  depth_ = 0;
  stack_bytes_ = 0;
  const Function& function = instance.module->functions()[ordinal];
  ReferenceFrame frame(instance, function);
  Places places;
  const std::string types = spread(half_of(function.convention, false), {});
  for (size_t i = 0; i < types.size(); ++i) {
    const uint16_t place = places.next(types[i]);
    if (types[i] == 'r') {
      frame.ref(place) = Ref<Object>::share(arguments[i].object());
    } else if (is_wide(types[i])) {
      frame.set_wide(place, arguments[i].bits());
    } else {
      frame.set_narrow(place, static_cast<uint32_t>(arguments[i].bits()));
    }
  }
  const Code code = run(frame);
  if (code != Code::OK) return code;
  const std::string result_types = spread(half_of(function.convention, true), {});
  for (size_t i = 0; i < result_types.size(); ++i) {
    const uint16_t source = frame.returned[i];
    switch (result_types[i]) {
      case 'r':
        results.push_back(Variant::ref(frame.read_ref(source, true)));
        break;
      case 'I':
        results.push_back(Variant::value(ValueType::i64, frame.wide(source)));
        break;
      case 'F':
        results.push_back(Variant::value(ValueType::f64, frame.wide(source)));
        break;
      default:
        results.push_back(
            Variant::value(result_types[i] == 'f' ? ValueType::f32 : ValueType::i32, frame.narrow(source)));
    }
  }
  return Code::OK;
}

// Runs until the function returns (OK). Another code is an error that ends the whole call.
Code ReferenceMachine::run(ReferenceFrame& frame) {
  // The minimum cost of a frame, verifier-and-execution.md, 4.
  const uint64_t bytes = 128 + 4 * frame.slots.size() + 16 * frame.refs.size();
  stack_bytes_ += bytes;
  if (++depth_ > limits_.depth || stack_bytes_ > limits_.stack_bytes) return stop("calls nest too deep");
  const Code code = run_body(frame);
  --depth_;
  stack_bytes_ -= bytes;
  return code;
}

Code ReferenceMachine::run_body(ReferenceFrame& frame) {
  const std::span<const uint8_t> code = frame.function.bytecode;
  while (frame.pc + 1 < code.size()) {
    if (++instructions_ > limits_.instructions) return stop("it runs for too long");
    auto set = OpSet::CORE;
    uint8_t byte = frame.u8();
    if (byte == info(Op::prefix_ext_f32).byte || byte == info(Op::prefix_ext_f64).byte) {
      set = byte == info(Op::prefix_ext_f32).byte ? OpSet::F32 : OpSet::F64;
      ++executed_[static_cast<size_t>(set == OpSet::F32 ? Op::prefix_ext_f32 : Op::prefix_ext_f64)];
      byte = frame.u8();
    }
    const Op op = kOpBySetAndByte[static_cast<size_t>(set)][byte];
    ++executed_[static_cast<size_t>(op)];
    if (op == Op::return_) {
      frame.returned = frame.list();
      return Code::OK;
    }
    Code code_of_step = Code::OK;
    bool unspecified = false;
    if (!reference_arithmetic(frame, op, code_of_step, unspecified)) code_of_step = step(frame, op);
    if (unspecified) return stop("it combines two different NaNs");
    if (code_of_step != Code::OK) return code_of_step;
  }
  return Code::INVALID_ARGUMENT;  // past the end: the last instruction was a `fail` of 0
}

Code ReferenceMachine::step(ReferenceFrame& frame, Op op) {
  switch (op) {
    case Op::block:
      return Code::OK;
    case Op::br:
    case Op::break_:
    case Op::yield:  // resumed at once
      branch(frame);
      return Code::OK;
    case Op::cond_break:
      frame.u16();
      branch(frame);
      return Code::OK;
    case Op::cond_br:
      if (frame.narrow(frame.u16()) == 0) skip_edge(frame);
      branch(frame);
      return Code::OK;
    case Op::br_table:
      branch_by_table(frame);
      return Code::OK;
    case Op::fail:
      return fail(frame);
    case Op::call:
    case Op::call_variadic:
    case Op::call_yieldable:
    case Op::call_variadic_yieldable:
      return call_instruction(frame, op);
    case Op::import_resolved: {
      const ReferenceImport& import = frame.instance.imports[frame.u32() & ~kImportBit];
      frame.set_narrow(frame.u16(), import.provider || import.native);
      return Code::OK;
    }
    case Op::trace:
    case Op::print:
      frame.string();
      for (const uint16_t entry : frame.list()) {
        if ((entry & kRefBit) && (entry & kMoveBit)) frame.ref(entry) = nullptr;
      }
      return Code::OK;
    case Op::discard_refs:
      for (const uint16_t entry : frame.list()) {
        if (entry & kRefBit) frame.ref(entry) = nullptr;
      }
      return Code::OK;
    default:
      break;
  }
  switch (facts_of(op).kind) {
    case NameFacts::list:
      return list_instruction(frame, op);
    case NameFacts::buffer:
      return buffer_instruction(frame, op);
    case NameFacts::global:
      return global_instruction(frame, op);
    default:
      return ref_instruction(frame, op);
  }
}

Code ReferenceMachine::fail(ReferenceFrame& frame) {
  const uint32_t status = frame.narrow(frame.u16());
  frame.string();
  if (status == 0) return Code::OK;
  const uint32_t code = status & 31;
  return code == 0 || code == 17 || code > 18 ? Code::UNKNOWN : static_cast<Code>(code);
}

// An edge: a target and its moves, applied one after another.
void ReferenceMachine::branch(ReferenceFrame& frame) {
  const uint32_t target = frame.u32();
  branch_to(frame, target);
}

void ReferenceMachine::branch_to(ReferenceFrame& frame, uint32_t target) {
  frame.pc += frame.pc % 2;
  for (uint16_t count = frame.u16(); count > 0; --count) {
    const uint16_t source = frame.u16();
    const uint16_t destination = frame.u16();
    if (source & kRefBit) {
      transfer(frame, source, destination, true);
    } else {
      frame.set_narrow(destination, frame.narrow(source));
    }
  }
  frame.pc = target;
}

void ReferenceMachine::skip_edge(ReferenceFrame& frame) {
  frame.u32();
  frame.pc += frame.pc % 2;
  const uint16_t count = frame.u16();
  frame.pc += 4u * count;
}

void ReferenceMachine::branch_by_table(ReferenceFrame& frame) {
  const auto index = static_cast<int32_t>(frame.narrow(frame.u16()));
  const uint32_t default_edge = frame.pc;
  skip_edge(frame);
  const uint16_t count = frame.u16();
  if (index < 0 || index >= count) {
    frame.pc = default_edge;
  } else {
    for (int32_t i = 0; i < index; ++i) skip_edge(frame);
  }
  branch(frame);
}

// ---- calls

Code ReferenceMachine::call_instruction(ReferenceFrame& frame, Op op) {
  const uint32_t callee = frame.u32();
  const bool variadic = op == Op::call_variadic || op == Op::call_variadic_yieldable;
  const bool yieldable = op == Op::call_yieldable || op == Op::call_variadic_yieldable;
  const std::vector<uint16_t> segments = variadic ? frame.list() : std::vector<uint16_t>();
  const std::vector<uint16_t> arguments = frame.list();
  const uint32_t resume = yieldable ? frame.u32() : 0;
  const std::vector<uint16_t> results = frame.list();
  const Code code = callee & kImportBit
                        ? call_import(frame, callee & ~kImportBit, segments, arguments, results, yieldable)
                        : call_internal(frame, callee, arguments, results);
  if (code == Code::OK && yieldable) frame.pc = resume;
  return code;
}

// By the callee's convention if it has one (ruling 1); otherwise one register for each entry.
Code ReferenceMachine::call_internal(ReferenceFrame& frame, uint32_t callee,
                                     std::span<const uint16_t> arguments, std::span<const uint16_t> results) {
  const Function& function = frame.instance.module->functions()[callee];
  ReferenceFrame inner(frame.instance, function);
  const bool by_convention = !function.convention.empty();
  Places places;
  if (by_convention) {
    const std::string types = spread(half_of(function.convention, false), {});
    for (size_t i = 0; i < types.size(); ++i)
      pass(frame, arguments[i], inner, places.next(types[i]), types[i], true);
  } else {
    for (const uint16_t source : arguments) {
      const char type = source & kRefBit ? 'r' : 'i';
      const uint16_t place = places.next(type);
      if (type == 'r' && (place & kRefOrdinalMask) >= inner.refs.size()) {
        (void)frame.read_ref(source, true);
      } else if (type == 'r' || place < function.value_registers) {
        pass(frame, source, inner, place, type, true);
      }
    }
  }
  if (const Code code = run(inner); code != Code::OK) return code;
  if (by_convention) {
    const std::string types = spread(half_of(function.convention, true), {});
    for (size_t i = 0; i < types.size(); ++i)
      pass(inner, inner.returned[i], frame, results[i], types[i], true);
    return Code::OK;
  }
  if (inner.returned.size() > results.size()) return Code::FAILED_PRECONDITION;
  for (size_t i = 0; i < inner.returned.size(); ++i) {
    const uint16_t source = inner.returned[i];
    if ((source ^ results[i]) & kRefBit) continue;
    pass(inner, source, frame, results[i], source & kRefBit ? 'r' : 'i', true);
  }
  return Code::OK;
}

Code ReferenceMachine::call_import(ReferenceFrame& frame, uint32_t ordinal,
                                   std::span<const uint16_t> segments, std::span<const uint16_t> arguments,
                                   std::span<const uint16_t> results, bool yieldable) {
  const ReferenceImport& import = frame.instance.imports[ordinal];
  if (!import.provider && !import.native) return Code::NOT_FOUND;
  const std::string types = spread(half_of(import.convention, false), segments);
  const std::string result_types = spread(half_of(import.convention, true), {});
  if (import.native)
    return call_native(frame, import, types, result_types, segments, arguments, results, yieldable);
  ReferenceFrame inner(*import.provider, import.provider->module->functions()[import.function]);
  Places places;
  for (size_t i = 0; i < types.size(); ++i)
    pass(frame, arguments[i], inner, places.next(types[i]), types[i], frame.version() >= 16);
  if (const Code code = run(inner); code != Code::OK) return code;
  for (size_t i = 0; i < result_types.size(); ++i)
    pass(inner, inner.returned[i], frame, results[i], result_types[i], true);
  return Code::OK;
}

// A native function has separate registers here: first its arguments, then its results.
Code ReferenceMachine::call_native(ReferenceFrame& frame, const ReferenceImport& import,
                                   std::string_view types, std::string_view result_types,
                                   std::span<const uint16_t> segments, std::span<const uint16_t> arguments,
                                   std::span<const uint16_t> results, bool yieldable) {
  Function layout;
  layout.value_registers = static_cast<uint16_t>(2 * (types.size() + result_types.size()));
  layout.ref_registers = static_cast<uint16_t>(types.size() + result_types.size());
  ReferenceFrame inner(frame.instance, layout);
  Places places;
  std::vector<uint16_t> argument_places;
  std::vector<uint16_t> result_places;
  for (size_t i = 0; i < types.size(); ++i) {
    argument_places.push_back(places.next(types[i]));
    pass(frame, arguments[i], inner, argument_places[i], types[i], frame.version() >= 16);
  }
  for (const char type : result_types) result_places.push_back(places.next(type));
  std::vector<Object*> refs;
  for (Ref<Object>& ref : inner.refs) refs.push_back(ref.detach());
  NativeCall call{.state = import.state,
                  .values = inner.slots.data(),
                  .refs = refs.data(),
                  .arguments = argument_places.data(),
                  .segments = segments.data(),
                  .results = result_places.data()};
  Status status = import.native(call);
  const bool must_wait = call.deferred && !yieldable && !result_types.empty();
  while (status.ok() && call.deferred && !must_wait) {
    call.resumed = true;
    call.deferred = false;
    status = import.native(call);
  }
  for (size_t i = 0; i < refs.size(); ++i) inner.refs[i] = Ref<Object>::adopt(refs[i]);
  if (!status.ok()) return status.code();
  if (must_wait) return Code::UNIMPLEMENTED;
  for (size_t i = 0; i < result_types.size(); ++i)
    pass(inner, result_places[i], frame, results[i], result_types[i], false);
  return Code::OK;
}

// ---- refs and globals

Code ReferenceMachine::ref_instruction(ReferenceFrame& frame, Op op) {
  const bool honours_move = frame.version() >= 16;
  const auto types = frame.instance.module->types();
  switch (op) {
    case Op::const_ref_zero:
      frame.ref(frame.u16()) = nullptr;
      return Code::OK;
    case Op::const_ref_rodata: {
      const Ref<Buffer>& segment = frame.instance.module->rodata()[frame.u32()];
      frame.ref(frame.u16()) = segment;
      return Code::OK;
    }
    case Op::select_ref: {
      const bool condition = frame.narrow(frame.u16()) != 0;
      const ElementType& type = types[frame.u32()];
      const uint16_t on_true = frame.u16();
      const uint16_t on_false = frame.u16();
      const uint16_t result = frame.u16();
      const uint16_t chosen = condition ? on_true : on_false;
      const uint16_t other = condition ? on_false : on_true;
      if (!passes(frame.ref(chosen), type)) return Code::INVALID_ARGUMENT;
      transfer(frame, chosen, result, honours_move);
      if (honours_move && (other & kMoveBit) && (other & kRefOrdinalMask) != (result & kRefOrdinalMask))
        frame.ref(other) = nullptr;
      return Code::OK;
    }
    case Op::switch_ref: {
      const auto index = static_cast<int32_t>(frame.narrow(frame.u16()));
      const ElementType& type = types[frame.u32()];
      const uint16_t fallback = frame.u16();
      const std::vector<uint16_t> values = frame.list();
      const uint16_t result = frame.u16();
      const bool listed = index >= 0 && index < static_cast<int32_t>(values.size());
      const uint16_t chosen = listed ? values[static_cast<size_t>(index)] : fallback;
      if (!passes(frame.ref(chosen), type)) return Code::INVALID_ARGUMENT;
      transfer(frame, chosen, result, listed || honours_move);  // in 15, entries of the list move too
      return Code::OK;
    }
    case Op::cast_any_ref: {
      const uint16_t source = frame.u16();
      if (!passes(frame.ref(source), types[frame.u32()])) return Code::INVALID_ARGUMENT;
      transfer(frame, source, frame.u16(), honours_move);
      return Code::OK;
    }
    case Op::assign_ref: {
      const uint16_t source = frame.u16();
      transfer(frame, source, frame.u16(), true);
      return Code::OK;
    }
    case Op::cmp_eq_ref:
    case Op::cmp_ne_ref: {
      const uint16_t lhs = frame.u16();
      const bool equal = frame.ref(lhs) == frame.ref(frame.u16());
      frame.set_narrow(frame.u16(), equal == (op == Op::cmp_eq_ref));
      return Code::OK;
    }
    case Op::cmp_nz_ref: {
      const bool present = static_cast<bool>(frame.ref(frame.u16()));
      frame.set_narrow(frame.u16(), present);
      return Code::OK;
    }
    default:
      std::abort();  // an unknown opcode
  }
}

Code ReferenceMachine::global_instruction(ReferenceFrame& frame, Op op) {
  const std::string_view name = info(op).mnemonic();
  const bool indirect = name.find("indirect") != name.npos;
  const bool loads = name.find("load") != name.npos;
  const uint32_t place = indirect ? frame.narrow(frame.u16()) : frame.u32();
  if (!name.ends_with("ref")) {
    const uint64_t size = facts_of(op).width;
    std::vector<uint8_t>& bytes = frame.instance.global_bytes;
    if (place + size > bytes.size()) return Code::OUT_OF_RANGE;
    const uint16_t reg = frame.u16();
    for (uint64_t i = 0; i < size; i += 4) {
      uint32_t& slot = frame.slots[reg + i / 4];
      if (loads)
        std::memcpy(&slot, bytes.data() + place + i, 4);
      else
        std::memcpy(bytes.data() + place + i, &slot, 4);
    }
    return Code::OK;
  }
  std::vector<Ref<Object>>& globals = frame.instance.global_refs;
  if (place >= globals.size()) return Code::OUT_OF_RANGE;
  const ElementType& type = frame.instance.module->types()[frame.u32()];
  const uint16_t reg = frame.u16();
  const bool moves = frame.version() >= 16 && (reg & kMoveBit);
  if (!passes(loads ? globals[place] : frame.ref(reg), type)) return Code::INVALID_ARGUMENT;
  if (loads) {
    Ref<Object> loaded = globals[place];
    if (moves) globals[place] = nullptr;
    frame.ref(reg) = std::move(loaded);
  } else {
    globals[place] = frame.read_ref(reg, moves);
  }
  return Code::OK;
}

// ---- lists

Code ReferenceMachine::list_instruction(ReferenceFrame& frame, Op op) {
  const bool honours_move = frame.version() >= 16;
  const bool legacy_floats = frame.version() < 16;
  if (op == Op::list_alloc) {
    const ElementType& element = frame.instance.module->types()[frame.u32()];
    const Ref<List> made = List::create(element);
    const Code code = code_of(made->reserve(frame.narrow(frame.u16()), limits_.list_elements));
    if (code == Code::OK) frame.ref(frame.u16()) = made;
    return code;
  }
  List* list = cast<List>(frame.ref(frame.u16()).get());
  if (!list) return Code::INVALID_ARGUMENT;
  if (op == Op::list_size) {
    frame.set_narrow(frame.u16(), list->size());
    return Code::OK;
  }
  const uint32_t number = frame.narrow(frame.u16());  // an index, a size or a capacity
  switch (op) {
    case Op::list_reserve:
      return code_of(list->reserve(number, limits_.list_elements));
    case Op::list_resize:
      return code_of(list->resize(number, limits_.list_elements));
    case Op::list_get_ref: {
      const ElementType& type = frame.instance.module->types()[frame.u32()];
      const uint16_t result = frame.u16();
      const Result<Object*> found = list->get_ref(number);
      if (!found) return found.error().code();
      Ref<Object> element = Ref<Object>::share(*found);
      if (honours_move && (result & kMoveBit)) (void)list->set_ref(number, nullptr);
      const bool fits = element && type.object && element->type() == type.object;
      frame.ref(result) = fits ? element : Ref<Object>();
      return Code::OK;
    }
    case Op::list_set_ref: {
      const uint16_t value = frame.u16();
      const Code code = code_of(list->set_ref(number, frame.ref(value)));
      if (code == Code::OK) (void)frame.read_ref(value, honours_move);
      return code;
    }
    default:
      break;
  }
  const ValueType type = value_type_of(op);
  const bool wide = type == ValueType::i64 || type == ValueType::f64;
  const uint16_t reg = frame.u16();
  if (info(op).mnemonic().find("set") != std::string_view::npos)
    return code_of(list->set_value(number, type, wide ? frame.wide(reg) : frame.narrow(reg), legacy_floats));
  const Result<uint64_t> value = list->get_value(number, type, legacy_floats);
  if (!value) return value.error().code();
  if (wide)
    frame.set_wide(reg, *value);
  else
    frame.set_narrow(reg, static_cast<uint32_t>(*value));
  return Code::OK;
}

// ---- buffers

Code ReferenceMachine::buffer_instruction(ReferenceFrame& frame, Op op) {
  if (op == Op::buffer_alloc) {
    const uint64_t length = frame.wide(frame.u16());
    const uint32_t alignment = frame.narrow(frame.u16());
    Result<Ref<Buffer>> made = Buffer::allocate(length, alignment, limits_.buffer_bytes);
    if (made) frame.ref(frame.u16()) = *made;
    return code_of(made);
  }
  const Buffer* buffer = cast<Buffer>(frame.ref(frame.u16()).get());
  if (op == Op::buffer_length) {
    if (!buffer) return Code::INVALID_ARGUMENT;
    frame.set_wide(frame.u16(), buffer->length());
    return Code::OK;
  }
  const uint64_t offset = frame.wide(frame.u16());
  if (op == Op::buffer_copy || op == Op::buffer_compare) {
    const Buffer* other = cast<Buffer>(frame.ref(frame.u16()).get());
    const uint64_t other_offset = frame.wide(frame.u16());
    const uint64_t length = frame.wide(frame.u16());
    if (!buffer || !other) return Code::INVALID_ARGUMENT;
    if (!in_range(*buffer, offset, length, 1)) return Code::OUT_OF_RANGE;
    if (op == Op::buffer_copy && !other->is_mutable()) return Code::PERMISSION_DENIED;
    if (!in_range(*other, other_offset, length, 1)) return Code::OUT_OF_RANGE;
    if (op == Op::buffer_copy) {
      const std::vector<uint8_t> bytes(buffer->data() + offset, buffer->data() + offset + length);
      std::ranges::copy(bytes, other->data() + other_offset);
      return Code::OK;
    }
    const bool equal =
        std::equal(buffer->data() + offset, buffer->data() + offset + length, other->data() + other_offset);
    frame.set_narrow(frame.u16(), equal);
    return Code::OK;
  }
  if (!buffer) return Code::INVALID_ARGUMENT;
  if (op == Op::buffer_hash || op == Op::buffer_clone) {
    const uint64_t length = frame.wide(frame.u16());
    if (!in_range(*buffer, offset, length, 1)) return Code::OUT_OF_RANGE;
    const std::span<const uint8_t> bytes(buffer->data() + offset, length);
    if (op == Op::buffer_hash) {
      frame.set_wide(frame.u16(), siphash(bytes));
      return Code::OK;
    }
    const uint32_t alignment = frame.narrow(frame.u16());
    Result<Ref<Buffer>> made = Buffer::allocate(length, alignment, limits_.buffer_bytes);
    if (!made) return made.error().code();
    std::ranges::copy(bytes, (*made)->data());
    frame.ref(frame.u16()) = *std::move(made);
    return Code::OK;
  }
  const NameFacts& facts = facts_of(op);
  const uint32_t width = facts.width;
  const uint64_t count = facts.fills ? frame.wide(frame.u16()) : 1;
  const uint16_t reg = frame.u16();
  if (!facts.loads && !buffer->is_mutable()) return Code::PERMISSION_DENIED;
  if (!in_range(*buffer, offset, count, width)) return Code::OUT_OF_RANGE;
  uint8_t* const from = buffer->data() + offset * width;
  if (!facts.loads) {
    const uint64_t value = width == 8 ? frame.wide(reg) : frame.narrow(reg);
    for (uint64_t i = 0; i < count * width; ++i) from[i] = static_cast<uint8_t>(value >> (8 * (i % width)));
    return Code::OK;
  }
  uint64_t value = 0;
  for (uint32_t i = 0; i < width; ++i) value |= uint64_t{from[i]} << (8 * i);
  if (width == 8) {
    frame.set_wide(reg, value);
    return Code::OK;
  }
  const uint64_t sign = uint64_t{1} << (8 * width - 1);
  if (width < 4 && facts.extends_sign) value = (value ^ sign) - sign;
  frame.set_narrow(reg, static_cast<uint32_t>(value));
  return Code::OK;
}

}  // namespace halyard::vm::test
