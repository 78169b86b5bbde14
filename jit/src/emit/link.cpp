// LLD reads and writes files, so the objects are in a folder of their own for a moment.
#include "emit/link.h"

#include <lld/Common/Driver.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <vector>

LLD_HAS_DRIVER(elf)

namespace halyard::jit {

namespace {

llvm::Error failed(const llvm::Twine& text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

class LinkFolder {
 public:
  LinkFolder() { error_ = llvm::sys::fs::createUniqueDirectory("halyard-emit", path_); }
  LinkFolder(const LinkFolder&) = delete;
  LinkFolder& operator=(const LinkFolder&) = delete;
  ~LinkFolder() {
    if (!error_) llvm::sys::fs::remove_directories(path_);
  }
  std::error_code error() const { return error_; }
  std::string file(const llvm::Twine& name) const {
    llvm::SmallString<128> path = path_;
    llvm::sys::path::append(path, name);
    return std::string(path);
  }

 private:
  llvm::SmallString<128> path_;
  std::error_code error_;
};

}  // namespace

llvm::Expected<std::string> link(std::span<const std::unique_ptr<llvm::MemoryBuffer>> objects) {
  const LinkFolder folder;
  if (folder.error()) return failed("no folder for temporary files: " + folder.error().message());
  const std::string output = folder.file("library.so");
  // As exec-cpu-library.md, section 9, describes what compilers make.
  std::vector<std::string> arguments = {
      "ld.lld",        "-shared",   "-nostdlib",   "--no-undefined",    "-z",
      "now",           "-z",        "relro",       "--hash-style=sysv", "--build-id=none",
      "--gc-sections", "--icf=all", "--strip-all", "--threads=1",       "-o",
      output};
  for (size_t i = 0; i < objects.size(); ++i) {
    const std::string path = folder.file(llvm::Twine(i) + ".o");
    std::error_code error;
    llvm::raw_fd_ostream file(path, error);
    if (!error) file << objects[i]->getBuffer();
    file.close();
    if (error || file.has_error())
      return failed("cannot write '" + path + "': " + (error ? error : file.error()).message());
    arguments.push_back(path);
  }
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  std::string text;
  llvm::raw_string_ostream messages(text);
  const lld::Result result = lld::lldMain(pointers, messages, messages, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) return failed(text.substr(0, text.find('\n')));
  const auto library =
      llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!library) return failed("cannot read '" + output + "': " + library.getError().message());
  return (*library)->getBuffer().str();
}

}  // namespace halyard::jit
