// From the file of a channel provider to the provider, and the choice among the files; each step that can
// fail does.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "hal/channel/find_provider.h"
#include "hal/channel/local_world.h"
#include "sample_drivers.h"
#include "status_testing.h"

namespace halyard::hal {
namespace {

const std::string kChannels = HALYARD_TEST_CHANNELS;

// A variable that has a value, or none (null), until the end of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    set(value);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) {
    if (value)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
};

std::string channel_path(const std::string& name) { return kChannels + "/halyard-channel-" + name + ".so"; }

// A new file of the sample provider, because a library is opened once in a process.
class SampleChannel {
 public:
  explicit SampleChannel(const std::function<void(halyard_channel_note_t&)>& change = {}) {
    std::vector<uint8_t> bytes = file_bytes(channel_path("sample"));
    if (change) {
      const char name[32] = "sample";  // in the note alone, with these zeros
      const auto at = std::search(bytes.begin(), bytes.end(), std::begin(name), std::end(name));
      uint8_t* const start = &*at - offsetof(halyard_channel_note_t, library);
      halyard_channel_note_t note;
      std::memcpy(&note, start, sizeof note);
      change(note);
      std::memcpy(start, &note, sizeof note);
    }
    path = folder_.write("halyard-channel-sample.so", bytes);
  }
  std::string path;

 private:
  TemporaryFolder folder_;
};

TEST(ChannelProvider, JoinsAJob) {
  const SampleChannel sample;
  for (const char* error : {"", "long"}) {
    const ScopedVariable makes("HALYARD_TEST_CHANNEL", error);
    const SampleChannel other;
    const auto provider = ASSERT_VALUE(ChannelProvider::open(other.path));
    EXPECT_EQ(provider->name(), other.path);
    const auto world = ASSERT_VALUE(provider->world());
    EXPECT_EQ(world.rank, 1u);
    EXPECT_EQ(world.count, 3u);
    EXPECT_EQ(ASSERT_VALUE(ChannelProvider::open(other.path)).get(), provider.get())
        << "a job is joined once";
    ASSERT_OK(provider->import("mine", "MPI_Comm", 7));
    EXPECT_STREQ(ASSERT_VALUE(provider->world()).description, "mine:MPI_Comm");
    EXPECT_FAILS(INVALID_ARGUMENT, "no such communicator", provider->import("mine", "MPI_Comm", 8));
  }
  const ScopedVariable makes("HALYARD_TEST_CHANNEL", "worldless");
  const auto provider = ASSERT_VALUE(ChannelProvider::open(sample.path));
  EXPECT_FAILS(DATA_LOSS, "the job is gone", provider->world());
}

TEST(ChannelProvider, FunctionsThatMayBeMissingAre) {
  const ScopedVariable makes("HALYARD_TEST_CHANNEL", "no import");
  const SampleChannel sample;
  const auto provider = ASSERT_VALUE(ChannelProvider::open(sample.path));
  EXPECT_FAILS(UNIMPLEMENTED, "takes no communicators of others", provider->import("mine", "MPI_Comm", 7));
}

TEST(ChannelProvider, ErrorsOfNegotiation) {
  struct {
    const char* error;
    const char* part;
  } const cases[] = {
      {"refuses", "refuses this host: not on a Tuesday"},
      {"refuses silently", "refuses this host: it gives no reason"},
      {"of the future", "chose channel ABI 2; expected 1 and a table"},
      {"of version 0", "chose channel ABI 0; expected 1 and a table"},
      {"tableless", "expected 1 and a table of functions"},
      {"short", "lacks functions that channel ABI 1 demands"},
      {"no initialize", "lacks functions"},
      {"no shutdown", "lacks functions"},
      {"no world", "lacks functions"},
      {"no channel_open", "lacks functions"},
      {"no channel_split", "lacks functions"},
      {"no channel_place", "lacks functions"},
      {"no channel_close", "lacks functions"},
      {"no submit", "lacks functions"},
  };
  const SampleChannel sample;
  for (const auto& [error, part] : cases) {
    SCOPED_TRACE(error);
    const ScopedVariable makes("HALYARD_TEST_CHANNEL", error);
    EXPECT_FAILS(INCOMPATIBLE, part, ChannelProvider::open(sample.path));
  }
  // A failure is not kept: the next attempt may succeed.
  ASSERT_OK(ChannelProvider::open(sample.path));
}

TEST(ChannelProvider, ErrorsOfJoining) {
  const SampleChannel sample;
  {
    const ScopedVariable makes("HALYARD_TEST_CHANNEL", "unavailable");
    EXPECT_FAILS(UNAVAILABLE, "no network; while joining a job with '" + sample.path,
                 ChannelProvider::open(sample.path));
  }
  {
    const ScopedVariable makes("HALYARD_TEST_CHANNEL", "handleless");
    EXPECT_FAILS(INTERNAL, "was initialized but gave no handle", ChannelProvider::open(sample.path));
  }
  const ScopedVariable makes("HALYARD_TEST_CHANNEL", "late");
  const char* const variables[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                                   "SLURM_PROCID",         "SLURM_NTASKS"};
  std::vector<std::unique_ptr<ScopedVariable>> unset;
  for (const char* name : variables) unset.push_back(std::make_unique<ScopedVariable>(name, nullptr));
  struct {
    const char* rank;
    const char* count;
    const char* part;
  } const cases[] = {
      {nullptr, nullptr, "some processes of the job have not come"},
      {"0", "1", "some processes of the job have not come"},
      {"0", "2", "this is rank 0 of 2, and rank 1 has not come"},
      {"1", "2", "this is rank 1 of 2, and rank 0 has not come"},
      {"2", "4", "this is rank 2 of 4, and of the others some have not come"},
  };
  for (const auto& [rank, count, part] : cases) {
    const ScopedVariable ranks("PMI_RANK", rank), counts("PMI_SIZE", count);
    EXPECT_FAILS(DEADLINE_EXCEEDED, part, ChannelProvider::open(sample.path, 1));
  }
}

TEST(ChannelProvider, ErrorsOfTheFile) {
  EXPECT_FAILS(INVALID_ARGUMENT, "'' is not the path of a channel provider", ChannelProvider::open(""));
  EXPECT_FAILS(NOT_FOUND, "/nowhere/provider.so", ChannelProvider::open("/nowhere/provider.so"));
  EXPECT_FAILS(NOT_FOUND, "HALYARD_CHANNEL_NOTE", ChannelProvider::open(channel_path("noteless")));
  const SampleChannel newer([](halyard_channel_note_t& note) { note.abi_min = note.abi_max = 2; });
  EXPECT_FAILS(INCOMPATIBLE, "channel ABI", ChannelProvider::open(newer.path));
  const SampleChannel zero([](halyard_channel_note_t& note) { note.abi_min = note.abi_max = 0; });
  EXPECT_FAILS(INCOMPATIBLE, "channel ABI", ChannelProvider::open(zero.path));
  const SampleChannel sanitized(
      [](halyard_channel_note_t& note) { note.sanitizer = 1 + HALYARD_SANITIZER_KIND; });
  EXPECT_FAILS(INCOMPATIBLE, "was built with", ChannelProvider::open(sanitized.path));
}

TEST(ChannelProvider, TheLauncherAndTheWorldMustAgree) {
  const SampleChannel sample;
  const auto provider = ASSERT_VALUE(ChannelProvider::open(sample.path));
  ASSERT_OK(provider->check_launch({}));
  Launch launch = {"mpich", 1, 3, 1, 3, "PMI_RANK", "PMI_SIZE"};
  ASSERT_OK(provider->check_launch(launch));
  launch.rank = 2;
  EXPECT_FAILS(FAILED_PRECONDITION, "rank 2 of 3 ($PMI_RANK, $PMI_SIZE), but",
               provider->check_launch(launch));
  launch.rank = 1;
  launch.count = 4;
  EXPECT_FAILS(FAILED_PRECONDITION, "says rank 1 of 3", provider->check_launch(launch));
  const ScopedVariable makes("HALYARD_TEST_CHANNEL", "worldless");
  EXPECT_FAILS(DATA_LOSS, "the job is gone", provider->check_launch(launch));
}

TEST(ChannelProvider, AChildOfForkDoesNotUseIt) {
  const SampleChannel sample;
  const auto provider = ASSERT_VALUE(ChannelProvider::open(sample.path));
  ASSERT_OK(provider->check_origin());
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<> found = provider->check_origin();
    ::_exit(found || found.error().code() != Code::FAILED_PRECONDITION ||
            found.error().text().find("fork()") == std::string::npos);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(FindProvider, ALauncherHasAProviderOrNone) {
  const ScopedVariable unset("HALYARD_CHANNEL_PROVIDER", nullptr);
  const auto own = ASSERT_VALUE(find_provider({}, 0));
  EXPECT_EQ(ASSERT_VALUE(own->world()).count, 1u) << "without a launcher there is one rank";
  Launch launch = {"sample", 1, 3, 1, 3, "", ""};
  const auto found = ASSERT_VALUE(find_provider(launch, 0));
  EXPECT_EQ(found->name(), channel_path("sample"));
  launch.launcher = "sampl";  // a part of the name
  const auto none = find_provider(launch, 0);
  EXPECT_FAILS(NOT_FOUND, "this process is rank 1 of 3, started by sampl", none);
  EXPECT_FAILS(NOT_FOUND, channel_path("sample") + "' is for other,sample", none);
  EXPECT_FAILS(NOT_FOUND, channel_path("noteless"), none);
}

TEST(FindProvider, TheVariableNamesAProvider) {
  const ScopedVariable named("HALYARD_CHANNEL_PROVIDER", channel_path("noteless").c_str());
  EXPECT_FAILS(NOT_FOUND, "which $HALYARD_CHANNEL_PROVIDER names", find_provider({}, 0));
  const SampleChannel sample;
  const ScopedVariable other("HALYARD_CHANNEL_PROVIDER", sample.path.c_str());
  EXPECT_EQ(ASSERT_VALUE(find_provider({}, 0))->name(), sample.path);
  const ScopedVariable empty("HALYARD_CHANNEL_PROVIDER", "");
  EXPECT_EQ(ASSERT_VALUE(find_provider({}, 0))->name(), "in this process");
}

}  // namespace
}  // namespace halyard::hal
