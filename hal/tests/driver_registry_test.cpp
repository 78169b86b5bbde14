// The registry: the places of the search, their order, and the reasons for refusals.
#include "hal/registry/driver_registry.h"

#include <gtest/gtest.h>

#include <optional>

#include "hal/registry/driver_probe.h"
#include "sample_drivers.h"

namespace halyard::hal {
namespace {

// Sets an environment variable for the duration of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

RegistryOptions only(std::vector<std::string> libraries, std::vector<std::string> folders) {
  RegistryOptions options;
  options.libraries = std::move(libraries);
  options.folders = std::move(folders);
  options.use_environment = false;
  options.use_default_folders = false;
  return options;
}

Ref<DriverRegistry> registry_of(const TemporaryFolder& folder) {
  return DriverRegistry::create(only({}, {folder.path()}));
}

std::vector<std::string> kind_names(DriverRegistry& registry) {
  std::vector<std::string> names;
  for (const auto& kind : registry.kinds()) names.push_back(kind.name);
  return names;
}

std::vector<std::string> candidate_paths(DriverRegistry& registry) {
  std::vector<std::string> paths;
  for (const auto& candidate : registry.explain()) paths.push_back(candidate.path);
  return paths;
}

TEST(DeviceUri, Forms) {
  auto uri = DeviceUri::parse("local-sync").value();
  EXPECT_EQ(uri.kind, "local-sync");
  EXPECT_EQ(uri.path, "");
  EXPECT_TRUE(uri.options.empty());
  uri = DeviceUri::parse("local-sync://").value();
  EXPECT_EQ(uri.kind, "local-sync");
  EXPECT_EQ(uri.path, "");
  for (const char* const text :
       {" local-sync", "local-sync ", "\tlocal-sync\r\n", "local-sync:", " local-sync: "}) {
    uri = DeviceUri::parse(text).value();
    EXPECT_EQ(uri.kind, "local-sync") << text;
    EXPECT_EQ(uri.path, "") << text;
  }
  uri = DeviceUri::parse(" vulkan:?a=1 ").value();
  EXPECT_EQ(uri.kind, "vulkan");
  EXPECT_EQ(uri.options.at(0).second, "1");
  uri = DeviceUri::parse("vulkan://0").value();
  EXPECT_EQ(uri.path, "0");
  uri = DeviceUri::parse("vulkan://GPU-1/2?a=1&b=x=y&c=").value();
  EXPECT_EQ(uri.path, "GPU-1/2");
  EXPECT_EQ(uri.options,
            (std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", "x=y"}, {"c", ""}}));
  uri = DeviceUri::parse("vulkan://?a=1").value();
  EXPECT_EQ(uri.path, "");
  EXPECT_EQ(uri.options.size(), 1u);
  EXPECT_TRUE(DeviceUri::parse("vulkan://0?").value().options.empty());
  uri = DeviceUri::parse("local-task?workers=2&path=a://b").value();
  EXPECT_EQ(uri.kind, "local-task");
  EXPECT_EQ(uri.path, "");
  EXPECT_EQ(uri.options,
            (std::vector<std::pair<std::string, std::string>>{{"workers", "2"}, {"path", "a://b"}}));
}

TEST(DeviceUri, Mistakes) {
  for (const char* text : {"", "://0", "?a=b", " ", ":"})
    EXPECT_FAILS(INVALID_ARGUMENT, "the driver is missing", DeviceUri::parse(text)) << text;
  const std::pair<const char*, const char*> mistakes[] = {
      {"a b", "'a b' is not the name of a driver"},
      {"vulkan:0", "'vulkan:0' is not the name of a driver"},
      {"vulkan?a", "option 'a' is not key=value"},
      {"vulkan://0?a", "option 'a' is not key=value"},
      {"vulkan://0?=b", "option '=b' is not key=value"},
      {"vulkan://0?a=b&&c=d", "option '' is not key=value"},
      {"vulkan://0?a=b&", "missing after the last '&'"},
      {"vulkan://0?a=b&a=c", "option 'a' is given twice"},
      {"", "expected driver[://path][?key=value&...]"}};
  for (const auto& [text, message] : mistakes)
    EXPECT_FAILS(INVALID_ARGUMENT, message, DeviceUri::parse(text));
}

TEST(DriverRegistry, FindsDriversInFolders) {
  const TemporaryFolder folder;
  const std::string sample = folder.add("sample");
  folder.add("newer");
  folder.write("notes.txt", {1, 2, 3});
  folder.write("libother.so", {1, 2, 3});
  auto registry = registry_of(folder);
  EXPECT_EQ(kind_names(*registry), (std::vector<std::string>{"newer", "sample", "sample-b"}));
  EXPECT_EQ(registry->kinds()[1].description, "the first sample");
  EXPECT_EQ(registry->kinds()[1].library_path, sample);
  EXPECT_EQ(registry->searched_folders(), std::vector<std::string>{folder.path()});
  EXPECT_EQ(registry->explain().size(), 2u);
}

TEST(DriverRegistry, LoadsOnlyRequestedDrivers) {
  const TemporaryFolder folder{"sample", "newer"};
  std::vector<std::string> lines;
  RegistryOptions options = only({}, {folder.path()});
  options.log = [&](int32_t, std::string_view line) { lines.emplace_back(line); };
  auto registry = DriverRegistry::create(std::move(options));
  EXPECT_FALSE(registry->explain()[0].loaded);
  EXPECT_TRUE(lines.empty());
  auto device = registry->open_device("newer");
  ASSERT_TRUE(device) << device.error().text();
  EXPECT_EQ((*device)->uri(), "newer://");
  EXPECT_EQ(lines, std::vector<std::string>{"driver newer: ready"});
  EXPECT_TRUE(registry->explain()[0].loaded);
  EXPECT_FALSE(registry->explain()[1].loaded);
  registry = nullptr;
  EXPECT_EQ((*device)->properties().queue_count, 4u);
  *device = nullptr;
  EXPECT_EQ(lines.back(), "driver newer: gone");
}

TEST(DriverRegistry, ExplicitLibrariesComeFirst) {
  const TemporaryFolder first{"sample"}, second{"twin"};
  const std::string twin = second.driver("twin"), sample = first.driver("sample");
  auto registry = DriverRegistry::create(only({twin}, {first.path(), second.path()}));
  EXPECT_EQ(candidate_paths(*registry), (std::vector<std::string>{twin, sample}));
  EXPECT_EQ(registry->open_device("sample").value()->library().path(), twin);
  EXPECT_EQ(registry->open_device("sample-b").value()->library().path(), sample);
}

TEST(DriverRegistry, LaterDriversOfAKindAreShadowed) {
  const TemporaryFolder first{"sample"}, second{"twin", "partial"};
  const std::string sample = first.driver("sample"), twin = second.driver("twin"),
                    partial = second.driver("partial");
  auto registry = DriverRegistry::create(only({}, {first.path(), second.path()}));
  EXPECT_EQ(kind_names(*registry), (std::vector<std::string>{"sample", "sample-b", "third"}));
  const auto candidates = registry->explain();
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_OK(candidates[0].status);
  EXPECT_EQ(candidates[1].path, partial);
  EXPECT_OK(candidates[1].status);
  EXPECT_EQ(candidates[2].path, twin);
  EXPECT_FAILS(ALREADY_EXISTS, "is shadowed by '" + sample + "'", candidates[2].status);
  EXPECT_FALSE(candidates[2].loaded);
  EXPECT_EQ(registry->open_device("sample-b").value()->library().path(), sample);
  EXPECT_EQ(registry->open_device("third").value()->library().path(), partial);
}

TEST(DriverRegistry, OneFileIsOneCandidate) {
  const TemporaryFolder folder;
  const std::string sample = folder.add("sample");
  const TemporaryFolder links;
  std::filesystem::create_symlink(sample, links.path() + "/halyard-driver-sample.so");
  auto registry =
      DriverRegistry::create(only({sample, sample}, {folder.path(), folder.path() + "/.", links.path()}));
  EXPECT_EQ(registry->explain().size(), 1u);
}

TEST(DriverRegistry, OneBadDriverHurtsOnlyItself) {
  const TemporaryFolder folder{"sample",   "future", "zero",    "instrumented", "noteless",   "symbolless",
                               "refusing", "liar",   "renamed", "unavailable",  "unresolved", "older"};
  folder.write("halyard-driver-junk.so", {'j', 'u', 'n', 'k'});
  folder.add("newer", "halyard-driver-misnamed.so");
  auto registry = registry_of(folder);
  EXPECT_EQ(kind_names(*registry), (std::vector<std::string>{"sample", "sample-b"}));
  EXPECT_EQ(registry->devices("").value().size(), 4u);
  size_t refused = 0;
  for (const auto& candidate : registry->explain()) {
    EXPECT_EQ(candidate.loaded, candidate.library == "sample");
    if (candidate.status) {
      ++refused;
      EXPECT_NE(candidate.status.text().find(candidate.path), std::string::npos) << candidate.status.text();
    }
  }
  EXPECT_EQ(refused, 13u);
}

TEST(DriverRegistry, RequestsForARefusedDriverGiveTheReason) {
  const TemporaryFolder folder{"future", "noteless", "unavailable", "refusing"};
  folder.write("halyard-driver-junk.so", {'j', 'u', 'n', 'k'});
  auto registry = registry_of(folder);
  EXPECT_FAILS(NOT_FOUND, "supports driver ABI 2..3", registry->open_device("future"));
  EXPECT_FAILS(NOT_FOUND, "not a Halyard driver", registry->open_device("noteless://0"));
  EXPECT_FAILS(NOT_FOUND, "no ELF file", registry->open_device("junk"));
  EXPECT_FAILS(UNAVAILABLE, "no hardware is plugged in", registry->open_device("unavailable"));
  EXPECT_FAILS(INCOMPATIBLE, "only on Sundays", registry->open_device("refusing"));
  EXPECT_FAILS(UNAVAILABLE, "no hardware is plugged in", registry->devices("unavailable"));
  EXPECT_FAILS(NOT_FOUND, "supports driver ABI 2..3", registry->devices("future"));
}

TEST(DriverRegistry, UnknownKinds) {
  const TemporaryFolder folder{"sample"};
  auto registry = registry_of(folder);
  EXPECT_FAILS(NOT_FOUND, "no driver for devices of kind 'bogus'; there are sample, sample-b",
               registry->open_device("bogus"));
  EXPECT_FAILS(NOT_FOUND, "did you mean 'sample'?", registry->open_device("smaple"));
  EXPECT_FAILS(NOT_FOUND, "no driver for devices of kind 'bogus'", registry->devices("bogus"));
  EXPECT_FAILS(INVALID_ARGUMENT, "is not key=value", registry->open_device("sample://x?y"));
  const TemporaryFolder empty;
  EXPECT_FAILS(NOT_FOUND, "there is no driver at all", registry_of(empty)->open_device("x"));
}

TEST(DriverRegistry, ListsDevices) {
  const TemporaryFolder folder{"sample", "newer"};
  auto registry = registry_of(folder);
  const auto uris = [&](std::string_view kind) {
    std::vector<std::string> list;
    const auto entries = registry->devices(kind).value();
    for (const auto& entry : entries) list.push_back(entry.uri);
    return list;
  };
  EXPECT_EQ(uris("sample-b"), (std::vector<std::string>{"sample-b://", "sample-b://slack"}));
  EXPECT_EQ(uris(""), (std::vector<std::string>{"newer://", "newer://slack", "sample://", "sample://slack",
                                                "sample-b://", "sample-b://slack"}));
  EXPECT_EQ(registry->devices("sample").value()[0].name, "plain sample");
}

TEST(DriverRegistry, OpensDevicesByUri) {
  const TemporaryFolder folder{"sample"};
  auto registry = registry_of(folder);
  EXPECT_EQ(registry->open_device("sample").value()->uri(), "sample://");
  EXPECT_EQ(registry->open_device("sample://slack").value()->path(), "slack");
  EXPECT_EQ(registry->open_device("sample-b://").value()->id(), "sample-b");
  EXPECT_OK(registry->open_device("sample://?label=x"));
  EXPECT_FAILS(INVALID_ARGUMENT, "unknown option", registry->open_device("sample://?colour=red"));
  EXPECT_FAILS(NOT_FOUND, "no such sample", registry->open_device("sample://nowhere"));
  auto first = registry->open_device("sample").value();
  auto second = registry->open_device("sample").value();
  EXPECT_NE(first, second);
  EXPECT_EQ(&first->library(), &second->library());
}

TEST(DriverRegistry, TheEnvironmentNamesFilesAndFolders) {
  const TemporaryFolder folder;
  const TemporaryFolder more;
  const std::string newer = folder.add("newer");
  folder.add("twin");
  const std::string sample = more.add("sample");
  const Variable variable("HALYARD_DRIVER_PATH",
                          newer + "::" + more.path() + ":/none/such:/none/halyard-driver-x.so");
  RegistryOptions options = only({}, {});
  EXPECT_TRUE(DriverRegistry::create(options)->explain().empty());
  options.use_environment = true;
  auto registry = DriverRegistry::create(options);
  EXPECT_EQ(candidate_paths(*registry),
            (std::vector<std::string>{newer, sample, "/none/halyard-driver-x.so"}));
  EXPECT_FAILS(NOT_FOUND, "/none/halyard-driver-x.so", registry->explain()[2].status);
  EXPECT_EQ(registry->searched_folders(), (std::vector<std::string>{more.path(), "/none/such"}));
}

TEST(DriverRegistry, TheCurrentFolderIsNeverSearched) {
  const TemporaryFolder folder{"sample"};
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const Variable variable("HALYARD_DRIVER_PATH", ".:halyard-driver-sample.so::");
  RegistryOptions options = only({}, {});
  options.use_environment = true;
  options.use_default_folders = true;
  auto registry = DriverRegistry::create(options);
  std::filesystem::current_path(before);
  const auto candidates = registry->explain();
  ASSERT_GE(candidates.size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_FAILS(INVALID_ARGUMENT, "give a path that starts with '/'", candidates[i].status);
  for (const auto& candidate : candidates)
    EXPECT_FALSE(candidate.path.starts_with(folder.path())) << candidate.path;
  for (const std::string& searched : registry->searched_folders())
    EXPECT_EQ(searched.front(), '/') << searched;
  EXPECT_FALSE(registry->open_device("sample"));
}

TEST(DriverRegistry, TheUsersFolderComesBeforeTheInstalledOne) {
  const TemporaryFolder home;
  const std::string drivers = home.path() + "/.local/lib/halyard/drivers";
  std::filesystem::create_directories(drivers);
  std::filesystem::copy_file(sample_path("sample"), drivers + "/halyard-driver-sample.so");
  const Variable variable("HOME", home.path());
  RegistryOptions options = only({}, {});
  options.use_default_folders = true;
  auto registry = DriverRegistry::create(options);
  ASSERT_EQ(registry->searched_folders().size(), 3u);
  EXPECT_EQ(registry->searched_folders()[0], drivers);
  const auto own = std::filesystem::canonical("/proc/self/exe").parent_path();
  EXPECT_EQ(registry->searched_folders()[1], (own / "halyard/drivers").string());
  EXPECT_EQ(registry->searched_folders()[2], (own.parent_path() / "lib/halyard/drivers").string());
  EXPECT_OK(registry->open_device("sample"));
}

TEST(DriverRegistry, EmbeddersMayGiveRelativePaths) {
  const TemporaryFolder folder{"sample"};
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  auto by_folder = DriverRegistry::create(only({}, {"."}));
  auto by_file = DriverRegistry::create(only({"halyard-driver-sample.so"}, {}));
  std::filesystem::current_path(before);
  EXPECT_OK(by_folder->open_device("sample"));
  EXPECT_OK(by_file->open_device("sample"));
}

TEST(DriverRegistry, ListsTheStepsOfTheSearch) {
  using Origin = DriverRegistry::Origin;
  const TemporaryFolder first{"sample"}, second{"twin", "partial"};
  const std::string sample = first.driver("sample"), twin = second.driver("twin"),
                    partial = second.driver("partial");
  first.write("notes.txt", {1});
  const std::string link = second.path() + "/halyard-driver-again.so";
  std::filesystem::create_symlink(sample, link);
  const std::string plain = first.path() + "/notes.txt";
  const Variable variable("HALYARD_DRIVER_PATH", second.path() + "::here:" + plain);
  RegistryOptions options =
      only({sample, "/none/halyard-driver-x.so"}, {first.path(), "/none", first.path()});
  options.use_environment = true;
  auto registry = DriverRegistry::create(options);
  const std::vector<DriverRegistry::Step> steps = registry->search();
  struct Expected {
    Origin origin;
    bool folder;
    std::string path;
    Code code;
  };
  const Expected expected[] = {
      {Origin::embedder, false, sample, Code::OK},
      {Origin::embedder, false, "/none/halyard-driver-x.so", Code::NOT_FOUND},
      {Origin::embedder, true, first.path(), Code::OK},
      {Origin::embedder, false, sample, Code::ALREADY_EXISTS},
      {Origin::embedder, true, "/none", Code::NOT_FOUND},
      {Origin::embedder, true, first.path(), Code::ALREADY_EXISTS},
      {Origin::environment, true, second.path(), Code::OK},
      {Origin::environment, false, link, Code::ALREADY_EXISTS},
      {Origin::environment, false, partial, Code::OK},
      {Origin::environment, false, twin, Code::ALREADY_EXISTS},
      {Origin::environment, false, "", Code::INVALID_ARGUMENT},
      {Origin::environment, false, "here", Code::INVALID_ARGUMENT},
      {Origin::environment, true, plain, Code::INVALID_ARGUMENT},
  };
  ASSERT_EQ(steps.size(), std::size(expected));
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].origin, expected[i].origin) << i;
    EXPECT_EQ(steps[i].folder, expected[i].folder) << i;
    EXPECT_EQ(steps[i].path, expected[i].path) << i;
    const Status& status = steps[i].candidate ? steps[i].candidate->status : steps[i].skipped;
    EXPECT_EQ(status.code(), expected[i].code) << i << status.text();
  }
  EXPECT_EQ(steps[2].other_files, 1u);
  EXPECT_EQ(steps[0].serves, (std::vector<std::string>{"sample", "sample-b"}));
  EXPECT_EQ(steps[8].serves, std::vector<std::string>{"third"});
  EXPECT_TRUE(steps[9].serves.empty());
  EXPECT_EQ(steps[8].candidate->note.abi_max, 1u);
  EXPECT_FALSE(steps[7].candidate);
}

TEST(DriverProbe, ReportsEachStepBeforeItRuns) {
  std::vector<std::string> steps;
  const auto collect = [&](const char* step) { steps.emplace_back(step); };
  EXPECT_OK(probe_driver(sample_path("sample"), collect));
  EXPECT_EQ(steps,
            (std::vector<std::string>{"load", "negotiate", "initialize", "enumerate_devices", "device_open",
                                      "device_open", "device_open", "device_open", "shutdown"}));
  const auto stopped = [&](const char* name) {
    steps.clear();
    const auto done = probe_driver(sample_path(name), collect);
    EXPECT_FALSE(done) << name;
    return steps.empty() ? "" : steps.back();
  };
  EXPECT_EQ(stopped("zero"), "");
  EXPECT_EQ(stopped("unresolved"), "load");
  EXPECT_EQ(stopped("refusing"), "negotiate");
  EXPECT_EQ(stopped("unavailable"), "initialize");
}

}  // namespace
}  // namespace halyard::hal
