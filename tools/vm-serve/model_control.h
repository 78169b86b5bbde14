// Loading and unloading of models on the request of clients.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "loader.h"
#include "repository.h"

namespace halyard::tools::serve {

// Why a request is refused without --model_control.
inline constexpr std::string_view kNoControl =
    "clients may not load and unload models; start the server with --model_control to let them";

// Any thread. Requests are done one after another, by the loader. At most kMaxWaiting wait for it, because
// the client of one may have gone, and then no limit of connections or calls counts it.
class ModelControl {
 public:
  ModelControl(Repository& repository, Loader& loader) : repository_(repository), loader_(loader) {}

  static constexpr size_t kMaxWaiting = 256;

  // Called on the thread of the loader with the result of Repository::load() or unload(); destroyed without a
  // call if the server ends before.
  using Done = std::move_only_function<void(Result<>)>;
  // Failures are those of requests that do not wait. NOT_FOUND: no model can have the name. UNAVAILABLE: too
  // many wait.
  Result<> load(std::string name, Done done);
  Result<> unload(std::string name, Done done);

 private:
  Result<> post(std::string name, Done done, Result<> (Repository::*change)(const std::string&));

  Repository& repository_;
  Loader& loader_;
  std::atomic<size_t> waiting_ = 0;
};

}  // namespace halyard::tools::serve
