// The served models: those of --model, and those of a folder, which is searched again on request.
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

// Sorts numbers by value, before other names.
struct VersionOrder {
  bool operator()(const std::string& one, const std::string& two) const;
};

// "NAME[/VERSION][:FUNCTION]=FILE"; the default of VERSION is "1".
Result<ModelSource> parse_model_flag(std::string_view text);

// The versions in FOLDER/NAME/VERSION/. The module is model.vmfb or model.vmasm, or the only file with such
// an extension. The scope of a parameter file beside it (.irpa, .gguf, .safetensors) is the file's name.
// model.json overrides this: {"function": "main", "batch": 8, "parameters": [{"scope": "", "file":
// "weights.irpa"}]}. An invalid version has the reason in `failure`.
struct FoundModel {
  ModelSource source;
  std::string stamp;  // changes when the files change
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

  // `folder` "": none. `batches`: maximum rows of a batch by model name; "" for all other models.
  Repository(const Runtime& runtime, Scheduler& scheduler, Log& log, std::vector<ModelSource> named,
             std::string folder, std::map<std::string, uint64_t> batches);

  // Loads all models and opens the devices. Fails if a model of a flag does not load, or if --batch names no
  // model or one without support; a model of the folder is then not ready.
  Result<> start();
  // Searches for models again. Loads models that are new or have changed, and models on a lost device if it
  // can be opened again; keeps the others. Requests continue meanwhile; requests for a replaced model
  // complete in it. If `only_if_steady`, files that have changed since the last search wait for the next
  // search. One thread at a time.
  void reload(bool only_if_steady);

  // Any thread.
  std::shared_ptr<const Devices> devices() const;
  std::shared_ptr<const Models> models() const;
  // "": the latest version. NOT_FOUND. UNAVAILABLE: it could not be loaded.
  Result<std::shared_ptr<Model>> find(const std::string& name, const std::string& version) const;
  bool is_ready() const;

 private:
  std::vector<FoundModel> look() const;
  Result<> check_batches(const Models& models) const;
  Result<> prepare(Model& model, const std::shared_ptr<Devices>& devices);
  std::shared_ptr<Devices> reopened();
  void publish(Models models, std::shared_ptr<Devices> devices);

  const Runtime& runtime_;
  Scheduler& scheduler_;
  Log& log_;
  const std::vector<ModelSource> named_;
  const std::string folder_;
  const std::map<std::string, uint64_t> batches_;
  std::map<std::string, std::string> seen_;  // stamps of the last search, by file
  mutable std::mutex mutex_;
  std::shared_ptr<const Models> models_;
  std::shared_ptr<Devices> devices_;
};

}  // namespace halyard::tools::serve
