// Locates the library by its path, and identifies it by the linker's build id.
#include "front/codegen_library.h"

#include "base/bytes.h"
#include "base/elf_note.h"
#include "base/plugin.h"

namespace halyard::jit {

namespace {

constexpr PluginKind kCodegen = {.what = "code generator",
                                 .abi = "code generator ABI",
                                 .note_type = 0,
                                 .note_size = 0,
                                 .note_macro = "",
                                 .negotiate_symbol = "halyard_jit_codegen",
                                 .export_macro = "for export"};

Result<const halyard_jit_codegen_t*> open_library(const std::string& path) {
  void* const symbol = HALYARD_TRY(open_plugin(path, kCodegen));
  const halyard_jit_codegen_t* const codegen = reinterpret_cast<halyard_jit_codegen_fn>(symbol)();
  if (codegen->abi != HALYARD_JIT_CODEGEN_ABI)
    return fail(Code::INCOMPATIBLE,
                "code generator '{}' belongs to another build of Halyard; install the one of this build",
                path);
  return codegen;
}

}  // namespace

CodegenLibrary::CodegenLibrary() : path_(own_folder() + "/halyard-jit-llvm-codegen.so") {
  const Result<Ref<Bytes>> file = Bytes::map_file(path_);
  if (file) build_id_ = find_build_id((*file)->span());
}

const CodegenLibrary& CodegenLibrary::get() {
  static const CodegenLibrary& library = *new CodegenLibrary;  // not destroyed at exit
  return library;
}

Result<const halyard_jit_codegen_t*> CodegenLibrary::open() const {
  static const Result<const halyard_jit_codegen_t*>& opened =
      *new Result<const halyard_jit_codegen_t*>(open_library(path_));  // not destroyed at exit
  if (!opened) return fail(opened.error().code(), "{}", opened.error().message());
  return *opened;
}

}  // namespace halyard::jit
