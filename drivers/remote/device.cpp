// What a device of the server can do, and memory that is allocated without waiting for the server.
#include "device.h"

#include "failures.h"
#include "file_place.h"
#include "remote/digest.h"
#include "submission.h"

namespace halyard::remote {

namespace {

constexpr uint32_t kMemoryType =
    HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL;
constexpr uint32_t kAddedType = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT;
constexpr uint32_t kAddedUsage = HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED |
                                 HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;
// Larger allocations wait for the server's answer, because they may fail.
constexpr uint64_t kAlwaysThere = 1 << 20;
constexpr uint64_t kImportAlignment = 16;

constexpr uint64_t bit(uint32_t operation) { return uint64_t{1} << operation; }

// As the local devices do, so that a program that lacks a bit fails in the same way here and there.
// INVALID_ARGUMENT: a required type bit is unknown [R70].
kit::Result<> grant(const halyard_memory_request_t& request, halyard_memory_info_t& info) {
  const uint32_t missing = request.memory_type & ~(kMemoryType | HALYARD_MEMORY_OPTIMAL);
  if (missing && !(request.memory_type & HALYARD_MEMORY_OPTIMAL))
    return kit::Failure{
        HALYARD_INVALID_ARGUMENT,
        fmt::format("no heap has memory type bits 0x{:x}; ask without, or with OPTIMAL (0x1)", missing)};
  const uint32_t wanted = request.memory_type & kMemoryType;
  info.memory_type = (wanted ? wanted : uint32_t{HALYARD_MEMORY_DEVICE_LOCAL}) | kAddedType;
  info.usage = request.usage | kAddedUsage;
  info.size = request.size;
  return {};
}

flatbuffers::Offset<wire::Request> to_wire(flatbuffers::FlatBufferBuilder& builder,
                                           const halyard_memory_request_t& request) {
  return wire::CreateRequest(builder, request.memory_type, request.usage, request.affinity, request.size,
                             kit::owner_of(request));
}

}  // namespace

Device::Device(std::shared_ptr<Connection> server)
    : server_(std::move(server)), digests_(server_->place().digests) {}

Device::~Device() {
  server_->close();
  try {
    digests_.save();
  } catch (const std::exception&) {  // the next process computes again
  }
}

halyard_device_properties_t Device::properties() const {
  constexpr uint32_t kPassedOn = HALYARD_DEVICE_STOPS_WORK;
  halyard_device_properties_t properties = {};
  properties.capabilities = (server_->properties().capabilities & kPassedOn) | HALYARD_DEVICE_HOST_COHERENT |
                            HALYARD_DEVICE_QUEUE_ALLOCA | HALYARD_DEVICE_WRITES_CONSTANTS;
  properties.queue_count = server_->properties().queue_count;
  properties.operations = bit(HALYARD_OPERATION_BARRIER) | bit(HALYARD_OPERATION_ALLOCA) |
                          bit(HALYARD_OPERATION_DEALLOCA) | bit(HALYARD_OPERATION_FILL) |
                          bit(HALYARD_OPERATION_UPDATE) | bit(HALYARD_OPERATION_COPY) |
                          bit(HALYARD_OPERATION_EXECUTE);
  properties.memory_alignment = std::min<uint64_t>(server_->properties().memory_alignment, 64);
  properties.maximum_allocation = server_->properties().maximum_allocation;
  properties.import_alignment = kImportAlignment;
  return properties;
}

std::optional<int64_t> Device::query(std::string_view category, std::string_view key) const {
  // Asked when a process ends, about threads of the process. Those of the server are not meant.
  if (category == "halyard.jit") return std::nullopt;
  Request request;
  const kit::Result<> answered = server_->request(request, [&](uint64_t number) {
    Message message;
    const auto first = message.text(category), second = message.text(key);
    server_->send(message.to_server(wire::CreateQuery(message.builder(), number, first, second)), {},
                  Stream::Urgency::now);
  });
  // Queries cannot fail. Without an answer the device is taken for the right one: what the program does with
  // it then fails, and says that the connection is lost.
  if (!answered) return category == "hal.device.id" ? std::optional<int64_t>(1) : std::nullopt;
  if (!request.known) return std::nullopt;
  return request.value;
}

void Device::trim() {
  Message message;
  server_->send(message.to_server(wire::CreateTrim(message.builder())));
}

kit::Result<std::unique_ptr<Memory>> Device::allocate(const halyard_memory_request_t& asked, bool,
                                                      halyard_memory_info_t& info) {
  HALYARD_KIT_TRY(server_->check());
  HALYARD_KIT_TRY(grant(asked, info));
  auto memory = std::make_unique<Memory>(server_, tally_, asked.size);
  const auto ask = [&](uint64_t number, Stream::Urgency urgency) {
    Message message;
    const auto request = to_wire(message.builder(), asked);
    server_->send(
        message.to_server(wire::CreateMemoryCreate(message.builder(), number, memory->number(), request)), {},
        urgency);
  };
  if (asked.size <= kAlwaysThere) {
    ask(0, Stream::Urgency::later);
  } else {
    Request request;
    HALYARD_KIT_TRY(server_->request(request, [&](uint64_t number) { ask(number, Stream::Urgency::now); }));
  }
  memory->exists();
  return memory;
}

kit::Result<std::unique_ptr<Memory>> Device::import_memory(const halyard_memory_request_t& asked,
                                                           const halyard_external_memory_t& external,
                                                           halyard_memory_info_t& info) {
  uint8_t* const bytes = HALYARD_KIT_TRY(kit::host_bytes(asked, external, kImportAlignment));
  const Bytes contents = {bytes, asked.size};
  if (external.access & HALYARD_MAP_WRITE) {
    std::unique_ptr<Memory> memory = HALYARD_KIT_TRY(allocate(asked, false, info));
    memory->ends();
    memory->is_import();
    memory->share(bytes);  // before the bytes are sent, because the host may write to them at any time
    memory->write(0, contents);
    return memory;
  }
  HALYARD_KIT_TRY(server_->check());
  HALYARD_KIT_TRY(grant(asked, info));
  auto memory = std::make_unique<Memory>(server_, tally_, asked.size);
  memory->is_import();
  memory->exists();
  std::optional<KnownDigests::Part> part = KnownDigests::part_of(external);
  if (part) part->length = asked.size;
  std::optional<Sha256> known = part ? digests_.find(*part) : std::nullopt;
  Sha256 digest = known ? *known : sha256(contents);
  if (known && is_at_server(*part, digest)) {
    Message message;
    const auto wanted = to_wire(message.builder(), asked);
    const wire::Digest name = remote::to_wire(digest);
    server_->send(
        message.to_server(wire::CreateMemoryImport(message.builder(), 0, memory->number(), wanted, &name)));
    return memory;
  }
  if (part && !known) digests_.add(*part, digest);
  const std::string& folder = server_->place().files;
  const std::optional<FilePlace> file =
      folder.empty() || contents.empty() ? std::nullopt : file_place_of(contents, folder);
  for (bool is_first = true;; is_first = false) {
    const wire::Digest name = remote::to_wire(digest);
    Request request;
    HALYARD_KIT_TRY(server_->request(request, [&](uint64_t number) {
      Message message;
      const auto wanted = to_wire(message.builder(), asked);
      const auto path = file ? message.text(file->path) : flatbuffers::Offset<flatbuffers::String>();
      server_->send(message.to_server(wire::CreateMemoryImport(message.builder(), number, memory->number(),
                                                               wanted, &name, path, file ? file->offset : 0)),
                    {}, Stream::Urgency::now);
    }));
    if (!request.needs_blob) return memory;
    if (!is_first) break;
    // The bytes are read in any case, so a digest that was kept is checked.
    if (known) {
      digest = sha256(contents);
      digests_.forget(*part);
      digests_.add(*part, digest);
    }
    HALYARD_KIT_TRY(server_->send_blob(digest, contents));
  }
  return kit::Failure{HALYARD_RESOURCE_EXHAUSTED, "the server does not keep constants of " +
                                                      std::to_string(asked.size) +
                                                      " bytes; raise --max_cache of vm-device"};
}

// The first import of a part of a file asks for all parts of it that are known here.
bool Device::is_at_server(const KnownDigests::Part& part, const Sha256& digest) {
  if (server_->version() < kVersionWithBlobsWanted) return false;
  const std::lock_guard lock(blobs_mutex_);
  KnownDigests::Part file = part;
  file.offset = file.length = 0;
  if (asked_files_.insert(file).second) {
    constexpr size_t kMost = 1 << 14;
    std::vector<Sha256> digests = digests_.of_file(part);
    digests.resize(std::min(digests.size(), kMost));
    std::vector<wire::Digest> names;
    for (const Sha256& each : digests) names.push_back(remote::to_wire(each));
    Request request;
    const kit::Result<> answered = server_->request(request, [&](uint64_t number) {
      Message message;
      const auto list = message.builder().CreateVectorOfStructs(names);
      server_->send(message.to_server(wire::CreateBlobsWanted(message.builder(), number, list)), {},
                    Stream::Urgency::now);
    });
    if (answered && request.has_blobs.size() == digests.size())
      for (size_t i = 0; i < digests.size(); ++i)
        if (request.has_blobs[i]) at_server_.insert(digests[i]);
  }
  return at_server_.contains(digest);
}

kit::Status Device::wait(kit::Timepoints points, bool any, int64_t deadline_ns) {
  server_->flush();
  return kit::wait_for<Semaphore>(services(), points, any, deadline_ns);
}

void Device::help(kit::Timepoints points, bool any) {
  constexpr auto kLongest = std::chrono::milliseconds(10);
  // Another thread may reach other points, of which nothing comes from the server.
  for (const halyard_timepoint_t& point : points) {
    const auto& semaphore = kit::timeline_of<Semaphore>(point);
    if (&semaphore.home() != server_.get() || !semaphore.is_submitted(point.value)) return;
  }
  server_->help_until(
      [&] {
        bool are_all = true;
        for (const halyard_timepoint_t& point : points) {
          const kit::Progress progress = kit::timeline_of<Semaphore>(point).progress(point.value);
          if (progress == kit::Progress::failed || (any && progress == kit::Progress::reached)) return true;
          are_all &= progress == kit::Progress::reached;
        }
        return are_all;
      },
      kLongest);
}

uint32_t Device::grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const {
  if (data.empty()) {
    const std::lock_guard lock(mutex_);
    if (const auto found = grades_.find(format); found != grades_.end()) {
      reason = found->second.second;
      return found->second.first;
    }
  }
  Request request;
  const kit::Result<> answered = server_->request(request, [&](uint64_t number) {
    Message message;
    const auto text = message.text(format);
    server_->send(message.to_server(wire::CreateGrade(message.builder(), number, text)),
                  data.subspan(0, data.size() <= kMaxData ? data.size() : 0), Stream::Urgency::now);
  });
  if (!answered) {  // loading says why
    reason = answered.failure().message;
    return HALYARD_GRADE_LOADABLE;
  }
  const auto grade =
      static_cast<uint32_t>(std::clamp<int64_t>(request.value, HALYARD_GRADE_NO, HALYARD_GRADE_NATIVE));
  reason = request.text;
  if (data.empty()) {
    const std::lock_guard lock(mutex_);
    grades_.emplace(format, std::pair(grade, reason));
  }
  return grade;
}

kit::Result<> Device::submit(const halyard_submission_t& submission, kit::TaskList&) {
  const halyard_operation_t& operation = *submission.operation;
  if (operation.kind != HALYARD_OPERATION_ALLOCA) return send_submission(server_, submission, nullptr);
  halyard_memory_info_t info = {sizeof info, 0, 0, 0, 0};
  HALYARD_KIT_TRY(grant(*operation.alloca_.request, info));
  auto memory = std::make_unique<Memory>(server_, tally_, operation.alloca_.request->size);
  halyard_driver_memory_t* const given = operation.alloca_.memory;
  halyard_memory_info_t* const told = operation.alloca_.info;
  // The work may complete, and the host may free the memory, as soon as the server has the message.
  const halyard_driver_memory_t before = *given;
  const halyard_memory_info_t untold = *told;
  Memory* const transient = memory.release();
  *given = reinterpret_cast<halyard_driver_memory_t>(transient);
  kit::fill_sized(*told, info);
  kit::Result<> sent = send_submission(server_, submission, transient);
  if (sent) return {};
  *given = before;
  *told = untold;
  delete transient;
  return sent;
}

}  // namespace halyard::remote
