// Drivers use the host's own statuses, so no translation is needed.
#include "hal/driver/host_services.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "base/c_boundary.h"
#include "hal/trace/device_trace.h"

namespace halyard::hal {

namespace {

std::string_view view(const char* text, size_t size) {
  return text ? std::string_view(text, size) : std::string_view();
}

halyard_status_t status_create(void*, halyard_status_code_t code, const char* message, size_t size) noexcept {
  return guarded([&] {
    return to_result(Status(failure_code(static_cast<uint32_t>(code)), std::string(view(message, size))));
  });
}

halyard_status_t status_retain(void*, halyard_status_t handle) noexcept {
  Status status = Status::adopt(handle);
  Status copy = status;
  static_cast<void>(std::move(copy).release());
  return std::move(status).release();
}

void status_release(void*, halyard_status_t handle) noexcept { static_cast<void>(Status::adopt(handle)); }

halyard_status_code_t status_code(void*, halyard_status_t handle) noexcept {
  Status status = Status::adopt(handle);
  const auto code = static_cast<halyard_status_code_t>(status.code());
  static_cast<void>(std::move(status).release());
  return code;
}

const char* status_message(void*, halyard_status_t handle) noexcept {
  Status status = Status::adopt(handle);
  const char* message = status.message().c_str();
  static_cast<void>(std::move(status).release());
  return message;
}

halyard_status_t status_note(void*, halyard_status_t handle, const char* note, size_t size) noexcept {
  return Status::adopt(handle).note(view(note, size)).release();
}

void log_line(void* host, int32_t severity, const char* line, size_t size) noexcept {
  static_cast<const HostServices*>(host)->log(severity, view(line, size));
}

// The arguments of a dispatch's slice: how many threads ran the dispatch, and why it was not more than one.
class SharingArguments {
 public:
  explicit SharingArguments(const halyard_trace_span_t& span) {
    if (!HALYARD_HAS_FIELD(&span, halyard_trace_span_t, threads)) return;
    if (span.threads != 0) arguments_[count_++] = {.name = "threads", .number = span.threads};
    reason_ = reason_of(span.sharing);
    if (reason_) arguments_[count_++] = {.name = "not shared because", .text = reason_};
  }
  std::span<const TraceArgument> view() const { return std::span(arguments_).first(count_); }
  const char* reason() const { return reason_; }  // null: none

 private:
  // Null: the dispatch was shared, or the reason is unknown.
  static const char* reason_of(uint32_t sharing) {
    switch (sharing) {
      case HALYARD_SHARING_ONE_THREAD:
        return "the device runs each dispatch on one thread";
      case HALYARD_SHARING_SEQUENTIAL:
        return "the workgroups of this kernel run one after the other";
      case HALYARD_SHARING_ONE_WORKGROUP:
        return "it has one workgroup";
      case HALYARD_SHARING_TOO_SHORT:
        return "it is too short for more threads to save time";
      case HALYARD_SHARING_NO_IDLE_THREAD:
        return "all other threads were busy";
      default:
        return nullptr;
    }
  }

  std::array<TraceArgument, 2> arguments_;
  size_t count_ = 0;
  const char* reason_ = nullptr;
};

TracedDispatch traced_dispatch(const halyard_trace_span_t& span, const char* not_shared, uint64_t execution,
                               uint64_t command) {
  return {.workgroups = span.workgroups,
          .dispatch_workgroups = span.dispatch_workgroups,
          .operations = span.operations,
          .bytes_read = span.bytes_read,
          .bytes_written = span.bytes_written,
          .checked_loops = span.checked_loops,
          .known = span.known,
          .code = span.code,
          .threads = span.threads,
          .not_shared = not_shared,
          .execution = execution,
          .command = command};
}

// Older drivers report none of this.
bool has_dispatch_facts(const halyard_trace_span_t& span) {
  return HALYARD_HAS_FIELD(&span, halyard_trace_span_t, source_size) &&
         (span.code != HALYARD_CODE_UNKNOWN || span.dispatch_workgroups != 0 || span.known != 0);
}

void trace_span(void* host, const halyard_trace_span_t* span) noexcept {
  if (span->kind == HALYARD_SPAN_THREAD) {
    const auto& services = *static_cast<const HostServices*>(host);
    if (!services.traced_work().is_recorded()) return;
    const SharingArguments sharing(*span);
    const std::string_view name = view(span->name, span->name_size);
    // Older drivers do not name the submission.
    const WorkTrace* const work = HALYARD_HAS_FIELD(span, halyard_trace_span_t, command)
                                      ? static_cast<const WorkTrace*>(span->submission)
                                      : nullptr;
    if (!work && !has_dispatch_facts(*span)) {
      services.tracer()->span(TraceCategory::device, name, span->begin_ns, span->end_ns, sharing.view());
      return;
    }
    const CommandPlace place = work ? work->place_at(span->command) : CommandPlace();
    services.tracer()->dispatch(
        0, name, span->begin_ns, span->end_ns,
        traced_dispatch(*span, sharing.reason(), work ? work->execution() : 0, place.number),
        {view(span->reason, span->reason_size), view(span->uncounted, span->uncounted_size),
         span->source_size != 0 ? view(span->source, span->source_size) : place.source, place.text},
        sharing.view());
  } else if (auto* work = static_cast<WorkTrace*>(span->submission)) {
    work->span_reported(*span);
  }
}

}  // namespace

HostServices::HostServices(std::string driver, DriverLog log, Ref<Tracer> tracer)
    : driver_(std::move(driver)),
      log_(std::move(log)),
      tracer_(std::move(tracer)),
      table_{sizeof(halyard_host_services_t),
             0,
             this,
             status_create,
             status_retain,
             status_release,
             status_code,
             status_message,
             status_note,
             log_line,
             tracer_ ? trace_span : nullptr} {}

// Without memory a log line is dropped, because the driver could not react.
void HostServices::log(int32_t severity, std::string_view line) const noexcept {
  if (!log_) return;
  static_cast<void>(outcome_of([&]() -> Result<> {
    log_(severity, fmt::format("driver {}: {}", driver_, line));
    return {};
  }));
}

}  // namespace halyard::hal
