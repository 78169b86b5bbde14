// hal_loader: the table, and every function of it in every version, with a kernel assembled here.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "hal/capture/tensor_trace.h"
#include "hal/command/direct_dispatch.h"
#include "kernels.h"
#include "modules/hal_loader_functions.h"
#include "modules/hal_loader_module.h"
#include "testing.h"
#include "vm/object/list.h"

namespace halyard::modules {
namespace {

constexpr const char* kDispatch0 = "0riiiiCiDCrIID_v";
constexpr const char* kDispatch1 = "0rIiiiCiDCrIID_v";
constexpr const char* kFormat = "vmvx-bytecode-fb";

class HalLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    create({.drivers = open_registry()});
    kernels = assembled_kernels();
    executable = load(nullptr);
    ASSERT_NE(executable, nullptr);
  }
  void create(HalLoaderOptions options) {
    loader = std::make_unique<ModuleCaller>(create_hal_loader_module(std::move(options)));
  }
  Ref<hal::Executable> load(const Ref<vm::Buffer>& constants) {
    return loader->object<hal::Executable>("executable.load", "0rrr_r",
                                           {text_of(kFormat), kernels, constants});
  }
  static Ref<vm::Buffer> words(const std::vector<int32_t>& values, bool is_mutable = true) {
    std::vector<uint8_t> bytes(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes_of(std::move(bytes), is_mutable);
  }
  static std::vector<int32_t> contents(const Ref<vm::Buffer>& buffer) {
    std::vector<int32_t> values(buffer->length() / 4);
    std::memcpy(values.data(), buffer->data(), buffer->length());
    return values;
  }
  // scale: word i = i * 3 + 1
  Status scale(const Entries& bindings, int count = 3, const Entries& constants = {3, 1}) {
    return loader->status("executable.dispatch", kDispatch1,
                          {executable, 1, count, 1, 1, constants, bindings});
  }

  std::unique_ptr<ModuleCaller> loader;
  Ref<vm::Buffer> kernels;
  Ref<hal::Executable> executable;
};

// ---- The table

TEST_F(HalLoader, HasTheFunctionsOfBothVersions) {
  EXPECT_EQ(loader->module().name(), "hal_loader");
  EXPECT_EQ(loader->module().version(), 1u);
  std::set<std::string_view> names[2];
  for (const HalSignature& signature : hal_loader_signatures()) {
    for (uint32_t version = signature.since; version <= signature.until; ++version)
      EXPECT_TRUE(names[version].insert(signature.name).second) << signature.name << " twice in " << version;
    EXPECT_TRUE(loader->module().resolve(signature.name, signature.convention)) << signature.name;
  }
  EXPECT_EQ(names[0].size(), 3u);
  EXPECT_EQ(names[1].size(), 4u);
  const auto newest = ASSERT_VALUE(loader->module().resolve("executable.dispatch", ""));
  EXPECT_EQ(newest->convention, kDispatch1);
  const auto other = loader->module().resolve("executable.dispatch", "0rrIiiiCiDCrIID_v");
  EXPECT_FAILS(INCOMPATIBLE, kDispatch0, other);
  EXPECT_FAILS(INCOMPATIBLE, kDispatch1, other);
}

TEST_F(HalLoader, RefsAreCheckedByEveryFunction) {
  const Ref<Object> other = vm::List::create({});
  const Ref<vm::Buffer> format = text_of(kFormat);
  const auto expect_checked = [&](const char* name, const char* convention, std::vector<Argument> arguments,
                                  size_t ref, bool may_be_null = false) {
    EXPECT_TRUE(loader->status(name, convention, arguments).ok()) << name;
    arguments[ref] = other;
    EXPECT_FAILS(INVALID_ARGUMENT, "expected a ", loader->status(name, convention, arguments));
    arguments[ref] = nullptr;
    if (may_be_null) {
      EXPECT_TRUE(loader->status(name, convention, arguments).ok()) << name;
    } else {
      EXPECT_FAILS(INVALID_ARGUMENT, "null", loader->status(name, convention, arguments));
    }
  };
  expect_checked("executable.query_support", "0r_i", {format}, 0);
  expect_checked("executable.load", "0rrr_r", {format, kernels, nullptr}, 0);
  expect_checked("executable.load", "0rrr_r", {format, kernels, nullptr}, 1);
  expect_checked("executable.load", "0rrr_r", {format, kernels, bytes_of({})}, 2, true);
  expect_checked("executable.lookup.function", "0rr_I", {executable, text_of("scale")}, 0);
  expect_checked("executable.lookup.function", "0rr_I", {executable, text_of("scale")}, 1);
  const Ref<vm::Buffer> target = words({0, 0, 0});
  const Entries bindings = {target, 0, 12};
  for (const char* dispatch : {kDispatch0, kDispatch1})
    expect_checked("executable.dispatch", dispatch, {executable, 1, 3, 1, 1, Entries{3, 1}, bindings}, 0);
  EXPECT_FAILS(INVALID_ARGUMENT, "null", scale({nullptr, 0, 0}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a ", scale({other, 0, 0}));
}

// ---- Devices

TEST_F(HalLoader, OpensADeviceWhenItIsNeeded) {
  auto state = ASSERT_VALUE(loader->module().create_state());
  EXPECT_EQ(static_cast<HalLoaderState*>(state.pointer)->device, nullptr);
  state.destroy(state.pointer);
  EXPECT_EQ(executable->device().id(), "local-sync");
}

TEST_F(HalLoader, TakesTheDeviceThatItIsGiven) {
  for (const char* uri : {"local-sync", "local-task?workers=2"}) {
    auto device = ASSERT_VALUE(open_device(uri));
    EXPECT_TRUE(runs_loader_kernels(*device));
    create({.device = device});
    executable = load(nullptr);
    EXPECT_EQ(&executable->device(), device.get());
    const Ref<vm::Buffer> target = words(std::vector<int32_t>(1000));
    for (int repeat = 0; repeat < 20; ++repeat) {
      const Status done = scale({target, 0, 4000}, 1000, {3, repeat});
      ASSERT_TRUE(done.ok()) << done.text();
      EXPECT_EQ(contents(target)[999], 2997 + repeat) << "done in the call";
    }
  }
  auto null = ASSERT_VALUE(open_device("null"));
  EXPECT_FALSE(runs_loader_kernels(*null));
}

TEST_F(HalLoader, DispatchesCanBeTraced) {
  std::vector<std::string> told;
  const auto sink = [&](const hal::TracedTensor& tensor) -> Result<> {
    told.push_back(std::string(tensor.function) + (tensor.after ? " after" : " before"));
    return {};
  };
  create({.drivers = open_registry(), .tensors = make<hal::TensorTrace>("sc*", sink)});
  executable = load(nullptr);
  const Ref<vm::Buffer> target = words({0, 0, 0});
  EXPECT_OK(scale({target, 0, 12}));
  EXPECT_EQ(contents(target), (std::vector<int32_t>{1, 4, 7}));
  EXPECT_EQ(told, (std::vector<std::string>{"scale before", "scale after"}));
  told.clear();
  create({.drivers = open_registry(), .tensors = make<hal::TensorTrace>("other", sink)});
  executable = load(nullptr);
  EXPECT_OK(scale({target, 0, 12}));
  EXPECT_TRUE(told.empty());
}

// What the program may not write, a kernel may not either: it writes to a copy.
TEST_F(HalLoader, ConstantsAreNotWritten) {
  const Ref<vm::Buffer> constant = words({5, 5, 5}, false);
  EXPECT_OK(scale({constant, 0, 12}));
  EXPECT_EQ(contents(constant), (std::vector<int32_t>{5, 5, 5}));
}

TEST_F(HalLoader, SettingsAreThoseOfTheDeviceThatItOpens) {
  create({.drivers = open_registry(), .settings = {{"native", "0"}}});
  EXPECT_EQ(loader->number("executable.query_support", "0r_i", {text_of("embedded-elf-x86_64")}), 0);
  EXPECT_EQ(loader->number("executable.query_support", "0r_i", {text_of(kFormat)}), 1);
  create({.drivers = open_registry(), .settings = {{"no-such", "0"}}});
  EXPECT_FAILS(INVALID_ARGUMENT, "no-such",
               loader->status("executable.query_support", "0r_i", {text_of(kFormat)}));
}

TEST_F(HalLoader, WithoutADriverItSaysWhatItLookedFor) {
  create({});
  EXPECT_FAILS(FAILED_PRECONDITION, "local-sync",
               loader->status("executable.query_support", "0r_i", {text_of(kFormat)}));
  hal::RegistryOptions nowhere;
  nowhere.use_environment = false;
  nowhere.use_default_folders = false;
  create({.drivers = hal::DriverRegistry::create(nowhere)});
  for (int repeat = 0; repeat < 2; ++repeat)
    EXPECT_FAILS(NOT_FOUND, "hal_loader",
                 loader->status("executable.load", "0rrr_r", {text_of(kFormat), kernels, nullptr}));
}

// ---- Executables

TEST_F(HalLoader, SupportIsThatOfTheDevice) {
  EXPECT_EQ(loader->number("executable.query_support", "0r_i", {text_of(kFormat)}), 1);
  EXPECT_EQ(loader->number("executable.query_support", "0r_i", {text_of("vulkan-spirv-fb")}), 0);
  EXPECT_EQ(loader->number("executable.query_support", "0r_i", {text_of("")}), 0);
  EXPECT_EQ(loader->number("executable.query_support", "0r_i", {text_of("embedded-elf-wasm_32")}), 0);
}

TEST_F(HalLoader, LoadRefusesWhatTheDeviceDoes) {
  EXPECT_NE(load(bytes_of({})), nullptr) << "no constants";
  const auto status = [&](std::string_view format, const Ref<vm::Buffer>& data,
                          const Ref<vm::Buffer>& constants) {
    return loader->status("executable.load", "0rrr_r", {text_of(format), data, constants});
  };
  EXPECT_FAILS(NOT_FOUND, "vulkan-spirv-fb", status("vulkan-spirv-fb", kernels, nullptr));
  EXPECT_FAILS(INVALID_ARGUMENT, kFormat, status(kFormat, bytes_of({1, 2, 3, 4}), nullptr));
  EXPECT_FAILS(INVALID_ARGUMENT, "found 3 bytes in all", status(kFormat, kernels, bytes_of({1, 2, 3})));
  EXPECT_FAILS(INVALID_ARGUMENT, "constants", status(kFormat, kernels, bytes_of({1, 2, 3, 4})));
}

TEST_F(HalLoader, DataMayChangeOnceItIsLoaded) {
  Ref<vm::Buffer> copy = bytes_of({kernels->data(), kernels->data() + kernels->length()}, true);
  std::swap(kernels, copy);
  executable = load(nullptr);
  std::memset(kernels->data(), 0, kernels->length());
  const Ref<vm::Buffer> target = words({0, 0, 0});
  EXPECT_TRUE(scale({target, 0, 12}).ok());
  EXPECT_EQ(contents(target), (std::vector<int32_t>{1, 4, 7}));
}

// Constants that nothing changes are used where they lie. A buffer that only the program cannot write to may
// be a view of memory that kernels write to, such as the storage of a buffer over a constant.
TEST_F(HalLoader, DataThatMayChangeIsCopied) {
  const std::span<uint8_t> bytes = kernels->span();
  const Ref<vm::Buffer> owner = kernels;
  const auto in_place = [&] { return load(nullptr)->data().data() == bytes.data(); };
  kernels = vm::Buffer::wrap_const(bytes, {}, true);
  EXPECT_TRUE(in_place());
  EXPECT_FALSE(kernels->may_be_written_by_devices()) << "it is device code now";
  kernels = vm::Buffer::wrap_const(bytes, {}, true);
  EXPECT_TRUE(kernels->may_be_written_by_devices());
  EXPECT_FALSE(in_place()) << "a kernel may write to it";
  kernels = vm::Buffer::wrap(bytes, false, {});
  EXPECT_FALSE(in_place()) << "a view";
  kernels = vm::Buffer::wrap(bytes, true, {});
  EXPECT_FALSE(in_place()) << "the program may write to it";
}

TEST_F(HalLoader, FunctionsAreFoundByName) {
  EXPECT_EQ(loader->number("executable.lookup.function", "0rr_I", {executable, text_of("scale")}), 1);
  EXPECT_FAILS(NOT_FOUND, "scala",
               loader->status("executable.lookup.function", "0rr_I", {executable, text_of("scala")}));
}

// ---- Dispatches

TEST_F(HalLoader, DispatchesInBothVersions) {
  for (const char* convention : {kDispatch0, kDispatch1}) {
    const Ref<vm::Buffer> target = words({-1, -1, -1, -1, -1});
    const Status status = loader->status("executable.dispatch", convention,
                                         {executable, 1, 3, 1, 1, Entries{10, 7}, Entries{target, 4, 12}});
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(contents(target), (std::vector<int32_t>{-1, 7, 17, 27, -1}));
  }
}

TEST_F(HalLoader, BindingsBeginAtAnyByte) {
  for (size_t at = 0; at < 70; ++at) {
    const Ref<vm::Buffer> target = bytes_of(std::vector<uint8_t>(90, 0xEE), true);
    const Status status = scale({target, static_cast<int64_t>(at), 12});
    ASSERT_TRUE(status.ok()) << status.text();
    std::vector<uint8_t> expected(90, 0xEE);
    const int32_t values[] = {1, 4, 7};
    std::memcpy(expected.data() + at, values, 12);
    EXPECT_EQ(std::vector<uint8_t>(target->data(), target->data() + 90), expected) << at;
  }
}

TEST_F(HalLoader, EmptyGridsRunNothing) {
  const Ref<vm::Buffer> target = words({5, 5, 5});
  for (const Entries& grid : {Entries{0, 1, 1}, Entries{1, 0, 1}, Entries{1, 1, 0}}) {
    const Status status = loader->status("executable.dispatch", kDispatch1,
                                         {executable, 1, grid.values[0], grid.values[1], grid.values[2],
                                          Entries{3, 1}, Entries{target, 0, 12}});
    EXPECT_TRUE(status.ok()) << status.text();
  }
  EXPECT_EQ(contents(target), (std::vector<int32_t>{5, 5, 5}));
}

TEST_F(HalLoader, RangesAreChecked) {
  const Ref<vm::Buffer> target = words({5, 5, 5});
  EXPECT_FAILS(OUT_OF_RANGE, "binding[0]", scale({target, 4, 12}));
  EXPECT_FAILS(OUT_OF_RANGE, "within the 12 bytes", scale({target, 13, 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "binding[0]", scale({target, -4, 8}));
  EXPECT_FAILS(OUT_OF_RANGE, "binding[0]", scale({target, 0, -1}));
  EXPECT_FAILS(OUT_OF_RANGE, "scale", scale({target, 0, 8}));  // the kernel sees only its range
  EXPECT_EQ(contents(target)[2], 5);
}

TEST_F(HalLoader, AnEmptyBindingIsOne) {
  const Ref<vm::Buffer> nowhere = vm::Buffer::wrap({}, true, {});
  for (const Ref<vm::Buffer>& empty : {nowhere, words({}), words({1})})
    EXPECT_FAILS(OUT_OF_RANGE, "scale", scale({empty, 0, 0}, 1));
}

TEST_F(HalLoader, FunctionsAndCountsAreThoseOfTheExecutable) {
  const Ref<vm::Buffer> target = words({0, 0, 0});
  const Entries binding = {target, 0, 12};
  for (const int64_t function : {int64_t{2}, int64_t{-1}, int64_t{1} << 32})
    EXPECT_FAILS(OUT_OF_RANGE, "function number",
                 loader->status("executable.dispatch", kDispatch1,
                                {executable, function, 3, 1, 1, Entries{3, 1}, binding}));
  EXPECT_FAILS(
      OUT_OF_RANGE, "4294967295",
      loader->status("executable.dispatch", kDispatch0, {executable, -1, 3, 1, 1, Entries{3, 1}, binding}));
  EXPECT_FAILS(INVALID_ARGUMENT, "constants, but 1 were given", scale(binding, 3, {3}));
  EXPECT_FAILS(INVALID_ARGUMENT, "constants, but 300 were given", scale(binding, 3, Entries(300, 3)));
  EXPECT_FAILS(INVALID_ARGUMENT, "takes 1 bindings, but 0 were given", scale({}));
  EXPECT_FAILS(INVALID_ARGUMENT, "takes 1 bindings, but 2 were given", scale({target, 0, 12, target, 0, 12}));
}

TEST_F(HalLoader, BindingsAreAtMost32) {
  const Ref<vm::Buffer> target = words({0, 0, 0});
  Entries bindings = {};
  for (int i = 0; i < 32; ++i)
    for (const Argument& part : Entries{target, 0, 12}.values) bindings.values.push_back(part);
  EXPECT_FAILS(INVALID_ARGUMENT, "takes 1 bindings, but 32 were given", scale(bindings));
  for (const Argument& part : Entries{target, 0, 12}.values) bindings.values.push_back(part);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "at most 32 bindings, found 33", scale(bindings));
}

TEST_F(HalLoader, ExecutablesOfOtherDevicesAreRefused) {
  auto null = ASSERT_VALUE(open_device("null"));
  const Ref<hal::Executable> foreign = halyard::make<hal::Executable>(null, nullptr, nullptr);
  EXPECT_FAILS(
      INVALID_ARGUMENT, "null://",
      loader->status("executable.dispatch", kDispatch1, {foreign, 0, 1, 1, 1, Entries{}, Entries{}}));
}

TEST_F(HalLoader, AKernelThatFailsFailsTheCall) {
  const Status status = scale({words({0}), 0, 4}, 2);
  EXPECT_FAILS(OUT_OF_RANGE, "workgroup 1,0,0 of 2,1,1", status);
  EXPECT_TRUE(scale({words({0}), 0, 4}, 1).ok()) << "and no other";
}

TEST_F(HalLoader, ExecutablesOutliveTheModule) {
  loader.reset();
  const Ref<vm::Buffer> target = words({0, 0, 0});
  const hal::HostBinding binding = {target->span(), true};
  const uint32_t constants[] = {3, 1};
  ASSERT_OK(hal::dispatch_now(*executable, 1, {3, 1, 1}, constants, {&binding, 1}));
  EXPECT_EQ(contents(target), (std::vector<int32_t>{1, 4, 7}));
}

}  // namespace
}  // namespace halyard::modules
