// FileFields: reads the fields of an untrusted file in sequence, with bounds checks. Every error names the
// file and the byte offset.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace halyard::modules {

class FileFields {
 public:
  FileFields(std::span<const uint8_t> bytes, std::string_view path) : bytes_(bytes), path_(path) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  // Reads the next field, little endian. OUT_OF_RANGE: past the end of the file.
  template <typename T>
  Result<T> next(std::string_view what) {
    const std::span<const uint8_t> found = HALYARD_TRY(take(sizeof(T), what));
    T value;
    std::memcpy(&value, found.data(), sizeof value);
    return value;
  }
  Result<std::span<const uint8_t>> take(uint64_t size, std::string_view what) {
    if (size > left())
      return error(Code::OUT_OF_RANGE, "{} has {} bytes but {} are left; the file is damaged or was cut off",
                   what, size, left());
    const auto found = bytes_.subspan(position_, size);
    position_ += size;
    return found;
  }

  template <typename... Args>
  std::unexpected<Status> error(Code code, fmt::format_string<Args...> format, Args&&... args) const {
    return fail(code, "parameter file '{}', byte {}: {}", path_, position_,
                fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::span<const uint8_t> bytes_;
  std::string_view path_;
  uint64_t position_ = 0;
};

}  // namespace halyard::modules
