// Files named on a command line: a path, or "-" for standard input.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

inline constexpr std::string_view kStandard = "-";  // standard input or output

// The maximum number of bytes that are read from a pipe, standard input or another file of unknown size.
inline constexpr size_t kMaxStreamBytes = size_t{1} << 30;

// The status code for a failed file operation with this errno.
halyard_status_code_t code_of_errno(int error);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;
// Opens a file for reading. Fails with code_of_errno(). INVALID_ARGUMENT: a folder. The message names the
// path.
Result<OpenFile> open_file(const std::string& path);

// The contents of a file, mapped or, if it cannot be mapped (a pipe), read. The file must not shrink
// meanwhile.
class FileContents {
 public:
  // Fails like open_file(). RESOURCE_EXHAUSTED: the file has more than kMaxStreamBytes bytes. `kind` precedes
  // the path in messages: "flag file ".
  static Result<FileContents> open(const std::string& path, std::string_view kind = "");

  FileContents(FileContents&& other) noexcept;
  FileContents& operator=(FileContents&&) = delete;
  ~FileContents();

  std::span<const uint8_t> bytes() const;
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes().data()), bytes().size()}; }

 private:
  FileContents() = default;

  void* mapped_ = nullptr;
  size_t mapped_size_ = 0;
  std::string read_;
};

// Fails with code_of_errno(); the message names the path.
Result<> write_file(const std::string& path, bool append, std::span<const uint8_t> bytes);

}  // namespace halyard::tools
