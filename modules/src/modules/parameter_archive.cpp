// The .irpa reader. Every number of the file is checked before use. Reading takes linear time even for
// hostile files, because each header is after the previous one, and entries and names occupy bytes of the
// file.
#include "modules/parameter_archive.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace halyard::modules {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are read without byte swapping");

constexpr uint32_t kMagic = 0x41505249;  // "IRPA"
constexpr uint16_t kMajorVersion = 0;
constexpr uint16_t kMinorVersion = 0;
constexpr uint64_t kHeaderSize = 88;
constexpr uint64_t kEntryAlignment = 16;

// Offsets of fields within a header.
constexpr uint64_t kMajorAt = 4, kMinorAt = 6, kHeaderSizeAt = 8, kNextAt = 16, kCountAt = 32;
constexpr uint64_t kEntriesAt = 40, kMetadataAt = 56, kStorageAt = 72;
// Offsets of fields within an entry, and its size by type.
constexpr uint64_t kTypeAt = 8, kNameAt = 20, kEntryMetadataAt = 36, kBodyAt = 60, kPatternAt = 68,
                   kPatternLengthAt = 84;
constexpr uint32_t kSkip = 0, kSplat = 1, kData = 2, kExternal = 3;
constexpr uint64_t kSkipSize = 60, kSplatSize = 85, kDataSize = 76;
constexpr uint64_t kMaxPattern = 16;

// Bytes of the file, and their offset in it.
struct Segment {
  std::span<const uint8_t> bytes;
  uint64_t position = 0;
};

// The field at `offset`, which must be in bounds.
template <typename T>
T field(const Segment& segment, uint64_t offset) {
  T value;
  std::memcpy(&value, segment.bytes.data() + offset, sizeof value);
  return value;
}

struct Archive {
  std::string_view path;
  Ref<Bytes> file;
  uint64_t entry_budget;  // remaining number of entries that fit into the file
  uint64_t name_budget;   // remaining number of name bytes that fit into the file
  ParameterEntries entries;

  template <typename... Args>
  std::unexpected<Status> error(Code code, uint64_t position, fmt::format_string<Args...> format,
                                Args&&... args) const {
    return fail(code, "parameter archive '{}', byte {}: {}", path, position,
                fmt::format(format, std::forward<Args>(args)...));
  }

  // The range {u64 offset, u64 length} that `record` stores at `at`. The range must be within `whole`.
  Result<Segment> range(const Segment& record, uint64_t at, const Segment& whole,
                        std::string_view what) const {
    const auto offset = field<uint64_t>(record, at);
    const auto length = field<uint64_t>(record, at + 8);
    if (offset > whole.bytes.size() || length > whole.bytes.size() - offset)
      return error(
          Code::OUT_OF_RANGE, record.position + at,
          "the {} (offset {}, length {}) exceeds its segment of {} bytes; the file is damaged or was cut off",
          what, offset, length, whole.bytes.size());
    return Segment{whole.bytes.subspan(offset, length), whole.position + offset};
  }

  Result<> read_entry(const Segment& record, const Segment& metadata, const Segment& storage);
  Result<uint64_t> read_header(uint64_t position);
};

Result<> Archive::read_entry(const Segment& record, const Segment& metadata, const Segment& storage) {
  const auto type = field<uint32_t>(record, kTypeAt);
  const Segment name = HALYARD_TRY(range(record, kNameAt, metadata, "name of an entry"));
  const std::string_view key(reinterpret_cast<const char*>(name.bytes.data()), name.bytes.size());
  if (key.size() > name_budget)
    return error(Code::INVALID_ARGUMENT, record.position + kNameAt,
                 "the names of all entries have more bytes than the file");
  name_budget -= key.size();
  HALYARD_TRY(range(record, kEntryMetadataAt, metadata, "metadata of an entry"));
  const uint64_t needed = type == kSplat ? kSplatSize : type == kData ? kDataSize : kSkipSize;
  if (record.bytes.size() < needed)
    return error(Code::INVALID_ARGUMENT, record.position,
                 "entry '{}' of type {} has {} bytes, expected at least {}", key, type, record.bytes.size(),
                 needed);
  Parameter parameter;
  parameter.keep = file;
  switch (type) {
    case kSkip:
      return {};
    case kSplat: {
      const auto length = field<uint8_t>(record, kPatternLengthAt);
      if (!std::has_single_bit(length) || length > kMaxPattern)
        return error(Code::INVALID_ARGUMENT, record.position + kPatternLengthAt,
                     "splat '{}' has a pattern of {} bytes, expected 1, 2, 4, 8 or 16", key, length);
      const auto pattern = record.bytes.subspan(kPatternAt, length);
      parameter.pattern.assign(pattern.begin(), pattern.end());
      parameter.length = field<uint64_t>(record, kBodyAt);
      break;
    }
    case kData: {
      const Segment data = HALYARD_TRY(range(record, kBodyAt, storage, "data of an entry"));
      parameter.bytes = data.bytes;
      parameter.length = data.bytes.size();
      break;
    }
    case kExternal:
      return error(Code::UNIMPLEMENTED, record.position + kTypeAt,
                   "entry '{}' refers to another file, which is not supported; put its data into the archive",
                   key);
    default:
      return error(Code::INVALID_ARGUMENT, record.position + kTypeAt,
                   "entry '{}' has type {}, expected 0 (skip), 1 (splat) or 2 (data)", key, type);
  }
  entries.emplace_back(key, std::move(parameter));
  return {};
}

// Reads the header at `position` and its entries. Returns the position of the next header; 0 if there is
// none.
Result<uint64_t> Archive::read_header(uint64_t position) {
  const Segment whole{file->span().subspan(position), position};
  if (whole.bytes.size() < sizeof kMagic || field<uint32_t>(whole, 0) != kMagic)
    return error(Code::INVALID_ARGUMENT, position,
                 "expected an .irpa archive, which starts with the letters IRPA");
  if (whole.bytes.size() < kHeaderSize)
    return error(Code::OUT_OF_RANGE, position, "a header has {} bytes but {} are left; the file was cut off",
                 kHeaderSize, whole.bytes.size());
  const auto major = field<uint16_t>(whole, kMajorAt);
  const auto minor = field<uint16_t>(whole, kMinorAt);
  if (major != kMajorVersion || minor > kMinorVersion)
    return error(Code::UNIMPLEMENTED, position + kMajorAt,
                 "the archive has version {}.{}, expected {}.{}; write it again", major, minor, kMajorVersion,
                 kMinorVersion);
  const auto header_size = field<uint64_t>(whole, kHeaderSizeAt);
  if (header_size < kHeaderSize)
    return error(Code::INVALID_ARGUMENT, position + kHeaderSizeAt,
                 "the header states a size of {} bytes, expected {}", header_size, kHeaderSize);

  const Segment table = HALYARD_TRY(range(whole, kEntriesAt, whole, "entry segment"));
  const Segment metadata = HALYARD_TRY(range(whole, kMetadataAt, whole, "metadata segment"));
  const Segment storage = HALYARD_TRY(range(whole, kStorageAt, whole, "storage segment"));
  const auto count = field<uint64_t>(whole, kCountAt);
  if (count > entry_budget)
    return error(Code::INVALID_ARGUMENT, position + kCountAt,
                 "{} entries need at least {} bytes each; the file has {}", count, kSkipSize, file->size());
  entry_budget -= count;

  uint64_t offset = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t left = offset < table.bytes.size() ? table.bytes.size() - offset : 0;
    if (left < kSkipSize)
      return error(Code::OUT_OF_RANGE, table.position + offset,
                   "entry {} of {} needs at least {} bytes but the entry segment has {} left", i, count,
                   kSkipSize, left);
    Segment record{table.bytes.subspan(offset), table.position + offset};
    const auto size = field<uint64_t>(record, 0);
    if (size < kSkipSize || size > left)
      return error(
          Code::OUT_OF_RANGE, record.position,
          "entry {} of {} states a size of {} bytes, expected {} to {} (the rest of the entry segment)", i,
          count, size, kSkipSize, left);
    record.bytes = record.bytes.first(size);
    HALYARD_TRY(read_entry(record, metadata, storage));
    offset += (size + kEntryAlignment - 1) / kEntryAlignment * kEntryAlignment;
  }

  const auto next = field<uint64_t>(whole, kNextAt);
  if (next == 0) return 0;
  if (next >= whole.bytes.size())
    return error(Code::OUT_OF_RANGE, position + kNextAt,
                 "the next header is {} bytes ahead, but the file has only {} more bytes", next,
                 whole.bytes.size());
  return position + next;
}

}  // namespace

Result<ParameterEntries> read_irpa(const Ref<Bytes>& file, std::string_view path) {
  Archive archive{path, file, file->size() / kSkipSize, file->size(), {}};
  uint64_t position = 0;
  do {
    position = HALYARD_TRY(archive.read_header(position));
  } while (position != 0);
  return std::move(archive.entries);
}

}  // namespace halyard::modules
