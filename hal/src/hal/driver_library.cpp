// The steps from a file to a driver's instance, each with its own refusal.
#include "hal/driver_library.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "hal/elf_note.h"

namespace halyard::hal {

const ObjectType DriverLibrary::kType = object_type<DriverLibrary>("hal.driver_library");

namespace {

constexpr uint32_t kAbiMin = HALYARD_DRIVER_ABI_V1;
constexpr uint32_t kAbiMax = HALYARD_DRIVER_ABI_V1;
constexpr char kHostVersion[] = "Halyard";

struct TableEntry {
  const char* name;
  size_t offset;
  bool mandatory;
};
constexpr TableEntry kTableEntries[] = {
#define HALYARD_DRIVER_ENTRY(name, mandatory) {#name, offsetof(halyard_driver_table_t, name), mandatory},
#include "hal/driver_entries.inc"
#undef HALYARD_DRIVER_ENTRY
};

// Every function of the table, in its order, nothing else.
constexpr bool entries_match_the_table() {
  constexpr size_t kFirst = offsetof(halyard_driver_table_t, initialize);
  size_t expected = kFirst;
  for (const TableEntry& entry : kTableEntries) {
    if (entry.offset != expected) return false;
    expected += sizeof(void (*)());
  }
  return expected == sizeof(halyard_driver_table_t);
}
static_assert(entries_match_the_table(), "driver_entries.inc and halyard_driver_table_t differ");

std::string missing_functions(const halyard_driver_table_t& table) {
  std::vector<std::string_view> missing;
  for (const TableEntry& entry : kTableEntries) {
    void* function = nullptr;
    std::memcpy(static_cast<void*>(&function), reinterpret_cast<const char*>(&table) + entry.offset,
                sizeof function);
    if (entry.mandatory && !function) missing.push_back(entry.name);
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

const char* sanitizer_name(uint32_t kind) {
  switch (kind) {
    case HALYARD_SANITIZER_NONE:
      return "no sanitizer";
    case HALYARD_SANITIZER_ADDRESS:
      return "AddressSanitizer";
    case HALYARD_SANITIZER_THREAD:
      return "ThreadSanitizer";
    case HALYARD_SANITIZER_MEMORY:
      return "MemorySanitizer";
    default:
      return "an unknown sanitizer";
  }
}

template <size_t N>
std::string_view padded_text(const char (&text)[N]) {
  return {text, ::strnlen(text, N)};
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::string versions_text(uint32_t low, uint32_t high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{}..{}", low, high);
}

}  // namespace

Result<halyard_driver_note_t> read_driver_note(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0)
    return fail(errno == ENOENT || errno == ENOTDIR ? Code::NOT_FOUND : Code::UNAVAILABLE,
                "cannot look at driver '{}': {}; check the path", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(Code::INVALID_ARGUMENT, "'{}' is not a file; expected a Halyard driver", path);
  const Ref<Bytes> file = HALYARD_TRY(Bytes::map_file(path));
  return find_driver_note(file->span(), path);
}

std::string_view note_library(const halyard_driver_note_t& note) { return padded_text(note.library); }
std::string_view note_version(const halyard_driver_note_t& note) { return padded_text(note.version); }

std::vector<std::string> note_kinds(const halyard_driver_note_t& note) {
  std::vector<std::string> kinds;
  std::string_view rest = padded_text(note.kinds);
  while (true) {
    const size_t size = std::min(rest.find(','), rest.size());
    kinds.emplace_back(rest.substr(0, size));
    if (size == rest.size()) return kinds;
    rest.remove_prefix(size + 1);
  }
}

Result<> check_driver_note(const halyard_driver_note_t& note, const std::string& path) {
  const std::string_view library = note_library(note);
  const std::vector<std::string> kinds = note_kinds(note);
  if (!is_name(library) || !std::all_of(kinds.begin(), kinds.end(), is_name) || note.abi_min > note.abi_max)
    return fail(Code::INVALID_ARGUMENT,
                "the note of driver '{}' makes no sense (library '{}', ABI {}..{}, kinds '{}'); expected "
                "names of letters, "
                "digits, '-', '_' and '.'",
                path, library, note.abi_min, note.abi_max, padded_text(note.kinds));
  const std::string expected = fmt::format("halyard-driver-{}.so", library);
  const std::string found = std::filesystem::path(path).filename().string();
  if (found != expected)
    return fail(Code::INVALID_ARGUMENT, "driver '{}' calls itself '{}'; expected a file with the name {}",
                path, library, expected);
  if (note.abi_min == 0)
    return fail(
        Code::INCOMPATIBLE,
        "driver '{}' speaks driver ABI {}, this Halyard speaks {}; version 0 is none: the driver was built "
        "from something unfinished, build it again with this Halyard's headers",
        path, versions_text(note.abi_min, note.abi_max), versions_text(kAbiMin, kAbiMax));
  if (note.abi_min > kAbiMax || note.abi_max < kAbiMin)
    return fail(Code::INCOMPATIBLE,
                "driver '{}' speaks driver ABI {}, this Halyard speaks {}; install a driver built for this "
                "Halyard, or a {} "
                "Halyard",
                path, versions_text(note.abi_min, note.abi_max), versions_text(kAbiMin, kAbiMax),
                note.abi_min > kAbiMax ? "newer" : "older");
  if (note.sanitizer != HALYARD_SANITIZER_NONE && note.sanitizer != HALYARD_SANITIZER_KIND)
    return fail(Code::INCOMPATIBLE,
                "driver '{}' was built with {}, this Halyard with {}; an instrumented driver needs a host of "
                "the same kind",
                path, sanitizer_name(note.sanitizer), sanitizer_name(HALYARD_SANITIZER_KIND));
  return {};
}

DriverLibrary::DriverLibrary(std::string path, const halyard_driver_note_t& note, DriverLog log)
    : path_(std::move(path)), note_(note), services_(std::string(note_library(note)), std::move(log)) {}

DriverLibrary::~DriverLibrary() {
  if (instance_) table_.shutdown(&instance_);
}

Result<Ref<DriverLibrary>> DriverLibrary::open(const std::string& path, DriverLog log) {
  // A path without a slash would be looked for in the system's folders.
  std::error_code error;
  const std::string file = std::filesystem::absolute(path, error).string();
  if (error || path.empty()) return fail(Code::INVALID_ARGUMENT, "'{}' is not the path of a driver", path);
  const halyard_driver_note_t note = HALYARD_TRY(read_driver_note(file));
  HALYARD_TRY(check_driver_note(note, file));
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const reason = ::dlerror();
    return fail(Code::UNAVAILABLE, "cannot load driver '{}': {}; install what it needs", file,
                reason ? reason : "the system gives no reason");
  }
  void* const symbol = ::dlsym(handle, HALYARD_DRIVER_NEGOTIATE_SYMBOL);
  if (!symbol)
    return fail(Code::INCOMPATIBLE,
                "driver '{}' does not export {}; expected a function marked HALYARD_DRIVER_EXPORT", file,
                HALYARD_DRIVER_NEGOTIATE_SYMBOL);
  Ref<DriverLibrary> library = make<DriverLibrary>(file, note, std::move(log));
  HALYARD_TRY(library->negotiate(reinterpret_cast<halyard_driver_negotiate_fn>(symbol)));
  return library;
}

Result<> DriverLibrary::negotiate(halyard_driver_negotiate_fn negotiate) {
  const halyard_driver_request_t request = {sizeof request,         kAbiMin,      kAbiMax,
                                            HALYARD_SANITIZER_KIND, kHostVersion, nullptr};
  halyard_driver_reply_t reply = {};
  reply.struct_size = sizeof reply;
  if (negotiate(&request, &reply) == 0) {
    const std::string_view reason = padded_text(reply.refusal);
    return fail(Code::INCOMPATIBLE, "driver '{}' refuses this host, which speaks driver ABI {}: {}", path_,
                versions_text(kAbiMin, kAbiMax), reason.empty() ? "it gives no reason" : reason);
  }
  const uint32_t low = std::max(kAbiMin, note_.abi_min);
  const uint32_t high = std::min(kAbiMax, note_.abi_max);
  if (reply.abi_version < low || reply.abi_version > high)
    return fail(Code::INCOMPATIBLE, "driver '{}' chose driver ABI {}; expected {}, which both sides speak",
                path_, reply.abi_version, versions_text(low, high));
  if (!reply.table)
    return fail(Code::INCOMPATIBLE, "driver '{}' gave no table of functions when it negotiated", path_);
  // An older driver's table is shorter, a newer one's longer: what one side does not know stays null.
  std::memcpy(&table_, reply.table, std::min<size_t>(reply.table->struct_size, sizeof table_));
  if (const std::string missing = missing_functions(table_); !missing.empty())
    return fail(Code::INCOMPATIBLE, "driver '{}' lacks functions that driver ABI {} demands: {}", path_,
                reply.abi_version, missing);
  HALYARD_TRY(take_kinds(reply));
  return initialize(reply.abi_version);
}

Result<> DriverLibrary::take_kinds(const halyard_driver_reply_t& reply) {
  std::vector<std::string> expected = note_kinds(note_);
  std::vector<std::string> found;
  // One more than expected is enough to see the difference.
  const size_t count = reply.kinds ? std::min<size_t>(reply.kind_count, expected.size() + 1) : 0;
  for (size_t i = 0; i < count; ++i) {
    const auto& [kind, description] = reply.kinds[i];
    found.emplace_back(kind ? kind : "");
    kinds_.push_back({found.back(), description ? description : ""});
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (found == expected) return {};
  return fail(Code::INCOMPATIBLE,
              "driver '{}' negotiated the kinds '{}', its note says '{}'; expected the same", path_,
              fmt::join(found, ","), fmt::join(expected, ","));
}

Result<> DriverLibrary::initialize(uint32_t abi_version) {
  const halyard_driver_init_args_t args = {sizeof args, abi_version, &services_.table(), nullptr};
  if (Status status = Status::adopt(table_.initialize(&args, &instance_))) {
    instance_ = nullptr;
    return std::unexpected(std::move(status).note(fmt::format("while initializing driver '{}'", path_)));
  }
  if (!instance_) return fail(Code::INTERNAL, "driver '{}' was initialized but gave no instance", path_);
  return {};
}

Result<std::vector<DriverLibrary::DeviceInfo>> DriverLibrary::enumerate() const {
  constexpr uint32_t kMostDevices = 4096;
  std::vector<halyard_device_info_t> infos;
  uint32_t count = 0;
  // Devices may appear between the question for their number and the question for them.
  do {
    infos.assign(count, {});
    for (halyard_device_info_t& info : infos) info.struct_size = sizeof info;
    const auto capacity = static_cast<uint32_t>(infos.size());
    if (Status status = Status::adopt(table_.enumerate_devices(instance_, capacity, infos.data(), &count)))
      return std::unexpected(
          std::move(status).note(fmt::format("while listing the devices of driver '{}'", path_)));
    if (count > kMostDevices)
      return fail(Code::INTERNAL, "driver '{}' lists {} devices; expected at most {}", path_, count,
                  kMostDevices);
  } while (count > infos.size());
  infos.resize(count);
  std::vector<DeviceInfo> devices;
  for (const halyard_device_info_t& info : infos)
    devices.push_back({info.kind ? info.kind : "", info.path ? info.path : "", info.name ? info.name : ""});
  return devices;
}

}  // namespace halyard::hal
