// Device: a device of a server, as the kit's table calls it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "command_list.h"
#include "connection.h"
#include "executable.h"
#include "halyard/driver.hpp"
#include "known_digests.h"
#include "memory.h"
#include "timeline.h"

namespace halyard::remote {

class Device {
 public:
  explicit Device(std::shared_ptr<Connection> server);
  ~Device();

  const kit::Services& services() const { return server_->services(); }
  halyard_device_properties_t properties() const;
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;
  halyard_memory_statistics_t statistics() const { return tally_.now(); }
  void trim();

  kit::Result<std::unique_ptr<Memory>> allocate(const halyard_memory_request_t& request, bool later,
                                                halyard_memory_info_t& info);
  // Bytes without HALYARD_MAP_WRITE are sent at most once to a server that keeps them. For others, what each
  // side writes is passed on when work begins and ends.
  kit::Result<std::unique_ptr<Memory>> import_memory(const halyard_memory_request_t& request,
                                                     const halyard_external_memory_t& external,
                                                     halyard_memory_info_t& info);
  kit::Result<std::unique_ptr<Semaphore>> create_semaphore(uint64_t initial) {
    return std::make_unique<Semaphore>(server_, initial);
  }
  kit::Status wait(kit::Timepoints points, bool any, int64_t deadline_ns);
  // Receives on this thread until the points are reached or one has failed [R89].
  void help(kit::Timepoints points, bool any);

  uint32_t grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const;
  kit::Result<std::unique_ptr<Executable>> load(const halyard_executable_args_t& args) {
    return Executable::load(server_, args);
  }
  kit::Result<std::unique_ptr<CommandList>> create_list(const halyard_command_list_args_t& args) {
    return CommandList::create(server_, args);
  }
  kit::Result<> submit(const halyard_submission_t& submission, kit::TaskList& ready);
  template <typename T>
  void destroy(T* object) {
    delete object;
  }

 private:
  bool is_at_server(const KnownDigests::Part& part, const Sha256& digest);

  const std::shared_ptr<Connection> server_;
  KnownDigests digests_;
  std::mutex blobs_mutex_;  // guards the members below
  std::set<KnownDigests::Part> asked_files_;
  std::set<Sha256> at_server_;  // blobs that the server keeps as long as the connection lasts
  kit::MemoryTally tally_;
  mutable std::mutex mutex_;  // guards the member below
  mutable std::map<std::string, std::pair<uint32_t, std::string>, std::less<>> grades_;  // of formats
};

}  // namespace halyard::remote
