// Random programs of queue work have the computed outcome on each driver and on pairs of them. The fuzz
// target `hal` runs others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "queue_program.h"
#include "testing.h"

namespace halyard::modules {
namespace {

using Devices = std::vector<Ref<hal::Device>>;

std::vector<uint8_t> random_program(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(40 + random() % 400);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// HALYARD_SEEDS: run so many more.
uint32_t last_seed(uint32_t first, uint32_t count) {
  const char* const more = std::getenv("HALYARD_SEEDS");
  return first + count + (more ? static_cast<uint32_t>(std::strtoul(more, nullptr, 10)) : 0);
}

Devices open_devices(const std::vector<const char*>& names) {
  Devices devices;
  for (const char* name : names) devices.push_back(open_device(name).value());
  return devices;
}

TEST(QueuePrograms, HaveOneOutcomeOnEveryDriver) {
  const Devices sync = open_devices({"local-sync"}), task = open_devices({"local-task"}),
                null = open_devices({"null"});
  size_t operations = 0, refused = 0;
  for (uint32_t seed = 0, last = last_seed(0, 300); seed < last; ++seed) {
    const std::vector<uint8_t> program = random_program(seed);
    const QueueOutcome outcome = run_queue_program(program, sync);
    ASSERT_EQ(outcome.defect, "") << "seed " << seed;
    operations += outcome.operations;
    for (const Code code : outcome.codes) refused += code != Code::OK;
    for (const Devices* devices : {&task, &null}) {
      const QueueOutcome other = run_queue_program(program, *devices);
      ASSERT_EQ(other.defect, "") << "seed " << seed << " on " << (devices == &task ? "local-task" : "null");
      ASSERT_EQ(other.codes, outcome.codes) << "seed " << seed;
      ASSERT_EQ(other.bytes, outcome.bytes) << "seed " << seed;
    }
  }
  // The programs do something: most work is accepted, some is refused.
  EXPECT_GT(operations, 2000u);
  EXPECT_GT(refused, 100u);
}

TEST(QueuePrograms, HaveOneOutcomeOnPairsOfDrivers) {
  const Devices pairs[] = {open_devices({"local-sync", "local-task"}), open_devices({"local-task", "null"}),
                           open_devices({"null", "local-sync"})};
  for (uint32_t seed = 1000, last = last_seed(1000, 150); seed < last; ++seed) {
    const std::vector<uint8_t> program = random_program(seed);
    const QueueOutcome outcome = run_queue_program(program, pairs[0]);
    for (const Devices& pair : pairs) {
      const QueueOutcome other = run_queue_program(program, pair);
      ASSERT_EQ(other.defect, "") << "seed " << seed << ", pair " << &pair - pairs;
      ASSERT_EQ(other.codes, outcome.codes) << "seed " << seed << ", pair " << &pair - pairs;
      ASSERT_EQ(other.bytes, outcome.bytes) << "seed " << seed << ", pair " << &pair - pairs;
    }
  }
}

}  // namespace
}  // namespace halyard::modules
