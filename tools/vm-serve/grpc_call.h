// One call of the gRPC service, from its header to the end of its answer.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "grpc_library.h"
#include "infer_message.h"
#include "inference.h"
#include "output.h"
#include "server.h"
#include "wire.h"

namespace halyard::tools::serve {

// The message of a request: gRPC's memory, until it is destroyed.
class GrpcMessage {
 public:
  explicit GrpcMessage(const vm_serve_grpc_message_t& message);
  GrpcMessage(GrpcMessage&& other) noexcept
      : message_(std::exchange(other.message_, {})), pieces_(std::move(other.pieces_)) {}
  GrpcMessage& operator=(GrpcMessage&& other) = delete;
  ~GrpcMessage() {
    if (message_.release) message_.release(message_.owner);
  }
  // Lives as long as this object.
  WireReader reader() const { return WireReader(pieces_); }

 private:
  vm_serve_grpc_message_t message_;
  std::vector<WireReader::Piece> pieces_;
};

struct GrpcMethod;
// The method of a path such as "/inference.GRPCInferenceService/ModelInfer"; null: there is none.
const GrpcMethod* grpc_method_of(std::string_view path);

// Messages are read, and calls of models begin, on the threads of the io_context. Any thread may call the
// public functions, in the order of vm_serve_grpc_host_t.
class GrpcCall : public std::enable_shared_from_this<GrpcCall> {
 public:
  GrpcCall(Server& server, const vm_serve_grpc_library_t& library, vm_serve_grpc_call_t* handle,
           const GrpcMethod& method, const vm_serve_grpc_begin_t& begin, std::string client);
  ~GrpcCall() { library_.release(handle_); }

  // Begins the time limit of the message.
  void begin();
  void message(std::optional<GrpcMessage> message);
  void cancelled();
  void end();
  // Answers with a refusal, unless the call has an answer.
  void refuse(const Refused& refused);

  // The methods.
  void server_live(GrpcMessage message);
  void server_ready(GrpcMessage message);
  void model_ready(GrpcMessage message);
  void server_metadata(GrpcMessage message);
  void model_metadata(GrpcMessage message);
  void model_infer(GrpcMessage message);
  void model_config(GrpcMessage message);
  void model_statistics(GrpcMessage message);
  void repository_index(GrpcMessage message);
  void repository_load(GrpcMessage message);
  void repository_unload(GrpcMessage message);

 private:
  // The parts of an answer, until gRPC has sent or dropped them.
  struct Sent {
    InferAnswer answer;
    std::vector<Output> outputs;
    std::vector<halyard::Value> results;
    Reservation reservation;
    std::vector<vm_serve_grpc_piece_t> pieces;
  };

  void control(const GrpcMessage& message, Result<> (ModelControl::*change)(std::string, ModelControl::Done));
  std::optional<Refused> call_model(GrpcMessage message);
  void respond(Job& job);
  Result<std::unique_ptr<Sent>> sent_of(Job& job) const;
  void send(std::string message);
  void send(std::unique_ptr<Sent> sent);
  bool begin_answer();
  void count(int code, uint64_t bytes, std::string_view text);
  void expire_at(Clock::time_point deadline);
  void expire();

  Server& server_;
  const vm_serve_grpc_library_t& library_;
  vm_serve_grpc_call_t* const handle_;
  const GrpcMethod& method_;
  const std::string client_;  // its address, for the log
  const std::string trace_parent_;
  const Clock::time_point begin_;
  const Clock::time_point deadline_;         // of the model's result
  const Clock::time_point client_deadline_;  // of the client

  // Of ModelInfer.
  InferMessageHead head_;
  InferRequest request_;
  std::optional<RequestTimes> traced_;

  std::mutex mutex_;  // guards the members below
  boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>,
                                    boost::asio::io_context::executor_type>
      timer_;
  std::shared_ptr<Job> job_;  // waits or runs
  bool is_loading_ = false;   // waits for the loader
  bool is_gone_ = false;      // the client no longer waits
  bool is_answered_ = false;
  bool is_over_ = false;
};

}  // namespace halyard::tools::serve
