// The template in C++: a device in host memory whose work runs on its own thread, written with the kit
// (halyard/driver.hpp). Copy the folder, choose a name, and change what your device does differently
// (README.md). It moves bytes and runs no executables; "your own format here" marks where yours go.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "halyard/driver.hpp"

namespace {

namespace kit = halyard::kit;
using kit::Failure;
using kit::Result;

constexpr uint64_t kAlignment = 64;                     // bytes
constexpr uint64_t kMaxAllocation = uint64_t{1} << 38;  // bytes
constexpr uint32_t kMemoryType =
    HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL;
constexpr uint32_t kUsage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED |
                            HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;

// Statistics of the device's memory: live, peak and freed bytes.
struct Tally {
  std::mutex mutex;
  halyard_memory_statistics_t now = {};
  void count(uint64_t allocated, uint64_t freed) {
    const std::lock_guard lock(mutex);
    now.host_bytes_allocated += allocated;
    now.host_bytes_freed += freed;
    now.host_bytes_live += allocated - freed;
    now.host_bytes_peak = std::max(now.host_bytes_peak, now.host_bytes_live);
  }
};

// ---- Memory: yours is where your device's memory is ----

class Block final : public kit::Memory {
 public:
  Block(Tally& tally, uint64_t size) : tally_(tally), size_(size) {}
  ~Block() override { give_back(); }

  Result<> commit() override {
    // At least one unit, because memory of 0 bytes has an address too [R71].
    void* const bytes = std::aligned_alloc(kAlignment, (size_ / kAlignment + 1) * kAlignment);
    if (!bytes)
      return Failure{HALYARD_RESOURCE_EXHAUSTED, "the process cannot get " + std::to_string(size_) +
                                                     " bytes; free memory or ask for less"};
    std::memset(bytes, 0, size_);  // no bytes of earlier owners [R78]
    bytes_ = static_cast<uint8_t*>(bytes);
    tally_.count(size_, 0);
    return {};
  }
  Result<> decommit() override {
    give_back();
    return {};
  }
  Result<uint8_t*> bytes() override {
    if (uint8_t* const bytes = bytes_) return bytes;
    return Failure{HALYARD_FAILED_PRECONDITION,
                   "memory is used before its alloca or after its dealloca; wait for alloca's signal"};
  }

 private:
  void give_back() {
    if (uint8_t* const bytes = bytes_.exchange(nullptr)) {
      std::free(bytes);
      tally_.count(0, size_);
    }
  }

  Tally& tally_;
  const uint64_t size_;
  std::atomic<uint8_t*> bytes_{nullptr};  // the host may map it while the device works
};

// The host's bytes.
class Imported final : public kit::Memory {
 public:
  explicit Imported(uint8_t* bytes) : bytes_(bytes) {}
  Result<uint8_t*> bytes() override { return bytes_; }

 private:
  uint8_t* bytes_;
};

// The address of a range.
Result<uint8_t*> address_of(const halyard_range_t& range, kit::Table table) {
  const kit::Place place = kit::place_of(range, table);
  Result<uint8_t*> bytes = place.memory->bytes();
  if (bytes) *bytes += place.offset;
  return bytes;
}

// ---- The device ----

class TemplateDevice final : public kit::QueuedDevice {
 public:
  using QueuedDevice::QueuedDevice;

  halyard_device_properties_t properties() const override {
    halyard_device_properties_t properties = {};
    properties.capabilities =
        HALYARD_DEVICE_UNIFIED_MEMORY | HALYARD_DEVICE_HOST_COHERENT | HALYARD_DEVICE_QUEUE_ALLOCA;
    properties.queue_count = 1;
    properties.operations = 1u << HALYARD_OPERATION_BARRIER | 1u << HALYARD_OPERATION_ALLOCA |
                            1u << HALYARD_OPERATION_DEALLOCA | 1u << HALYARD_OPERATION_EXECUTE;
    properties.memory_alignment = kAlignment;
    properties.maximum_allocation = kMaxAllocation;
    properties.import_alignment = 1;
    return properties;
  }
  std::optional<int64_t> query(std::string_view category, std::string_view key) const override {
    if ((category == "hal.device" || category == "hal.dispatch") && key == "concurrency") return 1;
    return std::nullopt;
  }
  halyard_memory_statistics_t statistics() const override {
    const std::lock_guard lock(tally_.mutex);
    return tally_.now;
  }

  Result<std::unique_ptr<kit::Memory>> allocate(const halyard_memory_request_t& request, bool later,
                                                halyard_memory_info_t& info) override {
    if (Result<> taken = take(request, info); !taken) return std::move(taken.failure());
    std::unique_ptr<kit::Memory> block = std::make_unique<Block>(tally_, request.size);
    if (!later)
      if (Result<> committed = block->commit(); !committed) return std::move(committed.failure());
    return block;
  }
  Result<std::unique_ptr<kit::Memory>> import_memory(const halyard_memory_request_t& request,
                                                     const halyard_external_memory_t& external,
                                                     halyard_memory_info_t& info) override {
    Result<uint8_t*> bytes = kit::host_bytes(request, external, 1);
    if (!bytes) return std::move(bytes.failure());
    if (Result<> taken = take(request, info); !taken) return std::move(taken.failure());
    return std::make_unique<Imported>(*bytes);
  }

  // Your own format here: grade() returns how well an executable fits, load() loads it, check() accepts
  // HALYARD_COMMAND_DISPATCH, and run() runs its workgroups.

  Result<> check(const halyard_command_t& command) const override {
    switch (command.kind) {
      case HALYARD_COMMAND_BARRIER:
      case HALYARD_COMMAND_FILL:
      case HALYARD_COMMAND_UPDATE:
      case HALYARD_COMMAND_COPY:
      case HALYARD_COMMAND_BEGIN_GROUP:
      case HALYARD_COMMAND_END_GROUP:
        return {};
      default:
        return Failure{HALYARD_UNIMPLEMENTED,
                       "command of kind " + std::to_string(command.kind) +
                           " is unknown; expected barrier, fill, update, copy or group"};
    }
  }
  // Called on the device's thread, one command after the other.
  Result<> run(const halyard_command_t& command, kit::Table table) override {
    switch (command.kind) {
      case HALYARD_COMMAND_FILL: {
        const auto& fill = reinterpret_cast<const halyard_command_fill_t&>(command);
        return write(fill.target, table, &fill.pattern, fill.pattern_size);
      }
      case HALYARD_COMMAND_UPDATE: {
        const auto& update = reinterpret_cast<const halyard_command_update_t&>(command);
        return write(update.target, table, update.source, update.target.length);
      }
      case HALYARD_COMMAND_COPY: {
        const auto& copy = reinterpret_cast<const halyard_command_copy_t&>(command);
        Result<uint8_t*> source = address_of(copy.source, table);
        if (!source) return std::move(source.failure());
        return write(copy.target, table, *source, copy.target.length);
      }
      default:
        return {};  // a barrier or group: commands run one after the other anyway
    }
  }

 private:
  // Fills `info`. INVALID_ARGUMENT: a required memory type does not exist.
  static Result<> take(const halyard_memory_request_t& request, halyard_memory_info_t& info) {
    const uint32_t missing = request.memory_type & ~kMemoryType;
    if (missing && !(request.memory_type & HALYARD_MEMORY_OPTIMAL)) {
      char text[96];
      std::snprintf(text, sizeof text,
                    "no heap has memory type bits 0x%x; ask without, or with OPTIMAL (0x1)", missing);
      return Failure{HALYARD_INVALID_ARGUMENT, text};
    }
    info.memory_type = kMemoryType;
    info.usage = request.usage | kUsage;
    info.size = request.size;
    return {};
  }
  // Fills the range with copies of `size` bytes: a repeated pattern, or a source once.
  static Result<> write(const halyard_range_t& target, kit::Table table, const void* source, uint64_t size) {
    Result<uint8_t*> to = address_of(target, table);
    if (!to) return std::move(to.failure());
    if (target.length == 0) return {};
    std::memmove(*to, source, size);
    for (uint64_t done = size; done < target.length;) {  // doubles each time
      const uint64_t more = std::min(done, target.length - done);
      std::memcpy(*to + done, *to, more);
      done += more;
    }
    return {};
  }

  mutable Tally tally_;
};

// ---- The instance ----

class TemplateInstance final : public kit::Instance {
 public:
  using Instance::Instance;

  std::vector<halyard_device_info_t> devices() const override {
    halyard_device_info_t info = {};
    info.kind = "template";
    info.path = "";
    info.name = "a thread in host memory";
    return {info};
  }
  Result<std::unique_ptr<kit::Device>> open(const halyard_device_open_args_t& args) override {
    if (args.path.size > 0)
      return Failure{HALYARD_NOT_FOUND,
                     "no device '" + std::string(kit::view(args.path)) + "'; the only one is template://"};
    kit::Options options(args);  // options.number("streams", 1, 1, 64) reads an option
    if (Result<> known = options.finish(); !known) return std::move(known.failure());
    auto device = std::make_unique<TemplateDevice>(services());
    device->start();
    return std::unique_ptr<kit::Device>(std::move(device));
  }
};

}  // namespace

HALYARD_KIT_DRIVER(TemplateInstance, "template", "1.0", "template",
                   {"template", "Moves bytes on a thread of its own"})
