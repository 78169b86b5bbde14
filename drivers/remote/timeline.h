// Semaphore: a timeline in this process, whose home is one server. Work of that server waits for its number
// there. Other servers get a number of their own, and the values and failures that their work waits for.
#pragma once

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
