// Job: MPI in this process, and the thread that drives it. An MPI library makes no progress by itself, so
// this thread tests the operations under way. If the library allows it, a submitting thread also tests for a
// while, which saves two wake-ups. One lock guards all data and MPI.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "channel.h"
#include "failure.h"
#include "pause.h"

namespace halyard::mpi {

class Job {
 public:
  // The job of this process. It joins MPI at the first join(), and is never destroyed.
  static Job& get() {
    static Job& job = *new Job;
    return job;
  }
  Failure join(const halyard_host_services_t& services, uint64_t timeout_ns);

  const halyard_host_services_t& services() const { return *services_; }
  Fabric& world() { return *world_; }
  uint32_t local_rank() const { return local_rank_; }
  uint32_t local_count() const { return local_count_; }
  const std::string& description() const { return description_; }

  // Locks in turn: the job's thread, which locks again and again, cannot starve other threads.
  std::unique_lock<std::mutex> lock();
  // ---- Under the lock
  // Called after an operation was added. Advances operations on this thread, where MPI allows it, for about
  // `patience_ns` or until *done; the job's thread does the rest.
  void work(std::unique_lock<std::mutex>& lock, uint64_t patience_ns, const bool* done);
  // Destroys the channel when none of its operations is under way.
  void close_later(std::unique_ptr<Channel> channel);
  std::condition_variable& changed() { return process_.changed; }  // notified after operations advance
  // The embedder's communicators, by id.
  std::map<std::string, std::unique_ptr<Fabric>>& imports() { return imports_; }
  Failure import(std::unique_lock<std::mutex>& lock, const std::string& id, MPI_Comm comm);
  bool has_ended() const { return ends_; }

 private:
  Job() = default;
  Failure enter();
  Failure find_machine(MPI_Comm comm);
  Failure make_fabric(MPI_Comm comm, std::unique_ptr<Fabric>& to);
  void run();
  bool advance();
  bool look();  // calls advance(); returns whether bytes have moved
  bool moves_bytes() const;
  void look_at_peers();
  bool has_work() const;
  void report_completions(std::unique_lock<std::mutex>& lock);  // unlocks meanwhile
  void leave();
  bool is_broken() const;
  void leave_broken();
  bool end_together();
  static void at_exit(int status, void* job);
  static int at_finalize(MPI_Comm comm, int key, void* attribute, void* job);

  const halyard_host_services_t* services_ = nullptr;  // of the first join() that succeeded
  std::mutex mutex_;
  std::mutex next_;               // held by the thread that gets mutex_ next
  std::condition_variable wake_;  // for the job's thread
  std::thread thread_;
  bool is_joined_ = false;
  bool has_tried_ = false;
  Failure failure_;
  Failure given_up_;             // a join() has reached its time limit: this process joins no more
  bool is_ours_ = false;         // this job has initialized MPI
  bool any_thread_ = false;      // any thread may call MPI, one at a time; otherwise only the job's thread
  bool measures_looks_ = false;  // look() measures its computing time next time
  uint64_t advanced_at_ = 0;     // the last time that advance() changed anything
  bool ends_ = false;
  int exit_status_ = 0;
  uint32_t local_rank_ = 0;
  uint32_t local_count_ = 1;
  std::string description_;
  Process process_;
  std::unique_ptr<Fabric> world_;
  std::map<std::string, std::unique_ptr<Fabric>> imports_;
  std::vector<std::unique_ptr<Channel>> closing_;
};

}  // namespace halyard::mpi
