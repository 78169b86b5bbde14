// The compiler of functions in the C ABI.
#include "vm/compile/compiler.h"

#include <deque>

#include "handles.h"
#include "inspection.h"
#include "vm/decode/code.h"
#include "vm/decode/words.h"

namespace halyard::c {

namespace {

// Explains the functions of one module with the given name, or all functions. Adds their number to `found`.
Result<> explain_functions(const vm::Compiler& compiler, const vm::ModuleView& view, const char* wanted,
                           std::string& text, size_t& found) {
  const vm::BytecodeModule& module = view.module();
  std::deque<std::string> made_up;
  const std::vector<std::string_view> names = view.function_names(made_up);
  for (uint32_t i = 0; i < names.size(); ++i) {
    if (wanted && names[i] != wanted) continue;
    ++found;
    text += fmt::format("{}; {}.{}: ", text.empty() ? "" : "\n", module.name(), names[i]);
    if (const Result<> verified = view.verify(i); !verified) {
      text += fmt::format("cannot run: {}\n", verified.error().text());
      continue;
    }
    const std::unique_ptr<vm::FunctionCode> code =
        HALYARD_TRY(vm::decode_function(module, i, {.fuse = false, .entries = vm::Entries::calls}));
    const Result<vm::Compiler::Explanation> explained = compiler.explain(*code);
    if (!explained) {
      text += fmt::format("{}\n", explained.error().message());
      continue;
    }
    size_t entries = 0;
    for (uint32_t at = 0; at < code->words.size(); at += vm::word_count(code->words[at]))
      entries += code->words[at].op == static_cast<uint16_t>(vm::DecodedOp::enter_compiled);
    text += fmt::format(
        "compiled{}; {} words, {} entries\n\n; LLVM's representation\n{}\n# assembly\n{}",
        code->has_compiled_loop || vm::calls_itself(*code)
            ? ""
            : " with jit=always; with jit=auto interpreted, because no loop is compiled as a whole",
        code->words.size(), entries, explained->ir, explained->assembly);
  }
  return {};
}

}  // namespace

}  // namespace halyard::c

halyard_status_t halyard_compiler_stats(halyard_compiler_stats_t* stats) {
  return halyard::guarded([&]() -> halyard::Result<> {
    const halyard_jit_stats_t now = halyard::vm::Compiler::stats();
    halyard_compiler_stats_t given = {};
    given.functions = now.functions;
    given.cached = now.cached;
    given.refused = now.refused;
    given.compile_ns = now.nanoseconds;
    given.object_bytes = now.object_bytes;
    return halyard::c::fill_info(stats, given, "stats");
  });
}

halyard_status_t halyard_compiler_find(const char** name, const char** path) {
  return halyard::guarded([&]() -> halyard::Result<> {
    const auto* const compiler = HALYARD_TRY(halyard::vm::Compiler::describe());
    if (name) *name = compiler->name.c_str();
    if (path) *path = compiler->path.c_str();
    return {};
  });
}

halyard_status_t halyard_compiler_explain(const void* data, size_t size, const char* function, char** out,
                                          size_t* out_size) {
  using namespace halyard::c;
  return halyard::guarded([&]() -> halyard::Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_array(data, size, "bytes", "data"));
    const halyard::vm::Compiler* const compiler = HALYARD_TRY(halyard::vm::Compiler::find());
    const Inspection inspection =
        HALYARD_TRY(inspect(halyard::Bytes::borrow({static_cast<const uint8_t*>(data), size}, {})));
    std::string text;
    size_t found = 0;
    HALYARD_TRY(explain_functions(*compiler, inspection.view, function, text, found));
    for (const Executable& executable : inspection.executables)
      if (executable.module)
        HALYARD_TRY(explain_functions(*compiler, *executable.module, function, text, found));
    if (function && found == 0)
      return halyard::fail(
          halyard::Code::NOT_FOUND,
          "no function or kernel of module '{}' has the name '{}'; its disassembly shows their names",
          inspection.view.module().name(), function);
    give_text(text, out, out_size);
    return {};
  });
}
