// A path is opened part by part, each below the folder that was opened before and never through a symbolic
// link, so nothing that is renamed or exchanged meanwhile leads outside.
#include "server/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace halyard::device_server {

namespace {

using remote::Descriptor;

constexpr size_t kLongestPath = 4096;  // bytes
constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// O_NONBLOCK: the name of a pipe must not wait for its other end.
constexpr int kFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

std::string error_of(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

Result<std::vector<std::string>> parts_of(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || path.find('\0') != std::string_view::npos)
    return fail(Code::INVALID_ARGUMENT, "expected a path of 1 to {} bytes, found {}", kLongestPath,
                path.size());
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..")
      return fail(Code::INVALID_ARGUMENT, "expected a path below a folder without '.', '..' and empty parts");
    parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

// -1: there is no such file.
Descriptor open_below(int folder, const std::vector<std::string>& parts) {
  Descriptor place;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    place = Descriptor(::openat(i == 0 ? folder : place.get(), parts[i].c_str(), kFolder));
    if (place.get() < 0) return place;
  }
  Descriptor file(::openat(parts.size() == 1 ? folder : place.get(), parts.back().c_str(), kFile));
  struct stat found = {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return Descriptor();
  return file;
}

}  // namespace

Result<Files> Files::create(const std::vector<std::string>& folders) {
  Files files;
  for (const std::string& folder : folders) {
    Descriptor opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (opened.get() < 0)
      return fail(errno == EACCES ? Code::PERMISSION_DENIED : Code::NOT_FOUND,
                  "cannot offer the files of folder '{}': {}", folder, error_of(errno));
    files.folders_.push_back(std::move(opened));
  }
  return files;
}

Result<> Files::read(std::string_view path, uint64_t offset, uint64_t size, const Sink& sink) const {
  const std::vector<std::string> parts = HALYARD_TRY(parts_of(path));
  for (const Descriptor& folder : folders_) {
    const Descriptor file = open_below(folder.get(), parts);
    if (file.get() < 0) continue;
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0 || static_cast<uint64_t>(found.st_size) < size ||
        offset > static_cast<uint64_t>(found.st_size) - size)
      return fail(Code::OUT_OF_RANGE, "a file has {} bytes, fewer than {} from byte {} on", found.st_size,
                  size, offset);
    std::vector<uint8_t> piece(std::min<uint64_t>(size, 1 << 20));
    for (uint64_t done = 0; done < size;) {
      const ssize_t count = ::pread(file.get(), piece.data(), std::min<uint64_t>(piece.size(), size - done),
                                    static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return fail(Code::OUT_OF_RANGE, "a file has become shorter, or cannot be read");
      HALYARD_TRY(sink(std::span(piece).first(static_cast<size_t>(count))));
      done += static_cast<uint64_t>(count);
    }
    return {};
  }
  return fail(Code::NOT_FOUND, "no folder of --files has such a file");
}

}  // namespace halyard::device_server
