// Semaphore: a timeline in this process, whose home is one server. Work of that server waits for its number
// there. Other servers get a number of their own, and the values and failures that their work waits for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "halyard/driver.hpp"
#include "semaphore_server.h"

namespace halyard::remote {

class Semaphore final : public kit::BasicTimeline<Semaphore, kit::Waiter, kit::Task, kit::TaskList> {
 public:
  Semaphore(std::shared_ptr<SemaphoreServer> home, uint64_t initial);
  ~Semaphore();

  SemaphoreServer& home() const { return *home_; }
  // The number of this semaphore at a server; created there on first use.
  uint64_t number_at(const std::shared_ptr<SemaphoreServer>& server);

  // Work of the home will signal this value.
  void submitted(uint64_t value) {
    uint64_t before = submitted_.load(std::memory_order_relaxed);
    while (before < value && !submitted_.compare_exchange_weak(before, value)) {
    }
  }
  bool is_submitted(uint64_t value) const { return submitted_.load() >= value; }

  // Whoever looks at the value, or waits for it, needs the work that signals it.
  uint64_t seen_value() const {
    home_->flush();
    return value();
  }
  void subscribe(uint64_t value, halyard_subscriber_fn function, void* user, kit::TaskList& ready) {
    home_->flush();
    BasicTimeline::subscribe(value, function, user, ready);
  }

  // The host's signals and failures, which the home gets, too.
  kit::Result<> signal(uint64_t to, kit::TaskList& ready);
  void fail(kit::Status status, kit::TaskList& ready);
  // Those of completed work of `from`, whose server has made them already.
  void advance_by(const SemaphoreServer& from, uint64_t to, kit::TaskList& ready);
  void fail_by(const SemaphoreServer& from, const kit::Status& status, kit::TaskList& ready);

 private:
  friend BasicTimeline;

  const std::shared_ptr<SemaphoreServer> home_;
  const uint64_t number_;
  std::atomic<uint64_t> submitted_{0};
  std::mutex mirrors_mutex_;  // guards the member below
  std::vector<std::pair<std::shared_ptr<SemaphoreServer>, uint64_t>> mirrors_;
};

// Passes a value of a semaphore, or its failure, on to another server. Owns itself while it waits.
class Forward : public kit::Waiter, public std::enable_shared_from_this<Forward> {
 public:
  Forward(std::shared_ptr<SemaphoreServer> to, Semaphore& semaphore, uint64_t value);
  void begin();
  // The work that waits has ended. Afterwards the semaphore is not used any more.
  void end();

 private:
  void pass_on(const kit::Status& failure);

  const std::shared_ptr<SemaphoreServer> to_;
  Semaphore* const semaphore_;
  const uint64_t number_;
  std::shared_ptr<Forward> self_;  // while it waits
};

}  // namespace halyard::remote
