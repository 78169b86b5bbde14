// Lifts the functions of a program, and places its memory.
#include "plan/program.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "aot/c_text.h"
#include "plan/kernel_loops.h"

namespace halyard::aot {

using vm::Bank;

namespace {

constexpr uint64_t kAlignment = 16;  // of buffers, within memory that the caller aligns

uint32_t number(const vm::Export& kernel, std::string_view key) {
  std::string_view text = kernel.attribute(key);
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The export of a kernel, by its number among those that are no runtime functions.
const vm::Export* entry(const Kernels& kernels, uint32_t index) {
  for (const vm::Export& each : kernels.module->exports()) {
    if (each.name.starts_with("__")) continue;
    if (index-- == 0) return &each;
  }
  return nullptr;
}

}  // namespace

const char* element_c_type(uint32_t element_type) {
  const uint32_t bits = element_type & 0xFF;
  switch (element_type >> 24) {
    case 0x10:
    case 0x11:
      return bits == 8    ? "int8_t"
             : bits == 16 ? "int16_t"
             : bits == 32 ? "int32_t"
             : bits == 64 ? "int64_t"
                          : nullptr;
    case 0x12:
      return bits == 8    ? "uint8_t"
             : bits == 16 ? "uint16_t"
             : bits == 32 ? "uint32_t"
             : bits == 64 ? "uint64_t"
                          : nullptr;
    case 0x13:
      return bits == 8 ? "uint8_t" : nullptr;
    case 0x21:
      return bits == 32 ? "float" : bits == 64 ? "double" : bits == 16 ? "uint16_t" : nullptr;
    case 0x22:
      return bits == 16 ? "uint16_t" : nullptr;
    default:
      return bits == 8    ? "uint8_t"
             : bits == 16 ? "uint16_t"
             : bits == 32 ? "uint32_t"
             : bits == 64 ? "uint64_t"
                          : nullptr;
  }
}

uint32_t element_bytes(uint32_t element_type) { return ((element_type & 0xFF) + 7) / 8; }

std::unique_ptr<Program> Program::of(const Plan& host, const std::vector<Kernels>& kernels,
                                     const Options& options, std::string& why) {
  std::unique_ptr<Program> program(new Program(host, kernels));
  program->lifter_->given = options.parameters;
  program->lifter_->devices.resize(options.devices);
  program->lifter_->has_checks = options.checks;
  const bool uses_device =
      std::ranges::any_of(host.imports, [](const ImportPlan& each) { return each.takes_state; });
  if (!uses_device) {
    why = "the program uses no device";
    return nullptr;
  }
  if (!program->lift_host() || !program->lift_kernels() || !program->keep_written_constants()) {
    why = program->why_.empty() ? program->lifter_->reason() : program->why_;
    return nullptr;
  }
  program->write_kernels();
  program->plan_memory();
  return program;
}

// ---- the host

// The numbers that the end of the function needs.
std::vector<ValueId> HostFunction::results() const {
  std::vector<ValueId> all;
  for (const Output& output : outputs) {
    if (output.type != 'r') {
      all.push_back(output.value);
      continue;
    }
    all.insert(all.end(), output.shape.begin(), output.shape.end());
    all.push_back(output.place.offset);
  }
  return all;
}

bool Program::check_scopes(const Nodes& nodes, size_t scope) {
  bool good = true;
  for_each_node(nodes, [&](const Node& node) {
    for (const ValueId id : node.uses)
      if (id != kNoValue && !lifter_->values()[id].is_constant && lifter_->values()[id].scope != scope)
        good = false;
  });
  return good || give_up("a number of one function is used by another one");
}

// Dispatches of no workgroup do nothing.
void Program::erase_empty_dispatches(Nodes& nodes) {
  for (Node& node : nodes) {
    erase_empty_dispatches(node.body);
    erase_empty_dispatches(node.other);
  }
  std::erase_if(nodes, [&](const Node& node) {
    return node.kind == Node::Kind::dispatch &&
           std::ranges::any_of(lifter_->sites()[node.site].counts,
                               [&](ValueId count) { return lifter_->values().is_constant(count, 0); });
  });
}

bool Program::lift_host() {
  std::string initializer;
  const Result<std::vector<PublicFunction>> faces = public_functions(host_, initializer);
  if (!faces) return give_up(std::string(faces.error().text()));
  std::vector<Returned> results;
  for (const vm::Export& each : host_.module.exports()) {
    if (each.name != "__init") continue;
    initializer_ = lifter_->lift(host_, each.function, {}, results);
    if (lifter_->is_stuck()) return false;
  }
  erase_empty_dispatches(initializer_);
  remove_unused(initializer_, lifter_->values());
  bool fails = false;
  for_each_node(initializer_, [&](const Node& node) { fails |= node.kind == Node::Kind::fail; });
  if (fails) return give_up("the initializer of the program fails");
  if (!check_scopes(initializer_, 0)) return false;
  for (size_t i = 0; i < faces->size(); ++i)
    if (!lift_function((*faces)[i], i + 1)) return false;
  lifter_->current = 0;
  return true;
}

bool Program::lift_function(const PublicFunction& face, size_t scope) {
  Lifter& lifter = *lifter_;
  lifter.current = scope;
  HostFunction made = {.face = face, .scope = scope};
  std::vector<Returned> given;
  for (size_t i = 0; i < face.types.arguments.size(); ++i) {
    Argument argument = {.type = face.types.arguments[i]};
    if (argument.type == 'r') {
      argument.memory = lifter.add_memory({.kind = MemoryKind::argument, .index = static_cast<uint32_t>(i)});
      Object buffer = {.kind = Object::Kind::buffer,
                       .place = {argument.memory, lifter.i64(0), lifter.i64(0)}};
      buffer.type = 0x3E;
      buffer.usage = 0x3000C03;
      Object view = {.kind = Object::Kind::view};
      view.buffer = lifter.add_object(std::move(buffer));
      view.argument = i;
      argument.object = lifter.add_object(std::move(view));
      given.push_back({.object = argument.object, .is_ref = true});
    } else {
      const Bank bank = bank_of(argument.type);
      const char* const cast = bank == Bank::i32 ? "(uint32_t)" : bank == Bank::i64 ? "(uint64_t)" : "";
      argument.value = lifter.parameter(bank, fmt::format("{}a{}", cast, i), Range::of(bank));
      given.push_back({.value = argument.value});
    }
    made.arguments.push_back(argument);
  }
  if (face.is_async) {
    given.push_back({.object = kNull, .is_ref = true});
    given.push_back({.object = lifter.add_object({.kind = Object::Kind::fence}), .is_ref = true});
  }
  lifter.arguments = made.arguments;
  const std::map<uint32_t, ObjectId> before = lifter.refs();
  std::vector<Returned> results;
  uint32_t function = 0;
  for (const vm::Export& each : host_.module.exports())
    if (each.name == face.name) function = each.function;
  made.body = lifter.lift(host_, function, given, results);
  if (lifter.is_stuck()) return false;
  made.arguments = lifter.arguments;
  if (results.size() != face.types.results.size())
    return give_up(fmt::format("function '{}' always fails", face.name));
  for (const Argument& argument : made.arguments)
    if (argument.type == 'r' && (!argument.is_checked || element_c_type(argument.element_type) == nullptr))
      return give_up(fmt::format("function '{}' does not state the types of its arguments", face.name));
  for (size_t i = 0; i < results.size(); ++i) {
    Output output = {.type = face.types.results[i]};
    if (output.type != 'r') {
      output.value = results[i].value;
      made.outputs.push_back(output);
      continue;
    }
    if (results[i].object == kNull || results[i].object == kUnknownObject ||
        lifter.objects()[results[i].object].kind != Object::Kind::view)
      return give_up(fmt::format("function '{}' returns an object that is no tensor", face.name));
    const Object view = lifter.objects()[results[i].object];
    if (view.argument != SIZE_MAX && !made.arguments[view.argument].is_checked)
      return give_up(fmt::format("function '{}' returns an argument", face.name));
    const Values& values = lifter.values();
    if (!values.is_constant(view.element_type) || !values.is_constant(view.encoding))
      return give_up("the type of a result is not known");
    output.element_type = static_cast<uint32_t>(values[view.element_type].bits);
    output.encoding = static_cast<uint32_t>(values[view.encoding].bits);
    output.shape = view.shape;
    output.place = lifter.objects()[view.buffer].place;
    if (element_c_type(output.element_type) == nullptr || output.shape.size() > 16)
      return give_up("the elements of a result have no type in C");
    output.is_fixed = std::ranges::all_of(output.shape, [&](ValueId id) { return values.is_constant(id); }) &&
                      values.is_constant(output.place.length) && values.is_constant(output.place.offset);
    if (output.is_fixed) {
      // The bytes must be those of the shape.
      uint64_t count = element_bytes(output.element_type);
      for (const ValueId id : output.shape) count *= values[id].bits;
      if (count != values[output.place.length].bits)
        return give_up("a result has other bytes than its shape");
    }
    made.outputs.push_back(std::move(output));
  }
  if (!keep_globals(made, before)) return false;
  // Results are computed in the caller's bytes where the program makes a buffer for them alone.
  for (size_t i = 0; i < made.outputs.size(); ++i) {
    Output& output = made.outputs[i];
    if (output.type != 'r' || !output.is_fixed) continue;
    Memory& memory = lifter.memories()[output.place.memory];
    const Values& values = lifter.values();
    if (memory.kind == MemoryKind::transient && memory.function == scope && memory.has_size &&
        memory.size != 0 && values.is_constant(output.place.offset, 0) &&
        values.is_constant(output.place.length, memory.size)) {
      memory.kind = MemoryKind::result;
      memory.index = static_cast<uint32_t>(i);
      output.in_place = true;
    }
  }
  lifter.refs() = before;
  erase_empty_dispatches(made.body);
  remove_unused(made.body, lifter.values(), made.results());
  if (!check_scopes(made.body, scope)) return false;
  functions_.push_back(std::move(made));
  return true;
}

// A global that holds another buffer after the call keeps its memory, which gets the bytes of the new one.
bool Program::keep_globals(HostFunction& function, const std::map<uint32_t, ObjectId>& before) {
  Lifter& lifter = *lifter_;
  const auto before_call = [&](uint32_t ref) {
    const auto known = before.find(ref);
    return known == before.end() ? kNull : known->second;
  };
  for (const auto& [ref, now] : lifter.refs()) {
    const ObjectId was = before_call(ref);
    if (was == now) continue;
    const auto kind = [&](ObjectId id) {
      return id == kUnknownObject ? Object::Kind::null : lifter.objects()[id].kind;
    };
    if (kind(now) == Object::Kind::fence && (was == kNull || kind(was) == Object::Kind::fence)) continue;
    if (kind(now) != Object::Kind::buffer || kind(was) != Object::Kind::buffer)
      return give_up("a call changes an object of the program");
    const Object from = lifter.objects()[now];
    const Object to = lifter.objects()[was];
    Memory& memory = lifter.memories()[to.place.memory];
    const Values& values = lifter.values();
    if (memory.kind != MemoryKind::state && memory.kind != MemoryKind::constant)
      return give_up("a call changes an object of the program");
    if (from.usage != to.usage && (from.usage & 0xC03) != (to.usage & 0xC03))
      return give_up("a call changes an object of the program");
    if (!values.is_constant(from.place.length) || from.place.length != to.place.length ||
        !values.is_constant(to.place.offset, 0) || !values.is_constant(to.place.length, memory.size))
      return give_up("a call changes the size of an object of the program");
    // Nothing else may know the memory.
    for (const auto& [other, after] : lifter.refs()) {
      for (const ObjectId id : {before_call(other), after}) {
        if ((other == ref && id == was) || id == kNull || kind(id) != Object::Kind::buffer) continue;
        if (lifter.objects()[id].place.memory == to.place.memory)
          return give_up("two objects of the program share memory");
      }
    }
    for (const Output& output : function.outputs)
      if (output.type == 'r' && output.place.memory == to.place.memory)
        return give_up("a result is an object of the program");
    memory.is_written = true;
    function.body.push_back(
        {.kind = Node::Kind::effect,
         .text = fmt::format(
             "memcpy({}, {}{}, {}u);", memory_name(to.place.memory), memory_name(from.place.memory),
             values.is_constant(from.place.offset, 0) ? "" : " + " + values.size_text(from.place.offset),
             memory.size),
         .uses = {from.place.offset},
         .accesses = {{.memory = from.place.memory}, {.memory = to.place.memory, .writes = true}}});
  }
  return true;
}

// ---- kernels

const KernelFunction& Program::kernel_of(const Site& site) const {
  return *std::ranges::find_if(kernel_functions_, [&](const KernelFunction& each) {
    return each.kernels == site.kernels && each.function == site.function;
  });
}

bool Program::lift_kernels() {
  std::map<std::pair<size_t, uint32_t>, std::vector<size_t>> all;
  const auto collect = [&](const Nodes& nodes) {
    for_each_node(nodes, [&](const Node& node) {
      if (node.kind != Node::Kind::dispatch) return;
      const Site& site = lifter_->sites()[node.site];
      all[{site.kernels, site.function}].push_back(node.site);
    });
  };
  collect(initializer_);
  for (const HostFunction& each : functions_) collect(each.body);
  for (const auto& [key, sites] : all)
    if (!lift_kernel(key.first, key.second, sites)) return false;
  // What the kernels do to the memory of the host.
  for (const auto& [key, sites] : all) {
    for (const size_t index : sites) {
      const Site& site = lifter_->sites()[index];
      const KernelFunction& kernel = kernel_of(site);
      for (size_t i = 0; i < kernel.bindings.size(); ++i) {
        Memory& memory = lifter_->memories()[site.bindings[i].memory];
        memory.is_written |= kernel.lifter->memories()[kernel.bindings[i]].is_written;
        memory.is_read |= kernel.lifter->memories()[kernel.bindings[i]].is_read;
      }
    }
  }
  return true;
}

Overlap Program::overlap_of(size_t a, size_t b, const std::vector<size_t>& sites) const {
  Overlap all;
  bool first = true;
  for (const size_t index : sites) {
    const Site& site = lifter_->sites()[index];
    const Place& x = site.bindings[a];
    const Place& y = site.bindings[b];
    Overlap here;
    if (x.memory == y.memory) {
      const Values& values = lifter_->values();
      if (values.is_constant(x.offset) && values.is_constant(y.offset))
        here = {Overlap::Kind::same,
                static_cast<int64_t>(values[y.offset].bits) - static_cast<int64_t>(values[x.offset].bits)};
      else
        here = {Overlap::Kind::unknown, 0};
    }
    if (!first && (here.kind != all.kind || here.distance != all.distance))
      here.kind = Overlap::Kind::unknown;
    all = here;
    first = false;
  }
  return all;
}

bool Program::lift_kernel(size_t kernels, uint32_t function, const std::vector<size_t>& sites) {
  const Kernels& of = kernels_[kernels];
  const vm::Export* const export_ = entry(of, function);
  if (export_ == nullptr) return give_up("a dispatch names a function that its executable does not have");
  KernelFunction made = {.kernels = kernels, .function = function};
  made.name = export_->name;
  made.symbol = of.plan.functions[export_->function];
  made.lifter = std::make_unique<Lifter>(host_, kernels_);
  Lifter& lifter = *made.lifter;
  lifter.has_checks = lifter_->has_checks;
  const Values& host = lifter_->values();
  const auto over = [&](auto of_site, Bank bank, std::string name, int64_t extra_low) -> ValueId {
    bool is_same = true;
    Range range;
    ValueId first = kNoValue;
    for (const size_t index : sites) {
      const ValueId id = of_site(lifter_->sites()[index]);
      if (first == kNoValue) range = host[id].range;
      if (first != kNoValue) range = range.joined(host[id].range);
      if (!host.is_constant(id) || (first != kNoValue && host[first].bits != host[id].bits)) is_same = false;
      if (first == kNoValue) first = id;
    }
    (void)extra_low;
    if (is_same) return lifter.values().constant(bank, host[first].bits);
    return lifter.parameter(bank, std::move(name), range);
  };
  const Site& one = lifter_->sites()[sites[0]];
  const uint32_t bindings = number(*export_, "binding_count");
  const uint32_t constants = number(*export_, "constant_count");
  for (const size_t index : sites)
    if (lifter_->sites()[index].bindings.size() != bindings ||
        lifter_->sites()[index].constants.size() != constants)
      return give_up("a dispatch has other bindings or constants than its kernel");
  Object list = {.kind = Object::Kind::list};
  for (size_t i = 0; i < one.bindings.size(); ++i) {
    const ValueId length =
        over([&](const Site& site) { return site.bindings[i].length; }, Bank::i64, fmt::format("n{}", i), 0);
    const MemoryId memory =
        lifter.add_memory({.kind = MemoryKind::binding, .bytes = length, .index = static_cast<uint32_t>(i)});
    made.bindings.push_back(memory);
    Object bytes = {.kind = Object::Kind::bytes, .place = {memory, lifter.i64(0), length}};
    list.elements.push_back(lifter.add_object(std::move(bytes)));
  }
  for (size_t i = 0; i < one.constants.size(); ++i)
    lifter.constants.push_back(
        over([&](const Site& site) { return site.constants[i]; }, Bank::i32, fmt::format("c{}", i), 0));
  const uint64_t local_bytes = uint64_t{number(*export_, "local_memory")} / 4096 * 4096;
  const MemoryId local = lifter.add_memory({.kind = MemoryKind::local, .bytes = lifter.i64(local_bytes)});
  const uint64_t constant_bytes = 4 * one.constants.size();
  const MemoryId words = lifter.add_memory(
      {.kind = MemoryKind::constants, .bytes = lifter.i64(constant_bytes), .is_read_only = true});
  Object local_object = {.kind = Object::Kind::bytes,
                         .place = {local, lifter.i64(0), lifter.i64(local_bytes)}};
  Object words_object = {.kind = Object::Kind::bytes,
                         .place = {words, lifter.i64(0), lifter.i64(constant_bytes)}};
  std::vector<Returned> given;
  given.push_back({.object = lifter.add_object(std::move(local_object)), .is_ref = true});
  given.push_back({.object = lifter.add_object(std::move(words_object)), .is_ref = true});
  given.push_back({.object = lifter.add_object(std::move(list)), .is_ref = true});
  std::vector<ValueId> counts;
  ValueId group = kNoValue;
  for (size_t axis = 0; axis < 3; ++axis)
    counts.push_back(
        over([&](const Site& site) { return site.counts[axis]; }, Bank::i32, fmt::format("g{}", axis), 0));
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t most = lifter.values()[counts[axis]].range.high;
    const bool is_negative = lifter.values()[counts[axis]].range.low < 0;
    if (lifter.values().is_constant(counts[axis], 1))
      given.push_back({.value = lifter.i32(0)});
    else
      given.push_back({.value = lifter.parameter(Bank::i32, fmt::format("w{}", axis),
                                                 is_negative ? Range::of(Bank::i32)
                                                             : Range{0, std::max<int64_t>(most - 1, 0), 1})});
    if (axis == 0) group = given.back().value;
  }
  for (size_t axis = 0; axis < 3; ++axis) given.push_back({.value = lifter.i32(1)});
  for (size_t axis = 0; axis < 3; ++axis) given.push_back({.value = counts[axis]});
  std::vector<Returned> results;
  made.body = lifter.lift(of.plan, export_->function, given, results);
  if (lifter.is_stuck()) return give_up(fmt::format("kernel '{}': {}", export_->name, lifter.reason()));
  remove_unused(made.body, lifter.values());
  const auto overlap = [&](MemoryId a, MemoryId b) -> Overlap {
    const auto x = std::ranges::find(made.bindings, a);
    const auto y = std::ranges::find(made.bindings, b);
    if (x == made.bindings.end() || y == made.bindings.end()) return {};
    return overlap_of(static_cast<size_t>(x - made.bindings.begin()),
                      static_cast<size_t>(y - made.bindings.begin()), sites);
  };
  fuse_loops(made.body, lifter.values(), overlap);
  split_loops(made.body, lifter.values());
  replace_buffers(made.body, lifter.values(), lifter.memories());
  do remove_unused(made.body, lifter.values());
  while (remove_unread(made.body));
  keep_sums(made.body, lifter.values(), overlap);
  forward_stores(made.body, lifter.values(), overlap);
  remove_unused(made.body, lifter.values());
  for_each_node(made.body, [&](const Node& node) {
    made.can_fail |=
        node.kind == Node::Kind::check || node.kind == Node::Kind::attempt || node.kind == Node::Kind::fail;
  });
  place_all(made.body, lifter, 0, made.placed, false, {});
  if (made.placed.empty() && !made.can_fail)
    made.has_rows = join_strips(made.body, lifter.values(), overlap, group, counts[0]);
  std::vector<Lifetime> lifetimes;
  for (const Placed& each : made.placed) lifetimes.push_back(each.lifetime);
  made.scratch_bytes = place(lifetimes, kAlignment);
  for (size_t i = 0; i < lifetimes.size(); ++i) made.placed[i].lifetime = lifetimes[i];
  made.vector_body = made.body;
  if (!interchange_loops(made.vector_body, lifter.values(), overlap)) made.vector_body.clear();
  for (Nodes* const body : {&made.body, &made.vector_body}) {
    keep_stored(*body, lifter.values(), overlap);
    remove_unused(*body, lifter.values());
  }
  kernel_functions_.push_back(std::move(made));
  return true;
}

// The texts of the kernels tell what they use of a dispatch.
void Program::write_kernels() {
  for (KernelFunction& each : kernel_functions_) kernel_text(each);
  const auto prune = [&](Nodes& nodes, const std::vector<ValueId>& results) {
    const auto visit = [&](auto& self, Nodes& inner) -> void {
      for (Node& node : inner) {
        self(self, node.body);
        self(self, node.other);
        if (node.kind != Node::Kind::dispatch) continue;
        const Site& site = lifter_->sites()[node.site];
        const KernelFunction& kernel = kernel_of(site);
        node.uses.assign(site.counts.begin(), site.counts.end());
        for (const std::string& name : kernel.used_names) {
          if (name == "scratch") continue;
          const auto index = static_cast<size_t>(std::stoul(name.substr(1)));
          if (name[0] == 'b') node.uses.push_back(site.bindings[index].offset);
          if (name[0] == 'n') node.uses.push_back(site.bindings[index].length);
          if (name[0] == 'c') node.uses.push_back(site.constants[index]);
        }
        for (size_t i = 0; i < node.accesses.size(); ++i)
          node.accesses[i].writes = kernel.lifter->memories()[kernel.bindings[i]].is_written;
      }
    };
    visit(visit, nodes);
    remove_unused(nodes, lifter_->values(), results);
  };
  prune(initializer_, {});
  for (HostFunction& each : functions_) prune(each.body, each.results());
}

// ---- memory

// Constants that the program writes are copied to the state.
bool Program::keep_written_constants() {
  std::vector<Memory>& memories = lifter_->memories();
  Nodes copies;
  for (MemoryId id = 0; id < memories.size(); ++id) {
    Memory& memory = memories[id];
    if (memory.kind != MemoryKind::constant || !memory.is_written) continue;
    memory.kind = MemoryKind::state;
    if (memory.size == 0) continue;
    copies.push_back(
        {.kind = Node::Kind::effect,
         .text = fmt::format("memcpy({}, {}, {}u);", memory_name(id), constant_name(memory), memory.size),
         .accesses = {{.memory = id, .writes = true}}});
  }
  initializer_.insert(initializer_.begin(), std::make_move_iterator(copies.begin()),
                      std::make_move_iterator(copies.end()));
  return true;
}

// The lifetimes of the buffers of a function: from the first statement that names one to the last, and all of
// a loop that does. A dispatch needs the scratch memory of its kernel.
void Program::place_all(const Nodes& nodes, Lifter& lifter, size_t scope, std::vector<Placed>& placed,
                        bool with_dispatches, const std::vector<MemoryId>& to_end) {
  std::map<MemoryId, std::pair<size_t, size_t>> spans;
  size_t time = 0;
  const auto touch = [&](MemoryId memory, size_t first, size_t last) {
    const Memory& facts = lifter.memories()[memory];
    const bool is_local = facts.kind == MemoryKind::local;
    if ((facts.kind != MemoryKind::transient && !is_local) || facts.function != scope || !facts.has_size)
      return;
    const auto [found, is_new] = spans.try_emplace(memory, first, last);
    if (!is_new) {
      found->second.first = std::min(found->second.first, first);
      found->second.second = std::max(found->second.second, last);
    }
  };
  for (const Node& node : nodes) {
    // Outer statements are the unit of time: all of a loop or a branch is one.
    const size_t now = time++;
    for_each_node({node}, [&](const Node& inner) {
      for (const Access& each : inner.accesses) touch(each.memory, now, now);
      if (with_dispatches && inner.kind == Node::Kind::dispatch) {
        const KernelFunction& kernel = kernel_of(lifter.sites()[inner.site]);
        if (kernel.scratch_bytes != 0) {
          Placed scratch;
          scratch.memory = kNoMemory - 1 - static_cast<MemoryId>(inner.site);
          scratch.lifetime = {kernel.scratch_bytes, now, now, 0};
          scratch.what = fmt::format("scratch of {}", kernel.name);
          placed.push_back(std::move(scratch));
        }
      }
    });
  }
  for (const MemoryId memory : to_end) touch(memory, time, time);
  for (const auto& [memory, span] : spans) {
    Placed each;
    each.memory = memory;
    each.lifetime = {lifter.memories()[memory].size, span.first, span.second, 0};
    each.what = lifter.memories()[memory].kind == MemoryKind::local ? "local memory"
                                                                    : fmt::format("buffer {}", memory);
    placed.push_back(std::move(each));
  }
}

void Program::plan_memory() {
  const std::vector<Memory>& memories = lifter_->memories();
  std::set<MemoryId> named;
  const auto collect = [&](const Nodes& nodes) {
    for_each_node(nodes, [&](const Node& node) {
      for (const Access& each : node.accesses) named.insert(each.memory);
    });
  };
  collect(initializer_);
  for (HostFunction& function : functions_) {
    collect(function.body);
    std::vector<MemoryId> to_end;
    for (const Output& output : function.outputs) {
      if (output.type != 'r') continue;
      named.insert(output.place.memory);
      to_end.push_back(output.place.memory);
    }
    place_all(function.body, *lifter_, function.scope, function.placed, true, to_end);
    std::vector<Lifetime> lifetimes;
    for (const Placed& each : function.placed) lifetimes.push_back(each.lifetime);
    function.arena_bytes = place(lifetimes, kAlignment);
    function.peak_bytes = peak_of(lifetimes, kAlignment);
    for (size_t i = 0; i < lifetimes.size(); ++i) function.placed[i].lifetime = lifetimes[i];
    for_each_node(function.body, [&](const Node& node) {
      function.has_dynamic_memory |= node.kind == Node::Kind::allocate;
    });
  }
  for (MemoryId id = 0; id < memories.size(); ++id) {
    if (memories[id].kind != MemoryKind::state || !named.contains(id)) continue;
    state_.emplace_back(id, state_bytes_);
    state_bytes_ += (memories[id].size + kAlignment - 1) / kAlignment * kAlignment;
  }
}

uint64_t Program::arena_bytes() const {
  uint64_t most = 0;
  for (const HostFunction& each : functions_) most = std::max(most, each.arena_bytes);
  // The initializer's dispatches.
  for_each_node(initializer_, [&](const Node& node) {
    if (node.kind == Node::Kind::dispatch)
      most = std::max(most, kernel_of(lifter_->sites()[node.site]).scratch_bytes);
  });
  return most;
}

bool Program::has_dynamic_memory() const {
  return std::ranges::any_of(functions_, [](const HostFunction& each) { return each.has_dynamic_memory; });
}

}  // namespace halyard::aot
