// Loads the compiler library, and converts decoded code to the compiler's input.
#include "vm/compile/compiler.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/object.h"
#include "base/plugin.h"
#include "vm/compile/helpers.h"
#include "vm/decode/frame.h"
#include "vm/decode/jit_description.h"
#include "vm/decode/words.h"
#include "vm/module/bytecode_module.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/object/offset.h"

namespace halyard::vm {

namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "halyard-jit-llvm.so";
constexpr char kCodegenFile[] = "halyard-jit-llvm-codegen.so";  // beside it
constexpr PluginKind kCompilerPlugin = {.what = "compiler",
                                        .abi = "compiler ABI",
                                        .note_type = HALYARD_NOTE_TYPE_COMPILER,
                                        .note_size = sizeof(halyard_jit_note_t),
                                        .note_macro = "a record of halyard_jit_note_t",
                                        .negotiate_symbol = "halyard_jit_negotiate",
                                        .export_macro = "for export"};
constexpr size_t kReasonBytes = 256;

// The possible paths of the compiler, relative to libhalyard, a driver, or a program in the build folder.
std::vector<std::string> places() {
  const fs::path own = own_folder();
  if (own.empty()) return {};
  std::vector<std::string> found;
  for (const fs::path& place :
       {own / "halyard" / kFile, own / ".." / kFile, own / ".." / "lib" / "halyard" / kFile})
    found.push_back(place.lexically_normal().string());
  return found;
}

void put_ref(void** slot, void* object) { release(static_cast<Object*>(std::exchange(*slot, object))); }

// The offset of the type pointer in every object. Found by a search, because the field is private.
uint32_t type_offset() {
  const Ref<Buffer> buffer = Buffer::wrap({}, false, {});
  return offset_of_pointer(buffer.get(), &Buffer::kType);
}

const halyard_jit_layout_t& layout() {
  static const halyard_jit_layout_t layout = [] {
    const Buffer::Layout buffer = Buffer::layout();
    const List::Layout list = List::layout();
    return halyard_jit_layout_t{.object_type = type_offset(),
                                .buffer_data = buffer.data,
                                .buffer_length = buffer.length,
                                .buffer_mutable_length = buffer.mutable_length,
                                .buffer_written = buffer.written,
                                .list_element = list.element,
                                .list_size = list.size,
                                .list_data = list.data,
                                .frame_bytes = sizeof(Frame),
                                .frame_code = offsetof(Frame, code),
                                .frame_instance = offsetof(Frame, instance),
                                .frame_call = offsetof(Frame, call),
                                .frame_caller_bytes = offsetof(Frame, caller_bytes),
                                .code_words = FunctionCode::words_offset()};
  }();
  return layout;
}

halyard_jit_host_t host() {
  const std::span<const void* const> helpers = compiled_helpers();
  return {.struct_size = sizeof(halyard_jit_host_t),
          .put_ref = put_ref,
          .buffer_type = &Buffer::kType,
          .list_type = &List::kType,
          .helpers = helpers.data(),
          .helper_count = helpers.size()};
}

}  // namespace

Result<Compiler::Description> Compiler::look_for() {
  std::string looked_at;
  for (const std::string& path : places()) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
      looked_at += fmt::format("{}'{}'", looked_at.empty() ? "" : ", ", path);
      continue;
    }
    const auto note = HALYARD_TRY(read_note<halyard_jit_note_t>(path, kCompilerPlugin));
    const uint64_t format = note.code_format[0] | uint64_t{note.code_format[1]} << 32;
    if (note.abi != HALYARD_JIT_ABI || format != kCodeFormat)
      return fail(
          Code::INCOMPATIBLE,
          "compiler '{}' belongs to another build of Halyard (compiler ABI {}, this Halyard has {}{}); "
          "install the one of this build",
          path, note.abi, int{HALYARD_JIT_ABI},
          note.abi == HALYARD_JIT_ABI ? ", and another format of decoded code" : "");
    if (const fs::path codegen = fs::path(path).replace_filename(kCodegenFile); !fs::exists(codegen, error))
      return fail(Code::NOT_FOUND,
                  "compiler '{}' has no code generator: '{}' is missing; install it, or everything is "
                  "interpreted",
                  path, codegen.string());
    return Description{std::string(padded_text(note.compiler)), path};
  }
  return fail(Code::NOT_FOUND, "no compiler '{}' found (searched {}); everything is interpreted", kFile,
              looked_at);
}

Result<const Compiler::Description*> Compiler::describe() {
  static const Result<Description>& found = *new Result<Description>(look_for());  // not destroyed at exit
  if (!found) return fail(found.error().code(), "{}", found.error().message());
  return &*found;
}

Result<Compiler> Compiler::open(const std::string& path) {
  void* const symbol = HALYARD_TRY(open_plugin(path, kCompilerPlugin));
  const halyard_jit_request_t request = {sizeof request, HALYARD_JIT_ABI, kCodeFormat};
  halyard_jit_reply_t reply = {};
  reply.struct_size = sizeof reply;
  if (reinterpret_cast<halyard_jit_negotiate_fn>(symbol)(&request, &reply) == 0 || !reply.table)
    return fail(Code::INCOMPATIBLE, "compiler '{}' refuses this host: {}; install the one of this build",
                path, padded_text(reply.refusal));
  constexpr PluginKind kExplains = [] {
    PluginKind kind = kCompilerPlugin;
    kind.negotiate_symbol = "halyard_jit_explain";
    return kind;
  }();
  Compiler compiler;
  compiler.explain_ = reinterpret_cast<halyard_jit_explain_fn>(HALYARD_TRY(open_plugin(path, kExplains)));
  compiler.table_ = reply.table;
  return compiler;
}

Result<const Compiler*> Compiler::find() {
  const Description& description = *HALYARD_TRY(describe());
  // Not destroyed at exit.
  static const Result<Compiler>& found = *new Result<Compiler>(open(description.path));
  if (!found) return fail(found.error().code(), "{}", found.error().message());
  return &*found;
}

halyard_jit_stats_t Compiler::stats() {
  halyard_jit_stats_t stats = {};
  stats.struct_size = sizeof stats;
  for (const std::string& path : places()) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library) continue;
    ::dlclose(library);  // balances the dlopen() above; the library stays loaded
    if (const Result<const Compiler*> found = find()) (*found)->table_->stats(&stats);
    break;
  }
  return stats;
}

bool calls_itself(const FunctionCode& code) {
  return code.has_convention && code.ref_slots == 0 && !code.words.empty() &&
         code.words[0].op == static_cast<uint16_t>(DecodedOp::enter_compiled) &&
         std::ranges::any_of(code.calls, [&](const CallSite& site) {
           return is_own_call(code.function, code.arguments.size(), code.result_count, site);
         });
}

namespace {

// A function as a compiler of this process gets it; refers to `code` and `name`.
halyard_jit_function_t described_here(const FunctionCode& code, const std::string& name, bool fast_math) {
  halyard_jit_function_t function = described(code, name.c_str());
  function.fast_math = fast_math ? 1u : 0u;
  function.own_calls = calls_itself(code) ? 1u : 0u;
  function.kept_nans = kept_nans();
  function.layout = &layout();
  return function;
}

std::string name_of(const FunctionCode& code) {
  return fmt::format("{}.{}", code.module->name(), code.module->function_name(code.function));
}

std::unexpected<Status> stays_interpreted(const std::string& name, const char (&reason)[kReasonBytes]) {
  return fail(Code::UNIMPLEMENTED, "function '{}' stays interpreted: {}", name, padded_text(reason));
}

}  // namespace

Result<CompiledFunction> Compiler::compile(const FunctionCode& code, const Options& options) const {
  const std::string name = name_of(code);
  halyard_jit_function_t function = described_here(code, name, options.fast_math);
  function.cached_only = options.cached_only;
  const halyard_jit_host_t host = vm::host();
  halyard_jit_code_t made = {};
  made.struct_size = sizeof made;
  char reason[kReasonBytes] = {};
  if (table_->compile(&function, &host, options.cache.empty() ? nullptr : options.cache.c_str(), &made,
                      reason, sizeof reason) == 0)
    return stays_interpreted(name, reason);
  return CompiledFunction(made.run, made.handle, table_->release);
}

Result<Compiler::Explanation> Compiler::explain(const FunctionCode& code) const {
  const std::string name = name_of(code);
  const halyard_jit_function_t function = described_here(code, name, /*fast_math=*/false);
  Explanation explanation;
  const halyard_jit_explanation_t takers = {
      .struct_size = sizeof takers,
      .user = &explanation,
      .take_ir = [](void* user, const char* text,
                    size_t size) { static_cast<Explanation*>(user)->ir.assign(text, size); },
      .take_assembly = [](void* user, const char* text,
                          size_t size) { static_cast<Explanation*>(user)->assembly.assign(text, size); }};
  char reason[kReasonBytes] = {};
  if (explain_(&function, &takers, reason, sizeof reason) == 0) return stays_interpreted(name, reason);
  return explanation;
}

}  // namespace halyard::vm
