// MPI in this process: initialization, progress, finalization.
#include "job.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace halyard::mpi {

namespace {

// A look() that takes this long while bytes of a large collective are moving counts as progress even if no
// message has ended, but only for a limited time, because the other rank may have stopped.
constexpr uint64_t kBusyLookNs = 4'000;
constexpr uint64_t kMaxCopyNs = 100'000'000;
// If nothing has moved for this long, a rank may have ended.
constexpr uint64_t kQuietNs = 200'000;
// The time for which a process that fails waits until its notices are sent.
constexpr uint64_t kNoticesNs = 200'000'000;
// The time for which a process that ends well waits for its operations before it announces its end.
constexpr uint64_t kLastNs = 5'000'000'000;
// Longer time limits would overflow the clock. This one, a century, counts as no limit.
constexpr uint64_t kMaxNs = uint64_t{100} * 365 * 24 * 3600 * 1'000'000'000;

const char* level_name(int level) {
  switch (level) {
    case MPI_THREAD_MULTIPLE:
      return "MPI_THREAD_MULTIPLE";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    default:
      return "MPI_THREAD_SINGLE";
  }
}

uint64_t read_clock(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = {};
  int size = 0;
  MPI_Get_library_version(text, &size);
  const std::string all(text, static_cast<size_t>(std::max(size, 0)));
#ifdef OPEN_MPI
  return all.substr(0, all.find(','));  // "Open MPI v4.1.4, package: ..."
#else
  std::string line = all.substr(0, all.find('\n'));  // "MPICH Version:\t4.0.2"
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
#endif
}

std::vector<uint32_t> world_ranks_of(MPI_Comm comm, int count) {
  std::vector<int> own(static_cast<size_t>(count));
  std::vector<int> found(own.size(), MPI_UNDEFINED);
  for (int rank = 0; rank < count; ++rank) own[static_cast<size_t>(rank)] = rank;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, count, own.data(), world, found.data());
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  std::vector<uint32_t> ranks;
  for (const int rank : found)
    ranks.push_back(rank == MPI_UNDEFINED ? kNotInWorld : static_cast<uint32_t>(rank));
  return ranks;
}

}  // namespace

uint64_t now() { return read_clock(CLOCK_MONOTONIC); }

Failure Job::make_fabric(MPI_Comm comm, std::unique_ptr<Fabric>& to) {
  auto fabric = std::make_unique<Fabric>();
  fabric->process = &process_;
  fabric->comm = comm;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int rank = 0;
  int count = 1;
  if (int error = MPI_Comm_rank(comm, &rank); error != MPI_SUCCESS)
    return {HALYARD_UNAVAILABLE, error_text("MPI_Comm_rank", error)};
  if (int error = MPI_Comm_size(comm, &count); error != MPI_SUCCESS)
    return {HALYARD_UNAVAILABLE, error_text("MPI_Comm_size", error)};
  fabric->rank = static_cast<uint32_t>(rank);
  fabric->count = static_cast<uint32_t>(count);
  fabric->world_ranks = world_ranks_of(comm, count);
  int* highest = nullptr;
  int is_set = 0;
  if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&highest), &is_set) == MPI_SUCCESS &&
      is_set)
    fabric->channels = std::min<uint32_t>(kMaxChannels, (static_cast<uint32_t>(*highest) + 1) / kTags);
  fabric->root = Channel::root_of(*fabric);
  to = std::move(fabric);
  return {};
}

// Called on the job's thread, because the thread that initializes MPI may always call it.
Failure Job::enter() {
  int is_initialized = 0;
  int is_finalized = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  if (is_finalized)
    return {HALYARD_FAILED_PRECONDITION,
            "MPI has been finalized in this process; open channels before MPI_Finalize"};
  int level = MPI_THREAD_SINGLE;
  if (is_initialized) {
    MPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
      return {HALYARD_FAILED_PRECONDITION,
              std::string("this process has initialized MPI with ") + level_name(level) +
                  ", but channels call MPI on a thread of their own; initialize it with MPI_Init_thread and "
                  "MPI_THREAD_MULTIPLE"};
  } else {
    if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
        error != MPI_SUCCESS)
      return {HALYARD_UNAVAILABLE, error_text("MPI_Init_thread", error)};
    is_ours_ = true;
  }
  any_thread_ = level >= MPI_THREAD_SERIALIZED;
  description_ = library_version() + ", " + level_name(level);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int error = MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request); error != MPI_SUCCESS)
    return {HALYARD_UNAVAILABLE, error_text("MPI_Comm_idup", error)};
  Pause pause;
  for (int is_done = 0;; pause.rest(false)) {  // other processes may be late
    if (const int error = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE); error != MPI_SUCCESS)
      return {HALYARD_UNAVAILABLE, error_text("MPI_Comm_idup", error)};
    if (is_done) break;
  }
  if (Failure failure = find_machine(comm)) return failure;
  if (Failure failure = make_fabric(comm, world_)) return failure;
  // The job's thread must not be in MPI when MPI is finalized, by this job or by the program.
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, this);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, this);
  return {};
}

// Finds the processes that share this machine. All processes have already joined.
Failure Job::find_machine(MPI_Comm comm) {
  int rank = 0;
  int count = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &count);
  process_.peers.begin(static_cast<uint32_t>(rank), static_cast<uint32_t>(count));
  MPI_Comm local = MPI_COMM_NULL;
  if (const int error = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
      error != MPI_SUCCESS)
    return {HALYARD_UNAVAILABLE, error_text("MPI_Comm_split_type", error)};
  MPI_Comm_rank(local, &rank);
  MPI_Comm_size(local, &count);
  local_rank_ = static_cast<uint32_t>(rank);
  local_count_ = static_cast<uint32_t>(count);
  process_.peers.watch(local);
  MPI_Comm_free(&local);
  return {};
}

Failure Job::join(const halyard_host_services_t& services, uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  if (!has_tried_) {
    has_tried_ = true;
    thread_ = std::thread([this] { run(); });
    on_exit(at_exit, this);
  }
  const auto is_over = [this] { return is_joined_ || failure_ || given_up_; };
  if (timeout_ns == 0) {
    process_.changed.wait(lock, is_over);
  } else if (!process_.changed.wait_for(
                 lock, std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, kMaxNs)), is_over)) {
    given_up_ = {HALYARD_DEADLINE_EXCEEDED, "the other processes have not all called MPI_Init within " +
                                                std::to_string(timeout_ns / 1'000'000) + " ms"};
    process_.changed.notify_all();
  }
  // Once the time limit is over, the process cannot join any more, even if the others come (channel.h).
  if (given_up_) return given_up_;
  if (failure_) return failure_;
  if (!services_) services_ = &services;
  return {};
}

void Job::run() {
  prctl(PR_SET_NAME, "halyard-mpi");
  prctl(PR_SET_TIMERSLACK, 1000);
  Failure failure = enter();  // without the lock, because it waits for other processes and join() may give up
  std::unique_lock lock(mutex_);
  if (failure) {
    failure_ = std::move(failure);
    process_.changed.notify_all();
    if (!is_ours_) return;
  }
  is_joined_ = !failure_;
  process_.changed.notify_all();
  uint64_t moved_at = now();
  while (!ends_) {
    if (!has_work()) {
      wake_.wait(lock);
      moved_at = now();
      continue;
    }
    const bool moved = look() || !process_.completions.empty();
    const uint64_t end = now();
    if (end - advanced_at_ > kQuietNs) look_at_peers();
    report_completions(lock);
    if (moved) {
      moved_at = end;
      process_.changed.notify_all();
    }
    if (const uint64_t sleep_ns = Pause::after(end - moved_at); sleep_ns != 0) {
      wake_.wait_for(lock, std::chrono::nanoseconds(sleep_ns));
      continue;
    }
    lock.unlock();
    if (!moved) std::this_thread::yield();
    lock = this->lock();
  }
  leave();
}

std::unique_lock<std::mutex> Job::lock() {
  const std::lock_guard turn(next_);
  return std::unique_lock(mutex_);
}

bool Job::has_work() const {
  return std::any_of(process_.channels.begin(), process_.channels.end(),
                     [](const Channel* channel) { return channel->has_work(); }) ||
         !closing_.empty();
}

bool Job::advance() {
  bool moved = false;
  for (size_t i = 0; i < process_.channels.size(); ++i)  // the list may grow meanwhile
    if (process_.channels[i]->has_work() && process_.channels[i]->advance()) moved = true;
  for (size_t i = 0; i < closing_.size();) {
    if (!closing_[i]->is_closed()) closing_[i]->close();
    closing_[i]->advance();
    if (!closing_[i]->is_idle()) {
      ++i;
      continue;
    }
    const std::unique_ptr<Channel> gone = std::move(closing_[i]);
    closing_.erase(closing_.begin() + static_cast<ptrdiff_t>(i));
  }
  return moved;
}

// If processes share cores, a look may take long only because MPI yields its core. So the look that follows a
// long one is measured by its CPU time.
bool Job::look() {
  const uint64_t begin = now();
  const uint64_t computed = measures_looks_ ? read_clock(CLOCK_THREAD_CPUTIME_ID) : 0;
  bool moved = advance();
  const uint64_t end = now();
  if (moved) {
    advanced_at_ = end;
  } else if (measures_looks_ && end - advanced_at_ < kMaxCopyNs) {
    moved = read_clock(CLOCK_THREAD_CPUTIME_ID) - computed > kBusyLookNs;
  }
  measures_looks_ = end - begin > kBusyLookNs && moves_bytes();
  return moved;
}

bool Job::moves_bytes() const {
  return std::any_of(process_.channels.begin(), process_.channels.end(),
                     [](const Channel* channel) { return channel->moves_bytes(); });
}

void Job::look_at_peers() {
  const uint64_t time = now();  // before the look: a rank that has ended now gets one more look
  world_->root->listen();
  process_.peers.look();
  for (size_t i = 0; i < process_.channels.size(); ++i) process_.channels[i]->check_peers(advanced_at_, time);
}

void Job::close_later(std::unique_ptr<Channel> channel) {
  if (any_thread_) channel->close();  // otherwise the job's thread closes it
  if (channel->is_closed() && channel->is_idle()) return;
  closing_.push_back(std::move(channel));
  wake_.notify_one();
}

void Job::report_completions(std::unique_lock<std::mutex>& lock) {
  if (process_.completions.empty()) return;
  const std::vector<Process::Completion> ended = std::exchange(process_.completions, {});
  lock.unlock();
  for (const Process::Completion& each : ended)
    each.collective.completed(each.collective.user, to_status(*services_, each.failure));
  lock = this->lock();
}

void Job::work(std::unique_lock<std::mutex>& lock, uint64_t patience_ns, const bool* done) {
  if (any_thread_ && !ends_) {
    const uint64_t until = now() + patience_ns;
    uint64_t moved_at = now();
    do {
      if (look()) moved_at = now();
    } while (!*done && (now() < until || now() - moved_at < patience_ns) && patience_ns != 0);
  }
  const bool wakes = has_work();
  report_completions(lock);
  if (wakes && has_work()) wake_.notify_one();
}

Failure Job::import(std::unique_lock<std::mutex>& lock, const std::string& id, MPI_Comm comm) {
  if (!any_thread_)
    return {
        HALYARD_FAILED_PRECONDITION,
        "a communicator of the host program needs MPI_THREAD_SERIALIZED, which MPI does not provide in this "
        "process; found " +
            description_};
  if (imports_.contains(id))
    return {HALYARD_ALREADY_EXISTS, "a communicator with the id '" + id + "' is already registered"};
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int error = MPI_Comm_idup(comm, &own, &request); error != MPI_SUCCESS)
    return {HALYARD_INVALID_ARGUMENT, error_text("MPI_Comm_idup", error)};
  Pause pause;
  for (int is_done = 0;;) {
    if (const int error = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE); error != MPI_SUCCESS)
      return {HALYARD_UNAVAILABLE, error_text("MPI_Comm_idup", error)};
    if (is_done) break;
    const bool moved = advance();
    report_completions(lock);
    lock.unlock();
    pause.rest(moved);
    lock = this->lock();
  }
  std::unique_ptr<Fabric> fabric;
  if (Failure failure = make_fabric(own, fabric)) return failure;
  imports_.emplace(id, std::move(fabric));
  return {};
}

// ---- The end

bool Job::is_broken() const {
  return std::any_of(process_.channels.begin(), process_.channels.end(),
                     [](const Channel* channel) { return bool(channel->broken()); });
}

// Called on the job's thread at the end of the process, if the job has initialized MPI.
void Job::leave() {
  if (!is_ours_) return;
  if (failure_ || exit_status_ != 0 || is_broken() || !end_together()) return leave_broken();
  for (Channel* channel : process_.channels) channel->stop_listening();
  MPI_Finalize();
}

// Ends without MPI_Finalize, so that the launcher ends the other ranks, which cannot end well any more.
void Job::leave_broken() {
  const uint64_t until = now() + kNoticesNs;
  const auto has_work = [](const Channel* channel) { return channel->has_work(); };
  Pause pause;
  while (std::any_of(process_.channels.begin(), process_.channels.end(), has_work) && now() < until)
    pause.rest(advance());
  // Not for MPICH, because its MPI_Abort would call exit() again.
#ifdef OPEN_MPI
  if (exit_status_ != 0) MPI_Abort(world_ ? world_->comm : MPI_COMM_WORLD, exit_status_);
#endif
}

// Waits until all ranks have ended. Meanwhile takes part in operations that others may still need, such as
// opening a channel that this rank does not use. MPI_Finalize would wait too, but keep a core busy. False:
// not all ranks will end well.
bool Job::end_together() {
  const uint64_t until = now() + kLastNs;
  Channel& all = *world_->root;
  bool has_told = false;
  Pause pause;
  while (!has_told || !process_.peers.all_have_ended() || !all.has_told()) {
    const bool moved = look();
    if (!has_told && (!has_work() || process_.peers.all_have_ended() || now() > until)) {
      has_told = true;
      all.tell_end();
    }
    if (is_broken()) return false;
    all.listen();
    process_.peers.look();
    pause.rest(moved);
  }
  return !process_.peers.any_is_gone();
}

void Job::at_exit(int status, void* self) {
  Job& job = *static_cast<Job*>(self);
  if (job.thread_.get_id() == std::this_thread::get_id()) return;
  {
    const std::unique_lock lock = job.lock();
    if (!job.is_joined_ && !job.failure_) {
      // The thread waits in MPI for processes that do not arrive, and this wait cannot be interrupted.
      std::fflush(nullptr);
      ::_exit(status);
    }
    job.exit_status_ = status;
    job.ends_ = true;
  }
  job.wake_.notify_all();
  if (job.thread_.joinable()) job.thread_.join();
}

int Job::at_finalize(MPI_Comm, int, void*, void* self) {
  Job& job = *static_cast<Job*>(self);
  if (job.thread_.get_id() == std::this_thread::get_id()) return MPI_SUCCESS;  // called by leave()
  {
    const std::unique_lock lock = job.lock();
    job.ends_ = true;
    for (Channel* channel : job.process_.channels) channel->stop_listening();
  }
  job.wake_.notify_all();
  if (job.thread_.joinable()) job.thread_.join();
  return MPI_SUCCESS;
}

}  // namespace halyard::mpi
