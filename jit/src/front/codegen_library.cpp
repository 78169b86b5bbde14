// The build is the linker's: the note NT_GNU_BUILD_ID, which is a digest of the library's contents.
#include "front/codegen_library.h"

#include <elf.h>

#include <cstring>
#include <optional>
#include <span>

#include "base/bytes.h"
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

template <typename T>
std::optional<T> read_at(std::span<const uint8_t> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The build in the notes of one segment.
std::string build_id_in(std::span<const uint8_t> notes) {
  const auto padded = [](uint64_t size) { return (size + 3) & ~uint64_t{3}; };
  for (uint64_t at = 0;;) {
    const auto note = read_at<Elf64_Nhdr>(notes, at);
    if (!note) return {};
    const uint64_t description = at + sizeof *note + padded(note->n_namesz);
    if (description > notes.size() || note->n_descsz > notes.size() - description) return {};
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof ELF_NOTE_GNU)
      return {reinterpret_cast<const char*>(notes.data()) + description, note->n_descsz};
    at = description + padded(note->n_descsz);
  }
}

std::string build_id_of(std::span<const uint8_t> file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header) return {};
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return {};
    if (segment->p_type != PT_NOTE || segment->p_offset > file.size() ||
        segment->p_filesz > file.size() - segment->p_offset)
      continue;
    std::string found = build_id_in(file.subspan(segment->p_offset, segment->p_filesz));
    if (!found.empty()) return found;
  }
  return {};
}

Result<const halyard_jit_codegen_t*> open_library(const std::string& path) {
  void* const symbol = HALYARD_TRY(open_plugin(path, kCodegen));
  const halyard_jit_codegen_t* const codegen = reinterpret_cast<halyard_jit_codegen_fn>(symbol)();
  if (codegen->abi != HALYARD_JIT_CODEGEN_ABI)
    return fail(Code::INCOMPATIBLE,
                "code generator '{}' is of another build of Halyard; install the one of the same build",
                path);
  return codegen;
}

}  // namespace

CodegenLibrary::CodegenLibrary() : path_(own_folder() + "/halyard-jit-llvm-codegen.so") {
  const Result<Ref<Bytes>> file = Bytes::map_file(path_);
  if (file) build_id_ = build_id_of((*file)->span());
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
