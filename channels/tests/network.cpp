// Matches messages as MPI does: in the order of the sends, with the first receive that accepts them.
#include "network.h"

#include <algorithm>
#include <cstring>

#include "pause.h"

namespace halyard::mpi::testing {

namespace {

Network* network = nullptr;

}  // namespace

Network::Network() { network = this; }
Network::~Network() { network = nullptr; }

MPI_Request Network::add(Request request) {
  requests_.push_back(request);
  return static_cast<MPI_Request>(requests_.size() - 1);
}

int Network::send(const void* bytes, int count, int target, int tag, MPI_Comm comm, bool synchronously,
                  MPI_Request* request) {
  const auto size = static_cast<size_t>(count);
  *request = add({.rank = comm, .is_done = !synchronously && size <= kEager});
  Message message = {.source = comm, .tag = tag, .bytes = std::vector<uint8_t>(size), .sender = *request};
  if (size != 0) std::memcpy(message.bytes.data(), bytes, size);
  if (held_.contains({comm, target})) {
    under_way_[{comm, target}].push_back(std::move(message));
  } else {
    arrive(target, std::move(message));
  }
  return MPI_SUCCESS;
}

int Network::receive(void* bytes, int count, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  static uint8_t nowhere;
  *request = add({.rank = comm,
                  .to = bytes ? static_cast<uint8_t*>(bytes) : &nowhere,
                  .size = static_cast<size_t>(count),
                  .source = source,
                  .tag = tag});
  Request& added = requests_.back();
  std::vector<Message>& arrived = arrived_[comm];
  const auto found = std::find_if(arrived.begin(), arrived.end(),
                                  [&](const Message& message) { return accepts(added, comm, message); });
  if (found == arrived.end()) return MPI_SUCCESS;
  Message message = std::move(*found);
  arrived.erase(found);
  match(added, std::move(message));
  return MPI_SUCCESS;
}

bool Network::accepts(const Request& request, int to, const Message& message) const {
  return request.to && request.rank == to && !request.has_matched && !request.is_done &&
         request.tag == message.tag && (request.source == MPI_ANY_SOURCE || request.source == message.source);
}

void Network::arrive(int to, Message message) {
  for (Request& request : requests_)
    if (accepts(request, to, message)) return match(request, std::move(message));
  arrived_[to].push_back(std::move(message));
}

void Network::match(Request& request, Message message) {
  request.has_matched = true;
  request.source = message.source;
  if (holds_bytes_ && message.bytes.size() > kEager) {
    matched_.emplace_back(static_cast<size_t>(&request - requests_.data()), std::move(message));
  } else {
    finish(request, message);
  }
}

void Network::finish(Request& request, const Message& message) {
  if (!message.bytes.empty())
    std::memcpy(request.to, message.bytes.data(), std::min(request.size, message.bytes.size()));
  request.is_done = true;
  requests_[static_cast<size_t>(message.sender)].is_done = true;
}

void Network::release(int from, int to) {
  held_.erase({from, to});
  for (Message& message : std::exchange(under_way_[{from, to}], {})) arrive(to, std::move(message));
}

void Network::move_bytes() {
  holds_bytes_ = false;
  for (const auto& [index, message] : std::exchange(matched_, {})) finish(requests_[index], message);
}

bool Network::test(MPI_Request& request, MPI_Status* status) {
  if (request == MPI_REQUEST_NULL) return true;
  const Request& found = requests_[static_cast<size_t>(request)];
  if (!found.is_done) return false;
  if (status) status->MPI_SOURCE = found.source;
  request = MPI_REQUEST_NULL;
  return true;
}

int Network::test_some(int count, MPI_Request requests[], int* done, int indices[]) {
  const int rank = count == 0 ? -1 : requests_[static_cast<size_t>(requests[0])].rank;
  if (before_test) before_test(rank);
  *done = 0;
  for (int i = 0; i < count; ++i)
    if (test(requests[i], nullptr)) indices[(*done)++] = i;
  if (failing_ != rank) return MPI_SUCCESS;
  failing_ = -1;
  return MPI_SUCCESS + 1;
}

void Network::cancel(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return;
  Request& found = requests_[static_cast<size_t>(request)];
  if (!found.has_matched) found.is_done = true;
}

}  // namespace halyard::mpi::testing

using halyard::mpi::testing::network;

namespace halyard::mpi {
uint64_t now() { return network->time; }
}  // namespace halyard::mpi

extern "C" {

int MPI_Isend(const void* bytes, int count, MPI_Datatype, int target, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return network->send(bytes, count, target, tag, comm, false, request);
}
int MPI_Issend(const void* bytes, int count, MPI_Datatype, int target, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return network->send(bytes, count, target, tag, comm, true, request);
}
int MPI_Irecv(void* bytes, int count, MPI_Datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return network->receive(bytes, count, source, tag, comm, request);
}
int MPI_Test(MPI_Request* request, int* is_done, MPI_Status* status) {
  *is_done = network->test(*request, status) ? 1 : 0;
  return MPI_SUCCESS;
}
int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status*) {
  return network->test_some(count, requests, done, indices);
}
int MPI_Cancel(MPI_Request* request) {
  network->cancel(*request);
  return MPI_SUCCESS;
}
int MPI_Error_string(int, char* text, int* size) {
  constexpr char kText[] = "an error of the network";
  std::memcpy(text, kText, sizeof kText);
  *size = sizeof kText - 1;
  return MPI_SUCCESS;
}
int MPI_Comm_size(MPI_Comm, int* size) {
  *size = 1;
  return MPI_SUCCESS;
}
int MPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) { return 1; }

}  // extern "C"
