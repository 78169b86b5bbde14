// The steps from a file to a driver's instance, each with its own error.
#include "hal/driver/driver_library.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>

namespace halyard::hal {

const ObjectType DriverLibrary::kType = object_type<DriverLibrary>("hal.driver_library");

namespace {

constexpr char kHostVersion[] = "Halyard";

struct TableEntry {
  const char* name;
  size_t offset;
  bool mandatory;
};
constexpr TableEntry kTableEntries[] = {
#define HALYARD_DRIVER_FUNCTION(name, mandatory) {#name, offsetof(halyard_driver_table_t, name), mandatory},
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION
};

// Every function of the table, in order.
constexpr bool entries_match_the_table() {
  constexpr size_t kFirst = offsetof(halyard_driver_table_t, initialize);
  size_t expected = kFirst;
  for (const TableEntry& entry : kTableEntries) {
    if (entry.offset != expected) return false;
    expected += sizeof(void (*)());
  }
  return expected == sizeof(halyard_driver_table_t);
}
static_assert(entries_match_the_table(), "driver_functions.inc and halyard_driver_table_t differ");

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

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '+';
  });
}

}  // namespace

const PluginKind kDriverPlugin = {.what = "driver",
                                  .abi = "driver ABI",
                                  .note_type = HALYARD_NOTE_TYPE_DRIVER,
                                  .note_size = sizeof(halyard_driver_note_t),
                                  .note_macro = "HALYARD_DRIVER_NOTE (halyard/driver.h)",
                                  .negotiate_symbol = HALYARD_DRIVER_NEGOTIATE_SYMBOL,
                                  .export_macro = "HALYARD_DRIVER_EXPORT"};

Result<halyard_driver_note_t> read_driver_note(const std::string& path) {
  return read_note<halyard_driver_note_t>(path, kDriverPlugin);
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
                "the note of driver '{}' is not valid (library '{}', ABI {}..{}, kinds '{}'); expected "
                "names of letters, "
                "digits, '-', '_' and '.'",
                path, library, note.abi_min, note.abi_max, padded_text(note.kinds));
  const std::string expected = fmt::format("halyard-driver-{}.so", library);
  const std::string found = std::filesystem::path(path).filename().string();
  if (found != expected)
    return fail(Code::INVALID_ARGUMENT, "driver '{}' calls itself '{}'; expected a file with the name {}",
                path, library, expected);
  HALYARD_TRY(check_abi(kDriverPlugin, path, {note.abi_min, note.abi_max}, kDriverAbi));
  return check_sanitizer(kDriverPlugin, path, note.sanitizer);
}

DriverLibrary::DriverLibrary(std::string path, const halyard_driver_note_t& note, DriverLog log,
                             Ref<Tracer> tracer)
    : path_(std::move(path)),
      note_(note),
      services_(std::string(note_library(note)), std::move(log), std::move(tracer)) {}

DriverLibrary::~DriverLibrary() {
  if (instance_) table_.shutdown(&instance_);
}

Result<Ref<DriverLibrary>> DriverLibrary::open(const std::string& path, DriverLog log,
                                               const DriverProgress& progress, Ref<Tracer> tracer) {
  const auto before = [&](const char* step) {
    if (progress) progress(step);
  };
  const std::string file = HALYARD_TRY(plugin_path(path, kDriverPlugin));
  const halyard_driver_note_t note = HALYARD_TRY(read_driver_note(file));
  HALYARD_TRY(check_driver_note(note, file));
  before("load");
  void* const symbol = HALYARD_TRY(open_plugin(file, kDriverPlugin));
  Ref<DriverLibrary> library = make<DriverLibrary>(file, note, std::move(log), std::move(tracer));
  before("negotiate");
  const uint32_t version =
      HALYARD_TRY(library->negotiate(reinterpret_cast<halyard_driver_negotiate_fn>(symbol)));
  before("initialize");
  HALYARD_TRY(library->initialize(version));
  return library;
}

Result<halyard_driver_note_t> negotiated_note(const LinkedDriver& driver) {
  const halyard_driver_request_t request = {sizeof request,         kDriverAbi.low, kDriverAbi.high,
                                            HALYARD_SANITIZER_KIND, kHostVersion,   nullptr};
  halyard_driver_reply_t reply = {};
  reply.struct_size = sizeof reply;
  if (driver.negotiate(&request, &reply) == 0 || !reply.kinds || reply.kind_count == 0)
    return fail(
        Code::INCOMPATIBLE,
        "driver '{}', which is part of this program, has no device kinds for it; build both from one source",
        driver.name);
  halyard_driver_note_t note = {};
  note.abi_min = note.abi_max = reply.abi_version;
  note.sanitizer = HALYARD_SANITIZER_KIND;
  std::string kinds;
  for (size_t i = 0; i < reply.kind_count; ++i) {
    if (i > 0) kinds += ',';
    kinds += reply.kinds[i].name ? reply.kinds[i].name : "";
  }
  if (driver.name.size() >= sizeof note.library || kinds.size() >= sizeof note.kinds)
    return fail(Code::INCOMPATIBLE,
                "the names of driver '{}' are too long: '{}'; expected at most {} bytes of kinds",
                driver.name, kinds, sizeof note.kinds - 1);
  driver.name.copy(note.library, sizeof note.library - 1);
  kinds.copy(note.kinds, sizeof note.kinds - 1);
  return note;
}

Result<Ref<DriverLibrary>> DriverLibrary::start(const LinkedDriver& driver, const halyard_driver_note_t& note,
                                                DriverLog log, Ref<Tracer> tracer) {
  Ref<DriverLibrary> library = make<DriverLibrary>(driver.name, note, std::move(log), std::move(tracer));
  HALYARD_TRY(library->initialize(HALYARD_TRY(library->negotiate(driver.negotiate))));
  return library;
}

Ref<DriverLibrary> DriverLibrary::built_in(std::string_view name, const halyard_driver_table_t& table) {
  halyard_driver_note_t note = {};
  name.copy(note.library, sizeof note.library - 1);
  name.copy(note.kinds, sizeof note.kinds - 1);
  auto library = make<DriverLibrary>("", note, DriverLog(), Ref<Tracer>());
  library->table_ = table;
  library->kinds_.push_back({std::string(name), ""});
  return library;
}

Result<uint32_t> DriverLibrary::negotiate(halyard_driver_negotiate_fn negotiate) {
  const halyard_driver_request_t request = {sizeof request,         kDriverAbi.low, kDriverAbi.high,
                                            HALYARD_SANITIZER_KIND, kHostVersion,   nullptr};
  halyard_driver_reply_t reply = {};
  reply.struct_size = sizeof reply;
  if (negotiate(&request, &reply) == 0) {
    const std::string_view reason = padded_text(reply.refusal);
    return fail(Code::INCOMPATIBLE, "driver '{}' refuses this host, which supports driver ABI {}: {}", path_,
                to_text(kDriverAbi), reason.empty() ? "it gives no reason" : reason);
  }
  const AbiRange common = {std::max(kDriverAbi.low, note_.abi_min), std::min(kDriverAbi.high, note_.abi_max)};
  if (reply.abi_version < common.low || reply.abi_version > common.high)
    return fail(Code::INCOMPATIBLE, "driver '{}' chose driver ABI {}; expected {}, which both sides speak",
                path_, reply.abi_version, to_text(common));
  if (!reply.table)
    return fail(Code::INCOMPATIBLE, "driver '{}' gave no table of functions when it negotiated", path_);
  // An older driver's table is shorter, a newer one's longer: functions that one side does not know stay
  // null.
  std::memcpy(&table_, reply.table, std::min<size_t>(reply.table->struct_size, sizeof table_));
  if (const std::string missing = missing_functions(table_); !missing.empty())
    return fail(Code::INCOMPATIBLE, "driver '{}' lacks functions that driver ABI {} demands: {}", path_,
                reply.abi_version, missing);
  HALYARD_TRY(take_kinds(reply));
  return reply.abi_version;
}

Result<> DriverLibrary::take_kinds(const halyard_driver_reply_t& reply) {
  std::vector<std::string> expected = note_kinds(note_);
  std::vector<std::string> found;
  // One more than expected is enough to detect a difference.
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
  constexpr uint32_t kMaxDevices = 4096;
  std::vector<halyard_device_info_t> infos;
  uint32_t count = 0;
  // Devices may appear between counting and listing.
  do {
    infos.assign(count, {});
    for (halyard_device_info_t& info : infos) info.struct_size = sizeof info;
    const auto capacity = static_cast<uint32_t>(infos.size());
    if (Status status = Status::adopt(table_.enumerate_devices(instance_, capacity, infos.data(), &count)))
      return std::unexpected(
          std::move(status).note(fmt::format("while listing the devices of driver '{}'", path_)));
    if (count > kMaxDevices)
      return fail(Code::INTERNAL, "driver '{}' lists {} devices; expected at most {}", path_, count,
                  kMaxDevices);
  } while (count > infos.size());
  infos.resize(count);
  std::vector<DeviceInfo> devices;
  for (const halyard_device_info_t& info : infos)
    devices.push_back({info.kind ? info.kind : "", info.path ? info.path : "", info.name ? info.name : ""});
  return devices;
}

}  // namespace halyard::hal
