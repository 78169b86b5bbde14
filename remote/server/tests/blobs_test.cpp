// The store of constants and code, and the memory that several processes use for one client.
#include "server/blobs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "server/account.h"
#include "server/blob_store.h"
#include "server/budget_part.h"

namespace halyard::device_server {
namespace {

constexpr uint64_t kPage = 4096;

struct Fixture {
  explicit Fixture(uint64_t limit, uint64_t most = 64 << 20) : memory(make<Budget>(most)) {
    store = *BlobStore::create(limit, memory);
    blobs = *Blobs::create(store, store->file(), store->capacity());
  }
  std::vector<uint8_t> content(uint64_t size, uint32_t seed) const {
    std::vector<uint8_t> bytes(size);
    std::minstd_rand random(seed + 1);
    std::ranges::generate(bytes, [&] { return static_cast<uint8_t>(random()); });
    return bytes;
  }
  Result<Ref<Bytes>> add(const std::vector<uint8_t>& bytes) {
    BlobUpload upload = HALYARD_TRY(blobs->begin(bytes.size()));
    const size_t half = bytes.size() / 2;
    HALYARD_TRY(upload.append(std::span(bytes).first(half)));
    HALYARD_TRY(upload.append(std::span(bytes).subspan(half)));
    return upload.finish(remote::sha256(bytes));
  }
  // Bytes of the file that have memory.
  uint64_t resident() const {
    struct stat found = {};
    ::fstat(store->file(), &found);
    return static_cast<uint64_t>(found.st_blocks) * 512;
  }

  Ref<Budget> memory;
  std::shared_ptr<BlobStore> store;
  std::unique_ptr<Blobs> blobs;
};

TEST(BlobStore, KeepsBytesForLater) {
  Fixture it(1 << 20);
  const auto bytes = it.content(10000, 1);
  {
    ASSERT_TRUE(it.add(bytes));
  }
  const Ref<Bytes> found = it.blobs->find(remote::sha256(bytes));
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::ranges::equal(found->span(), bytes));
  EXPECT_FALSE(found->is_private());
  EXPECT_EQ(it.store->used(), 3 * kPage);
  EXPECT_EQ(it.memory->used(), 3 * kPage);
  EXPECT_FALSE(it.blobs->find(remote::Sha256{1}));
}

TEST(BlobStore, WrongAndUnfinishedBytesAreGivenUp) {
  Fixture it(1 << 20);
  const auto bytes = it.content(10000, 1);
  {
    BlobUpload upload = *it.blobs->begin(bytes.size());
    ASSERT_TRUE(upload.append(std::span(bytes).first(5000)));
    EXPECT_EQ(it.memory->used(), 3 * kPage);
    // Nobody can find it.
    EXPECT_FALSE(it.blobs->find(remote::sha256(bytes)));
  }
  EXPECT_EQ(it.memory->used(), 0u);
  EXPECT_EQ(it.resident(), 0u);
  {
    BlobUpload upload = *it.blobs->begin(bytes.size());
    ASSERT_TRUE(upload.append(bytes));
    const auto finished = upload.finish(remote::Sha256{1});
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().code(), Code::DATA_LOSS);
  }
  EXPECT_FALSE(it.blobs->find(remote::Sha256{1}));
  EXPECT_EQ(it.memory->used(), 0u);
}

TEST(BlobStore, TheLeastRecentlyUsedAreDroppedAndTheUsedStay) {
  Fixture it(4 * kPage);
  std::vector<std::vector<uint8_t>> contents;
  for (uint32_t i = 0; i < 6; ++i) contents.push_back(it.content(kPage, i));
  const auto is_there = [&](size_t i) { return bool(it.blobs->find(remote::sha256(contents[i]))); };
  for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(it.add(contents[i]));
  EXPECT_TRUE(is_there(0));  // now the most recently used one
  ASSERT_TRUE(it.add(contents[4]));
  EXPECT_FALSE(is_there(1));
  EXPECT_TRUE(is_there(0));
  EXPECT_EQ(it.store->used(), 4 * kPage);
  // What is in use may be more than is kept.
  std::vector<Ref<Bytes>> used;
  for (const auto& content : contents) used.push_back(*it.add(content));
  for (size_t i = 0; i < contents.size(); ++i) EXPECT_TRUE(std::ranges::equal(used[i]->span(), contents[i]));
  used.clear();
  EXPECT_LE(it.store->used(), 4 * kPage);
  EXPECT_EQ(it.resident(), it.memory->used());
}

TEST(BlobStore, LimitsOfTheStoreAndOfTheClient) {
  Fixture it(8 * kPage, 4 * kPage);
  EXPECT_EQ(it.blobs->begin(9 * kPage).error().code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_NE(it.blobs->begin(9 * kPage).error().message().find("--max_cache"), std::string::npos);
  EXPECT_EQ(it.blobs->begin(UINT64_MAX).error().code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_EQ(it.blobs->begin(5 * kPage).error().code(), Code::RESOURCE_EXHAUSTED);
  // What nobody uses makes room, what somebody uses does not.
  ASSERT_TRUE(it.add(it.content(3 * kPage, 1)));
  {
    const auto second = it.add(it.content(3 * kPage, 2));
    ASSERT_TRUE(second);
    EXPECT_FALSE(it.add(it.content(2 * kPage, 3)));
  }
  EXPECT_TRUE(it.add(it.content(2 * kPage, 3)));
}

TEST(BlobStore, TheSameBytesTwice) {
  Fixture it(1 << 20);
  const auto bytes = it.content(5000, 1);
  BlobUpload first = *it.blobs->begin(bytes.size()), second = *it.blobs->begin(bytes.size());
  ASSERT_TRUE(first.append(bytes) && second.append(bytes));
  const Ref<Bytes> one = *first.finish(remote::sha256(bytes));
  {
    const Ref<Bytes> other = *second.finish(remote::sha256(bytes));
    EXPECT_TRUE(std::ranges::equal(other->span(), bytes));
  }
  EXPECT_EQ(it.store->used(), 2 * kPage);
  EXPECT_EQ(it.memory->used(), 2 * kPage);  // the second ones are gone
  EXPECT_TRUE(std::ranges::equal(it.blobs->find(remote::sha256(bytes))->span(), bytes));
}

// Places that a process names and that are not its own, or do not exist.
TEST(BlobStore, CallsThatMakeNoSense) {
  Fixture it(1 << 20);
  for (const uint64_t offset : {uint64_t{0}, kPage, UINT64_MAX}) {
    it.store->release(offset);
    it.store->publish(offset, remote::Sha256{1});
  }
  const uint64_t offset = *it.store->reserve(100);
  it.store->publish(offset, remote::Sha256{1});
  it.store->publish(offset, remote::Sha256{2});
  it.store->release(offset);
  it.store->release(offset);
  EXPECT_EQ(it.store->used(), kPage);
  EXPECT_EQ(it.store->find(std::vector{remote::Sha256{2}})[0].size, 0u);
}

// Against a model: sizes, uses and ends in any order, with little room.
TEST(BlobStore, ManyInAnyOrder) {
  Fixture it(40 * kPage, 50 * kPage);
  std::minstd_rand random(7);
  std::map<uint32_t, std::vector<uint8_t>> contents;
  std::vector<std::pair<uint32_t, Ref<Bytes>>> used;
  int kept = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const uint32_t number = static_cast<uint32_t>(random()) % 60;
    auto& bytes = contents[number];
    if (bytes.empty()) bytes = it.content(1 + random() % (9 * kPage), number);
    Ref<Bytes> found = it.blobs->find(remote::sha256(bytes));
    kept += bool(found);
    if (!found) {
      if (auto added = it.add(bytes)) {
        found = *added;
      } else {
        EXPECT_EQ(added.error().code(), Code::RESOURCE_EXHAUSTED);
        ++refused;
      }
    }
    if (found && random() % 2) used.emplace_back(number, std::move(found));
    if (!used.empty() && random() % 2)
      used.erase(used.begin() + static_cast<ptrdiff_t>(random() % used.size()));
    EXPECT_LE(it.memory->used(), 50 * kPage);
    EXPECT_EQ(it.resident(), it.memory->used());
    for (const auto& [of, now] : used) ASSERT_TRUE(std::ranges::equal(now->span(), contents[of])) << i;
  }
  EXPECT_GT(kept, 100);
  EXPECT_GT(refused, 20);
  used.clear();
  EXPECT_LE(it.store->used(), 40 * kPage);
}

TEST(BlobStore, FromManyThreads) {
  Fixture it(20 * kPage);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 200; ++i) {
        const auto bytes = it.content(1 + (t * 200 + i) % 7 * 3000, i % 13);
        Ref<Bytes> found = it.blobs->find(remote::sha256(bytes));
        if (!found) found = *it.add(bytes);
        EXPECT_TRUE(std::ranges::equal(found->span(), bytes));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(it.store->used(), 20 * kPage);
}

TEST(Account, TheLimitIsThatOfTheSum) {
  const auto account = *Account::create(4, 1000);
  const Ref<Budget> first = account->budget(1), second = account->budget(2);
  EXPECT_TRUE(first->take(600));
  EXPECT_FALSE(second->take(401));
  EXPECT_TRUE(second->take(400));
  EXPECT_EQ(first->used(), 1000u);
  EXPECT_FALSE(first->take(UINT64_MAX));
  EXPECT_FALSE(first->take(1));
  second->give_back(100);
  EXPECT_TRUE(first->take(100));
  account->clear_slot(1);
  EXPECT_EQ(second->used(), 300u);
  const auto none = *Account::create(2, UINT64_MAX);
  EXPECT_TRUE(none->budget(1)->take(uint64_t{1} << 50));
}

TEST(Account, Slots) {
  const auto account = *Account::create(3, 1000);
  EXPECT_EQ(account->take_slot(), 1u);
  EXPECT_EQ(account->take_slot(), 2u);
  account->clear_slot(1);
  EXPECT_EQ(account->take_slot(), 1u);
}

// A process that ends in the middle leaves its share, which is cleared.
TEST(Account, OfSeveralProcesses) {
  const auto account = *Account::create(3, 100000);
  std::vector<pid_t> processes;
  for (size_t slot = 1; slot < 3; ++slot) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto own = Account::open(remote::Descriptor(::dup(account->file())), 3, 100000);
      if (!own) ::_exit(1);
      const Ref<Budget> budget = (*own)->budget(slot);
      for (int i = 0; i < 20000; ++i) {
        if (!budget->take(60000)) continue;
        if (budget->used() > 120000) ::_exit(2);  // the other one may be trying
        budget->give_back(60000);
      }
      ::_exit(budget->take(30000) ? 0 : 3);
    }
    processes.push_back(child);
  }
  for (const pid_t child : processes) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_EQ(account->budget(0)->used(), 60000u);
  for (size_t slot = 1; slot < 3; ++slot) account->clear_slot(slot);
  EXPECT_EQ(account->budget(0)->used(), 0u);
}

TEST(BudgetPart, BothLimitsHold) {
  const auto whole = make<Budget>(1000);
  BudgetPart part(600, whole);
  const Ref<Budget> budget = part.budget();
  const Charge other = Charge::take(whole, 500, "another thing").value();
  {
    Charge charge = Charge::take(budget, 400, "a thing").value();
    EXPECT_EQ(whole->used(), 900u);
    EXPECT_FALSE(charge.grow_by(101, "a thing"));  // the whole has less than the part
    EXPECT_EQ(budget->used(), 400u);
    EXPECT_EQ(whole->used(), 900u);
    charge.shrink_to(100);
    EXPECT_EQ(whole->used(), 600u);
    EXPECT_FALSE(charge.grow_by(501, "a thing"));
    EXPECT_FALSE(charge.grow_by(UINT64_MAX, "a thing"));
    EXPECT_EQ(whole->used(), 600u);
    EXPECT_EQ(budget->limit(), 600u);
  }
  EXPECT_EQ(whole->used(), 500u);
}

}  // namespace
}  // namespace halyard::device_server
