// The choice among the libraries in the folders of channel providers.
#include "hal/channel/find_provider.h"

#include <fmt/ranges.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "hal/channel/local_world.h"

namespace halyard::hal {

namespace {

namespace fs = std::filesystem;

constexpr char kVariable[] = "HALYARD_CHANNEL_PROVIDER";
constexpr std::string_view kFilePrefix = "halyard-channel-";

bool joins(const halyard_channel_note_t& note, std::string_view launcher) {
  if (launcher == "slurm") return true;
  const std::string_view all = padded_text(note.launchers);
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find(',', at), all.size());
    if (all.substr(at, end - at) == launcher) return true;
    at = end + 1;
  }
  return false;
}

std::vector<std::string> folders() {
  const fs::path own = own_folder();
  if (own.empty()) return {};
  // Relative to libhalyard; relative to a program in the build folder or in an installation.
  std::vector<std::string> all;
  for (const fs::path& place : {own / "halyard" / "channels", own / ".." / "lib" / "halyard" / "channels"}) {
    const std::string path = place.lexically_normal().string();
    if (std::ranges::find(all, path) == all.end()) all.push_back(path);
  }
  return all;
}

}  // namespace

std::vector<std::string> channel_libraries() {
  std::vector<std::string> found;
  for (const std::string& folder : folders()) {
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (name.starts_with(kFilePrefix) && name.ends_with(".so")) found.push_back(at->path().string());
    }
  }
  std::ranges::sort(found);
  return found;
}

Result<Ref<ChannelProvider>> find_provider(const Launch& launch, uint64_t timeout_ns) {
  if (const char* const path = std::getenv(kVariable); path && *path && ::getauxval(AT_SECURE) == 0)
    return with_note(ChannelProvider::open(path, timeout_ns), fmt::format("which ${} names", kVariable));
  if (!launch.is_launched()) return LocalWorld::create(1)->provider(0);
  std::vector<std::string> refused;
  for (const std::string& path : channel_libraries()) {
    const auto note = read_note<halyard_channel_note_t>(path, kChannelPlugin);
    if (!note) {
      refused.push_back(note.error().text());
    } else if (joins(*note, launch.launcher)) {
      return ChannelProvider::open(path, timeout_ns);
    } else {
      refused.push_back(fmt::format("'{}' is for {}", path, padded_text(note->launchers)));
    }
  }
  return fail(
      Code::NOT_FOUND,
      "this process is rank {} of {}, started by {}, and there is no channel provider for it (looked "
      "in '{}'; found {}); build Halyard where that MPI's development package is installed, or name a "
      "library in ${}",
      launch.rank, launch.count, launch.launcher, fmt::join(folders(), "', '"),
      refused.empty() ? "none" : fmt::format("{}", fmt::join(refused, "; ")), kVariable);
}

}  // namespace halyard::hal
