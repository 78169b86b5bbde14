// The files of a program whose memory is planned.
#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "aot/support.h"
#include "write/data_files.h"
#include "write/report.h"
#include "write/writers.h"

namespace halyard::aot {

namespace {

// Bytes of the stack that a function needs besides its variables: saved registers, arguments of calls, what a
// compiler spills. The test `vm_cc` compares the bound with what compilers say.
constexpr uint64_t kFrame = 192;

// Targets that compute several elements at once.
constexpr std::string_view kHasVectors =
    "defined(__SSE2__) || defined(__ARM_NEON) || defined(__wasm_simd128__) || defined(__riscv_vector)";

// The functions of the C library that a program may call.
constexpr std::string_view kMemoryFunctions[] = {"memcmp", "memcpy", "memmove", "memset", "strlen"};
constexpr std::string_view kMathFunctions[] = {
    "ceilf", "fabsf",    "floorf", "fmodf",   "roundf",    "sqrtf", "atan",  "atan2", "ceil",
    "cos",   "erf",      "exp",    "exp2",    "expm1",     "fabs",  "floor", "fmod",  "log",
    "log10", "log1p",    "log2",   "pow",     "remainder", "round", "sin",   "sqrt",  "tanh",
    "isnan", "isfinite", "isinf",  "signbit", "copysign",  "ldexp"};

// Words that a field of the header cannot be named by, in C or C++.
constexpr std::string_view kKeywords[] = {"NULL",         "alignas",
                                          "alignof",      "and",
                                          "and_eq",       "asm",
                                          "auto",         "bitand",
                                          "bitor",        "bool",
                                          "break",        "case",
                                          "catch",        "char",
                                          "char16_t",     "char32_t",
                                          "char8_t",      "class",
                                          "co_await",     "co_return",
                                          "co_yield",     "compl",
                                          "concept",      "const",
                                          "const_cast",   "consteval",
                                          "constexpr",    "constinit",
                                          "continue",     "decltype",
                                          "default",      "delete",
                                          "do",           "double",
                                          "dynamic_cast", "else",
                                          "enum",         "explicit",
                                          "export",       "extern",
                                          "false",        "float",
                                          "for",          "friend",
                                          "goto",         "if",
                                          "inline",       "int",
                                          "long",         "mutable",
                                          "namespace",    "new",
                                          "noexcept",     "not",
                                          "not_eq",       "nullptr",
                                          "operator",     "or",
                                          "or_eq",        "private",
                                          "protected",    "public",
                                          "register",     "reinterpret_cast",
                                          "requires",     "restrict",
                                          "return",       "short",
                                          "signed",       "sizeof",
                                          "static",       "static_assert",
                                          "static_cast",  "struct",
                                          "switch",       "template",
                                          "this",         "thread_local",
                                          "throw",        "true",
                                          "try",          "typedef",
                                          "typeid",       "typename",
                                          "typeof",       "typeof_unqual",
                                          "union",        "unsigned",
                                          "using",        "virtual",
                                          "void",         "volatile",
                                          "wchar_t",      "while",
                                          "xor",          "xor_eq"};

// The name of the field for a parameter's key.
std::string field_name(std::string_view key) {
  std::string name = identifier(key);
  if (std::ranges::binary_search(kKeywords, std::string_view(name))) name += '_';
  return name;
}

class PlannedWriter {
 public:
  PlannedWriter(Program& program, const std::vector<Kernels>& kernels, const Options& options)
      : program_(program),
        kernels_(kernels),
        options_(options),
        plan_(program.host()),
        prefix_(plan_.prefix),
        data_(options.name, plan_.prefix) {}

  std::vector<File> write(Report& report) {
    for (const KernelFunction& each : program_.kernels()) code_ += each.text + "\n";
    const std::string begin = program_.initializer_text();
    for (const HostFunction& each : program_.functions()) {
      if (program_.has_arena_function(each)) code_ += program_.arena_function_text(each);
      code_ += program_.function_text(each);
    }
    code_ += initializer(begin);
    support_ = support_for(without_literals(code_), has_static(kernels_));
    constants_ = constants();
    const std::string all = without_literals(code_ + support_);
    const std::set<std::string_view> words = words_of(all);
    for (const std::string_view each : kMemoryFunctions)
      if (words.contains(each))
        memory_functions_ += fmt::format("{}{}", memory_functions_.empty() ? "" : ", ", each);
    for (const std::string_view each : kMathFunctions)
      if (words.contains(each))
        math_functions_ += fmt::format("{}{}", math_functions_.empty() ? "" : ", ", each);
    std::vector<File> files = {{options_.name + ".h", header()}, {options_.name + ".c", source()}};
    if (options_.main) files.push_back({options_.name + "_main.c", main()});
    data_.finish(comment(), files);
    report.text = report_of(program_, constant_bytes_, stack_bytes(true));
    report.picture = picture_of(program_);
    return files;
  }

 private:
  bool uses(std::string_view text) const {
    return code_.find(text) != std::string::npos || support_.find(text) != std::string::npos;
  }
  std::string name(std::string_view end) const { return upper(prefix_) + std::string(end); }
  std::string comment() const { return module_comment(plan_.module.name(), options_.source); }

  // The parameters that the caller gives, by their place.
  std::vector<size_t> given() const {
    std::vector<size_t> all;
    const std::vector<UsedParameter>& parameters = program_.lifter().parameters;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].baked == nullptr) all.push_back(i);
    return all;
  }
  std::string begin_prototype() const {
    return fmt::format("int {0}_init({0}_state* s, void* arena, size_t arena_bytes{1})", prefix_,
                       given().empty() ? "" : fmt::format(", const {}_parameters* parameters", prefix_));
  }
  std::string parameter_name(size_t index) const {
    const UsedParameter& each = program_.lifter().parameters[index];
    std::string name = field_name(each.key);
    const std::vector<UsedParameter>& all = program_.lifter().parameters;
    const bool is_alone = std::ranges::count_if(all, [&](const UsedParameter& other) {
                            return field_name(other.key) == name;
                          }) == 1;
    return is_alone ? name : fmt::format("{}_{}", name, index);
  }

  std::string initializer(const std::string& body) const {
    const uint64_t needed = program_.arena_bytes();
    std::string text = begin_prototype() + " {\n  memset(s, 0, sizeof *s);\n";
    for (const size_t index : given()) {
      const UsedParameter& each = program_.lifter().parameters[index];
      text += fmt::format(
          "  s->parameters[{0}] = parameters->{1};\n  if (parameters->{1} == NULL) return vm_fail(s, 5, "
          "{2});\n",
          index, parameter_name(index),
          quoted(fmt::format("parameter '{}' of scope '{}' was not given", each.key, each.scope)));
    }
    if (needed != 0 || program_.has_dynamic_memory() || has_static(kernels_)) {
      text += "  s->arena = arena;\n  s->arena_bytes = arena != NULL ? arena_bytes : 0;\n";
      if (needed != 0)
        text += fmt::format("  if (s->arena_bytes < {0}u) return vm_no_room(s, {0}u);\n", needed);
    } else {
      text += "  (void)arena;\n  (void)arena_bytes;\n";
    }
    if (words_of(without_literals(body)).contains("arena") && needed != 0) {
      // The parameter has another type.
      std::string inner = body;
      text += "  return vm_begin(s, (unsigned char*)arena);\n}\n";
      return fmt::format("static int vm_begin(vm_state* s, unsigned char* arena) {{\n{}  return 0;\n}}\n\n",
                         inner) +
             text;
    }
    return text + body + "  return 0;\n}\n";
  }

  // ---- the header

  std::string header() const {
    const std::string guard = name("_H_");
    std::string text =
        comment() + fmt::format(
                        "#ifndef {0}\n#define {0}\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
                        "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
                        guard);
    text += fmt::format(
        "/* Memory, which the caller owns: constants of {0}_CONST_BYTES (in this program's .c file; they may "
        "stay in\n"
        " * flash), one state for each instance, and one arena of {0}_ARENA_BYTES, which several instances "
        "may share if\n"
        " * their calls do not overlap. {0}_STACK_BYTES is an upper bound of the stack that a call takes. "
        "*/\n"
        "#define {0}_CONST_BYTES {1}u\n#define {0}_ARENA_BYTES {2}u\n",
        upper(prefix_), constant_bytes_, program_.arena_bytes());
    const std::string stack = fmt::format("#define {}_STACK_BYTES ", upper(prefix_));
    text += stack_bytes(true) == stack_bytes(false)
                ? fmt::format("{}{}u\n\n", stack, stack_bytes(false))
                : fmt::format("#if {}\n{}{}u\n#else\n{}{}u\n#endif\n\n", kHasVectors, stack,
                              stack_bytes(true), stack, stack_bytes(false));
    text += fmt::format("/* Of the C library: {}{}{}. */\n\n", memory_functions_,
                        math_functions_.empty() ? "" : "; of math.h: ", math_functions_);
    text += state();
    if (!given().empty()) {
      text +=
          "/* The bytes of the program's parameters, which must stay where they are as long as the state is "
          "used. */\n";
      text += fmt::format("typedef struct {}_parameters {{\n", prefix_);
      for (const size_t index : given()) {
        const UsedParameter& each = program_.lifter().parameters[index];
        text += fmt::format("  const void* {}; /* {} bytes */\n", parameter_name(index), each.length);
      }
      text += fmt::format("}} {}_parameters;\n\n", prefix_);
    }
    text += fmt::format(
        "/* Functions return 0, or the number of a status (3 INVALID_ARGUMENT, 8 RESOURCE_EXHAUSTED,\n"
        " * 11 OUT_OF_RANGE, ...; halyard/status.h has all); then results are not complete. Arrays are dense "
        "and in\n"
        " * the order of C. Results may not overlap arguments. */\n\n"
        "/* Begins a new instance: call it before the other functions. */\n"
        "{0};\n\n",
        begin_prototype());
    for (const HostFunction& each : program_.functions()) {
      if (program_.has_arena_function(each)) {
        const std::string dimensions = program_.dimensions(each);
        text += fmt::format(
            "/* The bytes of the arena that the next function needs for these dimensions; SIZE_MAX: too "
            "many. */\n"
            "size_t {}_arena_size({});\n",
            each.face.symbol, dimensions.empty() ? "void" : dimensions);
      } else if (each.has_dynamic_memory) {
        text +=
            "/* How much of the arena the next function needs depends on more than the dimensions of its "
            "arguments; it fails\n * with 8 if the arena is too small. */\n";
      }
      text += function_comment(each);
      text += fmt::format("int {}({}_state* s{});\n", each.face.symbol, prefix_, program_.parameters(each));
    }
    return text + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", guard);
  }

  std::string function_comment(const HostFunction& function) const {
    const bool is_dynamic = std::ranges::any_of(
        function.outputs, [](const Output& each) { return each.type == 'r' && !each.is_fixed; });
    if (!is_dynamic) return "";
    return "/* The bytes of results whose shape depends on the arguments are valid until the next call. */\n";
  }

  std::string state() const {
    std::string text = fmt::format(
        "/* The state of one instance of the program, and the text of the last failure. The caller owns it, "
        "and calls\n"
        " * the functions of one state from one thread at a time. */\n"
        "typedef struct {}_state {{\n"
        "  const char* message; /* '$' stands for the next number, '@' for the next name; null: none */\n"
        "  uint64_t numbers[4];\n  const char* names[2];\n"
        "  int has_parts; /* whether the message has numbers or names */\n",
        prefix_);
    if (uses("s->arena")) text += "  void* arena;\n";
    if (uses("s->arena_bytes")) text += "  size_t arena_bytes;\n";
    if (uses("->free")) text += "  void* free;\n";
    if (uses("->doomed")) text += "  void* doomed;\n  int destroying;\n";
    if (uses("->text")) text += "  char text[64];\n";
    if (uses("->globals"))
      text += fmt::format("  uint64_t globals[{}];\n",
                          std::max<uint64_t>(1, (uint64_t{plan_.module.global_bytes()} + 7) / 8));
    if (!given().empty())
      text += fmt::format("  const void* parameters[{}];\n", program_.lifter().parameters.size());
    if (program_.state_bytes() != 0)
      text += fmt::format("  uint64_t memory[{}]; /* what is kept between calls */\n",
                          program_.state_bytes() / 8);
    return text + fmt::format("}} {}_state;\n\n", prefix_);
  }

  // The most that one path of calls takes: variables of the function and of one kernel, and what they call.
  uint64_t stack_bytes(bool has_vectors) const {
    const auto frame = [](const Nodes& nodes) {
      uint64_t bytes = kFrame;
      for_each_node(nodes, [&](const Node& node) {
        if (node.kind == Node::Kind::let || node.kind == Node::Kind::variable ||
            (node.kind == Node::Kind::loop && node.counted))
          bytes += 12;
        if (node.kind == Node::Kind::effect && node.text.starts_with("vm_buffer ")) bytes += 64;
        if (node.kind == Node::Kind::dispatch) bytes += 24;
        bytes += node.array_bytes;
      });
      return bytes;
    };
    uint64_t kernel = 0;
    for (const KernelFunction& each : program_.kernels()) {
      kernel = std::max(kernel, frame(each.body));
      if (has_vectors) kernel = std::max(kernel, frame(each.vector_body));
    }
    uint64_t host = kFrame;
    for (const HostFunction& each : program_.functions())
      host = std::max(host, frame(each.body) + 8 * (each.arguments.size() + each.outputs.size()));
    // Functions of the C library, and those of aot/support.
    const uint64_t library = (uses("vmvx_") ? 800 : 0) + (!math_functions_.empty() ? 512 : 128);
    return (host + kernel + library + 15) / 16 * 16;
  }

  // ---- the source

  std::string source() const {
    std::string text = comment() + fmt::format("#include \"{}.h\"\n\n#include <string.h>\n", options_.name);
    const bool floats = uses("float") || uses("double");
    if (floats) text += "#include <float.h>\n";
    if (!math_functions_.empty()) text += "#include <math.h>\n";
    text += compiler_checks(floats);
    text += fmt::format("\ntypedef {}_state vm_state;\n", prefix_);
    if (uses("VM_GLOBAL_BYTES"))
      text += fmt::format("#define VM_GLOBAL_BYTES {}u\n", plan_.module.global_bytes());
    if (uses("VM_VECTORS"))
      text += fmt::format("#if {}\n", kHasVectors) +
              "#define VM_VECTORS /* the processor computes several elements at once */\n#endif\n";
    if (uses("VM_ROWS"))
      text +=
          "/* Rows of sums that are computed at a time: 1, 2 or 4. */\n#if defined(VM_ROWS)\n"
          "#elif defined(__AVX512F__)\n#define VM_ROWS 4u\n#else\n#define VM_ROWS 2u\n#endif\n";
    std::string queries;
    for (const Kernels& each : kernels_)
      if (!each.library.empty()) queries += static_prototype(each);
    if (!queries.empty())
      text += fmt::format(
          "/* Local memory of kernels is what the arena has after the memory of the program. */\n"
          "#define VM_LOCAL_BEGIN {}\n",
          program_.has_dynamic_memory() ? "SIZE_MAX" : fmt::format("{}_ARENA_BYTES", upper(prefix_)));
    return text + constants_ + "\n" + support_ + "\n" + queries + "\n" + code_;
  }

  std::string constants() {
    std::string text = "\n";
    const std::set<std::string_view> words = words_of(code_);
    const auto add = [&](const Plan& plan) {
      for (const uint32_t ordinal : plan.constants) {
        const uint32_t index = plan.constant(ordinal);
        if (!words.contains(fmt::format("vm_rodata_{}", index))) continue;
        const std::span<const uint8_t> bytes = plan.module.rodata()[ordinal]->span();
        constexpr uint8_t kNone[] = {0};
        text += data_.add(fmt::format("vm_rodata_{}", index),
                          bytes.empty() ? std::span<const uint8_t>(kNone) : bytes);
        constant_bytes_ += bytes.size();
      }
    };
    add(plan_);
    for (const Kernels& each : kernels_) add(each.plan);
    const std::vector<UsedParameter>& parameters = program_.lifter().parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].baked == nullptr || !words.contains(fmt::format("vm_parameter_{}", i))) continue;
      // A parameter without bytes is a pattern, of which the program gets as many copies as it reads.
      const ParameterBytes& baked = *parameters[i].baked;
      std::vector<uint8_t> copies;
      if (baked.bytes.empty())
        for (uint64_t at = 0; at < std::max<uint64_t>(parameters[i].length, 1); ++at)
          copies.push_back(baked.pattern.empty() ? 0 : baked.pattern[at % baked.pattern.size()]);
      text += data_.add(
          fmt::format("vm_parameter_{}", i),
          baked.bytes.empty() ? copies : baked.bytes.first(std::max<uint64_t>(parameters[i].length, 1)));
      constant_bytes_ += parameters[i].length;
    }
    return text;
  }

  // ---- the program

  std::string main() const {
    std::string text = comment() + fmt::format(
                                       "#include \"{}.h\"\n\n#include <errno.h>\n#include <math.h>\n"
                                       "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
                                       options_.name);
    const bool tensors = std::ranges::any_of(program_.functions(), [](const HostFunction& each) {
      return (each.face.types.arguments + each.face.types.results).find('r') != std::string::npos;
    });
    text += fmt::format("typedef {0}_state vm_state;\n", prefix_);
    if (tensors)
      text +=
          "#define VM_MAX_RANK 16\n"
          "typedef struct vm_tensor {\n  void* data;\n  size_t bytes;\n  uint32_t element_type;\n  uint32_t "
          "rank;\n"
          "  size_t shape[VM_MAX_RANK];\n} vm_tensor;\n#define VM_TENSORS\n";
    text += fmt::format(
        "static const char vm_name[] = {};\n#define vm_init(s, arena, bytes) {}_init(s, arena, bytes{})\n"
        "#define vm_arena_was_zero(s) ((void)(s))\n",
        quoted(options_.name), prefix_, given().empty() ? "" : ", &vm_parameters");
    if (!given().empty())
      text += fmt::format("static const {}_parameters vm_parameters; /* fill in the addresses */\n", prefix_);
    text +=
        fmt::format("#ifndef VM_ARENA_BYTES\n#define VM_ARENA_BYTES {}\n#endif\n\n",
                    program_.has_dynamic_memory() ? "(256u << 20)"
                                                  : fmt::format("({}_ARENA_BYTES + 16u)", upper(prefix_)));
    text += fmt::format(
        "typedef union vm_value {{\n  int32_t i32;\n  int64_t i64;\n  float f32;\n  double f64;\n{}}} "
        "vm_value;\n\n"
        "typedef struct vm_function {{\n  const char* name;\n  const char* arguments;\n  const char* "
        "results;\n"
        "  int (*call)(vm_state* s, const vm_value* in, vm_value* out);\n}} vm_function;\n\n",
        tensors ? "  vm_tensor tensor;\n" : "");
    std::string callers;
    std::string table;
    for (size_t n = 0; n < program_.functions().size(); ++n) {
      const HostFunction& each = program_.functions()[n];
      callers += caller(each, n);
      table += fmt::format("  {{{}, \"{}\", \"{}\", vm_call_{}}},\n", quoted(each.face.name),
                           each.face.types.arguments, each.face.types.results, n);
    }
    if (callers.find("vm_expect(") != std::string::npos) text += kExpect;
    if (callers.find("vm_give(") != std::string::npos) text += kGive;
    text += callers;
    text += fmt::format("static const vm_function vm_functions[] = {{\n{}}};\n\n", table);
    return text + main_program();
  }

  static constexpr std::string_view kExpect =
      R"(/* Checks an argument as the program does; a dimension of SIZE_MAX may be any. */
static int vm_expect(vm_state* s, const vm_tensor* tensor, const char* name, uint32_t element_type, uint32_t rank,
                     const size_t* shape) {
  const uint32_t type = tensor->element_type;
  const int fits = type >> 24 == 0 || type == element_type ||
                   (type >> 28 == 1 && element_type >> 28 == 1 && (type & 0xFF) == (element_type & 0xFF));
  s->names[0] = name;
  s->has_parts = 1;
  s->numbers[0] = element_type;
  s->numbers[1] = type;
  s->message = "@ element type mismatch; expected $ but have $";
  if (!fits) return 3;
  s->numbers[0] = rank;
  s->numbers[1] = tensor->rank;
  s->message = "@ shape rank mismatch; expected $ but have $";
  if (tensor->rank != rank) return 3;
  s->message = "@ shape dimension mismatch; expected $ but have $";
  for (uint32_t i = 0; i < rank; ++i) {
    s->numbers[0] = shape[i];
    s->numbers[1] = tensor->shape[i];
    if (shape[i] != SIZE_MAX && shape[i] != tensor->shape[i]) return 3;
  }
  s->message = NULL;
  s->has_parts = 0;
  return 0;
}

)";
  static constexpr std::string_view kGive =
      R"(static void vm_give(vm_tensor* tensor, const void* data, uint32_t element_type, uint32_t rank, const size_t* shape) {
  union {
    const void* constant;
    void* data;
  } bytes = {data}; /* printed, not written */
  memset(tensor, 0, sizeof *tensor);
  tensor->data = bytes.data;
  tensor->bytes = (element_type & 0xFF) / 8;
  tensor->element_type = element_type;
  tensor->rank = rank;
  for (uint32_t i = 0; i < rank; ++i) {
    tensor->shape[i] = shape[i];
    tensor->bytes *= shape[i];
  }
}

)";

  std::string caller(const HostFunction& function, size_t index) const {
    const Values& values = program_.lifter().values();
    const auto member = [](char type) {
      return type == 'i' ? "i32" : type == 'I' ? "i64" : type == 'f' ? "f32" : "f64";
    };
    const auto shape_text = [&](const std::vector<ValueId>& shape) {
      std::string text;
      for (const ValueId id : shape)
        text += fmt::format("{}{}", text.empty() ? "" : ", ",
                            values.is_constant(id) ? fmt::format("{}u", values[id].bits) : "SIZE_MAX");
      return text.empty() ? std::string("0") : text;
    };
    const auto pointer = [&](const char* type, const std::vector<ValueId>& shape, bool is_constant) {
      bool is_known = true;
      for (const ValueId id : shape) is_known = is_known && values.is_constant(id) && values[id].bits != 0;
      std::string text = fmt::format("{}{}", is_constant ? "const " : "", type);
      if (!is_known || shape.size() < 2) return text + "*";
      text += " (*)";
      for (size_t i = 1; i < shape.size(); ++i) text += fmt::format("[{}]", values[shape[i]].bits);
      return text;
    };
    std::string text =
        fmt::format("static int vm_call_{}(vm_state* s, const vm_value* in, vm_value* out) {{\n", index);
    std::string call = fmt::format("{}(s", function.face.symbol);
    std::string checks;
    std::string give;
    for (size_t i = 0; i < function.arguments.size(); ++i) {
      const Argument& argument = function.arguments[i];
      if (argument.type != 'r') {
        call += fmt::format(", in[{}].{}", i, member(argument.type));
        continue;
      }
      text += fmt::format("  static const size_t shape{}[] = {{{}}};\n", i, shape_text(argument.shape));
      checks += fmt::format(
          "  if (status == 0) status = vm_expect(s, &in[{0}].tensor, {1}, 0x{2:08X}u, {3}, shape{0});\n", i,
          quoted(argument.name), argument.element_type, argument.shape.size());
      const bool writes = program_.lifter().memories()[argument.memory].is_written;
      call += fmt::format(", ({})in[{}].tensor.data",
                          pointer(element_c_type(argument.element_type), argument.shape, !writes), i);
      for (size_t n = 0; n < argument.shape.size(); ++n)
        if (!values.is_constant(argument.shape[n])) call += fmt::format(", in[{}].tensor.shape[{}]", i, n);
    }
    for (size_t i = 0; i < function.outputs.size(); ++i) {
      const Output& output = function.outputs[i];
      if (output.type != 'r') {
        call += fmt::format(", &out[{}].{}", i, member(output.type));
      } else if (output.is_fixed) {
        uint64_t bytes = element_bytes(output.element_type);
        for (const ValueId id : output.shape) bytes *= values[id].bits;
        text += fmt::format("  static uint64_t bytes{}[{}];\n  static const size_t result{}[] = {{{}}};\n", i,
                            std::max<uint64_t>(1, (bytes + 7) / 8), i, shape_text(output.shape));
        call += fmt::format(", ({})(void*)bytes{}",
                            pointer(element_c_type(output.element_type), output.shape, false), i);
        give += fmt::format(
            "  if (status == 0) vm_give(&out[{0}].tensor, bytes{0}, 0x{1:08X}u, {2}, result{0});\n", i,
            output.element_type, output.shape.size());
      } else {
        text +=
            fmt::format("  const {}* data{} = NULL;\n  size_t result{}[{}] = {{0}};\n",
                        element_c_type(output.element_type), i, i, std::max<size_t>(1, output.shape.size()));
        call += fmt::format(", &data{0}, result{0}", i);
        give += fmt::format(
            "  if (status == 0) vm_give(&out[{0}].tensor, data{0}, 0x{1:08X}u, {2}, result{0});\n", i,
            output.element_type, output.shape.size());
      }
    }
    text += "  int status = 0;\n";
    if (function.arguments.empty()) text += "  (void)in;\n";
    if (function.outputs.empty()) text += "  (void)out;\n";
    return text + checks +
           fmt::format("  if (status == 0) status = {});\n{}  return status;\n}}\n\n", call, give);
  }

  Program& program_;
  const std::vector<Kernels>& kernels_;
  const Options& options_;
  const Plan& plan_;
  const std::string& prefix_;
  std::string code_;
  std::string support_;
  std::string constants_;
  DataFiles data_;
  std::string memory_functions_;
  std::string math_functions_;
  uint64_t constant_bytes_ = 0;
};

}  // namespace

std::vector<File> write_planned(Program& program, const std::vector<Kernels>& kernels, const Options& options,
                                Report& report) {
  return PlannedWriter(program, kernels, options).write(report);
}

}  // namespace halyard::aot
