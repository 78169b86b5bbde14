#include "common/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/descriptor.h"

namespace halyard::tools {

namespace {

std::unexpected<Failure> cannot(std::string_view what, const std::string& path, std::string_view kind = "") {
  const int error = errno;
  if (error == EISDIR)
    return fail(HALYARD_INVALID_ARGUMENT, "{}'{}' is a folder; expected a file", kind, path);
  return fail(code_of_errno(error), "cannot {} {}'{}': {}; check the path", what, kind, path,
              std::strerror(error));
}

}  // namespace

halyard_status_code_t code_of_errno(int error) {
  if (error == ENOENT || error == ENOTDIR) return HALYARD_NOT_FOUND;
  if (error == EACCES || error == EPERM || error == EROFS) return HALYARD_PERMISSION_DENIED;
  if (error == EISDIR || error == ENAMETOOLONG || error == ELOOP) return HALYARD_INVALID_ARGUMENT;
  return HALYARD_UNAVAILABLE;
}

Result<OpenFile> open_file(const std::string& path) {
  OpenFile file(std::fopen(path.c_str(), "rbe"));
  if (!file) return cannot("open", path);
  struct stat status = {};
  if (::fstat(::fileno(file.get()), &status) != 0) return cannot("read", path);
  if (S_ISDIR(status.st_mode)) errno = EISDIR;
  if (S_ISDIR(status.st_mode)) return cannot("read", path);
  return file;
}

Result<FileContents> FileContents::open(const std::string& path, std::string_view kind) {
  const Descriptor file(path == kStandard ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return cannot("open", path, kind);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return cannot("read", path, kind);
  FileContents contents;
  if (S_ISREG(status.st_mode) && status.st_size > 0 && path != kStandard) {
    const auto size = static_cast<size_t>(status.st_size);
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapped != MAP_FAILED) {
      contents.mapped_ = mapped;
      contents.mapped_size_ = size;
      return contents;
    }
  }
  char block[1 << 16];
  for (;;) {
    const ssize_t size = ::read(file.get(), block, sizeof block);
    if (size == 0) return contents;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return cannot("read", path, kind);
    if (static_cast<size_t>(size) > kMaxStreamBytes - contents.read_.size())
      return fail(HALYARD_RESOURCE_EXHAUSTED,
                  "{}'{}' has more than {} bytes and is not a regular file; save it to a regular file first",
                  kind, path, kMaxStreamBytes);
    contents.read_.append(block, static_cast<size_t>(size));
  }
}

FileContents::FileContents(FileContents&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_size_(other.mapped_size_),
      read_(std::move(other.read_)) {}

FileContents::~FileContents() {
  if (mapped_) ::munmap(mapped_, mapped_size_);
}

std::span<const uint8_t> FileContents::bytes() const {
  if (mapped_) return {static_cast<const uint8_t*>(mapped_), mapped_size_};
  return {reinterpret_cast<const uint8_t*>(read_.data()), read_.size()};
}

namespace {

std::unexpected<Failure> cannot_write(const std::string& path) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT;
  return fail(code_of_errno(error), "cannot write '{}': {}; {}", path, std::strerror(error),
              full ? "free space there, or choose another folder" : "check the path");
}

}  // namespace

Result<> write_file(const std::string& path, bool append, std::span<const uint8_t> bytes) {
  OpenFile file(std::fopen(path.c_str(), append ? "abe" : "wbe"));
  if (!file) return cannot_write(path);
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size())
    return cannot_write(path);
  if (std::fclose(file.release()) != 0) return cannot_write(path);
  return {};
}

}  // namespace halyard::tools
