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

}  // namespace

std::vector<std::string> compilers() {
  std::vector<std::string> found;
  for (const char* name : {"gcc", "clang-19"})
    if (std::system(fmt::format("command -v {} >/dev/null", name).c_str()) == 0) found.emplace_back(name);
  return found;
}

CProgram::CProgram(const std::vector<uint8_t>& module, const std::string& compiler,
                   const std::string& options, const std::string& extra) {
  const auto files = translate(module, {.name = "m"});
  if (!files) {
    error_ = files.error().text;
    return;
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "halyard-aot-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  for (const File& file : *files) std::ofstream(folder_ / file.name) << file.text;
  std::ofstream(folder_ / "m.c", std::ios::app) << extra;
  const std::string command = fmt::format(
      "cd {} && {} -std=c11 -Wall -Wextra -Wconversion -pedantic -Werror {} -shared -fPIC m.c -o m.so -lm "
      "2> messages",
      folder_.string(), compiler, options);
  if (std::system(command.c_str()) != 0) {
    error_ = contents(folder_ / "messages");
    return;
  }
  library_ = dlopen((folder_ / "m.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) error_ = dlerror();
}

CProgram::~CProgram() {
  if (library_) dlclose(library_);
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

void* CProgram::symbol(const std::string& name) const { return dlsym(library_, name.c_str()); }

}  // namespace halyard::aot::test
