// PrivateFolder: a cache folder. A process keeps files in it for later processes of the same user. A file
// counts as missing unless it is a regular file that this user owns and nobody else may write to; links,
// pipes and devices count as missing. C++20, header only, needs only POSIX, because drivers and compiler
// libraries share no library. Thread-safe, except for the destructor.
#ifndef HALYARD_PRIVATE_FOLDER_HPP_
#define HALYARD_PRIVATE_FOLDER_HPP_

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace halyard {

class PrivateFolder {
 public:
  // Whether the constructor leaves a missing folder missing or creates it with mode 700.
  enum class Missing : uint8_t { stays, is_made };

  // write() first writes a file under a name with this ending, then renames it.
  static constexpr std::string_view kUnfinished = ".unfinished";

  explicit PrivateFolder(const std::string& path, Missing missing = Missing::is_made) {
    if (missing == Missing::is_made) {
      std::error_code error;
      const std::filesystem::path parents = std::filesystem::path(path).parent_path();
      if (!parents.empty()) std::filesystem::create_directories(parents, error);
      ::mkdir(path.c_str(), S_IRWXU);
    }
    folder_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info = {};
    if (folder_ < 0 || ::fstat(folder_, &info) != 0) {
      refusal_ = "folder '" + path + "' cannot be opened: " + std::strerror(errno);
    } else if (!is_ours_alone(info)) {
      refusal_ = "folder '" + path + "' is not used: others own it or may write to it; expected mode 700";
    }
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    if (folder_ >= 0) ::close(folder_);
  }

  // Why the folder is not used; empty if it is used.
  const std::string& refusal() const { return refusal_; }
  int descriptor() const { return folder_; }  // -1 if the folder cannot be opened

  // Returns the whole file. Returns nothing if the file counts as missing or has more than `most` bytes.
  // Never blocks.
  std::optional<std::string> read(const std::string& name, uint64_t most) const {
    if (!refusal_.empty()) return std::nullopt;
    const File file(::openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info = {};
    if (file.number < 0 || ::fstat(file.number, &info) != 0 || !is_private_file(info) ||
        static_cast<uint64_t>(info.st_size) > most)
      return std::nullopt;
    std::string bytes(static_cast<size_t>(info.st_size), '\0');
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::read(file.number, bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return std::nullopt;
      done += static_cast<size_t>(count);
    }
    return bytes;
  }

  // Writes the concatenated parts under another name and renames the file, so that readers see all of it or
  // nothing. Several processes may write at once. If false, nothing has changed and errno has the reason.
  bool write(const std::string& name, std::initializer_list<std::string_view> parts) const {
    if (!refusal_.empty()) {
      errno = EACCES;
      return false;
    }
    static std::atomic<uint64_t> count = 0;
    constexpr int kAttempts = 1000;  // an earlier process with this id may have left files
    std::string unfinished;
    int opened = -1;
    for (int i = 0; opened < 0 && (i == 0 || (errno == EEXIST && i < kAttempts)); ++i) {
      unfinished = std::to_string(::getpid()) + "-" + std::to_string(count++) + std::string(kUnfinished);
      opened =
          ::openat(folder_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    }
    if (opened < 0) return false;
    int error = 0;
    {
      const File file(opened);
      bool written = true;
      for (const std::string_view part : parts) written = written && write_all(file.number, part);
      if (written && ::renameat(folder_, unfinished.c_str(), folder_, name.c_str()) == 0) return true;
      error = errno;
    }
    ::unlinkat(folder_, unfinished.c_str(), 0);
    errno = error;
    return false;
  }

  void remove(const std::string& name) const {
    if (folder_ >= 0) ::unlinkat(folder_, name.c_str(), 0);
  }
  // Sets the file's access and modification times to now.
  void touch(const std::string& name) const {
    if (folder_ >= 0) ::utimensat(folder_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }

  // Whether this is a regular file that this user owns and nobody else may write to.
  static bool is_private_file(const struct stat& info) {
    return S_ISREG(info.st_mode) && is_ours_alone(info);
  }

 private:
  struct File {
    explicit File(int opened) : number(opened) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
      if (number >= 0) ::close(number);
    }
    const int number;
  };

  static bool is_ours_alone(const struct stat& info) {
    return info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  }

  static bool write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  int folder_ = -1;
  std::string refusal_;
};

}  // namespace halyard

#endif  // HALYARD_PRIVATE_FOLDER_HPP_
