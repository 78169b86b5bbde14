// The error object behind Status.
#include "base/status.h"

#include <atomic>
#include <exception>
#include <new>
#include <system_error>
#include <vector>

struct halyard_status {
  std::atomic<uint32_t> references{1};
  halyard::Code code;
  std::string message;
  std::vector<std::string> notes;
  halyard::Status cause;

  halyard_status(halyard::Code code, std::string message) : code(code), message(std::move(message)) {}
  halyard_status(const halyard_status& other)
      : code(other.code), message(other.message), notes(other.notes), cause(other.cause) {}
};

namespace halyard {

namespace {

void drop(halyard_status_t error) {
  if (error->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete error;
}

// Changes an error for the caller: the same error, or a copy if it is shared. If there is no memory for the
// change, the change is dropped; the status is then less complete, but not wrong.
template <typename Change>
void change(halyard_status_t& error, Change&& make) noexcept {
  try {
    if (error->references.load(std::memory_order_acquire) != 1) {
      auto* own = new halyard_status(*error);
      drop(std::exchange(error, own));
    }
    make(*error);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

Code failure_code(uint32_t number) {
  if (number == 0 || number > 18 || number == static_cast<uint32_t>(Code::DEFERRED)) return Code::UNKNOWN;
  return static_cast<Code>(number);
}

Status::Status(Code code, std::string message)
    : error_(code == Code::OK ? nullptr : new halyard_status(code, std::move(message))) {}

halyard_status_t Status::retained(halyard_status_t error) noexcept {
  error->references.fetch_add(1, std::memory_order_relaxed);
  return error;
}

void Status::drop(halyard_status_t error) noexcept { halyard::drop(error); }

Code Status::code() const { return error_ ? error_->code : Code::OK; }

const std::string& Status::message() const {
  static const std::string& none = *new std::string;  // never destroyed: threads may still run at exit
  return error_ ? error_->message : none;
}

std::string Status::text() const {
  if (!error_) return "OK";
  std::string text = name(error_->code);
  if (!error_->message.empty()) text += "; " + error_->message;
  for (const std::string& note : error_->notes) text += "; " + note;
  if (error_->cause) text += "\n  caused by: " + error_->cause.text();
  return text;
}

Status Status::note(std::string_view text) && {
  if (error_) change(error_, [text](halyard_status& error) { error.notes.emplace_back(text); });
  return std::move(*this);
}

Status Status::caused_by(Status cause) && {
  if (error_) change(error_, [&cause](halyard_status& error) { error.cause = std::move(cause); });
  return std::move(*this);
}

}  // namespace halyard
