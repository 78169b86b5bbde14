// Transfers between the ranks of one process. The work that needs no lock is done in another order than the
// submissions.
#include "hal/channel/local_group.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

namespace halyard::hal {
namespace {

constexpr uint32_t kRanks = 3;

// A ring: every rank sends a number to the next one.
class Ring : public testing::Test {
 protected:
  Ring() {
    for (uint32_t rank = 0; rank < kRanks; ++rank) group_.join(rank);
  }

  void submit(uint32_t rank) {
    halyard_collective_t collective = {};
    collective.kind = HALYARD_COLLECTIVE_SEND_RECV;
    collective.element = HALYARD_COLLECTIVE_SINT_32;
    collective.element_count = 1;
    collective.send = &sent_[rank];
    collective.receive = &received_[rank];
    collective.target = (rank + 1) % kRanks;
    collective.source = (rank + kRanks - 1) % kRanks;
    collective.completed = [](void* user, halyard_status_t status) {
      static_cast<Outcome*>(user)->emplace(Status::adopt(status));
    };
    collective.user = &outcomes_[rank];
    group_.submit(rank, collective, work_[rank]);
  }
  bool is_complete(uint32_t rank) const { return outcomes_[rank].has_value(); }

  using Outcome = std::optional<Status>;
  LocalGroup group_{"ring", kRanks};
  std::array<int32_t, kRanks> sent_ = {10, 11, 12};
  std::array<int32_t, kRanks> received_ = {};
  std::array<LocalOutcome, kRanks> work_;  // by the rank whose submission caused the work
  std::array<Outcome, kRanks> outcomes_;
};

// Rank 1 receives from rank 0 on its own thread. Rank 2 submits the last part of the transfer of rank 0.
TEST_F(Ring, ATransferCompletesAfterItsMemoryWasRead) {
  for (uint32_t rank = 0; rank < kRanks; ++rank) submit(rank);
  work_[0].carry_out();
  work_[2].carry_out();
  EXPECT_FALSE(is_complete(0)) << "rank 1 has not read its memory yet";
  EXPECT_FALSE(is_complete(1)) << "its memory is not written yet";
  EXPECT_TRUE(is_complete(2));
  work_[1].carry_out();
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(is_complete(rank)) << rank;
    EXPECT_TRUE(outcomes_[rank]->ok()) << rank;
    EXPECT_EQ(received_[rank], 10 + static_cast<int32_t>((rank + kRanks - 1) % kRanks));
  }
}

TEST_F(Ring, AFailedTransferCompletesAfterItsMemoryWasRead) {
  submit(0);
  submit(1);
  LocalOutcome failure;
  group_.fail({Code::ABORTED, "a rank is gone"}, failure);
  work_[0].carry_out();
  failure.carry_out();
  EXPECT_FALSE(is_complete(0)) << "rank 1 has not read its memory yet";
  work_[1].carry_out();
  for (const uint32_t rank : {0, 1}) {
    ASSERT_TRUE(is_complete(rank)) << rank;
    EXPECT_EQ(outcomes_[rank]->code(), Code::ABORTED) << rank;
  }
  submit(2);
  work_[2].carry_out();
  ASSERT_TRUE(is_complete(2));
  EXPECT_EQ(outcomes_[2]->code(), Code::ABORTED);
}

}  // namespace
}  // namespace halyard::hal
