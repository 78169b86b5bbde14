// Loading and unloading of models on the request of clients.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "loader.h"
#include "repository.h"

namespace halyard::tools::serve {

// Why a request is refused without --model_control.
inline constexpr std::string_view kNoControl =
    "clients may not load and unload models; start the server with --model_control to let them";

// Any thread. Requests are done one after another, by the loader.
class ModelControl {
 public:
  ModelControl(Repository& repository, Loader& loader) : repository_(repository), loader_(loader) {}

  // Called on the thread of the loader with the result of Repository::load() or unload(); destroyed without a
  // call if the server ends before.
  using Done = std::move_only_function<void(Result<>)>;
  void load(std::string name, Done done);
  void unload(std::string name, Done done);

 private:
  Repository& repository_;
  Loader& loader_;
};

}  // namespace halyard::tools::serve
