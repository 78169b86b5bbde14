// vm-serve-grpc.so: carries calls between gRPC and vm-serve, as bytes. gRPC's callback interface, with one
// generic service for all methods, because a generic service sees a call before its message is read, and
// gives the message as it has arrived.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/version_info.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grpc_library.h"

namespace {

template <typename T>
T at_most(uint64_t value) {
  return static_cast<T>(std::min<uint64_t>(value, std::numeric_limits<T>::max()));
}

// A message from a client, while vm-serve reads it.
struct Received {
  std::vector<grpc::Slice> slices;
  std::vector<vm_serve_grpc_piece_t> pieces;
};

vm_serve_grpc_message_t message_of(const grpc::ByteBuffer& buffer) {
  auto received = std::make_unique<Received>();
  // Slices share the memory of the buffer.
  if (!buffer.Dump(&received->slices).ok()) received->slices.clear();
  for (const grpc::Slice& slice : received->slices) received->pieces.push_back({slice.begin(), slice.size()});
  Received* const owner = received.release();
  return {owner->pieces.data(), owner->pieces.size(), owner,
          [](void* object) { delete static_cast<Received*>(object); }};
}

// A message of vm-serve, until gRPC has sent or dropped each piece.
struct Sent {
  std::atomic<size_t> pieces;
  vm_serve_grpc_message_t message;

  static void drop(void* object) {
    auto* const sent = static_cast<Sent*>(object);
    if (sent->pieces.fetch_sub(1) != 1) return;
    sent->message.release(sent->message.owner);
    delete sent;
  }
};

grpc::ByteBuffer buffer_of(const vm_serve_grpc_message_t& message) {
  auto* const sent = new Sent{.pieces = message.count + 1, .message = message};
  std::vector<grpc::Slice> slices;
  slices.reserve(message.count);
  for (size_t i = 0; i < message.count; ++i)
    slices.emplace_back(const_cast<void*>(message.pieces[i].data), message.pieces[i].size, Sent::drop, sent);
  grpc::ByteBuffer buffer(slices.data(), slices.size());
  Sent::drop(sent);  // the count of this function
  return buffer;
}

int64_t nanoseconds_until(std::chrono::system_clock::time_point deadline) {
  if (deadline == std::chrono::system_clock::time_point::max()) return INT64_MAX;
  return std::chrono::nanoseconds(deadline - std::chrono::system_clock::now()).count();
}

// One call. gRPC calls OnDone last, after the answer, and then frees the context. The host frees the call.
class Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(const vm_serve_grpc_host_t& host, grpc::GenericCallbackServerContext& context)
      : host_(host), context_(context) {}

  void begin() {
    constexpr char kTraceParent[] = "traceparent";
    const auto& metadata = context_.client_metadata();
    const auto found = metadata.find(kTraceParent);
    const grpc::string_ref trace = found == metadata.end() ? grpc::string_ref() : found->second;
    const std::string& method = context_.method();
    const std::string connection = context_.peer();
    const vm_serve_grpc_begin_t begin = {.method = {method.data(), method.size()},
                                         .connection = {connection.data(), connection.size()},
                                         .trace_parent = {trace.data(), trace.size()},
                                         .nanoseconds = nanoseconds_until(context_.deadline())};
    object_ = host_.begin(host_.self, handle(), &begin);
    if (!object_) {
      return Finish({grpc::StatusCode::UNIMPLEMENTED, "there is no method '" + method.substr(0, 128) + "'"});
    }
    const std::lock_guard lock(mutex_);
    if (!is_answered_) StartRead(&received_);
  }

  void answer(const vm_serve_grpc_answer_t& answer) {
    const std::lock_guard lock(mutex_);
    is_answered_ = true;
    if (answer.code != 0)
      return Finish({static_cast<grpc::StatusCode>(answer.code), {answer.text.data, answer.text.size}});
    answer_ = buffer_of(answer.message);
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    if (!is_done_) context_.TryCancel();
  }

  static Call& of(vm_serve_grpc_call_t* handle) { return *reinterpret_cast<Call*>(handle); }

  void OnReadDone(bool is_read) override {
    if (!is_read) return host_.message(object_, nullptr);
    const vm_serve_grpc_message_t message = message_of(received_);
    received_.Clear();
    host_.message(object_, &message);
  }
  void OnCancel() override {
    if (object_) host_.cancelled(object_);
  }
  void OnDone() override {
    {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    if (!object_) return delete this;
    host_.end(object_);
  }

 private:
  vm_serve_grpc_call_t* handle() { return reinterpret_cast<vm_serve_grpc_call_t*>(this); }

  const vm_serve_grpc_host_t& host_;
  grpc::GenericCallbackServerContext& context_;
  void* object_ = nullptr;  // the host's
  // Guards the members below: nothing is read after the answer has begun, and the context is not used after
  // the end.
  std::mutex mutex_;
  bool is_answered_ = false;
  bool is_done_ = false;
  grpc::ByteBuffer received_;
  grpc::ByteBuffer answer_;
};

}  // namespace

struct vm_serve_grpc_server_t final : grpc::CallbackGenericService {
  explicit vm_serve_grpc_server_t(const vm_serve_grpc_host_t& host) : host(host) {}

  bool start(const vm_serve_grpc_limits_t& limits) {
    const auto idle = std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::nanoseconds(at_most<int64_t>(limits.idle_nanoseconds)));
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(this);
    builder.SetMaxReceiveMessageSize(at_most<int>(limits.message_bytes));
    builder.SetResourceQuota(grpc::ResourceQuota("vm-serve").Resize(at_most<size_t>(limits.buffer_bytes)));
    // gRPC decompresses a message as a whole, whatever its size becomes.
    for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
      builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                               at_most<int>(static_cast<uint64_t>(idle.count())));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, at_most<int>(limits.calls));
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
    server = builder.BuildAndStart();
    return server != nullptr;
  }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    auto* const call = new Call(host, *context);  // deletes itself
    call->begin();
    return call;
  }

  // Shutdown() waits for the calls, so it has a thread.
  void drain() {
    if (ending.joinable()) return;
    ending = std::thread([this] {
      server->Shutdown();
      host.drained(host.self);
    });
  }

  const vm_serve_grpc_host_t host;
  std::unique_ptr<grpc::Server> server;
  std::thread ending;
};

namespace {

constexpr vm_serve_grpc_library_t kLibrary = {
    .abi = VM_SERVE_GRPC_ABI,
    .version = GRPC_CPP_VERSION_STRING,
    .start = [](const vm_serve_grpc_host_t* host,
                const vm_serve_grpc_limits_t* limits) noexcept -> vm_serve_grpc_server_t* {
      auto server = std::make_unique<vm_serve_grpc_server_t>(*host);
      return server->start(*limits) ? server.release() : nullptr;
    },
    .add_connection =
        [](vm_serve_grpc_server_t* server, int socket) noexcept {
          grpc::AddInsecureChannelFromFd(server->server.get(), socket);
        },
    .answer = [](vm_serve_grpc_call_t* call,
                 const vm_serve_grpc_answer_t* answer) noexcept { Call::of(call).answer(*answer); },
    .cancel = [](vm_serve_grpc_call_t* call) noexcept { Call::of(call).cancel(); },
    .release = [](vm_serve_grpc_call_t* call) noexcept { delete &Call::of(call); },
    .drain = [](vm_serve_grpc_server_t* server) noexcept { server->drain(); },
    .stop =
        [](vm_serve_grpc_server_t* server) noexcept {
          server->drain();
          server->ending.join();
          delete server;
        },
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const vm_serve_grpc_library_t* vm_serve_grpc_library(
    uint32_t abi) noexcept {
  return abi == VM_SERVE_GRPC_ABI ? &kLibrary : nullptr;
}
