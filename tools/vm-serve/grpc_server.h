// The gRPC service of a server: opens vm-serve-grpc.so, and gives it connections.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "grpc_call.h"
#include "grpc_library.h"
#include "server.h"
#include "socket.h"

namespace halyard::tools::serve {

// Opens the library. NOT_FOUND: it is not installed. INCOMPATIBLE: it belongs to another vm-serve.
Result<const vm_serve_grpc_library_t*> open_grpc_library();

// Any thread, except the constructor and the destructor.
class GrpcServer {
 public:
  // UNAVAILABLE: gRPC cannot start. The server must outlive this object.
  static Result<std::unique_ptr<GrpcServer>> start(Server& server, const vm_serve_grpc_library_t& library);
  // Answers the calls that have no answer, and waits for the end of all calls. The threads of the io_context
  // have ended.
  ~GrpcServer();

  // Serves the connection, or closes it if there are too many.
  void add(ClientSocket socket);
  // Asks the clients to begin no further calls. Calls `drained` once, when all calls have ended.
  void drain(std::function<void()> drained);

 private:
  GrpcServer(Server& server, const vm_serve_grpc_library_t& library) : server_(server), library_(library) {}

  // A call, as the library knows it.
  struct Entry {
    GrpcServer& server;
    std::shared_ptr<GrpcCall> call;
    std::list<Entry>::iterator self;
  };

  Entry* begin(vm_serve_grpc_call_t* handle, const vm_serve_grpc_begin_t& begin);
  void end(const Entry& entry);
  std::string client_of(const std::string& connection);
  void no_more_calls();

  Server& server_;
  const vm_serve_grpc_library_t& library_;
  vm_serve_grpc_server_t* handle_ = nullptr;
  std::mutex mutex_;
  // Under the mutex.
  std::list<Entry> calls_;   // that have not ended
  bool is_drained_ = false;  // no call begins any more
  std::function<void()> drained_;
  // Addresses by connection, as the library names it. A descriptor is used again, so there are never more
  // than connections have been open at a time.
  std::unordered_map<std::string, std::string> clients_;
};

}  // namespace halyard::tools::serve
