// The models that are served: those of --model, and those of a folder, which are looked for again when asked.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "log.h"
#include "model.h"
#include "scheduler.h"

namespace halyard::tools::serve {

// Numbers by their value, before other names.
struct VersionOrder {
  bool operator()(const std::string& one, const std::string& two) const;
};

// "NAME[/VERSION][:FUNCTION]=FILE"; without VERSION it is "1".
Result<ModelSource> parse_model_flag(std::string_view text);

// The versions below FOLDER/NAME/VERSION/: one file model.vmfb or model.vmasm, or the only one with such an
// ending. Parameter files beside it (.irpa, .gguf, .safetensors) are of the scope that is their name.
// model.json may say otherwise: {"function": "main", "batch": 8, "parameters": [{"scope": "", "file":
// "weights.irpa"}]}. A version that is wrong has its reason as `failure`.
struct FoundModel {
  ModelSource source;
  std::string stamp;  // changes with the files
  std::optional<Failure> failure;
};
Result<std::vector<FoundModel>> find_models(const std::string& folder);

class Repository {
 public:
  struct Entry {
    std::shared_ptr<Model> model;  // null: it could not be loaded
    std::string why;
    ModelSource source;
    std::string stamp;
  };
  using Versions = std::map<std::string, Entry, VersionOrder>;
  using Models = std::map<std::string, Versions>;

  // `folder` "": none. `batches`: rows of a batch by name of model; "" for all others.
  Repository(const Runtime& runtime, Scheduler& scheduler, Log& log, std::vector<ModelSource> named,
             std::string folder, std::map<std::string, uint64_t> batches);

  // Loads everything and opens the devices. A model of a flag that does not load is a failure; one of the
  // folder is not ready.
  Result<> start();
  // Looks for models again, and loads what is new or has changed, and what was on a device that is lost, if
  // it can be opened again; the others stay. Requests go on meanwhile, and those of a replaced model end in
  // it. If `only_if_steady`, what has changed since the last look waits for the next one. One thread at a
  // time.
  void reload(bool only_if_steady);

  // Any thread.
  std::shared_ptr<const Devices> devices() const;
  std::shared_ptr<const Models> models() const;
  // "": the last version. NOT_FOUND; UNAVAILABLE: it could not be loaded.
  Result<std::shared_ptr<Model>> find(const std::string& name, const std::string& version) const;
  bool is_ready() const;

 private:
  std::vector<FoundModel> look() const;
  Result<> prepare(Model& model, const std::shared_ptr<Devices>& devices);
  std::shared_ptr<Devices> reopened();
  void publish(Models models, std::shared_ptr<Devices> devices);

  const Runtime& runtime_;
  Scheduler& scheduler_;
  Log& log_;
  const std::vector<ModelSource> named_;
  const std::string folder_;
  const std::map<std::string, uint64_t> batches_;
  std::map<std::string, std::string> seen_;  // stamps of the last look, by file
  mutable std::mutex mutex_;
  std::shared_ptr<const Models> models_;
  std::shared_ptr<Devices> devices_;
};

}  // namespace halyard::tools::serve
