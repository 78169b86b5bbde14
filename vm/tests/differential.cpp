// Runs the same program on two machines, and compares their states as text.
#include "differential.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "base/bytes.h"
#include "reference_interpreter.h"
#include "vm/compile/compile_queue.h"
#include "vm/compile/compiler.h"
#include "vm/compile/loaded_module.h"
#include "vm/format/bytecode_reader.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"

namespace halyard::vm::test {

namespace {

constexpr uint64_t kBufferBytes = 8192;
constexpr uint32_t kListElements = 256;
constexpr ReferenceLimits kReferenceLimits = {.buffer_bytes = kBufferBytes,
                                              .list_elements = kListElements,
                                              .depth = 200,
                                              .stack_bytes = 3 << 20,
                                              .instructions = ExportCalls().instructions};
const Limits kLimits = {.stack_bytes = 4 << 20, .buffer_bytes = kBufferBytes, .list_elements = kListElements};

// An object that reports its destruction.
class Probe final : public ObjectOf<Probe> {
 public:
  static const ObjectType kType;
  Probe(int* alive, uint32_t number) : alive_(alive), number_(number) { ++*alive_; }
  ~Probe() { --*alive_; }
  uint32_t number() const { return number_; }

 private:
  int* alive_;
  uint32_t number_;
};
const ObjectType Probe::kType = object_type<Probe>("test.probe");

// ---- native functions: permute values, pass refs on, defer calls

struct NativeWorld {
  uint32_t waits = 0;  // of the deferred call
};

uint32_t get_32(NativeCall& call, size_t argument) { return call.values[call.arguments[argument]]; }
uint64_t get_64(NativeCall& call, size_t argument) {
  const uint32_t* slot = call.values + call.arguments[argument];
  return slot[0] | uint64_t{slot[1]} << 32;
}
Object* get_ref(NativeCall& call, size_t argument) {
  return call.refs[call.arguments[argument] & kRefOrdinalMask];
}
void set_32(NativeCall& call, size_t result, uint32_t value) { call.values[call.results[result]] = value; }
void set_64(NativeCall& call, size_t result, uint64_t value) {
  uint32_t* slot = call.values + call.results[result];
  slot[0] = static_cast<uint32_t>(value);
  slot[1] = static_cast<uint32_t>(value >> 32);
}
void set_ref(NativeCall& call, size_t result, Ref<Object> object) {
  release(std::exchange(call.refs[call.results[result] & kRefOrdinalMask], object.detach()));
}

Status native_mix(NativeCall& call) {
  const uint32_t a = get_32(call, 0);
  const uint64_t b = get_64(call, 1);
  const uint32_t c = get_32(call, 2);
  const uint64_t d = get_64(call, 3);
  Ref<Object> e = Ref<Object>::share(get_ref(call, 4));
  set_64(call, 0, d);
  set_ref(call, 1, std::move(e));
  set_32(call, 2, c);
  set_64(call, 3, b + 1);
  set_32(call, 4, a * 3);
  return {};
}
Status native_swap(NativeCall& call) {
  Ref<Object> a = Ref<Object>::share(get_ref(call, 0));
  Ref<Object> b = Ref<Object>::share(get_ref(call, 1));
  set_ref(call, 0, std::move(b));
  set_ref(call, 1, std::move(a));
  return {};
}
bool must_wait(NativeCall& call, uint32_t times) {
  NativeWorld& world = *static_cast<NativeWorld*>(call.state);
  if (!call.resumed) world.waits = times;
  if (world.waits == 0) return false;
  --world.waits;
  call.deferred = true;
  return true;
}
Status native_later(NativeCall& call) {
  const uint32_t value = get_32(call, 0);
  if (!must_wait(call, value & 3)) set_32(call, 0, value * 5 + 1);
  return {};
}
Status native_pause(NativeCall& call) {
  must_wait(call, get_32(call, 0) & 1);
  return {};
}
Status native_refuse(NativeCall& call) {
  return (get_32(call, 0) & 7) == 7 ? Status(Code::UNAVAILABLE, "not now") : Status();
}
Status native_sum(NativeCall& call) {
  uint64_t sum = get_32(call, 0);
  for (uint16_t i = 0; i < call.segments[1]; ++i)
    sum = sum * 7 + get_64(call, 2 + size_t{i} * 2) + (get_ref(call, 1 + size_t{i} * 2) != nullptr);
  set_64(call, 0, sum);
  return {};
}
Status native_count(NativeCall& call) {
  uint32_t sum = call.segments[0];
  for (uint16_t i = 0; i < call.segments[0]; ++i) sum = sum * 7 + get_32(call, i);
  set_32(call, 0, sum);
  return {};
}

constexpr NativeFunction kNativeFunctions[] = {&native_mix,    &native_swap, &native_later, &native_pause,
                                               &native_refuse, &native_sum,  &native_count};

// Shared by all contexts; each has its own world.
const Ref<NativeModule>& native_module() {
  static const Ref<NativeModule> module = [] {
    std::vector<NativeExport> exports;
    for (size_t i = 0; i < native_signatures().size(); ++i)
      exports.push_back(
          {native_signatures()[i].name, native_signatures()[i].convention, kNativeFunctions[i]});
    return NativeModule::create(
        {.name = "native", .exports = std::move(exports), .create_state = []() -> Result<NativeState> {
           return NativeState{.pointer = new NativeWorld,
                              .destroy = [](void* world) { delete static_cast<NativeWorld*>(world); }};
         }});
  }();
  return module;
}

// ---- the objects passed in, and their state afterwards

// Where buffers lie that share their memory with others of the same call: those numbered from kFirstShared
// on.
struct Part {
  size_t offset, size;
};
constexpr Part kSharedParts[] = {{0, 64},  {0, 128},   {4, 64}, {64, 128},
                                 {65, 31}, {128, 128}, {60, 3}, {1, 255}};
constexpr uint32_t kFirstShared = 4;

// The arguments of one call on one machine.
std::vector<Variant> make_arguments(const ProgramCall& call, int* alive) {
  std::vector<Variant> made;
  std::shared_ptr<std::array<uint8_t, 256>> shared;
  for (const ProgramArgument& argument : call.arguments) {
    switch (argument.kind) {
      case Kind::i32:
      case Kind::i64:
      case Kind::f32:
      case Kind::f64: {
        constexpr ValueType kTypes[] = {ValueType::i32, ValueType::i64, ValueType::f32, ValueType::f64};
        const bool narrow = argument.kind == Kind::i32 || argument.kind == Kind::f32;
        made.push_back(Variant::value(kTypes[static_cast<size_t>(argument.kind)],
                                      narrow ? static_cast<uint32_t>(argument.bits) : argument.bits));
        continue;
      }
      default:
        break;
    }
    const auto number = static_cast<uint32_t>(argument.bits);
    Ref<Object> object;
    const auto list_of = [](ElementType element, uint32_t size) {
      Ref<List> list = List::create(element);
      (void)list->resize(size, size);
      return list;
    };
    if (number != 0) {
      switch (argument.kind) {
        case Kind::probe:
          object = make<Probe>(alive, number);
          break;
        case Kind::values:
          object = list_of({number == 1 ? ValueType::i32 : ValueType::f64, nullptr}, 6);
          break;
        case Kind::leaf: {
          Ref<List> list = list_of({}, 5);
          (void)list->set_ref(1, make<Probe>(alive, number));
          (void)list->set_value(2, ValueType::i64, number);
          object = list;
          break;
        }
        case Kind::outer: {
          Ref<List> list = list_of({ValueType::none, &List::kType}, 5);
          Ref<List> inner = list_of({}, number);
          (void)inner->set_ref(0, make<Probe>(alive, number));
          (void)list->set_ref(0, inner);
          (void)list->set_ref(1, inner);
          object = list;
          break;
        }
        default: {
          ++*alive;
          if (number >= kFirstShared) {
            if (!shared) {
              shared = std::make_shared<std::array<uint8_t, 256>>();
              for (size_t i = 0; i < shared->size(); ++i) (*shared)[i] = static_cast<uint8_t>(i * 37 % 61);
            }
            const Part part = kSharedParts[(number - kFirstShared) % std::size(kSharedParts)];
            object =
                Buffer::wrap({shared->data() + part.offset, part.size}, true, [alive, shared] { --*alive; });
            break;
          }
          // The last of them is read-only.
          const size_t size = 64;
          auto* bytes = new uint8_t[size];
          for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * number);
          object = Buffer::wrap({bytes, size}, number != 3, [=] {
            delete[] bytes;
            --*alive;
          });
          break;
        }
      }
    }
    made.push_back(Variant::ref(std::move(object)));
  }
  return made;
}

// All reachable objects, each once.
class Picture {
 public:
  void heading(std::string_view text) { text_ += text; }
  void bytes(std::span<const uint8_t> bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (const uint8_t byte : bytes) {
      text_ += kDigits[byte >> 4];
      text_ += kDigits[byte & 15];
    }
    text_ += ' ';
  }
  void number(uint64_t value) {
    text_ += std::to_string(value);
    text_ += ' ';
  }
  void variant(const Variant& variant) {
    if (!variant.is_value()) return object(variant.object());
    number(static_cast<uint64_t>(variant.type()));
    number(variant.bits());
  }
  void object(const Object* object) {
    if (!object) {
      text_ += "null ";
      return;
    }
    text_ += '#';
    number(number_of(const_cast<Object*>(object)));
  }
  std::string finish() {
    for (size_t i = 0; i < objects_.size(); ++i) contents(i, objects_[i]);
    return std::move(text_);
  }

 private:
  // In the order of discovery. A linear search suffices, because there are few objects.
  size_t number_of(Object* object) {
    const auto known = std::ranges::find(objects_, object);
    if (known != objects_.end()) return static_cast<size_t>(known - objects_.begin());
    objects_.push_back(object);
    return objects_.size() - 1;
  }
  void contents(size_t index, Object* object) {
    text_ += "\n  #";
    number(index);
    text_ += object->type()->name;
    text_ += ' ';
    if (const Buffer* buffer = cast<Buffer>(object)) {
      text_ += buffer->is_mutable() ? "mutable " : "";
      bytes(buffer->span());
    } else if (const Probe* probe = cast<Probe>(object)) {
      number(probe->number());
    } else if (const List* list = cast<List>(object)) {
      number(static_cast<uint64_t>(list->element().value));
      text_ += list->element().object ? list->element().object->name : "";
      text_ += ": ";
      for (uint32_t i = 0; i < list->size(); ++i) variant(*list->get(i));
    }
  }

  std::string text_;
  std::vector<Object*> objects_;
};

// ---- the two machines

using Modules = std::vector<Ref<LoadedModule>>;

// The state after each call.
struct Run {
  std::vector<std::string> pictures;
  int alive = 0;
};

// The visible state after some calls, on either machine.
std::string picture_of(Code code, std::span<const Variant> results, std::span<const Variant> arguments,
                       auto each_module) {
  Picture picture;
  picture.heading(name(code));
  picture.heading("\nresults ");
  for (const Variant& result : results) picture.variant(result);
  picture.heading("\narguments ");
  for (const Variant& argument : arguments) picture.variant(argument);
  each_module(picture);
  return picture.finish();
}

struct TestedMachine {
  Ref<Context> context = Context::create(kLimits);

  Result<> link(const Modules& modules) {
    context->keep_spare_blocks();  // as the contexts of kernels do
    HALYARD_TRY(context->add(native_module()));
    for (const Ref<LoadedModule>& module : modules) HALYARD_TRY(context->add(module));
    return {};
  }

  void run(std::span<const ProgramCall> calls, const halyard_jit_sharing_t* sharing, Run& run,
           Comparison& comparison) {
    Invocation invocation(context);
    const ModuleInstance& main = *context->modules().back();
    for (const ProgramCall& call : calls) {
      const Result<Callable> callee = context->find(main.module->name(), call.function);
      if (!callee) return run.pictures.push_back(callee.error().text());
      const std::vector<Variant> arguments = make_arguments(call, &run.alive);
      std::vector<Variant> results(callee->convention.results.size());
      invocation.set_sharing(call.shares ? sharing : nullptr);
      const Result<> called = invocation.call(*callee, arguments, results);
      if (!called) results.clear();
      run.pictures.push_back(
          picture_of(called ? Code::OK : called.error().code(), results, arguments, [&](Picture& picture) {
            for (const auto& instance : context->modules().subspan(1)) {
              picture.heading("\nglobals ");
              picture.bytes({instance->global_bytes.get(), instance->bytecode->global_bytes()});
              for (const Object* object : instance->global_refs) picture.object(object);
            }
          }));
    }
    comparison.checked_loops = invocation.take_checked_loops();
  }
};

struct Reference {
  explicit Reference(const ReferenceLimits& limits) : machine(limits) {}

  NativeWorld world;
  ReferenceMachine machine;
  std::vector<std::unique_ptr<ReferenceInstance>> instances;

  void link(const Modules& modules) {
    for (const Ref<LoadedModule>& module : modules) {
      auto instance = std::make_unique<ReferenceInstance>(*module);
      for (const Import& import : module->imports()) instance->imports.push_back(link(import));
      instances.push_back(std::move(instance));
    }
  }
  ReferenceImport link(const Import& import) {
    const std::string_view module = import.name.substr(0, import.name.find('.'));
    const std::string_view function = import.name.substr(import.name.find('.') + 1);
    for (size_t i = 0; module == "native" && i < native_signatures().size(); ++i) {
      const NativeSignature& native = native_signatures()[i];
      if (function == native.name)
        return {.native = kNativeFunctions[i], .state = &world, .convention = native.convention};
    }
    for (const auto& instance : instances) {
      if (instance->module->name() != module) continue;
      if (const Export* found = instance->module->find_export(function))
        return {.provider = instance.get(), .function = found->function, .convention = found->convention};
    }
    return {};
  }

  // Stops when the runs can no longer be compared.
  void run(std::span<const ProgramCall> calls, Run& run, Comparison& comparison) {
    for (const ProgramCall& call : calls) {
      const Export& callee = *instances.back()->module->find_export(call.function);
      const std::vector<Variant> arguments = make_arguments(call, &run.alive);
      std::vector<Variant> results;
      const Code code = machine.call(*instances.back(), callee.function, arguments, results);
      comparison.not_compared = machine.incomparable();
      if (!comparison.not_compared.empty()) break;
      run.pictures.push_back(picture_of(code, results, arguments, [&](Picture& picture) {
        for (const auto& instance : instances) {
          picture.heading("\nglobals ");
          picture.bytes(instance->global_bytes);
          for (const Ref<Object>& object : instance->global_refs) picture.object(object.get());
        }
      }));
      ++comparison.codes[static_cast<size_t>(code)];
    }
    comparison.executed = machine.executed();
  }
};

void compare(const Modules& modules, std::span<const ProgramCall> calls, const ExportCalls& how,
             Comparison& comparison) {
  Run expected;
  Run found;
  {
    TestedMachine machine;
    if (const Result<> linked = machine.link(modules); !linked) {
      comparison.difference = linked.error().text();
      comparison.not_compared = "it does not link";
      return;
    }
    ReferenceLimits limits = kReferenceLimits;
    limits.instructions = how.instructions;
    Reference reference(limits);
    reference.link(modules);
    reference.run(calls, expected, comparison);
    machine.run(calls.first(expected.pictures.size()), how.sharing, found, comparison);
  }
  for (size_t i = 0; i < expected.pictures.size(); ++i) {
    if (found.pictures[i] == expected.pictures[i]) continue;
    comparison.difference =
        fmt::format("call {}: expected\n{}\nfound\n{}\n", i, expected.pictures[i], found.pictures[i]);
    return;
  }
  if (found.alive != 0)
    comparison.difference = fmt::format("{} objects are still alive, or went twice", found.alive);
  else if (expected.alive != 0)
    comparison.difference = fmt::format("the reference machine left {} objects alive", expected.alive);
}

// Types of compiled modules without any objects.
const ObjectType kForeignTypes[] = {
    {"hal.allocator", nullptr},  {"hal.buffer", nullptr},    {"hal.buffer_view", nullptr},
    {"hal.channel", nullptr},    {"hal.device", nullptr},    {"hal.command_buffer", nullptr},
    {"hal.executable", nullptr}, {"hal.fence", nullptr},     {"hal.semaphore", nullptr},
    {"hal.event", nullptr},      {"io.parameters", nullptr},
};

// Whether a list of this module may come to contain itself; such a list would never be released.
bool may_make_cycles(const BytecodeModule& module) {
  for (const Function& function : module.functions()) {
    for (uint32_t pc = 0; has_instruction(function.bytecode, pc);) {
      const Result<Instruction> instruction =
          read_instruction(function.bytecode, pc, module.bytecode_version(), function.features);
      if (!instruction || instruction->op == Op::list_set_ref) return true;
      pc = instruction->next_pc;
    }
  }
  return false;
}

const Compiler* compiler() {
#ifdef HALYARD_TEST_COMPILED
  const Result<const Compiler*> found = Compiler::find();
  if (!found) throw std::runtime_error(found.error().text());
  return *found;
#else
  return nullptr;
#endif
}

}  // namespace

bool overwrite_constants(const BytecodeModule& module) {
  std::vector<std::vector<uint8_t>> before;
  for (const Function& function : module.functions())
    before.emplace_back(function.bytecode.begin(), function.bytecode.end());
  for (const Ref<Buffer>& constant : module.rodata())
    if (constant->may_be_written_by_devices()) std::ranges::fill(constant->span(), uint8_t{0xA5});
  return std::ranges::equal(before, module.functions(), [](const auto& bytes, const Function& function) {
    return std::ranges::equal(bytes, function.bytecode);
  });
}

const TypeRegistry& known_types() {
  static const TypeRegistry registry = [] {
    TypeRegistry types;
    types.add(&Probe::kType);
    for (const ObjectType& type : kForeignTypes) types.add(&type);
    return types;
  }();
  return registry;
}

const std::vector<NativeSignature>& native_signatures() {
  static const std::vector<NativeSignature> signatures = {
      {"mix",
       "0iIfFr_FrfIi",
       {Kind::i32, Kind::i64, Kind::f32, Kind::f64, Kind::any},
       {Kind::f64, Kind::any, Kind::f32, Kind::i64, Kind::i32},
       false},
      {"swap", "0rr_rr", {Kind::any, Kind::any}, {Kind::any, Kind::any}, false},
      {"later", "0i_i", {Kind::i32}, {Kind::i32}, true},
      {"pause", "0i_v", {Kind::i32}, {}, true},
      {"refuse", "0i_v", {Kind::i32}, {}, false},
      {"sum", "0iCrID_I", {Kind::i32}, {Kind::i64}, false},
      {"count", "0CiD_i", {}, {Kind::i32}, false},
  };
  return signatures;
}

void compile_loops(const LoadedModule& module) {
  for (uint32_t i = 0; i < module.functions().size(); ++i)
    if (module.code(i)) module.store().compile(i, true);
}

Comparison compare_machines(const Program& program, Ways ways) {
  Comparison comparison;
  const auto queue = std::make_shared<CompileQueue>(ways.sampling);
  Modules modules;
  for (const ModuleParts& parts : program.modules) {
    Result<Ref<LoadedModule>> module = LoadedModule::load(Bytes::own(parts.build()), known_types(),
                                                          {.verify_eagerly = true,
                                                           .fuse = program.fuse && ways.fuse,
                                                           .compiler = ways.tiers ? nullptr : compiler(),
                                                           .queue = ways.tiers ? queue : nullptr});
    if (!module) {
      comparison.difference = fmt::format("a generated module does not load: {}", module.error().text());
      return comparison;
    }
    modules.push_back(*std::move(module));
    if (ways.tiers) compile_loops(*modules.back());
  }
  compare(modules, program.calls, {}, comparison);
  return comparison;
}

Comparison compare_exports(const Ref<LoadedModule>& module, Choices& choices, const ExportCalls& how) {
  Comparison comparison;
  std::vector<ProgramCall> calls;
  for (size_t i = 0; i < how.rounds * module->exports().size(); ++i) {
    const Export& callee = module->exports()[i % module->exports().size()];
    const Result<Convention> convention = Convention::parse(callee.convention);
    if (!convention || convention->has_span || callee.name.starts_with("__")) {
      comparison.not_compared = "an export of an odd kind";
      return comparison;
    }
    if (module->find_export(callee.name) != &callee) continue;
    ProgramCall call{.arguments = {},
                     .function = std::string(callee.name),
                     .shares = i / module->exports().size() % 2 == 1};
    for (const ConventionItem& item : convention->arguments) {
      constexpr std::string_view kTypes = "iIfF";
      const bool is_value = kTypes.contains(item.type);
      const Kind kind = is_value ? static_cast<Kind>(kTypes.find(item.type))
                                 : choices.one_of({Kind::buffer, Kind::probe, Kind::values, Kind::leaf});
      const uint32_t objects =
          kind == Kind::buffer && how.rounds > 1 ? kFirstShared + uint32_t{std::size(kSharedParts)} : 4;
      call.arguments.push_back(
          {kind, is_value ? choices.bits(choices.one_in(2) ? 8 : 1) : choices.below(objects)});
    }
    calls.push_back(std::move(call));
  }
  for (const Import& import : module->imports()) {
    if (import.name.starts_with("native.")) continue;
    comparison.not_compared = "an import from elsewhere";
    return comparison;
  }
  if (calls.empty() || may_make_cycles(*module)) {
    comparison.not_compared = "nothing to call, or lists in lists";
    return comparison;
  }
  compare({module}, calls, how, comparison);
  if (comparison.not_compared == "it does not link") comparison.difference.clear();
  return comparison;
}

std::string describe(const Program& program) {
  std::string text = program.fuse ? "" : "not fused\n";
  const auto reg = [](uint16_t field) {
    if (!(field & kRefBit)) return fmt::format("i{}", field);
    return fmt::format("{}{}", field & kMoveBit ? 'R' : 'r', field & kRefOrdinalMask);
  };
  const auto edge = [&](uint32_t target, const RemapList& remap) {
    std::string moves = fmt::format("^{:X}(", target);
    for (size_t i = 0; i < remap.size(); ++i)
      moves += fmt::format("{}{}->{}", i ? ", " : "", reg(remap[i].source), reg(remap[i].destination));
    return moves + ")";
  };
  for (const ModuleParts& parts : program.modules) {
    text += fmt::format("module {} bytecode {}, {} bytes and {} refs of globals\n", parts.name,
                        parts.bytecode_version >> 16, parts.global_bytes, parts.global_refs);
    for (size_t i = 0; i < parts.imports.size(); ++i)
      text += fmt::format(" import {}: {} {}\n", i, parts.imports[i].name, *parts.imports[i].convention);
    for (size_t i = 0; i < parts.functions.size(); ++i) {
      const FunctionParts& function = parts.functions[i];
      text += fmt::format(" function {} '{}' {} values {} refs\n", i, *function.convention, function.values,
                          function.refs);
      for (uint32_t pc = 0; pc + 1 < function.code.size();) {
        const Result<Instruction> read = read_instruction(function.code, pc, parts.bytecode_version >> 16, 3);
        if (!read) break;
        text += fmt::format("  {:4X} {}", pc, info(read->op).mnemonic());
        uint32_t target = 0;
        for (size_t k = 0; k < info(read->op).operand_count; ++k) {
          const DecodedOperand& operand = read->operands[k];
          text += ' ';
          switch (info(read->op).operands[k].kind) {
            case OperandKind::reg:
              text += info(read->op).operands[k].writes ? "-> " : "";
              text += reg(operand.reg);
              break;
            case OperandKind::reg_list:
            case OperandKind::u16_list:
              text += '[';
              for (size_t n = 0; n < operand.regs.size(); ++n) text += (n ? " " : "") + reg(operand.regs[n]);
              text += ']';
              break;
            case OperandKind::immediate:
              text += fmt::format("0x{:X}", operand.immediate);
              break;
            case OperandKind::string:
              text += fmt::format("'{}'", operand.string);
              break;
            case OperandKind::block:
              target = operand.index;
              if (read->op == Op::call_yieldable || read->op == Op::call_variadic_yieldable)
                text += edge(target, {});
              break;
            case OperandKind::remap:
              text += edge(target, operand.remap);
              break;
            case OperandKind::cases:
              for (const CaseEntry entry : operand.cases) text += edge(entry.target, entry.remap) + " ";
              break;
            default:
              text += fmt::format("#{:X}", operand.index);
              break;
          }
        }
        text += '\n';
        pc = read->next_pc;
      }
    }
  }
  for (const ProgramCall& call : program.calls) {
    text += "call";
    for (const ProgramArgument& argument : call.arguments)
      text += fmt::format(" {}:{:X}", static_cast<int>(argument.kind), argument.bits);
    text += '\n';
  }
  return text;
}

}  // namespace halyard::vm::test
