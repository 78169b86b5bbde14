// The served models: those of --model, and those of a folder, which is searched again on request.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "log.h"
#include "model.h"
#include "model_folder.h"
#include "scheduler.h"

namespace halyard::tools::serve {

// Sorts numbers by value, before other names.
struct VersionOrder {
  bool operator()(const std::string& one, const std::string& two) const;
};

// "NAME[/VERSION][:FUNCTION]=FILE"; the default of VERSION is "1".
Result<ModelSource> parse_model_flag(std::string_view text);

class Repository {
 public:
  struct Entry {
    std::shared_ptr<Model> model;  // null: it could not be loaded
    std::string why;
    ModelSource source;
    std::string stamp;
    bool is_unloaded = false;  // by unload(); then it has no model
  };
  // One version, as the repository API lists it.
  struct State {
    std::string name;
    std::string version;
    bool is_ready = false;
    std::string reason;  // why it is not ready, or why the newest files were not loaded; may be ""
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
  // Loads what is new or has changed of one model, also if it is unloaded. On the thread of reload().
  // NOT_FOUND: neither the flags nor the folder have it. FAILED_PRECONDITION: a version does not load; the
  // message has the reason.
  Result<> load(const std::string& name);
  // Forgets all versions of a model, and does not load it again before load(). Requests that have begun
  // complete. On the thread of reload(). NOT_FOUND.
  Result<> unload(const std::string& name);

  // Any thread.
  std::shared_ptr<const Devices> devices() const;
  std::shared_ptr<const Models> models() const;
  std::vector<State> index() const;
  // "": the latest version. NOT_FOUND: no such model, or it is unloaded. UNAVAILABLE: it could not be loaded.
  Result<std::shared_ptr<Model>> find(const std::string& name, const std::string& version) const;

 private:
  static const Entry* find_entry(const Models& models, const ModelSource& source);
  static bool is_current(const Entry* entry, const FoundModel& found, const Devices& devices);
  static bool is_stranded(const Entry* entry, const Devices& devices);
  static Entry unloaded_entry(const FoundModel& found);
  Entry loaded(const FoundModel& found, const Entry* old, const std::shared_ptr<Devices>& devices);
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
  std::set<std::string> unloaded_;           // names of models; only the thread of reload()
  mutable std::mutex mutex_;
  std::shared_ptr<const Models> models_;
  std::shared_ptr<Devices> devices_;
};

}  // namespace halyard::tools::serve
