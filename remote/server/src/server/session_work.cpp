// Queue work: submitted with a signal of the server's own, at which the client is told.
#include <boost/asio/post.hpp>

#include "base/c_boundary.h"
#include "hal/queue/wait.h"
#include "server/failures.h"
#include "server/session.h"

namespace halyard::device_server {

Result<hal::Timepoints> Session::timepoints_of(const flatbuffers::Vector<const wire::Point*>* points,
                                               Status& failure) {
  hal::Timepoints timepoints;
  if (!points) return timepoints;
  for (const wire::Point* const point : *points) {
    const SemaphoreObject* const object = HALYARD_TRY(objects_.semaphores.find(point->semaphore()));
    if (object->semaphore) {
      timepoints.push_back({object->semaphore, point->value()});
    } else if (failure.ok()) {
      failure = object->failure;
    }
  }
  return timepoints;
}

Result<> Session::check_room_for_work() const {
  const size_t count = in_flight_.size() + news_.size();
  if (count < shared_.limits.handles) return {};
  return fail(Code::RESOURCE_EXHAUSTED,
              "the connection has {} submissions in flight; raise --max_handles of vm-device", count);
}

Result<> Session::on(const wire::Submit& asked, remote::Bytes data) {
  if (asked.created())
    for (const wire::Point* const each : *asked.created())
      HALYARD_TRY(create_semaphore(each->semaphore(), each->value()));
  Status failure;
  hal::Timepoints waits = HALYARD_TRY(timepoints_of(asked.waits(), failure));
  hal::Timepoints signals = HALYARD_TRY(timepoints_of(asked.signals(), failure));
  Budget* const memory = client_->memory.get();
  Ref<hal::Fence> done = HALYARD_TRY(hal::Fence::create(device_, memory));
  signals.push_back(done->timepoints()[0]);
  const Ref<hal::Fence> signal = HALYARD_TRY(hal::Fence::of(std::move(signals), memory));
  Ref<hal::Fence> wait;
  if (!waits.empty()) wait = HALYARD_TRY(hal::Fence::of(std::move(waits), memory));

  shared_.counts.submissions.fetch_add(1, std::memory_order_relaxed);
  const Ref<WorkScope> scope = make<WorkScope>();
  const uint64_t number = asked.id();
  {
    const std::lock_guard lock(mutex_);
    HALYARD_TRY(check_room_for_work());
    if (!in_flight_.emplace(number, Work{scope, deadline_of_work(), {}, {}, wait, done}).second)
      return fail(Code::INVALID_ARGUMENT, "submission {} is in flight already", number);
  }
  const hal::QueuePoint point = {*device_,   asked.affinity() ? asked.affinity() : hal::kAnyQueue,
                                 wait.get(), signal.get(),
                                 memory,     scope.get(),
                                 0,          spans_ ? spans_->begin(number) : nullptr};
  Work work;
  if (failure.ok()) {
    if (Result<> submitted = submit(asked, data, point, work, failure); !submitted) {
      if (spans_) spans_->forget(number);
      const std::lock_guard lock(mutex_);
      in_flight_.erase(number);
      return submitted;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = in_flight_.find(number); found != in_flight_.end()) {
      found->second.memories = std::move(work.memories);
      found->second.recorded = std::move(work.recorded);
    }
  }
  // No effect on what the work has signalled or failed already.
  if (!failure.ok()) signal->fail(failure);
  // Short work may have ended when the messages that came together have been handled.
  if (batching == this) {
    begun_.emplace_back(number, std::move(done));
    return {};
  }
  return tell_when_done(number, *done);
}

Result<> Session::tell_when_done(uint64_t number, const hal::Fence& done) {
  return hal::when_reached(&done, [weak = weak_from_this(), number](Status status) {
    const std::shared_ptr<Session> self = weak.lock();
    if (!self) return;
    // Only memory can be missing; the client must not wait for a completion that never comes.
    const Status told = outcome_of([&] { return self->completed(number, status), Result<>(); });
    if (!told.ok()) self->stream_->end(to_wire(told));
  });
}

void Session::finish_begun() {
  if (begun_.empty()) return;
  hal::Fence* const last[] = {begun_.back().second.get()};
  (void)hal::run_pending_work(last);
  std::vector<uint64_t> succeeded;
  for (const auto& [number, done] : std::exchange(begun_, {})) {
    hal::Fence* const fence[] = {done.get()};
    const Result<bool> state = hal::are_reached(fence);
    if (!state) {
      completed(number, state.error());
    } else if (*state) {
      if (can_tell_together(number)) {
        succeeded.push_back(number);
      } else {
        completed(number, {});
      }
    } else if (const Result<> told = tell_when_done(number, *done); !told) {
      completed(number, told.error());
    }
  }
  if (succeeded.empty()) return;
  send([&](remote::Message& message) {
    const auto numbers = message.builder().CreateVector(succeeded);
    return wire::CreateCompletions(message.builder(), numbers);
  });
}

bool Session::can_tell_together(uint64_t number) {
  if (version_ < remote::kVersionWithLists || spans_) return false;
  const std::lock_guard lock(mutex_);
  const auto found = in_flight_.find(number);
  if (found == in_flight_.end()) return false;
  // Not before the contents of work for which it has waited.
  if (is_telling_ || (found->second.wait && !watched_.empty())) return false;
  bool is_watched = false;
  found->second.for_each_memory([&](uint64_t memory) { is_watched |= watched_.contains(memory); });
  if (is_watched) return false;
  in_flight_.erase(found);
  return true;
}

Result<> Session::submit(const wire::Submit& asked, remote::Bytes data, const hal::QueuePoint& point,
                         Work& work, Status& failure) {
  // A failure of the work, not of the protocol.
  const auto keep = [&](Result<> submitted) -> Result<> {
    if (!submitted && failure.ok()) failure = std::move(submitted.error());
    return {};
  };
  const auto buffer_of = [&](const wire::Range* range) -> Result<hal::Buffer*> {
    const hal::BufferRange found = HALYARD_TRY(range_of(objects_, range, failure));
    if (range->memory() == 0) return fail(Code::INVALID_ARGUMENT, "an operation has no memory");
    return found.buffer;
  };
  if (asked.operation_type() != wire::Operation::NONE && !asked.operation())
    return fail(Code::INVALID_ARGUMENT, "a submission has no operation");
  switch (asked.operation_type()) {
    case wire::Operation::Barrier:
      return keep(hal::queue_barrier(point));
    case wire::Operation::Alloca: {
      const wire::Alloca& it = *asked.operation_as_Alloca();
      HALYARD_TRY(check_request(it.request()));
      const Wishes wishes = wishes_of(*it.request());
      hal::QueuePoint place = point;
      place.owner = wishes.owner;
      MemoryObject memory;
      Result<Ref<hal::Buffer>> made =
          hal::queue_alloca(place, 0, wishes.memory_type, wishes.usage, it.request()->size(), 0);
      if (made) {
        memory.buffer = *std::move(made);
      } else {
        memory.failure = failure = std::move(made.error());
      }
      return objects_.memories.add(it.memory(), std::move(memory));
    }
    case wire::Operation::Dealloca: {
      const MemoryObject* const memory =
          HALYARD_TRY(objects_.memories.find(asked.operation_as_Dealloca()->memory()));
      if (!memory->failure.ok()) return failure = memory->failure, Result<>();
      return keep(hal::queue_dealloca(point, *memory->buffer, 0));
    }
    case wire::Operation::Fill: {
      const wire::Fill& it = *asked.operation_as_Fill();
      hal::Buffer* const target = HALYARD_TRY(buffer_of(it.target()));
      work.memories.add(it.target()->memory());
      if (!failure.ok()) return {};
      return keep(hal::queue_fill(point, *target, it.target()->offset(), it.target()->length(), it.pattern(),
                                  it.pattern_size()));
    }
    case wire::Operation::Update: {
      const wire::Update& it = *asked.operation_as_Update();
      hal::Buffer* const target = HALYARD_TRY(buffer_of(it.target()));
      work.memories.add(it.target()->memory());
      Stage staged;
      if (it.stage() != 0) {
        if (!stage_ || stage_->number != it.stage() || stage_->bytes.size() != stage_->size)
          return fail(Code::INVALID_ARGUMENT, "the bytes of an update have not come");
        staged = *std::exchange(stage_, std::nullopt);
        data = staged.bytes;
      }
      if (data.size() != it.target()->length())
        return fail(Code::INVALID_ARGUMENT, "an update of {} bytes comes with {} bytes",
                    it.target()->length(), data.size());
      if (!failure.ok()) return {};
      return keep(hal::queue_update(point, data, *target, it.target()->offset()));
    }
    case wire::Operation::Copy: {
      const wire::Copy& it = *asked.operation_as_Copy();
      hal::Buffer* const source = HALYARD_TRY(buffer_of(it.source()));
      hal::Buffer* const target = HALYARD_TRY(buffer_of(it.target()));
      work.memories.add(it.target()->memory());
      if (!failure.ok()) return {};
      return keep(hal::queue_copy(point, *source, it.source()->offset(), *target, it.target()->offset(),
                                  it.target()->length()));
    }
    case wire::Operation::Execute: {
      const wire::Execute& it = *asked.operation_as_Execute();
      const ListObject* const list = HALYARD_TRY(objects_.lists.find(it.list()));
      if (!list->failure.ok()) failure = list->failure;
      if (it.bindings() && it.bindings()->size() > hal::kMaxSlots)
        return fail(Code::INVALID_ARGUMENT, "a binding table has {} entries; expected at most {}",
                    it.bindings()->size(), hal::kMaxSlots);
      work.recorded = list->memories;
      std::vector<hal::Binding> table;
      if (it.bindings())
        for (const wire::Binding* const binding : *it.bindings()) {
          hal::Binding entry;
          if (binding->memory() != 0) {
            MemoryObject* const memory = HALYARD_TRY(objects_.memories.find(binding->memory()));
            settle(*memory);
            if (!memory->failure.ok() && failure.ok()) failure = memory->failure;
            if (binding->length() == hal::kWholeLength && failure.ok())
              failure = Status(Code::OUT_OF_RANGE,
                               "an entry of a table has the length 2^64-1; lengths are explicit");
            entry = {memory->buffer.get(), binding->offset(), binding->length()};
            work.memories.add(binding->memory());
          }
          table.push_back(entry);
        }
      if (failure.ok()) failure = to_status(work.memories.finish(*point.memory));
      if (!failure.ok()) return {};
      return keep(hal::queue_execute(point, *list->commands, table));
    }
    default:
      return fail(Code::UNIMPLEMENTED, "operation of kind {} is unknown",
                  static_cast<unsigned>(asked.operation_type()));
  }
}

void Session::send_spans(uint64_t submission) {
  remote::Message message;
  flatbuffers::Offset<wire::Spans> body;
  if (!spans_->take(submission, message, body)) return;
  stream_->send(message.to_client(body), {}, remote::Stream::Urgency::later);
}

void Session::add_contents(const Work& work, News& news) {
  work.for_each_memory([&](uint64_t memory) {
    const auto watched = watched_.find(memory);
    // Contents are read when they are sent, so those that are not sent yet will have these changes, too.
    if (watched == watched_.end() || !changed_.insert(memory).second) return;
    news.contents.push_back({memory});
    news.is_long |= !watched->second->is_mappable() || watched->second->length() > remote::kPiece;
  });
}

// Work that has ended may have let other work begin whose end is known here before.
void Session::add_contents_of_reached_work(News& news) {
  for (auto& [number, work] : in_flight_) {
    hal::Fence* const done[] = {work.done.get()};
    const Result<bool> is_reached = hal::are_reached(done);
    if (is_reached && !*is_reached) continue;
    add_contents(work, news);
    work.memories = {};
    work.recorded = nullptr;
  }
}

// On any thread, also in callbacks of the driver.
void Session::completed(uint64_t number, const Status& status) {
  if (!status.ok()) shared_.counts.failures.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  const auto found = in_flight_.find(number);
  if (found == in_flight_.end()) return;
  News news = {number, status, {}, false};
  add_contents(found->second, news);
  const bool has_waited = bool(found->second.wait);
  in_flight_.erase(found);
  if (has_waited && !watched_.empty()) add_contents_of_reached_work(news);
  add_news(std::move(news), std::move(lock));
}

void Session::add_news(News news, std::unique_lock<std::mutex> lock) {
  news_.push_back(std::move(news));
  const bool is_told = std::exchange(is_telling_, true);
  lock.unlock();
  if (!is_told) tell(false);
}

// Copies by the device, and the client, must not be awaited in a callback of the device, nor on a thread that
// receives.
void Session::tell(bool is_in_pool) {
  for (;;) {
    News next;
    {
      const std::lock_guard lock(mutex_);
      if (news_.empty()) {
        is_telling_ = false;
        return;
      }
      const News& first = news_.front();
      if (!is_in_pool && (first.is_long || (!first.contents.empty() && has_much_unsent()))) break;
      next = std::move(news_.front());
      news_.pop_front();
      if (next.request == 0)
        for (const Changed& changed : next.contents) changed_.erase(changed.memory);
    }
    tell_one(next);
  }
  boost::asio::post(shared_.io, [self = shared_from_this()] {
    const Status told = outcome_of([&] { return self->tell(true), Result<>(); });
    if (!told.ok()) self->stream_->end(to_wire(told));
  });
}

void Session::tell_one(const News& news) {
  if (!send_contents(news.contents)) return;
  if (news.request != 0) return done(news.request, {});
  if (spans_) send_spans(news.submission);
  send([&](remote::Message& message) {
    const auto failure = news.status.ok() ? flatbuffers::Offset<wire::Status>()
                                          : remote::add_status(message, to_wire(news.status));
    return wire::CreateCompleted(message.builder(), news.submission, failure);
  });
}

}  // namespace halyard::device_server
