// Account: the memory that several processes use for one client, in a page that they share. Each process
// counts in a slot of its own, so that the share of one that has crashed can be taken out. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "remote/address.h"

namespace halyard::device_server {

class Account {
 public:
  // RESOURCE_EXHAUSTED: the system gives no memory.
  static Result<std::unique_ptr<Account>> create(size_t slots, uint64_t limit);
  // That of another process.
  static Result<std::unique_ptr<Account>> open(remote::Descriptor file, size_t slots, uint64_t limit);
  Account(remote::Descriptor file, std::atomic<uint64_t>* used, size_t slots, uint64_t limit);
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;
  ~Account();

  int file() const { return file_.get(); }
  // A budget that takes from the limit and counts in the slot. The account outlives it.
  Ref<Budget> budget(size_t slot);
  // A free slot, not 0; there is one for each connection that a client may have.
  size_t take_slot();
  // Of a process that has ended.
  void clear_slot(size_t slot);

 private:
  struct Slot {
    Account* account = nullptr;
    size_t number = 0;
  };
  bool take(size_t slot, uint64_t bytes);
  uint64_t sum() const;

  const remote::Descriptor file_;
  std::atomic<uint64_t>* const used_;
  const uint64_t limit_;
  std::vector<Slot> slots_;
  std::vector<bool> is_taken_;  // of the process that gives slots to others
};

}  // namespace halyard::device_server
