// Passes requests to the loader.
#include "model_control.h"

#include <utility>

#include "route.h"

namespace halyard::tools::serve {

Result<> ModelControl::load(std::string name, Done done) {
  return post(std::move(name), std::move(done), &Repository::load);
}

Result<> ModelControl::unload(std::string name, Done done) {
  return post(std::move(name), std::move(done), &Repository::unload);
}

Result<> ModelControl::post(std::string name, Done done, Result<> (Repository::*change)(const std::string&)) {
  if (!is_name(name))
    return fail(
        HALYARD_NOT_FOUND,
        "there is no such model; expected a name of up to 128 letters, digits, '_', '-' and '.'; POST "
        "/v2/repository/index lists the models");
  if (waiting_.fetch_add(1, std::memory_order_relaxed) >= kMaxWaiting) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return fail(HALYARD_UNAVAILABLE, "{} requests to load and unload models wait; try again later",
                kMaxWaiting);
  }
  loader_.post([this, change, name = std::move(name), done = std::move(done)]() mutable {
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    done((repository_.*change)(name));
  });
  return {};
}

}  // namespace halyard::tools::serve
