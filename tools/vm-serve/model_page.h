// The pages of models: what vm-dump --html writes of their modules. A page is computed at its first request,
// not when the model is loaded.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "model.h"
#include "response.h"

namespace halyard::tools::serve {

// Thread-safe. Keeps the pages of loaded models; of more bytes than `most`, those that were used last.
class ModelPages {
 public:
  static constexpr size_t kMostBytes = size_t{128} << 20;

  explicit ModelPages(size_t most = kMostBytes) : most_(most) {}
  // The page; if it cannot be made, the answer says why.
  Response page(const std::shared_ptr<Model>& model);

 private:
  struct Kept {
    std::weak_ptr<Model> model;  // of one version, until it is unloaded or loaded again
    std::shared_ptr<const std::string> text;
  };
  std::shared_ptr<const std::string> find(const std::shared_ptr<Model>& model);
  void keep(const std::shared_ptr<Model>& model, std::shared_ptr<const std::string> text);

  const size_t most_;
  std::mutex making_;     // held while a page is computed, so that it is computed once
  std::mutex mutex_;      // guards the members below
  std::list<Kept> kept_;  // the last used first
  size_t bytes_ = 0;
};

}  // namespace halyard::tools::serve
