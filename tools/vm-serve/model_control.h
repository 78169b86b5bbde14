// Loading and unloading of models on the request of clients.
#pragma once

#include <functional>
#include <string>

#include "loader.h"
#include "repository.h"

namespace halyard::tools::serve {

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
