// Waits for semaphores of this server are resolved there. Those of other servers are passed on to it.
#include "submission.h"

#include <boost/container/small_vector.hpp>
#include <vector>

#include "command_list.h"
#include "in_flight.h"
#include "timeline.h"

namespace halyard::remote {

namespace {

struct Operation {
  wire::Operation kind = wire::Operation::Barrier;
  flatbuffers::Offset<void> body;
  Bytes data = {};    // of the frame
  Bytes staged = {};  // that are sent before
  uint64_t stage = 0;
};

kit::Result<flatbuffers::Offset<wire::Execute>> execute_to_wire(flatbuffers::FlatBufferBuilder& builder,
                                                                const std::shared_ptr<Connection>& server,
                                                                const halyard_operation_execute_t& execute) {
  std::vector<wire::Binding> bindings;
  for (uint64_t i = 0; i < execute.binding_count; ++i) {
    const halyard_binding_t& it = execute.bindings[i];
    uint64_t memory = 0;
    if (it.memory) memory = HALYARD_KIT_TRY(reinterpret_cast<Memory*>(it.memory)->number_at(server));
    bindings.emplace_back(memory, it.offset, it.length);
  }
  const auto table = builder.CreateVectorOfStructs(bindings);
  return wire::CreateExecute(builder, reinterpret_cast<const CommandList*>(execute.list)->number(), table);
}

kit::Result<Operation> operation_to_wire(Message& message, const std::shared_ptr<Connection>& server,
                                         const halyard_operation_t& operation, const Memory* transient) {
  flatbuffers::FlatBufferBuilder& builder = message.builder();
  switch (operation.kind) {
    case HALYARD_OPERATION_BARRIER:
      return Operation{wire::Operation::Barrier, wire::CreateBarrier(builder).Union()};
    case HALYARD_OPERATION_ALLOCA: {
      const halyard_memory_request_t& asked = *operation.alloca_.request;
      const auto request = wire::CreateRequest(builder, asked.memory_type, asked.usage, asked.affinity,
                                               asked.size, kit::owner_of(asked));
      return Operation{wire::Operation::Alloca,
                       wire::CreateAlloca(builder, transient->number(), request).Union()};
    }
    case HALYARD_OPERATION_DEALLOCA: {
      const auto* const memory = reinterpret_cast<const Memory*>(operation.dealloca.memory);
      return Operation{wire::Operation::Dealloca, wire::CreateDealloca(builder, memory->number()).Union()};
    }
    case HALYARD_OPERATION_FILL: {
      const wire::Range target = HALYARD_KIT_TRY(to_wire(server, operation.fill.target));
      return Operation{
          wire::Operation::Fill,
          wire::CreateFill(builder, &target, operation.fill.pattern, operation.fill.pattern_size).Union()};
    }
    case HALYARD_OPERATION_UPDATE: {
      const wire::Range target = HALYARD_KIT_TRY(to_wire(server, operation.update.target));
      const Bytes bytes = {static_cast<const uint8_t*>(operation.update.source),
                           operation.update.target.length};
      const bool is_large = bytes.size() > kPiece;
      const uint64_t stage = is_large ? server->new_number() : 0;
      return Operation{wire::Operation::Update, wire::CreateUpdate(builder, &target, 0, stage).Union(),
                       is_large ? Bytes() : bytes, is_large ? bytes : Bytes(), stage};
    }
    case HALYARD_OPERATION_COPY: {
      const wire::Range source = HALYARD_KIT_TRY(to_wire(server, operation.copy.source));
      const wire::Range target = HALYARD_KIT_TRY(to_wire(server, operation.copy.target));
      return Operation{wire::Operation::Copy, wire::CreateCopy(builder, &source, &target).Union()};
    }
    case HALYARD_OPERATION_EXECUTE:
      return Operation{wire::Operation::Execute,
                       HALYARD_KIT_TRY(execute_to_wire(builder, server, operation.execute)).Union()};
    default:
      return kit::Failure{HALYARD_UNIMPLEMENTED, "operation of kind " + std::to_string(operation.kind) +
                                                     " is not among those that this device offers"};
  }
}

flatbuffers::Offset<flatbuffers::Vector<const wire::Point*>> points_to_wire(
    flatbuffers::FlatBufferBuilder& builder, const std::shared_ptr<Connection>& server,
    kit::Timepoints points) {
  boost::container::small_vector<wire::Point, 8> numbers;
  for (const halyard_timepoint_t& point : points) {
    auto& semaphore = kit::timeline_of<Semaphore>(point);
    numbers.emplace_back(semaphore.number_at(server), point.value);
  }
  return builder.CreateVectorOfStructs(numbers.data(), numbers.size());
}

}  // namespace

kit::Result<> send_submission(const std::shared_ptr<Connection>& server,
                              const halyard_submission_t& submission, Memory* transient) {
  HALYARD_KIT_TRY(server->check());
  Message message;
  flatbuffers::FlatBufferBuilder& builder = message.builder();
  const Operation operation =
      HALYARD_KIT_TRY(operation_to_wire(message, server, *submission.operation, transient));
  server->send_changes();
  const kit::Timepoints waits = {submission.waits, submission.wait_count};
  const auto waited = points_to_wire(builder, server, waits);
  // The server makes the signals of its own semaphores.
  boost::container::small_vector<halyard_timepoint_t, 8> own;
  for (uint32_t i = 0; i < submission.signal_count; ++i) {
    auto& semaphore = kit::timeline_of<Semaphore>(submission.signals[i]);
    if (&semaphore.home() != server.get()) continue;
    own.push_back(submission.signals[i]);
    semaphore.submitted(submission.signals[i].value);
  }
  const auto signalled = points_to_wire(builder, server, {own.data(), own.size()});

  auto work = std::make_unique<InFlight>(server->new_number(), submission);
  const uint64_t number = work->number();
  for (const halyard_timepoint_t& point : waits) {
    auto& semaphore = kit::timeline_of<Semaphore>(point);
    if (&semaphore.home() != server.get())
      work->forwards.push_back(std::make_shared<Forward>(server, semaphore, point.value));
  }
  work->computes = operation.kind != wire::Operation::Alloca && operation.kind != wire::Operation::Dealloca &&
                   operation.kind != wire::Operation::Barrier;
  if (submission.operation->kind == HALYARD_OPERATION_EXECUTE)
    work->commands = &reinterpret_cast<const CommandList*>(submission.operation->execute.list)->commands();
  if (transient) work->on_success = [transient] { transient->exists(); };
  if (submission.operation->kind == HALYARD_OPERATION_DEALLOCA)
    work->on_success = [memory = reinterpret_cast<Memory*>(submission.operation->dealloca.memory)] {
      memory->ends();
    };
  const std::vector<std::shared_ptr<Forward>> forwards = work->forwards;
  HALYARD_KIT_TRY(server->with_staged(operation.stage, operation.staged, [&] {
    return server->with_created([&](const std::vector<wire::Point>& created) {
      const auto semaphores = created.empty() ? flatbuffers::Offset<flatbuffers::Vector<const wire::Point*>>()
                                              : builder.CreateVectorOfStructs(created);
      const Bytes bytes =
          message.to_server(wire::CreateSubmit(builder, number, submission.affinity, waited, signalled,
                                               operation.kind, operation.body, semaphores));
      return server->add(std::move(work),
                         [&](Stream::Urgency urgency) { server->send(bytes, operation.data, urgency); });
    });
  }));
  for (const std::shared_ptr<Forward>& forward : forwards) forward->begin();
  return {};
}

}  // namespace halyard::remote
