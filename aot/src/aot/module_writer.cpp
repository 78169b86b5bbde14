// The files of a module.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "aot/c_text.h"
#include "aot/function_writer.h"
#include "aot/plan.h"
#include "aot/support.h"
#include "aot/translate.h"
#include "vm/decode/flow.h"

namespace halyard::aot {

namespace {

// The C of a value outside of this file: integers are signed there.
struct Outside {
  const char* type;
  const char* member;  // of vm_value
};
Outside outside(char type) {
  switch (type) {
    case 'i':
      return {"int32_t", "i32"};
    case 'I':
      return {"int64_t", "i64"};
    case 'f':
      return {"float", "f32"};
    default:
      return {"double", "f64"};
  }
}

const char* inside(char type) {
  return type == 'i' ? "uint32_t" : type == 'I' ? "uint64_t" : type == 'f' ? "float" : "double";
}

struct PublicFunction {
  std::string_view name;
  std::string symbol;
  std::string callee;
  Types types;

  std::string prototype(std::string_view prefix) const {
    std::string text = fmt::format("int {}({}_state* s", symbol, prefix);
    for (size_t i = 0; i < types.arguments.size(); ++i)
      text += fmt::format(", {} a{}", outside(types.arguments[i]).type, i);
    for (size_t i = 0; i < types.results.size(); ++i)
      text += fmt::format(", {}* o{}", outside(types.results[i]).type, i);
    return text + ")";
  }
};

class ModuleWriter {
 public:
  ModuleWriter(const Plan& plan, const Options& options)
      : plan_(plan), module_(plan.module), options_(options) {}

  Result<std::vector<File>> write() {
    HALYARD_TRY(find_public());
    HALYARD_TRY(write_functions());
    write_public();
    std::vector<File> files = {{options_.name + ".h", header()}, {options_.name + ".c", source()}};
    if (options_.main) files.push_back({options_.name + "_main.c", program()});
    return files;
  }

 private:
  Result<> find_public() {
    std::set<std::string> taken = {plan_.prefix + "_init", plan_.prefix + "_state"};
    for (const vm::Export& each : module_.exports()) {
      const Types types = function_types(module_, each.function);
      if (each.name.starts_with("__")) {
        if (each.name == "__init") init_ = plan_.functions[each.function];
        continue;
      }
      if ((types.arguments + types.results).find('r') != std::string::npos)
        return fail(Code::UNIMPLEMENTED,
                    "function '{}' ({}) takes or returns objects; without a runtime, exported functions take "
                    "and return numbers",
                    each.name, each.convention);
      std::string symbol = plan_.prefix + "_" + identifier(each.name);
      while (!taken.insert(symbol).second) symbol += '_';
      public_.push_back({each.name, symbol, plan_.functions[each.function], types});
    }
    return {};
  }

  Result<> write_functions() {
    for (uint32_t i = 0; i < plan_.functions.size(); ++i) {
      if (plan_.functions[i].empty()) continue;
      alignas(8) std::array<std::byte, 16 << 10> memory;
      vm::Arena arena(memory);
      const vm::Flow flow = HALYARD_TRY(vm::Flow::of(module_, module_.functions()[i], arena));
      const std::string text = HALYARD_TRY(FunctionWriter(plan_, i, flow).write());
      prototypes_ += text.substr(0, text.find(" {\n")) + ";\n";
      functions_ += text + "\n";
    }
    return {};
  }

  void write_public() {
    for (const PublicFunction& each : public_) {
      functions_ += each.prototype(plan_.prefix) + " {\n";
      std::string arguments = "s";
      for (size_t i = 0; i < each.types.arguments.size(); ++i)
        arguments += fmt::format(", ({})a{}", inside(each.types.arguments[i]), i);
      std::string results;
      for (size_t i = 0; i < each.types.results.size(); ++i) {
        const char type = each.types.results[i];
        functions_ += fmt::format("  {} r{} = 0;\n", inside(type), i);
        arguments += fmt::format(", &r{}", i);
        results += fmt::format("  *o{} = ({})r{};\n", i, outside(type).type, i);
      }
      functions_ += fmt::format("  const int status = {}({});\n", each.callee, arguments);
      if (!results.empty()) functions_ += "  if (status != 0) return status;\n" + results;
      functions_ += "  return status;\n}\n\n";
    }
    functions_ += begin_prototype() + " {\n";
    functions_ += "  memset(s, 0, sizeof *s);\n";
    if (has_imports()) functions_ += "  s->user = user;\n";
    // Without objects the program needs no arena.
    const bool objects = uses("vm_ref") || !plan_.constants.empty();
    functions_ +=
        objects ? "  vm_arena_begin(s, arena, arena_bytes);\n" : "  (void)arena;\n  (void)arena_bytes;\n";
    const std::string begin = plan_.constants.empty() ? "0" : "vm_constants_begin(s)";
    if (init_.empty()) {
      functions_ += fmt::format("  return {};\n}}\n", begin);
    } else {
      functions_ += plan_.constants.empty()
                        ? ""
                        : "  const int status = vm_constants_begin(s);\n  if (status != 0) return status;\n";
      functions_ += fmt::format("  return {}(s);\n}}\n", init_);
    }
    support_ = support_for(functions_ + prototypes_);
  }

  bool has_imports() const {
    return std::ranges::any_of(
        plan_.imports, [](const ImportPlan& each) { return !each.callee.empty() && !each.takes_state; });
  }
  std::string begin_prototype() const {
    return fmt::format("int {0}_init({0}_state* s, void* arena, size_t arena_bytes{1})", plan_.prefix,
                       has_imports() ? ", void* user" : "");
  }

  bool uses(std::string_view text) const {
    return functions_.find(text) != std::string::npos || support_.find(text) != std::string::npos;
  }

  std::string comment() const {
    return fmt::format("/* Module '{}'{}, written by vm-cc. */\n", escaped(module_.name()),
                       options_.source.empty() ? "" : " of " + escaped(options_.source));
  }
  static std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) safe += c == '*' || c == '/' || c == '\\' || c < ' ' || c == 0x7F ? '_' : c;
    return safe;
  }

  std::string header() const {
    std::string guard = plan_.prefix + "_H_";
    std::ranges::transform(guard, guard.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    std::string text =
        comment() + fmt::format(
                        "#ifndef {0}\n#define {0}\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
                        "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
                        guard);
    text += fmt::format(
        "/* The state of one instance of the program: its globals, and the text of the last failure.\n"
        " * The caller owns it, and calls the functions of one state from one thread at a time. */\n"
        "typedef struct {}_state {{\n",
        plan_.prefix);
    text +=
        "  const char* message; /* '$' stands for the next number, '@' for the next name; null: none */\n"
        "  uint64_t numbers[4];\n  const char* names[2];\n"
        "  int has_parts;  /* whether the message has numbers or names */\n";
    if (has_imports())
      text += "  void* user;     /* the first argument of functions that the program imports */\n";
    if (!plan_.recursive.empty()) text += "  uint32_t depth; /* of nested calls */\n";
    if (uses("vm_arena_begin"))
      text += "  void* free;     /* blocks of the arena */\n  void* doomed;\n  int destroying;\n";
    if (uses("->globals"))
      text += fmt::format("  uint64_t globals[{}];\n",
                          std::max<uint64_t>(1, (uint64_t{module_.global_bytes()} + 7) / 8));
    if (uses("->refs"))
      text += fmt::format("  void* refs[{}];\n", std::max<uint32_t>(1, module_.global_refs()));
    if (!plan_.constants.empty()) text += fmt::format("  void* constants[{}];\n", plan_.constants.size());
    text += fmt::format("}} {}_state;\n\n", plan_.prefix);
    text +=
        "/* Functions return 0, or the number of a status (3 INVALID_ARGUMENT, 8 RESOURCE_EXHAUSTED, 11 "
        "OUT_OF_RANGE,\n"
        " * ...; halyard/status.h has all); then their results are not written. */\n\n";
    text += fmt::format(
        "/* Begins a new instance: call it before the other functions. {} */\n"
        "{};\n\n",
        uses("vm_arena_begin") ? "The program's objects are in the arena, which\n * the caller owns and "
                                 "keeps as long as the state."
                               : "The program needs no arena, which may be null.",
        begin_prototype());
    for (const PublicFunction& each : public_) text += fmt::format("{};\n", each.prototype(plan_.prefix));
    const std::string imports = import_prototypes();
    if (!imports.empty())
      text += "\n/* Functions that the program imports. Define them; `user` is that of init. */\n" + imports;
    return text + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", guard);
  }

  std::string import_prototypes() const {
    std::set<std::string> texts;
    for (size_t i = 0; i < plan_.imports.size(); ++i) {
      if (plan_.imports[i].callee.empty() || plan_.imports[i].takes_state) continue;
      const Types types = types_of(module_.imports()[i].convention);
      std::string text = fmt::format("int {}(void* user", plan_.imports[i].callee);
      for (size_t n = 0; n < types.arguments.size(); ++n)
        text += fmt::format(", {} a{}", outside(types.arguments[n]).type, n);
      for (size_t n = 0; n < types.results.size(); ++n)
        text += fmt::format(", {}* o{}", outside(types.results[n]).type, n);
      texts.insert(text + ");\n");
    }
    std::string all;
    for (const std::string& text : texts) all += text;
    return all;
  }

  std::string source() const {
    std::string text = comment() + fmt::format("#include \"{}.h\"\n\n#include <string.h>\n", options_.name);
    const bool floats = uses("float") || uses("double");
    if (floats) text += "#include <float.h>\n#include <math.h>\n";
    text +=
        "\n#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
        "#error \"the bytes of this program's buffers are little-endian\"\n#endif\n";
    if (floats)
      text +=
          "#if defined(__FAST_MATH__) || (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0)\n"
          "#error \"this program rounds each operation to its type: compile without -ffast-math, for i386 "
          "with -mfpmath=sse\"\n"
          "#endif\n#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n#elif defined(__GNUC__) && "
          "!defined(__STRICT_ANSI__) && defined(__FP_FAST_FMA)\n"
          "#error \"this program rounds products before it adds them: compile with -std=c11 or "
          "-ffp-contract=off\"\n#endif\n";
    text += fmt::format("\ntypedef {}_state vm_state;\n", plan_.prefix);
    if (uses("VM_MAX_DEPTH"))
      text +=
          "#ifndef VM_MAX_DEPTH\n#define VM_MAX_DEPTH 10000u /* nested calls of functions that call "
          "themselves */\n#endif\n";
    if (uses("VM_GLOBAL_BYTES")) text += fmt::format("#define VM_GLOBAL_BYTES {}u\n", module_.global_bytes());
    if (uses("VM_REF_GLOBALS")) text += fmt::format("#define VM_REF_GLOBALS {}u\n", module_.global_refs());
    return text + constants() + "\n" + support_ + "\n" + prototypes_ + "\n" + functions_;
  }

  std::string constants() const {
    if (plan_.constants.empty()) return "";
    std::string text = "\n";
    std::string table;
    for (const uint32_t ordinal : plan_.constants) {
      const std::span<const uint8_t> bytes = module_.rodata()[ordinal]->span();
      text += fmt::format("static const _Alignas(16) unsigned char vm_rodata_{}[{}] = {{", ordinal,
                          std::max<size_t>(bytes.size(), 1));
      if (bytes.empty()) text += "0";
      for (size_t i = 0; i < bytes.size(); ++i) {
        text += i % 32 == 0 ? "\n  " : "";
        text += std::to_string(bytes[i]);
        text += ',';
      }
      text += "};\n";
      table += fmt::format("  {{vm_rodata_{}, {}}},\n", ordinal, bytes.size());
    }
    return text +
           "static const struct {\n  const unsigned char* data;\n  size_t length;\n} vm_rodata[] = {\n" +
           table + "};\n";
  }

  std::string program() const {
    std::string text =
        comment() + fmt::format(
                        "#include \"{}.h\"\n\n#include <errno.h>\n#include <inttypes.h>\n#include "
                        "<stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
                        options_.name);
    text += fmt::format(
        "typedef {0}_state vm_state;\nstatic const char vm_name[] = {1};\n#define vm_init(s, arena, bytes) "
        "{0}_init(s, arena, bytes{2})\n",
        plan_.prefix, quoted(options_.name), has_imports() ? ", NULL" : "");
    text += fmt::format("#ifndef VM_ARENA_BYTES\n#define VM_ARENA_BYTES {}\n#endif\n\n",
                        uses("vm_arena_begin") ? "(64u << 20)" : "16");
    text +=
        "typedef union vm_value {\n  int32_t i32;\n  int64_t i64;\n  float f32;\n  double f64;\n} "
        "vm_value;\n\n"
        "typedef struct vm_function {\n  const char* name;\n  const char* arguments;\n  const char "
        "*results;\n"
        "  int (*call)(vm_state* s, const vm_value* in, vm_value* out);\n} vm_function;\n\n";
    std::string table;
    for (size_t n = 0; n < public_.size(); ++n) {
      const PublicFunction& each = public_[n];
      text += fmt::format("static int vm_call_{}(vm_state* s, const vm_value* in, vm_value* out) {{\n", n);
      std::string call = each.symbol + "(s";
      for (size_t i = 0; i < each.types.arguments.size(); ++i)
        call += fmt::format(", in[{}].{}", i, outside(each.types.arguments[i]).member);
      for (size_t i = 0; i < each.types.results.size(); ++i)
        call += fmt::format(", &out[{}].{}", i, outside(each.types.results[i]).member);
      if (each.types.arguments.empty()) text += "  (void)in;\n";
      if (each.types.results.empty()) text += "  (void)out;\n";
      text += fmt::format("  return {});\n}}\n\n", call);
      table += fmt::format("  {{{}, \"{}\", \"{}\", vm_call_{}}},\n", quoted(each.name), each.types.arguments,
                           each.types.results, n);
    }
    text += fmt::format("static const vm_function vm_functions[] = {{\n{}}};\n\n", table);
    return text + std::string(main_program());
  }

  const Plan& plan_;
  const vm::BytecodeModule& module_;
  const Options& options_;
  std::vector<PublicFunction> public_;
  std::string init_;
  std::string prototypes_;
  std::string functions_;
  std::string support_;
};

Result<std::vector<File>> write_module(std::span<const uint8_t> bytes, const Options& options) {
  const Ref<vm::BytecodeModule> module =
      HALYARD_TRY(vm::BytecodeModule::load(Bytes::borrow(bytes, {}), vm::TypeRegistry()));
  const Plan plan = HALYARD_TRY(Plan::of(*module, options.name));
  return ModuleWriter(plan, options).write();
}

}  // namespace

std::expected<std::vector<File>, Refusal> translate(std::span<const uint8_t> module, const Options& options) {
  Result<std::vector<File>> files = write_module(module, options);
  if (files) return *std::move(files);
  const std::string text = files.error().text();
  return std::unexpected(
      Refusal{.code = static_cast<int32_t>(files.error().code()), .text = text.substr(text.find("; ") + 2)});
}

}  // namespace halyard::aot
