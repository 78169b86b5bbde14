// PrivateFolder: files that a process keeps for later ones of the same user, and trusts when it reads them
// again: caches. Another user's file, one that others may write to, a link, a pipe or a device in its place
// counts as missing. In C++20, header only, over POSIX alone; for drivers and compiler libraries, which share
// no library. Every member but the destructor may be called by several threads.
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
  enum class Missing : uint8_t { stays, is_made };  // with mode 700

  // The ending of names under which files are written before they are renamed.
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

  // Why nothing is read from it or written to it; empty: it is used.
  const std::string& refusal() const { return refusal_; }
  int descriptor() const { return folder_; }  // -1: it cannot be opened

  // The whole file. Nothing where there is none, where it has more than `most` bytes, or where others could
  // have put it there. Never waits.
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

  // Writes the parts, one after the other, under another name and renames it, so who reads sees all of it or
  // nothing. Several processes may do so at once. False: nothing has changed, and errno says why.
  bool write(const std::string& name, std::initializer_list<std::string_view> parts) const {
    if (!refusal_.empty()) {
      errno = EACCES;
      return false;
    }
    static std::atomic<uint64_t> count = 0;
    constexpr int kAttempts = 1000;  // a process of the same number may have left its own
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
  // Notes that the file was used now.
  void touch(const std::string& name) const {
    if (folder_ >= 0) ::utimensat(folder_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }

  // A regular file of this user, that nobody else may write to.
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
