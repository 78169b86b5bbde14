// The least times: the others contain what else the machine did.
#include "timing.h"

#include <algorithm>
#include <vector>

namespace halyard::tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kQuestions = 50;
constexpr int kCopies = 5;

template <typename Act>
Result<> least(std::chrono::nanoseconds& time, Act act) {
  const Clock::time_point begin = Clock::now();
  TOOL_TRY(act());
  const std::chrono::nanoseconds taken = Clock::now() - begin;
  if (time.count() == 0 || taken < time) time = taken;
  return {};
}

}  // namespace

Result<Timing> time_device(const Instance& instance, const std::string& uri) {
  Timing timing;
  const Clock::time_point begin = Clock::now();
  const Device device = TOOL_TRY(instance.open(uri));
  timing.opening = Clock::now() - begin;
  timing.uri = device.uri();
  for (int i = 0; i < kQuestions; ++i)
    TOOL_TRY(least(timing.answer, [&]() -> Result<> {
      TOOL_TRY(device.query("hal.device", "concurrency"));
      return {};
    }));
  std::vector<uint8_t> bytes(Timing::kBytes, 1);
  const int64_t size = Timing::kBytes;
  for (int i = 0; i < kCopies; ++i) {
    bytes[0] = static_cast<uint8_t>(i);
    Tensor tensor;
    TOOL_TRY(least(timing.to_device, [&]() -> Result<> {
      tensor = TOOL_TRY(Tensor::create(device, ElementType::ui8, {size}, bytes.data(), bytes.size()));
      // The device may answer only when the bytes are there.
      uint8_t first = 0;
      return check(halyard_view_read(tensor.get(), 0, &first, sizeof first));
    }));
    TOOL_TRY(least(timing.from_device,
                   [&] { return check(halyard_view_read(tensor.get(), 0, bytes.data(), bytes.size())); }));
  }
  return timing;
}

}  // namespace halyard::tools
