// The files of a module whose objects exist at run time.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "aot/c_text.h"
#include "aot/function_writer.h"
#include "aot/kernels.h"
#include "aot/plan.h"
#include "aot/public_function.h"
#include "aot/support.h"
#include "aot/written_functions.h"
#include "vm/decode/flow.h"
#include "write/data_files.h"
#include "write/writers.h"

namespace halyard::aot {

namespace {

class ModuleWriter {
 public:
  ModuleWriter(const Plan& plan, const std::vector<Kernels>& kernels, const Options& options)
      : plan_(plan),
        kernels_(kernels),
        module_(plan.module),
        options_(options),
        data_(options.name, plan.prefix) {}

  Result<std::vector<File>> write() {
    public_ = HALYARD_TRY(public_functions(plan_, initializer_));
    for (const PublicFunction& each : public_) results_ = std::max(results_, each.tensor_results());
    for (const Kernels& kernels : kernels_) HALYARD_TRY(write_functions(kernels.plan));
    HALYARD_TRY(write_functions(plan_));
    for (const Plan* const plan : plans()) {
      constants_ += plan->constants.size();
      has_recursion_ |= !plan->recursive.empty();
    }
    write_executables();
    for (const PublicFunction& each : public_) functions_ += each.definition(plan_.prefix, results_ != 0);
    write_begin();
    const CalledFunctions called = called_functions(written_, functions_);
    prototypes_ += called.prototypes;
    functions_.insert(0, called.definitions);
    support_ = support_for(without_literals(functions_ + prototypes_), has_static(kernels_));
    std::vector<File> files = {{options_.name + ".h", header()}, {options_.name + ".c", source()}};
    if (options_.main) files.push_back({options_.name + "_main.c", program()});
    data_.finish(comment(), files);
    return files;
  }

 private:
  std::vector<const Plan*> plans() const {
    std::vector<const Plan*> all = {&plan_};
    for (const Kernels& kernels : kernels_) all.push_back(&kernels.plan);
    return all;
  }

  Result<> write_functions(const Plan& plan) {
    for (uint32_t i = 0; i < plan.functions.size(); ++i) {
      if (plan.functions[i].empty()) continue;
      alignas(8) std::array<std::byte, 16 << 10> memory;
      vm::Arena arena(memory);
      const vm::Flow flow = HALYARD_TRY(vm::Flow::of(plan.module, plan.module.functions()[i], arena));
      const std::string text = HALYARD_TRY(FunctionWriter(plan, i, flow).write());
      written_.push_back({plan.functions[i], text});
    }
    return {};
  }

  void write_executables() {
    if (kernels_.empty()) return;
    std::string rows;
    for (const Kernels& each : kernels_) {
      const bool with_query = has_static(kernels_);
      if (!each.library.empty()) {
        functions_ += static_prototype(each) + "\n";
        rows += fmt::format("  {{{}, 0, NULL, {}}},\n", each.constant, each.library);
        continue;
      }
      functions_ += each.table(with_query);
      rows += fmt::format("  {{{0}, sizeof {1}_kernels / sizeof {1}_kernels[0], {1}_kernels{2}}},\n",
                          each.constant, each.plan.prefix, with_query ? ", NULL" : "");
    }
    functions_ += fmt::format(
        "static const hal_code vm_executables[] = {{\n{}}};\n\n"
        "static const hal_code* hal_find_code(uint32_t constant) {{\n"
        "  for (size_t i = 0; i < sizeof vm_executables / sizeof vm_executables[0]; ++i)\n"
        "    if (vm_executables[i].constant == constant) return &vm_executables[i];\n"
        "  return NULL;\n}}\n\n",
        rows);
  }

  // init(): the arena, the constants, and the function that the module wants to be called first.
  void write_begin() {
    functions_ += begin_prototype() + " {\n  memset(s, 0, sizeof *s);\n";
    if (has_imports()) functions_ += "  s->user = user;\n";
    if (takes_parameters())
      functions_ +=
          "  s->parameters = parameters;\n  s->parameter_count = parameters != NULL ? parameter_count : 0;\n";
    const bool objects = constants_ != 0 || std::ranges::any_of(written_, [](const WrittenFunction& each) {
                           return each.text.find("vm_ref") != std::string::npos;
                         });
    functions_ +=
        objects ? "  vm_arena_begin(s, arena, arena_bytes);\n" : "  (void)arena;\n  (void)arena_bytes;\n";
    const std::string was_zero =
        objects ? fmt::format("\nvoid {0}_arena_was_zero({0}_state* s) {{ s->arena_was_zero = 1; }}\n",
                              plan_.prefix)
                : "";
    const std::string begin = constants_ == 0 ? "0" : "vm_constants_begin(s)";
    if (initializer_.empty()) {
      functions_ += fmt::format("  return {};\n}}\n", begin);
    } else if (constants_ == 0) {
      functions_ += fmt::format("  return {}(s);\n}}\n", initializer_);
    } else {
      functions_ += fmt::format("  const int status = {};\n  return status != 0 ? status : {}(s);\n}}\n",
                                begin, initializer_);
    }
    functions_ += was_zero;
  }

  bool has_imports() const {
    return std::ranges::any_of(
        plan_.imports, [](const ImportPlan& each) { return !each.callee.empty() && !each.takes_state; });
  }
  // Whether the program loads parameters that are not part of it.
  bool takes_parameters() const {
    return options_.parameters.empty() && std::ranges::any_of(plan_.imports, [](const ImportPlan& each) {
             return each.callee.starts_with("io_parameters_");
           });
  }
  std::string begin_prototype() const {
    return fmt::format(
        "int {0}_init({0}_state* s, void* arena, size_t arena_bytes{1}{2})", plan_.prefix,
        takes_parameters()
            ? fmt::format(", const {}_parameter* parameters, size_t parameter_count", plan_.prefix)
            : "",
        has_imports() ? ", void* user" : "");
  }
  bool has_tensors() const {
    return std::ranges::any_of(public_, [](const PublicFunction& each) {
      return (each.types.arguments + each.types.results).find('r') != std::string::npos;
    });
  }
  bool uses(std::string_view text) const {
    return functions_.find(text) != std::string::npos || support_.find(text) != std::string::npos;
  }

  std::string comment() const { return module_comment(module_.name(), options_.source); }

  // ---- the header

  std::string header() const {
    const std::string guard = upper(plan_.prefix) + "_H_";
    std::string text =
        comment() + fmt::format(
                        "#ifndef {0}\n#define {0}\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
                        "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
                        guard);
    text += state() + tensor();
    text +=
        "/* Functions return 0, or the number of a status (3 INVALID_ARGUMENT, 8 RESOURCE_EXHAUSTED,\n"
        " * 11 OUT_OF_RANGE, ...; halyard/status.h has all); then their results are not written. */\n\n";
    text += fmt::format("/* Begins a new instance: call it before the other functions. {} */\n{};\n\n",
                        uses("vm_arena_begin")
                            ? "The program's objects are in the arena, which\n * the caller owns "
                              "and keeps as long as the state."
                            : "The program needs no arena, which may be null.",
                        begin_prototype());
    if (uses("vm_arena_begin"))
      text += fmt::format(
          "/* The bytes of the arena were 0 when init got it, as those of static variables are: memory that "
          "is "
          "used for the\n * first time is not cleared again. */\nvoid {0}_arena_was_zero({0}_state* s);\n\n",
          plan_.prefix);
    for (const PublicFunction& each : public_) text += each.prototype(plan_.prefix) + ";\n";
    const std::string imports = import_prototypes();
    if (!imports.empty())
      text += "\n/* Functions that the program imports. Define them; `user` is that of init. */\n" + imports;
    return text + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", guard);
  }

  std::string state() const {
    std::string text;
    if (takes_parameters())
      text = fmt::format(
          "/* A parameter that the caller gives. Table and bytes stay where they are as long as the state is "
          "used. "
          "*/\n"
          "typedef struct {0}_parameter {{\n  const char* scope; /* null: none */\n  const char* key;\n"
          "  const void* data;\n  uint64_t length; /* bytes */\n}} {0}_parameter;\n\n",
          plan_.prefix);
    text += fmt::format(
        "/* The state of one instance of the program: its globals, and the text of the last failure.\n"
        " * The caller owns it, and calls the functions of one state from one thread at a time. */\n"
        "typedef struct {}_state {{\n"
        "  const char* message; /* '$' stands for the next number, '@' for the next name; null: none */\n"
        "  uint64_t numbers[4];\n  const char* names[2];\n"
        "  int has_parts; /* whether the message has numbers or names */\n",
        plan_.prefix);
    if (has_imports())
      text += "  void* user;    /* the first argument of functions that the program imports */\n";
    if (takes_parameters())
      text += fmt::format("  const {}_parameter* parameters;\n  size_t parameter_count;\n", plan_.prefix);
    if (has_recursion_) text += "  uint32_t depth; /* of nested calls */\n";
    if (uses("->stopped")) text += "  uint32_t stopped; /* calls are nested too deep */\n";
    if (uses("vm_arena_begin"))
      text +=
          "  void* free;    /* blocks of the arena */\n"
          "  uintptr_t untouched; /* from this address on, the arena is as init got it */\n"
          "  int arena_was_zero;\n";
    if (uses("->text"))
      text += "  char text[64]; /* what `names` refers to, if the program named what it checked */\n";
    if (uses("->doomed")) text += "  void* doomed;\n  int destroying;\n";
    if (uses("s->devices")) text += fmt::format("  void* devices[{}];\n", options_.devices);
    if (results_ != 0) text += fmt::format("  void* results[{}]; /* of the last call */\n", results_);
    if (uses("->globals"))
      text += fmt::format("  uint64_t globals[{}];\n",
                          std::max<uint64_t>(1, (uint64_t{module_.global_bytes()} + 7) / 8));
    if (uses("->refs"))
      text += fmt::format("  void* refs[{}];\n", std::max<uint32_t>(1, module_.global_refs()));
    if (constants_ != 0) text += fmt::format("  void* constants[{}];\n", constants_);
    return text + fmt::format("}} {}_state;\n\n", plan_.prefix);
  }

  std::string tensor() const {
    if (!has_tensors()) return "";
    return fmt::format(
        "/* A tensor, dense and row-major. Arguments are bytes of the caller, which the function reads in "
        "place; the\n"
        " * bytes of results belong to the state, until its next call. element_type is a "
        "HALYARD_ELEMENT_TYPE_*\n"
        " * (0x21000020: f32, 0x10000020: i32, 0x10000008: i8; halyard/element_type.h has all). */\n"
        "#ifndef VM_MAX_RANK\n#define VM_MAX_RANK 16\n#endif\n"
        "typedef struct {0}_tensor {{\n  void* data;\n  size_t bytes;\n  uint32_t element_type;\n  uint32_t "
        "rank;\n"
        "  size_t shape[VM_MAX_RANK];\n}} {0}_tensor;\n\n",
        plan_.prefix);
  }

  std::string import_prototypes() const {
    std::set<std::string> texts;
    for (size_t i = 0; i < plan_.imports.size(); ++i) {
      if (plan_.imports[i].callee.empty() || plan_.imports[i].takes_state) continue;
      texts.insert(outside_prototype(fmt::format("int {}(void* user", plan_.imports[i].callee),
                                     types_of(module_.imports()[i].convention), plan_.prefix) +
                   ";\n");
    }
    std::string all;
    for (const std::string& text : texts) all += text;
    return all;
  }

  // ---- the source

  std::string source() {
    std::string text = comment() + fmt::format("#include \"{}.h\"\n\n#include <string.h>\n", options_.name);
    const bool floats = uses("float") || uses("double");
    if (floats) text += "#include <float.h>\n#include <math.h>\n";
    text += compiler_checks(floats);
    text += fmt::format("\ntypedef {}_state vm_state;\n", plan_.prefix);
    if (uses("vm_tensor")) text += fmt::format("typedef {}_tensor vm_tensor;\n", plan_.prefix);
    if (uses("VM_MAX_RANK") && !has_tensors()) text += "#define VM_MAX_RANK 16\n";
    if (uses("VM_MAX_DEPTH"))
      text +=
          "#ifndef VM_MAX_DEPTH\n#define VM_MAX_DEPTH 10000u /* nested calls of functions that call "
          "themselves */\n"
          "#endif\n";
    if (uses("VM_GLOBAL_BYTES")) text += fmt::format("#define VM_GLOBAL_BYTES {}u\n", module_.global_bytes());
    if (uses("VM_REF_GLOBALS")) text += fmt::format("#define VM_REF_GLOBALS {}u\n", module_.global_refs());
    return text + constants() + "\n" + support_ + "\n" + prototypes_ + "\n" + functions_;
  }

  // The bytes of executables are left out, because their functions are in the program.
  std::string constants() {
    if (constants_ == 0) return parameters();
    std::string text = "\n" + parameters();
    std::string table;
    for (const Plan* const plan : plans())
      for (const uint32_t ordinal : plan->constants) {
        const uint32_t index = plan->constant(ordinal);
        const std::span<const uint8_t> bytes = plan->module.rodata()[ordinal]->span();
        const bool is_executable =
            std::ranges::any_of(kernels_, [&](const Kernels& each) { return each.constant == index; });
        if (is_executable || bytes.empty()) {
          table += "  {NULL, 0},\n";
          continue;
        }
        text += data_.add(fmt::format("vm_rodata_{}", index), bytes);
        table += fmt::format("  {{vm_rodata_{}, {}}},\n", index, bytes.size());
      }
    return text +
           "static const struct {\n  const unsigned char* data;\n  size_t length;\n} vm_rodata[] = {\n" +
           table + "};\n";
  }

  // Parameters whose keys are in a constant, because the tables of keys are constants.
  std::string parameters() {
    if (!uses("vm_parameters")) return "";
    const auto is_named = [&](const ParameterBytes& each) {
      return std::ranges::any_of(plan_.constants, [&](uint32_t ordinal) {
        const std::span<const uint8_t> bytes = module_.rodata()[ordinal]->span();
        return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find(each.key) !=
               std::string_view::npos;
      });
    };
    std::string arrays;
    std::string rows;
    size_t count = 0;
    for (const ParameterBytes& each : options_.parameters) {
      std::string data = "NULL";
      const std::span<const uint8_t> bytes = each.bytes.empty() ? std::span(each.pattern) : each.bytes;
      if (!bytes.empty() && is_named(each)) {
        data = fmt::format("vm_parameter_{}", count++);
        arrays += data_.add(data, bytes);
      } else if (each.length != 0) {
        continue;
      }
      rows += fmt::format("  {{{}, {}, {}, {}, {}, {}u, {}}},\n", quoted(each.scope), each.scope.size(),
                          quoted(each.key), each.key.size(), data, each.length,
                          each.bytes.empty() ? each.pattern.size() : 0);
    }
    if (rows.empty()) rows = "  {\"\", 0, \"\", SIZE_MAX, NULL, UINT64_MAX, 0}, /* none */\n";
    return arrays + (takes_parameters() ? "#define VM_GIVEN_PARAMETERS\n" : "") +
           "typedef struct vm_parameter {\n  const char* scope;\n  size_t scope_length;\n  const char* key;\n"
           "  size_t key_length;\n  const unsigned char* data;\n  uint64_t length;\n"
           "  size_t pattern_length; /* of data, which is repeated; 0: data has all bytes */\n} "
           "vm_parameter;\n"
           "static const vm_parameter vm_parameters[] = {\n" +
           rows + "};\n";
  }

  // ---- the program

  std::string program() const {
    std::string text = comment() + fmt::format(
                                       "#include \"{}.h\"\n\n#include <errno.h>\n#include <math.h>\n"
                                       "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
                                       options_.name);
    text += fmt::format("typedef {0}_state vm_state;\n", plan_.prefix);
    if (has_tensors())
      text += fmt::format("typedef {}_tensor vm_tensor;\n#define VM_TENSORS\n", plan_.prefix);
    text += fmt::format(
        "{}static const char vm_name[] = {};\n#define vm_init(s, arena, bytes) {}_init(s, arena, "
        "bytes{}{})\n",
        takes_parameters() ? fmt::format("/* Fill in the parameters. */\nstatic const {}_parameter "
                                         "vm_given[] = {{{{NULL, NULL, NULL, 0}}}};\n",
                                         plan_.prefix)
                           : "",
        quoted(options_.name), plan_.prefix,
        takes_parameters() ? ", vm_given, sizeof vm_given / sizeof vm_given[0]" : "",
        has_imports() ? ", NULL" : "");
    text += fmt::format("#ifndef VM_ARENA_BYTES\n#define VM_ARENA_BYTES {}\n#endif\n\n",
                        uses("vm_arena_begin") ? "(256u << 20)" : "16");
    text += uses("vm_arena_begin")
                ? fmt::format("#define vm_arena_was_zero(s) {}_arena_was_zero(s)\n\n", plan_.prefix)
                : "#define vm_arena_was_zero(s) ((void)(s))\n\n";
    text += fmt::format(
        "typedef {} vm_value {{\n  int32_t i32;\n  int64_t i64;\n  float f32;\n  double f64;\n{}}} "
        "vm_value;\n\n"
        "typedef struct vm_function {{\n  const char* name;\n  const char* arguments;\n  const char* "
        "results;\n"
        "  int (*call)(vm_state* s, const vm_value* in, vm_value* out);\n}} vm_function;\n\n",
        "union", has_tensors() ? "  vm_tensor tensor;\n" : "");
    std::string table;
    for (size_t n = 0; n < public_.size(); ++n) {
      text += public_[n].caller(n);
      table += fmt::format("  {{{}, \"{}\", \"{}\", vm_call_{}}},\n", quoted(public_[n].name),
                           public_[n].types.arguments, public_[n].types.results, n);
    }
    text += fmt::format("static const vm_function vm_functions[] = {{\n{}}};\n\n", table);
    return text + main_program();
  }

  const Plan& plan_;
  const std::vector<Kernels>& kernels_;
  const vm::BytecodeModule& module_;
  const Options& options_;
  DataFiles data_;
  std::vector<PublicFunction> public_;
  std::string initializer_;
  size_t results_ = 0;    // the most tensors that a function returns
  size_t constants_ = 0;  // of the host and the kernels
  bool has_recursion_ = false;
  std::vector<WrittenFunction> written_;  // the functions of bytecode
  std::string prototypes_;
  std::string functions_;
  std::string support_;
};

}  // namespace

Result<std::vector<File>> write_dynamic(const Plan& plan, const std::vector<Kernels>& kernels,
                                        const Options& options) {
  return ModuleWriter(plan, kernels, options).write();
}

}  // namespace halyard::aot
