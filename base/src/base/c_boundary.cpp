// The statuses of exceptions.
#include "base/c_boundary.h"

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace halyard {

namespace {

// Never destroyed: threads may still run at exit.
const Status& no_memory = *new Status(Code::RESOURCE_EXHAUSTED, "out of host memory");

}  // namespace

Status out_of_memory() noexcept { return no_memory; }

Status caught_exception() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::owner_dead) return Status(Code::INTERNAL, error.what());
      // Thrown by an event loop after fork() (base/loop.h). what() ends with the text of the error number.
      const std::string text = error.what();
      return Status(Code::FAILED_PRECONDITION, text.substr(0, text.rfind(": ")));
    } catch (const std::exception& exception) {
      return Status(Code::INTERNAL, exception.what());
    } catch (...) {
      return Status(Code::INTERNAL, "an exception of an unknown type");
    }
  } catch (...) {
    return out_of_memory();
  }
}

}  // namespace halyard
