// halyard-channel-mpi.so: the table of functions. A channel's handle is an Opened, until the host closes it.
#include <cstring>
#include <mutex>
#include <new>

#include "collective.h"
#include "direct.h"
#include "halyard/channel.hpp"
#include "job.h"
#include "split.h"

#ifdef OPEN_MPI
#define HALYARD_MPI_LAUNCHER "openmpi"
#else
#define HALYARD_MPI_LAUNCHER "mpich"
#endif

HALYARD_CHANNEL_NOTE("mpi", "0.1", HALYARD_MPI_LAUNCHER);

namespace {

using namespace halyard::mpi;

struct Opened {
  std::unique_ptr<Channel> channel;
};

Opened& opened(halyard_provider_channel_t handle) { return *reinterpret_cast<Opened*>(handle); }
halyard_provider_channel_t to_handle(Opened* opened) {
  return reinterpret_cast<halyard_provider_channel_t>(opened);
}
std::string text_of(halyard_text_t text) {
  return text.size ? std::string(text.data, text.size) : std::string();
}

// The status of `body`, which returns a Failure. No exception leaves the library.
template <typename Body>
halyard_status_t guarded(Body body) noexcept {
  Job& job = Job::get();
  try {
    return to_status(job.services(), body(job));
  } catch (const std::bad_alloc&) {
    constexpr char kText[] = "no memory for a channel";
    return job.services().status_create(job.services().host, HALYARD_RESOURCE_EXHAUSTED, kText,
                                        sizeof kText - 1);
  } catch (const std::exception& error) {
    return job.services().status_create(job.services().host, HALYARD_INTERNAL, error.what(),
                                        std::strlen(error.what()));
  }
}

Failure ended() {
  return {HALYARD_FAILED_PRECONDITION, "MPI has been finalized in this process; close channels before that"};
}

halyard_status_t initialize(const halyard_channel_init_args_t* args,
                            halyard_channel_provider_t* out) noexcept {
  Job& job = Job::get();
  try {
    const uint64_t timeout_ns =
        HALYARD_HAS_FIELD(args, halyard_channel_init_args_t, timeout_ns) ? args->timeout_ns : 0;
    if (const Failure failure = job.join(*args->services, timeout_ns))
      return to_status(*args->services, failure);
  } catch (const std::exception& error) {
    return args->services->status_create(args->services->host, HALYARD_UNAVAILABLE, error.what(),
                                         std::strlen(error.what()));
  }
  *out = reinterpret_cast<halyard_channel_provider_t>(&job);
  return nullptr;
}

// MPI stays until the end of the process, because a process can join a job only once.
void shutdown(halyard_channel_provider_t* provider) noexcept { *provider = nullptr; }

halyard_status_t world(halyard_channel_provider_t, halyard_channel_world_t* world) noexcept {
  Job& job = Job::get();
  world->rank = job.world().rank;
  world->count = job.world().count;
  world->local_rank = job.local_rank();
  world->local_count = job.local_count();
  world->description = job.description().c_str();
  return nullptr;
}

halyard_status_t channel_open(halyard_channel_provider_t, const halyard_channel_open_args_t* args,
                              halyard_provider_channel_t* out) noexcept {
  return guarded([&](Job& job) -> Failure {
    std::unique_lock lock = job.lock();
    if (job.has_ended()) return ended();
    Fabric* fabric = &job.world();
    std::string label = "default";
    if (args->has_id) {
      label = text_of(args->id);
      const auto known = job.imports().find(label);
      if (known == job.imports().end()) {
        std::string ids;
        for (const auto& [id, imported] : job.imports()) ids += (ids.empty() ? "'" : ", '") + id + "'";
        return {HALYARD_NOT_FOUND,
                "channel id '" + label + "' is unknown; expected no id, for a channel of all ranks, or " +
                    (ids.empty() ? "the id of a communicator that the host program has registered (it has "
                                   "registered none)"
                                 : "one of " + ids)};
      }
      fabric = known->second.get();
    }
    if ((args->rank >= 0 && static_cast<uint32_t>(args->rank) != fabric->rank) ||
        (args->count >= 0 && static_cast<uint32_t>(args->count) != fabric->count))
      return {HALYARD_INVALID_ARGUMENT, "expected rank " + std::to_string(fabric->rank) + " of " +
                                            std::to_string(fabric->count) + " (as in MPI), found rank " +
                                            std::to_string(args->rank) + " of " +
                                            std::to_string(args->count) + "; pass -1 for the values of MPI"};
    if (args->group.size) label += "/" + text_of(args->group);
    auto handle = std::make_unique<Opened>();
    handle->channel = std::make_unique<Channel>(*fabric, label);
    std::vector<uint32_t> ranks(fabric->count);
    for (uint32_t i = 0; i < fabric->count; ++i) ranks[i] = i;
    handle->channel->set_ranks(std::move(ranks));
    fabric->root->add(
        make_split(*fabric->root, 0, static_cast<int32_t>(fabric->rank), handle->channel.get(), label));
    const bool no = false;
    job.work(lock, 0, &no);
    *out = to_handle(handle.release());
    return {};
  });
}

halyard_status_t import(halyard_channel_provider_t, halyard_text_t id, halyard_text_t kind,
                        uint64_t handle) noexcept {
  return guarded([&](Job& job) -> Failure {
    if (text_of(kind) != "MPI_Comm")
      return {HALYARD_INVALID_ARGUMENT,
              "expected a handle of kind 'MPI_Comm', found '" + text_of(kind) + "'"};
#ifdef OPEN_MPI
    const auto comm = reinterpret_cast<MPI_Comm>(static_cast<uintptr_t>(handle));
#else
    const auto comm = static_cast<MPI_Comm>(handle);
#endif
    if (comm == MPI_COMM_NULL)
      return {HALYARD_INVALID_ARGUMENT, "expected a communicator, found MPI_COMM_NULL"};
    std::unique_lock lock = job.lock();
    if (job.has_ended()) return ended();
    return job.import(lock, text_of(id), comm);
  });
}

halyard_status_t channel_split(halyard_provider_channel_t base, int32_t color, int32_t key,
                               halyard_provider_channel_t* out) noexcept {
  return guarded([&](Job& job) -> Failure {
    std::unique_lock lock = job.lock();
    if (job.has_ended()) return ended();
    Channel& channel = *opened(base).channel;
    if (channel.broken()) return channel.broken();
    std::string label = channel.child_label();
    std::unique_ptr<Opened> child;
    if (color != -1) {
      child = std::make_unique<Opened>();
      child->channel = std::make_unique<Channel>(channel.fabric(), std::move(label));
    }
    channel.add(make_split(channel, color, key, child ? child->channel.get() : nullptr, {}));
    const bool no = false;
    job.work(lock, 0, &no);
    *out = to_handle(child.release());
    return {};
  });
}

halyard_status_t channel_place(halyard_provider_channel_t handle, const uint32_t* stop, uint32_t* rank,
                               uint32_t* count) noexcept {
  return guarded([&](Job& job) -> Failure {
    std::unique_lock lock = job.lock();
    const Channel& channel = *opened(handle).channel;
    while (!channel.has_ranks()) {
      if (channel.broken()) return channel.broken();
      if (job.has_ended()) return ended();
      const uint32_t code = stop ? __atomic_load_n(stop, __ATOMIC_RELAXED) : 0;
      if (code != 0)
        return {static_cast<halyard_status_code_t>(code),
                "stopped while the other ranks of a split were awaited"};
      job.changed().wait_for(lock, std::chrono::milliseconds(5));
    }
    *rank = channel.rank();
    *count = channel.count();
    return {};
  });
}

void channel_close(halyard_provider_channel_t handle) noexcept {
  Job& job = Job::get();
  const std::unique_lock lock = job.lock();
  std::unique_ptr<Opened> gone(&opened(handle));
  if (job.has_ended()) {
    static_cast<void>(gone->channel.release());  // MPI_Finalize has freed its requests
    return;
  }
  job.close_later(std::move(gone->channel));
}

halyard_status_t submit(halyard_provider_channel_t handle, const halyard_collective_t* collective) noexcept {
  return guarded([&](Job& job) -> Failure {
    std::unique_lock lock = job.lock();
    if (job.has_ended()) return ended();
    Channel& channel = *opened(handle).channel;
    if (channel.broken()) return channel.broken();
    std::unique_ptr<Operation> operation = halyard::channel::is_point_to_point(collective->kind)
                                               ? make_direct(channel, *collective)
                                               : make_collective(channel, *collective);
    bool is_done = false;
    Operation* const added = operation.get();
    if (collective->patience_ns != 0) added->ended = &is_done;
    channel.add(std::move(operation));
    job.work(lock, collective->patience_ns, &is_done);
    if (!is_done && collective->patience_ns != 0) channel.forget(*added);
    return {};
  });
}

void channel_fail(halyard_provider_channel_t handle, halyard_status_t status) noexcept {
  Job& job = Job::get();
  const halyard_host_services_t& services = job.services();
  Failure failure = {services.status_code(services.host, status),
                     services.status_message(services.host, status)};
  services.status_release(services.host, status);
  std::unique_lock lock = job.lock();
  if (job.has_ended()) return;
  Channel& channel = *opened(handle).channel;
  if (channel.has_ranks())
    failure.text =
        "rank " + std::to_string(channel.rank()) + " of " + channel.name() + " has failed: " + failure.text;
  channel.fail_soon(std::move(failure));
  const bool no = false;
  job.work(lock, 0, &no);
}

constexpr halyard_channel_table_t kTable = {
    .struct_size = sizeof(halyard_channel_table_t),
    .initialize = initialize,
    .shutdown = shutdown,
    .world = world,
    .channel_open = channel_open,
    .import = import,
    .channel_split = channel_split,
    .channel_place = channel_place,
    .channel_close = channel_close,
    .submit = submit,
    .channel_fail = channel_fail,
};

}  // namespace

int32_t halyard_channel_negotiate(const halyard_channel_request_t* request, halyard_channel_reply_t* reply) {
  if (request->abi_min > HALYARD_CHANNEL_ABI_V1 || request->abi_max < HALYARD_CHANNEL_ABI_V1) {
    std::strncpy(reply->refusal, "this provider supports channel ABI 1", sizeof reply->refusal - 1);
    return 0;
  }
  reply->abi_version = HALYARD_CHANNEL_ABI_V1;
  reply->table = &kTable;
  return 1;
}
