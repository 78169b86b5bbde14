// Files as tools take them: a path, or "-" for standard input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

inline constexpr std::string_view kStandard = "-";  // standard input or output

// Of an operation on a file that failed with this errno.
halyard_status_code_t code_of_errno(int error);

// The contents of a file: mapped, or read where that cannot be (a pipe). It must not shrink meanwhile.
class FileContents {
 public:
  static Result<FileContents> open(const std::string& path);

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
