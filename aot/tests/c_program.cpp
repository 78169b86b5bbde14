#include "c_program.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "aot/translate.h"

namespace halyard::aot::test {

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

constexpr size_t kArenaBytes = 64 << 20;

const char* c_type(char type) {
  return type == 'i' ? "int32_t" : type == 'I' ? "int64_t" : type == 'f' ? "float" : "double";
}

// For each function n, a function test_n that takes and gives bits.
std::string callers(const std::vector<Signature>& functions) {
  std::string text =
      "int test_begin(void* s, void* arena, size_t bytes);\n"
      "int test_begin(void* s, void* arena, size_t bytes) {\n  return m_init((m_state*)s, arena, bytes);\n}\n"
      "size_t test_state(void);\nsize_t test_state(void) {\n  return sizeof(m_state);\n}\n";
  for (size_t n = 0; n < functions.size(); ++n) {
    const std::string prototype = fmt::format("int test_{}(void* s, const uint64_t* in, uint64_t* out)", n);
    text += fmt::format("{};\n{} {{\n  (void)in;\n  (void)out;\n", prototype, prototype);
    std::string call = fmt::format("m_f{}((m_state*)s", n);
    std::string results;
    for (size_t i = 0; i < functions[n].arguments.size(); ++i) {
      text += fmt::format("  {0} a{1};\n  memcpy(&a{1}, &in[{1}], sizeof a{1});\n",
                          c_type(functions[n].arguments[i]), i);
      call += fmt::format(", a{}", i);
    }
    for (size_t i = 0; i < functions[n].results.size(); ++i) {
      text += fmt::format("  {} r{} = 0;\n", c_type(functions[n].results[i]), i);
      call += fmt::format(", &r{}", i);
      results += fmt::format("  out[{0}] = 0;\n  memcpy(&out[{0}], &r{0}, sizeof r{0});\n", i);
    }
    text += fmt::format("  const int status = {});\n{}  return status;\n}}\n", call, results);
  }
  return text;
}

}  // namespace

std::vector<std::string> compilers() {
  std::vector<std::string> found;
  for (const char* name : {"gcc", "clang-19"})
    if (std::system(fmt::format("command -v {} >/dev/null", name).c_str()) == 0) found.emplace_back(name);
  return found;
}

CProgram::CProgram(const std::vector<uint8_t>& module, const std::string& compiler,
                   const std::string& options, const std::vector<Signature>& functions) {
  const auto files = translate(module, {.name = "m"});
  if (!files) {
    error_ = files.error().text;
    return;
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "halyard-aot-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  for (const File& file : *files) std::ofstream(folder_ / file.name) << file.text;
  std::ofstream(folder_ / "m.c", std::ios::app) << callers(functions);
  const std::string command = fmt::format(
      "cd {} && {} -std=c11 -Wall -Wextra -Wconversion -pedantic -Werror {} -shared -fPIC m.c -o m.so -lm "
      "2> messages",
      folder_.string(), compiler, options);
  if (std::system(command.c_str()) != 0) {
    error_ = contents(folder_ / "messages");
    return;
  }
  library_ = dlopen((folder_ / "m.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    error_ = dlerror();
    return;
  }
  state_.resize(reinterpret_cast<size_t (*)()>(symbol("test_state"))() / sizeof(uint64_t) + 1);
  arena_.resize(kArenaBytes / sizeof(uint64_t));
  const auto begin = reinterpret_cast<int (*)(void*, void*, size_t)>(symbol("test_begin"));
  if (begin(state_.data(), arena_.data(), kArenaBytes) != 0) error_ = "init fails";
}

CProgram::~CProgram() {
  if (library_) dlclose(library_);
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

int CProgram::call(size_t function, const uint64_t* in, uint64_t* out) {
  const auto called =
      reinterpret_cast<int (*)(void*, const uint64_t*, uint64_t*)>(symbol(fmt::format("test_{}", function)));
  return called(state_.data(), in, out);
}

void* CProgram::symbol(const std::string& name) const { return dlsym(library_, name.c_str()); }

}  // namespace halyard::aot::test
