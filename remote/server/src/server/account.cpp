// Two processes that take at the same time may both be refused the last bytes; the sum is never above the
// limit after that.
#include "server/account.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace halyard::device_server {

namespace {

size_t bytes_of(size_t slots) { return (slots * sizeof(uint64_t) + 4095) / 4096 * 4096; }

// Sums of refused requests do not overflow.
constexpr uint64_t kMostLimit = uint64_t{1} << 52;

static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share it");

}  // namespace

Result<std::unique_ptr<Account>> Account::create(size_t slots, uint64_t limit) {
  remote::Descriptor file(::memfd_create("halyard-account", MFD_CLOEXEC));
  if (file.get() < 0 || ::ftruncate(file.get(), static_cast<off_t>(bytes_of(slots))) != 0)
    return fail(Code::RESOURCE_EXHAUSTED, "the system gives no memory that processes share: {}",
                std::strerror(errno));
  return open(std::move(file), slots, limit);
}

Result<std::unique_ptr<Account>> Account::open(remote::Descriptor file, size_t slots, uint64_t limit) {
  void* const begin = ::mmap(nullptr, bytes_of(slots), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (begin == MAP_FAILED)
    return fail(Code::RESOURCE_EXHAUSTED, "the system gives no memory that processes share: {}",
                std::strerror(errno));
  // A process that is forked for another client does not get it.
  ::madvise(begin, bytes_of(slots), MADV_DONTFORK);
  return std::make_unique<Account>(std::move(file), static_cast<std::atomic<uint64_t>*>(begin), slots, limit);
}

Account::Account(remote::Descriptor file, std::atomic<uint64_t>* used, size_t slots, uint64_t limit)
    : file_(std::move(file)),
      used_(used),
      limit_(std::min(limit, kMostLimit)),
      slots_(slots),
      is_taken_(slots) {
  for (size_t i = 0; i < slots; ++i) slots_[i] = {this, i};
  is_taken_[0] = true;
}

Account::~Account() { ::munmap(used_, bytes_of(slots_.size())); }

uint64_t Account::sum() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < slots_.size(); ++i) sum += used_[i].load(std::memory_order_relaxed);
  return sum;
}

bool Account::take(size_t slot, uint64_t bytes) {
  if (bytes > limit_) return false;
  used_[slot].fetch_add(bytes);
  if (sum() <= limit_) return true;
  used_[slot].fetch_sub(bytes);
  return false;
}

Ref<Budget> Account::budget(size_t slot) {
  const Budget::Source source = {
      .user = &slots_[slot],
      .take =
          [](void* user, uint64_t bytes) {
            const Slot& own = *static_cast<Slot*>(user);
            return int32_t{own.account->take(own.number, bytes)};
          },
      .give_back =
          [](void* user, uint64_t bytes) {
            const Slot& own = *static_cast<Slot*>(user);
            own.account->used_[own.number].fetch_sub(bytes);
          },
      .used = [](void* user) { return static_cast<Slot*>(user)->account->sum(); },
  };
  return make<Budget>(limit_, source);
}

size_t Account::take_slot() {
  const auto free = std::ranges::find(is_taken_, false);
  *free = true;
  return static_cast<size_t>(free - is_taken_.begin());
}

void Account::clear_slot(size_t slot) {
  used_[slot].store(0);
  is_taken_[slot] = false;
}

}  // namespace halyard::device_server
