// The functions of a program as C.
#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "plan/node_text.h"
#include "plan/program.h"

namespace halyard::aot {

using vm::Bank;

namespace {

bool uses_word(const std::string& text, std::string_view word) { return words_of(text).contains(word); }

std::string plus(std::string_view base, uint64_t offset) {
  return offset == 0 ? std::string(base) : fmt::format("({} + {}u)", base, offset);
}

}  // namespace

// ---- kernels

std::string Program::kernel_text(KernelFunction& kernel) {
  Lifter& lifter = *kernel.lifter;
  const Values& values = lifter.values();
  const std::vector<Memory>& memories = lifter.memories();
  std::map<MemoryId, uint64_t> offsets;
  for (const Placed& each : kernel.placed) offsets[each.memory] = each.lifetime.offset;
  const std::vector<Kernels>& all = kernels_;
  NodeTexts texts = {.values = values,
                     .memory =
                         [&](MemoryId id) {
                           const Memory& memory = memories[id];
                           switch (memory.kind) {
                             case MemoryKind::binding:
                               return fmt::format("b{}", memory.index);
                             case MemoryKind::constant:
                               return fmt::format("vm_rodata_{}",
                                                  all[kernel.kernels].plan.constant(memory.index));
                             default:
                               return plus("scratch", offsets[id]);
                           }
                         },
                     .dispatch = [](const Node&) { return std::string(); },
                     .allocation = [](const Node&) { return std::string(); }};
  std::string body = text_of(kernel.body, texts, 1);
  if (!kernel.vector_body.empty())
    body = "#ifdef VM_VECTORS\n" + text_of(kernel.vector_body, texts, 1) + "#else\n" + body + "#endif\n";
  const std::string code = without_literals(body);
  std::vector<size_t> sites;
  const auto collect = [&](const Nodes& nodes) {
    for_each_node(nodes, [&](const Node& node) {
      if (node.kind == Node::Kind::dispatch && &kernel_of(lifter_->sites()[node.site]) == &kernel)
        sites.push_back(node.site);
    });
  };
  collect(initializer_);
  for (const HostFunction& each : functions_) collect(each.body);
  std::string parameters;
  const auto add = [&](std::string_view type, const std::string& name) {
    if (!uses_word(code, name)) return;
    parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", type, name);
    kernel.used_names.push_back(name);
  };
  kernel.takes_state = kernel.can_fail || uses_word(code, "s");
  if (kernel.takes_state) parameters = "vm_state* s";
  for (size_t i = 0; i < kernel.bindings.size(); ++i) {
    const bool writes = memories[kernel.bindings[i]].is_written;
    // No other binding has the bytes that this one writes, or that others write.
    bool is_alone = true;
    for (size_t other = 0; other < kernel.bindings.size(); ++other)
      if (other != i && (writes || memories[kernel.bindings[other]].is_written))
        is_alone = is_alone && overlap_of(i, other, sites).kind == Overlap::Kind::none;
    add(fmt::format("{}unsigned char*{}", writes ? "" : "const ", is_alone ? " restrict" : ""),
        fmt::format("b{}", i));
  }
  for (size_t i = 0; i < kernel.bindings.size(); ++i)
    add(values.c_type(memories[kernel.bindings[i]].bytes), fmt::format("n{}", i));
  for (size_t i = 0; i < lifter.constants.size(); ++i) add("uint32_t", fmt::format("c{}", i));
  for (size_t i = kernel.has_rows ? 1 : 0; i < 3; ++i) add("uint32_t", fmt::format("w{}", i));
  for (size_t i = 0; i < 3; ++i) add("uint32_t", fmt::format("g{}", i));
  add("unsigned char*", "scratch");
  kernel.text =
      fmt::format("static {} {}({}) {{\n{}{}}}\n", kernel.can_fail ? "int" : "void", kernel.symbol,
                  parameters.empty() ? "void" : parameters, body, kernel.can_fail ? "  return 0;\n" : "");
  return kernel.text;
}

// ---- the host

std::string Program::constant_name(const Memory& memory) const {
  if (memory.parameter == SIZE_MAX) return fmt::format("vm_rodata_{}", host_.constant(memory.index));
  const bool is_baked = lifter_->parameters[memory.parameter].baked != nullptr;
  return fmt::format(fmt::runtime(is_baked ? "vm_parameter_{}" : "vm_given(s, {})"), memory.parameter);
}

std::string Program::memory_text(MemoryId id, const std::vector<Placed>& placed) const {
  const Memory& memory = lifter_->memories()[id];
  switch (memory.kind) {
    case MemoryKind::constant:
      return constant_name(memory);
    case MemoryKind::argument:
      return fmt::format("in{}", memory.index);
    case MemoryKind::result:
      return fmt::format("out{}", memory.index);
    case MemoryKind::state: {
      for (const auto& [each, offset] : state_)
        if (each == id) return plus("vm_memory(s)", offset);
      return "vm_memory(s)";
    }
    default:
      if (!memory.has_size) return fmt::format("m{}", id);
      for (const Placed& each : placed)
        if (each.memory == id) return plus("arena", each.lifetime.offset);
      return "arena";
  }
}

std::string Program::dispatch_text(const Node& node, const std::vector<Placed>& placed, size_t) const {
  const Site& site = lifter_->sites()[node.site];
  const KernelFunction& kernel = kernel_of(site);
  const Values& values = lifter_->values();
  std::string arguments = kernel.takes_state ? "s" : "";
  for (const std::string& name : kernel.used_names) {
    const size_t index = name == "scratch" ? 0 : static_cast<size_t>(std::stoul(name.substr(1)));
    std::string text;
    switch (name[0]) {
      case 'b': {
        const Place& place = site.bindings[index];
        text = memory_text(place.memory, placed);
        if (!values.is_constant(place.offset, 0)) text += " + " + values.size_text(place.offset);
        break;
      }
      case 'n': {
        const Values& inner = kernel.lifter->values();
        const bool is_narrow = inner[kernel.lifter->memories()[kernel.bindings[index]].bytes].is_narrow;
        text = is_narrow ? values.low_text(site.bindings[index].length)
                         : values.text(site.bindings[index].length, Bank::i64);
        break;
      }
      case 'c':
        text = values.text(site.constants[index], Bank::i32);
        break;
      case 'w':
        text = fmt::format("{}", "xyz"[index]);
        break;
      case 'g':
        text = values.text(site.counts[index], Bank::i32);
        break;
      default:
        text = "arena";
        for (const Placed& each : placed)
          if (each.memory == kNoMemory - 1 - static_cast<MemoryId>(node.site))
            text = plus("arena", each.lifetime.offset);
        break;
    }
    arguments += (arguments.empty() ? "" : ", ") + text;
  }
  std::string text;
  std::string indent;
  size_t loops = 0;
  if (kernel.can_fail) {
    text += "{\n";
    indent += "  ";
    ++loops;
  }
  for (size_t i = 3; i-- > 0;) {
    if (values.is_constant(site.counts[i], 1) || (i == 0 && kernel.has_rows)) continue;
    text += fmt::format("{0}for (uint32_t {1} = 0; {1} < {2}; ++{1}) {{\n", indent, "xyz"[i],
                        values.text(site.counts[i], Bank::i32));
    indent += "  ";
    ++loops;
  }
  const std::string call = fmt::format("{}({})", kernel.symbol, arguments);
  text += indent + (kernel.can_fail ? "const int status = " : "") + call + ";\n";
  if (kernel.can_fail) text += indent + "if (status != 0) return status;\n";
  while (loops-- > 0) {
    indent.resize(indent.size() - 2);
    text += indent + "}\n";
  }
  return text;
}

std::string Program::initializer_text() {
  NodeTexts texts = {.values = lifter_->values(),
                     .memory = [&](MemoryId id) { return memory_text(id, {}); },
                     .dispatch = [&](const Node& node) { return dispatch_text(node, {}, 0); },
                     .allocation = [](const Node&) { return std::string(); }};
  return text_of(initializer_, texts, 1);
}

std::string Program::dimensions(const HostFunction& function) const {
  std::string text;
  for (size_t i = 0; i < function.arguments.size(); ++i)
    for (size_t n = 0; n < function.arguments[i].shape.size(); ++n)
      if (!lifter_->values().is_constant(function.arguments[i].shape[n]))
        text += fmt::format("{}size_t a{}_d{}", text.empty() ? "" : ", ", i, n);
  return text;
}

// The dimensions of an argument as numbers of 32 bits, for which the ranges hold.
std::string Program::dimension_locals(const HostFunction& function, size_t argument, const std::string& code,
                                      std::string_view otherwise) const {
  std::string text;
  for (size_t n = 0; n < function.arguments[argument].shape.size(); ++n) {
    if (lifter_->values().is_constant(function.arguments[argument].shape[n])) continue;
    text += fmt::format("  if (a{}_d{} > INT32_MAX) {};\n", argument, n, otherwise);
    if (uses_word(code, fmt::format("d{}_{}", argument, n)))
      text += fmt::format("  const uint32_t d{0}_{1} = (uint32_t)a{0}_d{1};\n", argument, n);
  }
  return text;
}

std::string Program::parameters(const HostFunction& function) const {
  const Values& values = lifter_->values();
  const auto outside = [](char type) {
    return type == 'i' ? "int32_t" : type == 'I' ? "int64_t" : type == 'f' ? "float" : "double";
  };
  const auto extents = [&](const std::vector<ValueId>& shape) {
    // Dimensions that are not known are not part of the type.
    std::string text;
    bool is_known = true;
    for (const ValueId id : shape) is_known = is_known && values.is_constant(id) && values[id].bits != 0;
    if (!is_known) return text;
    for (const ValueId id : shape) text += fmt::format("[{}]", values[id].bits);
    return text;
  };
  const auto tensor = [&](std::string_view type, const std::string& name, const std::string& dimensions) {
    return dimensions.empty() ? fmt::format("{}* {}", type, name)
                              : fmt::format("{} {}{}", type, name, dimensions);
  };
  std::string text;
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    const Argument& argument = function.arguments[i];
    if (argument.type != 'r') {
      text += fmt::format(", {} a{}", outside(argument.type), i);
      continue;
    }
    const bool writes = lifter_->memories()[argument.memory].is_written;
    text += ", " + tensor(fmt::format("{}{}", writes ? "" : "const ", element_c_type(argument.element_type)),
                          fmt::format("a{}", i), extents(argument.shape));
    for (size_t n = 0; n < argument.shape.size(); ++n)
      if (!values.is_constant(argument.shape[n])) text += fmt::format(", size_t a{}_d{}", i, n);
  }
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    const Output& output = function.outputs[i];
    if (output.type != 'r')
      text += fmt::format(", {}* o{}", outside(output.type), i);
    else if (output.is_fixed)
      text +=
          ", " + tensor(element_c_type(output.element_type), fmt::format("o{}", i), extents(output.shape));
    else
      text += fmt::format(", const {}** o{}, size_t o{}_shape[{}]", element_c_type(output.element_type), i, i,
                          std::max<size_t>(output.shape.size(), 1));
  }
  return text;
}

std::string Program::function_text(const HostFunction& function) {
  const Values& values = lifter_->values();
  NodeTexts texts = {.values = values,
                     .memory = [&](MemoryId id) { return memory_text(id, function.placed); },
                     .dispatch = [&](const Node& node) { return dispatch_text(node, function.placed, 0); },
                     .allocation =
                         [&](const Node& node) {
                           const std::string name =
                               with_memories(node.text, [&](MemoryId id) { return memory_text(id, {}); });
                           return fmt::format(
                               "const size_t at_{0} = used;\nif (!vm_reserve(&used, {1}, s->arena_bytes)) "
                               "return vm_no_room(s, {1});\n"
                               "unsigned char* const {0} = arena + at_{0};\n",
                               name, values.text(node.uses[0], Bank::i64));
                         }};
  std::string body = text_of(function.body, texts, 1);
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    const Output& output = function.outputs[i];
    if (output.type != 'r') {
      const Bank bank = bank_of(output.type);
      const char* const cast = bank == Bank::i32 ? "(int32_t)" : bank == Bank::i64 ? "(int64_t)" : "";
      const std::string value = values.text(output.value, bank);
      body += *cast != 0 ? fmt::format("  *o{} = {}({});\n", i, cast, value)
                         : fmt::format("  *o{} = {};\n", i, value);
      continue;
    }
    std::string from = memory_text(output.place.memory, function.placed);
    if (!values.is_constant(output.place.offset, 0)) from += " + " + values.size_text(output.place.offset);
    if (output.is_fixed) {
      if (!output.in_place && values[output.place.length].bits != 0)
        body += fmt::format("  memmove(out{}, {}, {}u);\n", i, from, values[output.place.length].bits);
      continue;
    }
    body +=
        fmt::format("  *o{} = (const {}*)(const void*)({});\n", i, element_c_type(output.element_type), from);
    for (size_t n = 0; n < output.shape.size(); ++n)
      body += fmt::format("  o{}_shape[{}] = {};\n", i, n, values.size_text(output.shape[n]));
    if (output.shape.empty()) body += fmt::format("  o{}_shape[0] = 1;\n", i);
  }
  const std::string code = without_literals(body);
  std::string begin;
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    if (function.arguments[i].type != 'r') {
      if (!uses_word(code, fmt::format("a{}", i))) begin += fmt::format("  (void)a{};\n", i);
      continue;
    }
    const bool writes = lifter_->memories()[function.arguments[i].memory].is_written;
    if (uses_word(code, fmt::format("in{}", i)))
      begin += fmt::format("  {0}unsigned char* const in{1} = ({0}unsigned char*)a{1};\n",
                           writes ? "" : "const ", i);
    else
      begin += fmt::format("  (void)a{};\n", i);
    begin += dimension_locals(function, i, code,
                              "return vm_fail(s, 11, \"a dimension is larger than 2147483647\")");
  }
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    if (function.outputs[i].type != 'r' || !function.outputs[i].is_fixed) continue;
    if (uses_word(code, fmt::format("out{}", i)))
      begin += fmt::format("  unsigned char* const out{0} = (unsigned char*)o{0};\n", i);
    else
      begin += fmt::format("  (void)o{};\n", i);
  }
  if (uses_word(code, "arena")) begin += "  unsigned char* const arena = (unsigned char*)s->arena;\n";
  if (uses_word(code, "used")) begin += fmt::format("  size_t used = {}u;\n", function.arena_bytes);
  if (!uses_word(code + begin, "s")) begin += "  (void)s;\n";
  return fmt::format("int {}({}_state* s{}) {{\n{}{}  return 0;\n}}\n\n", function.face.symbol, host_.prefix,
                     parameters(function), begin, body);
}

// Whether the division that computes a value, if one does, is checked in the function because the divisor may
// be 0.
bool Program::is_checked_division(ValueId id) const {
  const Values& values = lifter_->values();
  const Value& value = values[id];
  switch (value.op) {
    case vm::Op::div_i32_s:
    case vm::Op::div_i32_u:
    case vm::Op::div_i64_s:
    case vm::Op::div_i64_u:
    case vm::Op::rem_i32_s:
    case vm::Op::rem_i32_u:
    case vm::Op::rem_i64_s:
    case vm::Op::rem_i64_u: {
      const Range& divisor = values[values[value.operands[1]].same].range;
      return divisor.low <= 0 && divisor.high >= 0;
    }
    default:
      return false;
  }
}

std::optional<Nodes> Program::allocations(const HostFunction& function) const {
  const Values& values = lifter_->values();
  std::set<ValueId> known;
  for (const Argument& each : function.arguments) known.insert(each.shape.begin(), each.shape.end());
  const auto is_known = [&](ValueId id) {
    return values.is_constant(id) || known.contains(id) || known.contains(values[id].same);
  };
  Nodes nodes;
  for (const Node& node : function.body) {
    if (node.kind == Node::Kind::allocate) {
      if (!is_known(node.uses[0])) return std::nullopt;
      nodes.push_back(node);
      continue;
    }
    if (node.kind == Node::Kind::let && node.removable && node.accesses.empty() &&
        std::ranges::all_of(node.uses, is_known) && !uses_word(node.text, "s") &&
        !is_checked_division(node.value)) {
      known.insert(node.value);
      nodes.push_back(node);
      continue;
    }
    bool allocates = false;
    for (const Nodes* const inner : {&node.body, &node.other})
      for_each_node(*inner, [&](const Node& each) { allocates |= each.kind == Node::Kind::allocate; });
    if (allocates) return std::nullopt;
  }
  remove_unused(nodes, values, {});
  return nodes;
}

bool Program::has_arena_function(const HostFunction& function) const {
  return function.has_dynamic_memory && allocations(function).has_value();
}

// The bytes of the arena for these dimensions: the buffers in the order of the function.
std::string Program::arena_function_text(const HostFunction& function) const {
  const Values& values = lifter_->values();
  NodeTexts texts = {.values = values,
                     .memory = [](MemoryId) { return std::string("0"); },
                     .dispatch = [](const Node&) { return std::string(); },
                     .allocation =
                         [&](const Node& node) {
                           return fmt::format("if (!vm_reserve(&used, {}, SIZE_MAX)) return SIZE_MAX;\n",
                                              values.text(node.uses[0], Bank::i64));
                         }};
  const std::string body = text_of(*allocations(function), texts, 1);
  std::string unused;
  for (size_t i = 0; i < function.arguments.size(); ++i)
    unused += dimension_locals(function, i, body, "return SIZE_MAX");
  const std::string parameters = dimensions(function);
  return fmt::format("size_t {}_arena_size({}) {{\n{}  size_t used = {}u;\n{}  return used;\n}}\n\n",
                     function.face.symbol, parameters.empty() ? "void" : parameters, unused,
                     function.arena_bytes, body);
}

}  // namespace halyard::aot
