// Properties of devices in the C ABI. It has the numbers of the driver ABI with different names, so that a
// program may include both headers.
#include <array>

#include "hal/device/sharing.h"
#include "halyard/driver/operation_name.hpp"
#include "handles.h"
#include "json_writer.h"

using namespace halyard;
using namespace halyard::c;

#define HALYARD_SAME_NUMBER(mine, drivers) \
  static_assert(static_cast<uint32_t>(mine) == static_cast<uint32_t>(drivers))
HALYARD_SAME_NUMBER(HALYARD_CAPABILITY_RUNS_IN_CALLER, HALYARD_DEVICE_RUNS_IN_CALLER);
HALYARD_SAME_NUMBER(HALYARD_CAPABILITY_UNIFIED_MEMORY, HALYARD_DEVICE_UNIFIED_MEMORY);
HALYARD_SAME_NUMBER(HALYARD_CAPABILITY_HOST_COHERENT, HALYARD_DEVICE_HOST_COHERENT);
HALYARD_SAME_NUMBER(HALYARD_CAPABILITY_QUEUE_ALLOCA, HALYARD_DEVICE_QUEUE_ALLOCA);
HALYARD_SAME_NUMBER(HALYARD_CAPABILITY_SEMAPHORE_EXPORT, HALYARD_DEVICE_SEMAPHORE_EXPORT);
HALYARD_SAME_NUMBER(HALYARD_CAPABILITY_COLLECTIVES, HALYARD_DEVICE_COLLECTIVES);
HALYARD_SAME_NUMBER(HALYARD_CAPABILITY_WRITES_CONSTANTS, HALYARD_DEVICE_WRITES_CONSTANTS);
HALYARD_SAME_NUMBER(HALYARD_CAPABILITY_STOPS_WORK, HALYARD_DEVICE_STOPS_WORK);
HALYARD_SAME_NUMBER(HALYARD_FIT_NO, HALYARD_GRADE_NO);
HALYARD_SAME_NUMBER(HALYARD_FIT_RECOMPILE, HALYARD_GRADE_RECOMPILE);
HALYARD_SAME_NUMBER(HALYARD_FIT_LOADABLE, HALYARD_GRADE_LOADABLE);
HALYARD_SAME_NUMBER(HALYARD_FIT_NATIVE, HALYARD_GRADE_NATIVE);
HALYARD_SAME_NUMBER(HALYARD_SHARING_NONE, hal::Sharing::none);
HALYARD_SAME_NUMBER(HALYARD_SHARING_HOST_MEMORY, hal::Sharing::host_memory);
HALYARD_SAME_NUMBER(HALYARD_SHARING_SAME_DRIVER, hal::Sharing::same_driver);
#undef HALYARD_SAME_NUMBER
static_assert(sizeof(halyard_executable_fit_t::reason) == sizeof(halyard_executable_grade_t::reason));

halyard_status_t halyard_device_describe(halyard_device_t device, halyard_device_description_t* description) {
  return guarded([&]() -> Result<> {
    const auto* of = HALYARD_TRY(checked<hal::Device>(device));
    const halyard_device_properties_t& properties = of->properties();
    halyard_device_description_t filled = {};
    filled.capabilities = properties.capabilities;
    filled.operations = properties.operations;
    filled.queue_count = properties.queue_count;
    filled.memory_alignment = properties.memory_alignment;
    filled.maximum_allocation = properties.maximum_allocation;
    filled.import_alignment = properties.import_alignment;
    filled.driver = of->id().c_str();
    filled.library = of->library().path().c_str();
    filled.library_version = of->library().version().c_str();
    return fill_info(description, filled, "description");
  });
}

const char* halyard_capability_name(uint32_t bit) {
  static constexpr std::array kNames = {"runs in caller",   "unified memory",   "host coherent",
                                        "queue alloca",     "semaphore export", "collectives",
                                        "writes constants", "stops work"};
  return bit < kNames.size() ? kNames[bit] : nullptr;
}

const char* halyard_operation_name(uint32_t operation) { return kit::operation_name(operation); }

halyard_status_t halyard_device_query(halyard_device_t device, const char* category, const char* key,
                                      int32_t* known, int64_t* value) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(known, "known"));
    HALYARD_TRY(check_output(value, "value"));
    const hal::Device* const of = HALYARD_TRY(checked<hal::Device>(device));
    const std::string_view group = HALYARD_TRY(given_text(category, "category"));
    const auto answer = of->query_i64(group, HALYARD_TRY(given_text(key, "key")));
    *known = answer.known;
    *value = answer.value;
    return {};
  });
}

halyard_status_t halyard_device_judge(halyard_device_t device, const char* format, const void* data,
                                      size_t size, halyard_executable_fit_t* fit) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(fit, "fit"));
    HALYARD_TRY(check_array(data, size, "bytes", "data"));
    const auto grade = HALYARD_TRY(checked<hal::Device>(device))
                           ->grade_executable(HALYARD_TRY(given_text(format, "format")), data, size);
    halyard_executable_fit_t filled = {};
    filled.fit = grade.grade;
    grade.reason.copy(filled.reason, sizeof filled.reason - 1);
    return fill_info(fit, filled, "fit");
  });
}

uint32_t halyard_device_sharing(halyard_device_t owner, halyard_device_t user) {
  const Result<hal::Device*> from = checked<hal::Device>(owner);
  const Result<hal::Device*> to = checked<hal::Device>(user);
  return from && to ? static_cast<uint32_t>(hal::sharing(**from, **to)) : uint32_t{HALYARD_SHARING_NONE};
}

halyard_status_t halyard_device_memory(halyard_device_t device, halyard_memory_use_t* use) {
  return guarded([&]() -> Result<> {
    const halyard_memory_statistics_t counted =
        HALYARD_TRY(HALYARD_TRY(checked<hal::Device>(device))->statistics());
    return fill_info(use,
                     halyard_memory_use_t{0, 0, counted.host_bytes_live, counted.host_bytes_peak,
                                          counted.host_bytes_allocated, counted.host_bytes_freed,
                                          counted.device_bytes_live, counted.device_bytes_peak,
                                          counted.device_bytes_allocated, counted.device_bytes_freed},
                     "use");
  });
}

halyard_status_t halyard_device_memory_log(halyard_device_t device, char** out, size_t* out_size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const hal::Device* const of = HALYARD_TRY(checked<hal::Device>(device));
    if (!of->memory_log())
      return fail(Code::FAILED_PRECONDITION,
                  "device '{}' does not log its memory; make the instance with a trace or with "
                  "HALYARD_INSTANCE_COUNT_OBJECTS",
                  of->uri());
    const hal::MemoryLog::Report report = of->memory_log()->report();
    Json json;
    json.begin('{');
    json.field("device", of->uri());
    json.field("peak_bytes", report.peak_bytes);
    json.field("peak_ns", report.peak_time);
    json.list("alive", report.alive.size(), [&](size_t i) {
      json.field("bytes", report.alive[i].bytes);
      json.field("count", report.alive[i].count);
      json.field("made_by", report.alive[i].made_by);
    });
    json.key("points");
    json.begin('[');
    for (const hal::MemoryLog::Point& point : report.points) {
      json.begin('[');
      json.number(point.time);
      json.number(point.bytes);
      json.end(']');
    }
    json.end(']');
    json.end('}');
    give_text(json.take(), out, out_size);
    return {};
  });
}

halyard_status_t halyard_device_trim(halyard_device_t device) {
  return guarded([&]() -> Result<> { return HALYARD_TRY(checked<hal::Device>(device))->trim(); });
}
