// Passes requests to the loader.
#include "model_control.h"

#include <utility>

namespace halyard::tools::serve {

void ModelControl::load(std::string name, Done done) {
  loader_.post(
      [this, name = std::move(name), done = std::move(done)]() mutable { done(repository_.load(name)); });
}

void ModelControl::unload(std::string name, Done done) {
  loader_.post(
      [this, name = std::move(name), done = std::move(done)]() mutable { done(repository_.unload(name)); });
}

}  // namespace halyard::tools::serve
