// Opens the fake driver and its devices, and reads its controls.
#include "hal_test.h"

#include <dlfcn.h>

namespace halyard::hal {

namespace {

const std::string kPath = HALYARD_TEST_DRIVERS "/halyard-driver-fake.so";

}  // namespace

Ref<DriverLibrary> open_fake_library() {
  Result<Ref<DriverLibrary>> library = DriverLibrary::open(kPath);
  EXPECT_OK(library);
  return library.value();
}

Ref<Device> open_fake_device(Ref<DriverLibrary> library, const std::string& path) {
  Result<Ref<Device>> device = Device::open(std::move(library), "fake", path, {}, false, test_loop());
  EXPECT_OK(device);
  return device.value();
}

Ref<Device> open_fake_device(const std::string& path) {
  static const Ref<DriverLibrary> library = open_fake_library();
  return open_fake_device(library, path);
}

const Ref<Loop>& test_loop() {
  static const Ref<Loop> loop = Loop::create();
  return loop;
}

const FakeControls& fake() {
  static const FakeControls* const controls = [] {
    const Ref<DriverLibrary> library = open_fake_library();
    void* handle = ::dlopen(kPath.c_str(), RTLD_NOW | RTLD_LOCAL);
    using Function = const FakeControls* (*)();
    return reinterpret_cast<Function>(::dlsym(handle, FAKE_CONTROLS_SYMBOL))();
  }();
  return *controls;
}

std::string fake_log() {
  std::string text(fake().log(nullptr, 0), '\0');
  fake().log(text.data(), text.size());
  return text;
}

void FakeDriverTest::SetUp() {
  fake().reset();
  for (int kind = 0; kind < FAKE_HANDLE_KINDS; ++kind)
    live_[kind] = fake().live(static_cast<FakeHandle>(kind));
}

void FakeDriverTest::TearDown() {
  static const char* const kNames[] = {"memory", "semaphores", "executables", "command lists", "devices"};
  for (int kind = 0; kind < FAKE_HANDLE_KINDS; ++kind)
    EXPECT_EQ(fake().live(static_cast<FakeHandle>(kind)), live_[kind]) << "live " << kNames[kind];
}

Ref<Buffer> make_buffer(Device& device, const std::vector<uint8_t>& bytes, uint32_t usage) {
  Result<Ref<Buffer>> buffer = Buffer::allocate(device, kAnyQueue, kPlainType, usage, bytes.size());
  EXPECT_OK(buffer);
  EXPECT_OK((*buffer)->write(0, bytes.data(), bytes.size()));
  return buffer.value();
}

std::vector<uint8_t> bytes_of(const Buffer& buffer) {
  std::vector<uint8_t> bytes(buffer.length());
  EXPECT_OK(buffer.read(0, bytes.data(), bytes.size()));
  return bytes;
}

Ref<Executable> load_fake(const Ref<Device>& device, std::string_view text) {
  Result<Ref<Executable>> executable = Executable::create(
      device, kAnyQueue, "fake", {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, nullptr, {});
  EXPECT_OK(executable);
  return executable.value();
}

Ref<CommandBuffer> record(const Ref<Device>& device, uint32_t mode, uint32_t capacity, uint32_t categories) {
  return CommandBuffer::create(device, mode, categories, kAnyQueue, capacity).value();
}

Ref<Fence> make_fence(const Ref<Device>& device) { return Fence::create(device).value(); }

}  // namespace halyard::hal
