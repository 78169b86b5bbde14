// Files as tools take them: a path, or "-" for standard input.
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

// What is read of a pipe, of standard input or of another file whose end is not known, at most: bytes.
inline constexpr size_t kMostOfAStream = size_t{1} << 30;

// Of an operation on a file that failed with this errno.
halyard_status_code_t code_of_errno(int error);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;
// For reading. As the system says, INVALID_ARGUMENT: a folder; the message names the path.
Result<OpenFile> open_file(const std::string& path);

// The contents of a file: mapped, or read where that cannot be (a pipe). It must not shrink meanwhile.
class FileContents {
 public:
  // As open_file(). RESOURCE_EXHAUSTED: what is not mapped gives more than kMostOfAStream. `kind` stands
  // before the path in messages: "flag file ".
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

// As the system says; the message names the path.
Result<> write_file(const std::string& path, bool append, std::span<const uint8_t> bytes);

}  // namespace halyard::tools
