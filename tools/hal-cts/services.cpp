// Counts references to statuses.
#include "services.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "common/standard_streams.h"

namespace halyard::cts {

namespace {
Services& of(void* host) { return *static_cast<Services*>(host); }
std::string_view view(const char* text, size_t size) {
  return text ? std::string_view(text, size) : std::string_view();
}
}  // namespace

Services::Services(Checks& checks) : checks_(checks) {
  std::memset(static_cast<void*>(&grown_.later), 0xEE, sizeof grown_.later);
  halyard_host_services_t& table = grown_.table;
  table.struct_size = sizeof grown_;
  table.host = this;
  table.status_create = [](void* host, halyard_status_code_t code, const char* message, size_t size) {
    return of(host).give(code, view(message, size));
  };
  table.status_retain = [](void* host, halyard_status_t status) -> halyard_status_t {
    if (!status) return nullptr;
    if (Status* it = of(host).alive(status, "status_retain")) ++it->references;
    return status;
  };
  table.status_release = [](void* host, halyard_status_t status) {
    of(host).release(status, "status_release");
  };
  table.status_code = [](void* host, halyard_status_t status) -> halyard_status_code_t {
    if (!status) return HALYARD_OK;
    const Status* it = of(host).alive(status, "status_code");
    return it ? it->code : HALYARD_UNKNOWN;
  };
  table.status_message = [](void* host, halyard_status_t status) -> const char* {
    const Status* it = of(host).alive(status, "status_message");
    return it ? it->message.c_str() : "";
  };
  // Creates another status, so that holders of the old one do not see the note.
  table.status_note = [](void* host, halyard_status_t status, const char* note,
                         size_t size) -> halyard_status_t {
    if (!status) return nullptr;
    const Status* it = of(host).alive(status, "status_note");
    if (!it) return status;
    halyard_status_t noted = of(host).give(it->code, it->message + "; " + std::string(view(note, size)));
    of(host).release(status, "status_note");
    return noted;
  };
  table.log = [](void*, int32_t, const char* line, size_t size) {
    tools::print_error("driver: {}\n", view(line, size));
  };
}

Services::~Services() {
  for (Status* it : live_) delete it;
  for (Status* it : dead_) delete it;
}

halyard_status_t Services::give(halyard_status_code_t code, std::string_view message) {
  auto* made = new Status;
  const bool known = code > HALYARD_OK && code <= HALYARD_INCOMPATIBLE && code != HALYARD_DEFERRED;
  made->code = known ? code : halyard_status_code_t{HALYARD_UNKNOWN};
  made->message = message;
  const std::lock_guard lock(mutex_);
  live_.insert(made);
  return reinterpret_cast<halyard_status_t>(made);
}

Services::Status* Services::alive(halyard_status_t status, const char* used_by) {
  auto* const it = reinterpret_cast<Status*>(status);
  std::string found = "a pointer that no status_create gave";
  {
    const std::lock_guard lock(mutex_);
    if (live_.contains(it)) return it;
    if (dead_.contains(it))
      found = fmt::format("one that has been released as often as it was given: '{}'", it->message);
  }
  checks_.problem("R52", fmt::format("argument of {}", used_by), "a status that is still referenced", found);
  return nullptr;
}

void Services::release(halyard_status_t status, const char* released_by) {
  if (!status) return;
  Status* const it = alive(status, released_by);
  if (!it || --it->references > 0) return;
  const std::lock_guard lock(mutex_);
  live_.erase(it);
  dead_.insert(it);
}

Outcome Services::take(halyard_status_t status) {
  if (!status) return {};
  const Status* const it = alive(status, "a status that the driver returned");
  Outcome outcome{it ? it->code : halyard_status_code_t{HALYARD_UNKNOWN}, it ? it->message : ""};
  if (it) release(status, "the host");
  return outcome;
}

void Services::check_none_left() {
  std::string found;
  {
    const std::lock_guard lock(mutex_);
    if (live_.empty()) return;
    found = fmt::format("{} left, of them {} ('{}')", live_.size(),
                        halyard_status_code_name((*live_.begin())->code), (*live_.begin())->message);
  }
  checks_.problem("R52", "statuses after shutdown", "every reference released", found);
}

}  // namespace halyard::cts
