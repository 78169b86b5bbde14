// Where bytes of this process come from: a mapped file below a folder that the server has as well.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace halyard::remote {

struct FilePlace {
  std::string path;     // below the folder
  uint64_t offset = 0;  // of the bytes
};

// `folder`: without symbolic links, as the kernel names files. None: the bytes are not those of one mapped
// file below it.
std::optional<FilePlace> file_place_of(std::span<const uint8_t> bytes, const std::string& folder);

}  // namespace halyard::remote
