// Looks for the library beside libhalyard.so. gRPC owns each connection; a second descriptor of the same
// socket shows when it is closed.
#include "grpc_server.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>

#include "common/descriptor.h"
#include "request_log.h"

namespace halyard::tools::serve {

namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "vm-serve-grpc.so";

class GrpcConnection final : public Connection, public std::enable_shared_from_this<GrpcConnection> {
 public:
  GrpcConnection(Server& server, Descriptor socket) : server_(server), socket_(std::move(socket)) {}
  ~GrpcConnection() override {
    if (is_listed_) server_.remove(this);
  }

  bool list() { return is_listed_ = server_.add(shared_from_this()); }
  // From now on the object lives until the connection is closed.
  void keep() { self_ = shared_from_this(); }

  void drain() override {}  // GrpcServer::drain()
  void close() override { ::shutdown(socket_.get(), SHUT_RDWR); }
  // gRPC shuts down both directions of a socket before it closes its descriptor.
  void look() override {
    constexpr unsigned kLooksForCheck = 10;  // once a second
    if (looks_++ % kLooksForCheck != 0 && !server_.is_draining()) return;
    pollfd state = {.fd = socket_.get(), .events = 0, .revents = 0};
    if (::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0) self_ = nullptr;
  }

 private:
  Server& server_;
  const Descriptor socket_;
  std::shared_ptr<GrpcConnection> self_;
  unsigned looks_ = 0;
  bool is_listed_ = false;
};

#ifndef HALYARD_NO_LOADER
// The folder of libhalyard.so.
fs::path library_folder() {
  Dl_info info = {};
  const void* const anchor = ::dlsym(RTLD_DEFAULT, "halyard_version");
  if (!anchor || ::dladdr(anchor, &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error).parent_path();
}
#endif

}  // namespace

Result<const vm_serve_grpc_library_t*> open_grpc_library() {
#ifdef HALYARD_NO_LOADER
  return fail(HALYARD_UNIMPLEMENTED, "this vm-serve is a static program and cannot load '{}'", kFile);
#else
  const std::string path = (library_folder() / "halyard" / kFile).string();
  std::error_code error;
  if (!fs::exists(path, error))
    return fail(
        HALYARD_NOT_FOUND,
        "gRPC needs '{}', which is not there; install the package halyard-serve-grpc, or build Halyard "
        "where libgrpc++-dev is installed",
        path);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const reason = ::dlerror();
    return fail(HALYARD_UNAVAILABLE, "cannot load '{}': {}; install the libraries that it needs", path,
                reason ? reason : "the system gives no reason");
  }
  const auto negotiate = reinterpret_cast<vm_serve_grpc_library_fn>(::dlsym(library, VM_SERVE_GRPC_SYMBOL));
  const vm_serve_grpc_library_t* const table = negotiate ? negotiate(VM_SERVE_GRPC_ABI) : nullptr;
  if (!table)
    return fail(HALYARD_INCOMPATIBLE,
                "'{}' belongs to another build of Halyard; install the one of this build", path);
  return table;
#endif
}

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(Server& server,
                                                      const vm_serve_grpc_library_t& library) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(server, library));
  const vm_serve_grpc_host_t host = {
      .self = made.get(),
      .begin = [](void* self, vm_serve_grpc_call_t* handle, const vm_serve_grpc_begin_t* begin) -> void* {
        return static_cast<GrpcServer*>(self)->begin(handle, *begin);
      },
      .message =
          [](void* object, const vm_serve_grpc_message_t* message) {
            std::optional<GrpcMessage> given;
            if (message) given.emplace(*message);
            static_cast<Entry*>(object)->call->message(std::move(given));
          },
      .cancelled = [](void* object) { static_cast<Entry*>(object)->call->cancelled(); },
      .end =
          [](void* object) {
            const Entry& entry = *static_cast<Entry*>(object);
            entry.server.end(entry);
          },
      .drained = [](void* self) { static_cast<GrpcServer*>(self)->no_more_calls(); }};
  const vm_serve_grpc_limits_t limits = {
      .message_bytes = server.limits.body,
      .buffer_bytes = server.budget.limit(),
      .calls = server.limits.connections,
      .idle_nanoseconds = static_cast<uint64_t>(std::chrono::nanoseconds(server.limits.idle).count())};
  made->handle_ = library.start(&host, &limits);
  if (!made->handle_) return fail(HALYARD_UNAVAILABLE, "gRPC {} could not start", library.version);
  return made;
}

GrpcServer::Entry* GrpcServer::begin(vm_serve_grpc_call_t* handle, const vm_serve_grpc_begin_t& begin) {
  const GrpcMethod* const method = grpc_method_of({begin.method.data, begin.method.size});
  if (!method) return nullptr;
  const auto call = std::make_shared<GrpcCall>(server_, library_, handle, *method, begin,
                                               client_of({begin.connection.data, begin.connection.size}));
  Entry* entry = nullptr;
  bool is_full = false;
  {
    const std::lock_guard lock(mutex_);
    is_full = calls_.size() >= server_.limits.connections;
    entry = &calls_.emplace_front(*this, call);
    entry->self = calls_.begin();
  }
  call->begin();
  if (is_full) call->refuse({503, "the server has too many calls; try again later"});
  return entry;
}

std::string GrpcServer::client_of(const std::string& connection) {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(connection);
  return found == clients_.end() ? "" : found->second;
}

void GrpcServer::end(const Entry& entry) {
  const std::shared_ptr<GrpcCall> call = entry.call;
  call->end();
  std::function<void()> drained;
  {
    const std::lock_guard lock(mutex_);
    calls_.erase(entry.self);
    if (is_drained_ && calls_.empty()) drained = std::exchange(drained_, nullptr);
  }
  if (drained) drained();
}

void GrpcServer::drain(std::function<void()> drained) {
  {
    const std::lock_guard lock(mutex_);
    drained_ = std::move(drained);
  }
  library_.drain(handle_);
}

void GrpcServer::no_more_calls() {
  std::function<void()> drained;
  {
    const std::lock_guard lock(mutex_);
    is_drained_ = true;
    if (calls_.empty()) drained = std::exchange(drained_, nullptr);
  }
  if (drained) drained();
}

void GrpcServer::add(ClientSocket socket) {
  boost::system::error_code failed;
  const std::string client = address_text(socket.remote_endpoint(failed));
  Descriptor watched(::fcntl(socket.native_handle(), F_DUPFD_CLOEXEC, 0));
  (void)socket.native_non_blocking(true, failed);
  const auto connection = std::make_shared<GrpcConnection>(server_, std::move(watched));
  const int given = failed ? -1 : socket.release(failed);
  if (given < 0 || !connection->list()) {
    server_.metrics.refused_connections.fetch_add(1, std::memory_order_relaxed);
    if (given >= 0) ::close(given);
    return;
  }
  server_.metrics.accepted.fetch_add(1, std::memory_order_relaxed);
  connection->keep();
  {
    const std::lock_guard lock(mutex_);
    clients_[fmt::format("fd:{}", given)] = client;
  }
  library_.add_connection(handle_, given);
}

GrpcServer::~GrpcServer() {
  if (!handle_) return;
  library_.drain(handle_);
  std::vector<std::shared_ptr<GrpcCall>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : calls_) open.push_back(entry.call);
  }
  for (const auto& call : open) call->refuse({503, "the server ends"});
  open.clear();
  library_.stop(handle_);
}

}  // namespace halyard::tools::serve
