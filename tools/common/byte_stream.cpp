// Reads the bytes of the lookahead first, then from a FILE.
#include "common/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace halyard::tools {

namespace {

constexpr size_t kMinStep = 1 << 16;
constexpr size_t kMaxStep = 1 << 24;

bool is_regular(std::FILE* file) {
  struct stat status = {};
  const int descriptor = ::fileno(file);
  return descriptor < 0 || (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode));
}

}  // namespace

Result<ByteStream> ByteStream::open(const std::string& path) {
  OpenFile file;
  if (path == kStandard) {
    file.reset(::fdopen(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0), "rb"));
    if (!file) return fail(HALYARD_UNAVAILABLE, "cannot read standard input: {}", std::strerror(errno));
  } else {
    file = TOOL_TRY(open_file(path));
  }
  if (path == kStandard || !is_regular(file.get())) std::setvbuf(file.get(), nullptr, _IONBF, 0);
  return ByteStream(path, std::move(file));
}

bool ByteStream::at_end() {
  if (!ahead_.empty()) return false;
  const int next = std::fgetc(file_.get());
  if (next != EOF) ahead_ += static_cast<char>(next);
  return next == EOF;
}

bool ByteStream::begins_with(std::string_view expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (i == ahead_.size()) {
      const int next = std::fgetc(file_.get());
      if (next == EOF) return false;
      ahead_ += static_cast<char>(next);
    }
    if (ahead_[i] != expected[i]) return false;
  }
  return true;
}

Result<std::vector<uint8_t>> ByteStream::read(uint64_t size) {
  if (size > kMaxStreamBytes && !is_regular(file_.get()))
    return fail(HALYARD_RESOURCE_EXHAUSTED,
                "'{}' is not a regular file, but more than {} bytes of it are needed; save it to a regular "
                "file first",
                path_, kMaxStreamBytes);
  const size_t before = std::min<uint64_t>(size, ahead_.size());
  std::vector<uint8_t> bytes(ahead_.begin(), ahead_.begin() + static_cast<ptrdiff_t>(before));
  ahead_.erase(0, before);
  while (bytes.size() < size) {
    const size_t at = bytes.size();
    const size_t step = std::min<uint64_t>(size - at, std::clamp(at, kMinStep, kMaxStep));
    bytes.resize(at + step);
    const size_t count = std::fread(bytes.data() + at, 1, step, file_.get());
    bytes.resize(at + count);
    if (count == step) continue;
    if (std::ferror(file_.get()))
      return fail(HALYARD_UNAVAILABLE, "cannot read '{}': {}; check the path", path_, std::strerror(errno));
    break;
  }
  position_ += bytes.size();
  return bytes;
}

}  // namespace halyard::tools
