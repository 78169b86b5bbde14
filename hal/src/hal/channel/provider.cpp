// The steps from a file to a provider.
#include "hal/channel/provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

namespace halyard::hal {

const ObjectType ChannelProvider::kType = object_type<ChannelProvider>("hal.channel_provider");
const PluginKind kChannelPlugin = {.what = "channel provider",
                                   .abi = "channel ABI",
                                   .note_type = HALYARD_NOTE_TYPE_CHANNEL,
                                   .note_size = sizeof(halyard_channel_note_t),
                                   .note_macro = "HALYARD_CHANNEL_NOTE (halyard/channel.h)",
                                   .negotiate_symbol = HALYARD_CHANNEL_NEGOTIATE_SYMBOL,
                                   .export_macro = "HALYARD_CHANNEL_EXPORT"};

namespace {

constexpr AbiRange kAbi = {HALYARD_CHANNEL_ABI_V1, HALYARD_CHANNEL_ABI_V1};
constexpr char kHostVersion[] = "Halyard";

bool is_complete(const halyard_channel_table_t& table) {
  return table.initialize && table.shutdown && table.world && table.channel_open && table.channel_split &&
         table.channel_place && table.channel_close && table.submit && table.channel_fail;
}

// The message for a process that has waited for others in vain.
std::string missing_ranks(const Launch& launch) {
  if (!launch.is_launched() || launch.count < 2) return "some processes of the job have not come";
  if (launch.count == 2)
    return fmt::format("this is rank {} of 2, and rank {} has not come", launch.rank, 1 - launch.rank);
  return fmt::format("this is rank {} of {}, and of the others some have not come", launch.rank,
                     launch.count);
}

}  // namespace

Result<> ChannelProvider::load(uint64_t timeout_ns) {
  const auto note = HALYARD_TRY(read_note<halyard_channel_note_t>(name_, kChannelPlugin));
  HALYARD_TRY(check_abi(kChannelPlugin, name_, {note.abi_min, note.abi_max}, kAbi));
  HALYARD_TRY(check_sanitizer(kChannelPlugin, name_, note.sanitizer));
  const auto negotiate =
      reinterpret_cast<halyard_channel_negotiate_fn>(HALYARD_TRY(open_plugin(name_, kChannelPlugin)));
  const halyard_channel_request_t request = {sizeof request,         kAbi.low,     kAbi.high,
                                             HALYARD_SANITIZER_KIND, kHostVersion, nullptr};
  halyard_channel_reply_t reply = {};
  reply.struct_size = sizeof reply;
  if (negotiate(&request, &reply) == 0) {
    const std::string_view reason = padded_text(reply.refusal);
    return fail(Code::INCOMPATIBLE, "channel provider '{}' refuses this host: {}", name_,
                reason.empty() ? "it gives no reason" : reason);
  }
  if (reply.abi_version < kAbi.low || reply.abi_version > kAbi.high || !reply.table)
    return fail(Code::INCOMPATIBLE,
                "channel provider '{}' chose channel ABI {}; expected {} and a table of functions", name_,
                reply.abi_version, to_text(kAbi));
  // Functions that one side does not know stay null.
  std::memcpy(&table_, reply.table, std::min<size_t>(reply.table->struct_size, sizeof table_));
  if (!is_complete(table_))
    return fail(Code::INCOMPATIBLE, "channel provider '{}' lacks functions that channel ABI {} demands",
                name_, reply.abi_version);
  const halyard_channel_init_args_t args = {sizeof args, reply.abi_version, &services_.table(), nullptr,
                                            timeout_ns};
  if (Status status = Status::adopt(table_.initialize(&args, &handle_))) {
    handle_ = nullptr;
    if (status.code() == Code::DEADLINE_EXCEEDED)
      status = std::move(status).note(missing_ranks(detect_launch()));
    return std::unexpected(std::move(status).note(fmt::format("while joining a job with '{}'", name_)));
  }
  if (!handle_)
    return fail(Code::INTERNAL, "channel provider '{}' was initialized but gave no handle", name_);
  return {};
}

Result<Ref<ChannelProvider>> ChannelProvider::open(const std::string& path, uint64_t timeout_ns) {
  static std::mutex& mutex = *new std::mutex;
  // Not destroyed at exit, because threads of the provider may still run.
  static auto& opened = *new std::map<std::string, Ref<ChannelProvider>>;
  const std::string file = HALYARD_TRY(plugin_path(path, kChannelPlugin));
  const std::lock_guard lock(mutex);
  Ref<ChannelProvider>& known = opened[file];
  if (!known) {
    Ref<ChannelProvider> provider = make<ChannelProvider>(file);
    HALYARD_TRY(provider->load(timeout_ns));
    known = std::move(provider);
  }
  return known;
}

Ref<ChannelProvider> ChannelProvider::built_in(std::string name, const halyard_channel_table_t& table,
                                               halyard_channel_provider_t handle, Ref<Object> keep) {
  Ref<ChannelProvider> provider = make<ChannelProvider>(std::move(name));
  provider->table_ = table;
  provider->handle_ = handle;
  provider->keep_ = std::move(keep);
  return provider;
}

ChannelProvider::~ChannelProvider() {
  if (handle_) table_.shutdown(&handle_);
}

Result<halyard_channel_world_t> ChannelProvider::world() const {
  halyard_channel_world_t world = {};
  world.struct_size = sizeof world;
  HALYARD_TRY(to_result(Status::adopt(table_.world(handle_, &world))));
  return world;
}

Result<> ChannelProvider::check_origin() const {
  if (!origin_.is_inherited()) return {};
  return fail(Code::FAILED_PRECONDITION,
              "the channels of '{}' belong to the process that called fork(); start ranks with a launcher, "
              "or processes "
              "without fork()",
              name_);
}

Result<> ChannelProvider::check_launch(const Launch& launch) const {
  if (!launch.is_launched()) return {};
  const halyard_channel_world_t found = HALYARD_TRY(world());
  if (found.rank == launch.rank && found.count == launch.count) return {};
  return fail(Code::FAILED_PRECONDITION,
              "{} says that this process is rank {} of {} (${}, ${}), but '{}' says rank {} of {}, so ranks "
              "would compute "
              "apart; start them with the launcher of that MPI, as in: mpirun -n {} ..., or srun --mpi=pmix "
              "...; unset the "
              "variables if they are left over from another job",
              launch.launcher, launch.rank, launch.count, launch.rank_variable, launch.count_variable, name_,
              found.rank, found.count, launch.count);
}

Result<> ChannelProvider::import(std::string_view id, std::string_view kind, uint64_t handle) const {
  if (!table_.import)
    return fail(Code::UNIMPLEMENTED, "channel provider '{}' takes no communicators of others", name_);
  return to_result(
      Status::adopt(table_.import(handle_, {id.data(), id.size()}, {kind.data(), kind.size()}, handle)));
}

}  // namespace halyard::hal
