#include "emit/emitter.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "base/plugin.h"
#include "vm/decode/words.h"

namespace halyard::aot {

namespace {

namespace fs = std::filesystem;

constexpr char kEmitterFile[] = "halyard-emit-llvm.so";
[[maybe_unused]] constexpr PluginKind kEmitterPlugin = {.what = "compiler of kernels",
                                                        .abi = "ABI of such compilers",
                                                        .note_type = HALYARD_NOTE_TYPE_EMITTER,
                                                        .note_size = sizeof(halyard_jit_note_t),
                                                        .note_macro = "a record of halyard_jit_note_t",
                                                        .negotiate_symbol = "halyard_emit",
                                                        .export_macro = "for export"};

#ifdef HALYARD_NO_LOADER  // a static build: the only code is the program's
Result<halyard_emit_fn> look_for_emitter() {
  return fail(Code::UNIMPLEMENTED,
              "this program is static and cannot load '{}'; use the vm-cc of an ordinary build",
              kEmitterFile);
}
#else
// Beside the drivers' folder: below the folder of libhalyard.so or, in a build folder, of the programs.
std::vector<fs::path> emitter_places() {
  std::vector<fs::path> places;
  Dl_info info = {};
  const void* const anchor = ::dlsym(RTLD_DEFAULT, "halyard_version");
  std::error_code error;
  if (anchor && ::dladdr(anchor, &info) != 0 && info.dli_fname)
    places.push_back(fs::canonical(info.dli_fname, error).parent_path() / "halyard" / kEmitterFile);
  if (const fs::path own = own_folder(); !own.empty())
    places.push_back((own / ".." / "lib" / "halyard" / kEmitterFile).lexically_normal());
  return places;
}

Result<halyard_emit_fn> look_for_emitter() {
  for (const fs::path& place : emitter_places()) {
    std::error_code error;
    if (!fs::is_regular_file(place, error)) continue;
    const auto note = HALYARD_TRY(read_note<halyard_jit_note_t>(place.string(), kEmitterPlugin));
    const uint64_t format = note.code_format[0] | uint64_t{note.code_format[1]} << 32;
    if (note.abi != HALYARD_EMIT_ABI || format != vm::kCodeFormat)
      return fail(Code::INCOMPATIBLE, "'{}' is of another build of Halyard; install the one of this build",
                  place.string());
    void* const symbol = HALYARD_TRY(open_plugin(place.string(), kEmitterPlugin));
    return reinterpret_cast<halyard_emit_fn>(symbol);
  }
  std::string looked_at;
  for (const fs::path& place : emitter_places())
    looked_at += (looked_at.empty() ? "'" : ", '") + place.string() + "'";
  return fail(
      Code::NOT_FOUND,
      "no compiler of kernels '{}' (searched {}); install the package halyard-emit, or build Halyard where "
      "llvm-19-dev and liblld-19-dev are installed",
      kEmitterFile, looked_at);
}
#endif

}  // namespace

Result<halyard_emit_fn> open_emitter() {
  static const Result<halyard_emit_fn>& found = *new Result<halyard_emit_fn>(look_for_emitter());
  if (!found) return fail(found.error().code(), "{}", found.error().message());
  return *found;
}

}  // namespace halyard::aot
