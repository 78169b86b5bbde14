// Shared by the tests of this folder: a local device, and calls of native functions like those of the
// interpreter, with arguments in registers according to the calling convention.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hal/registry/driver_registry.h"
#include "modules/hal_module.h"
#include "status_testing.h"
#include "vm/format/opcodes.h"
#include "vm/module/calling_convention.h"
#include "vm/module/native_module.h"
#include "vm/object/buffer.h"
#include "vm/object/variant.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"

namespace halyard::modules {

// Arguments of functions of `hal`.
inline constexpr int kAny = -1;              // affinity: any queue
inline constexpr int kDefaultUsage = 0xC03;  // transfers and bindings of dispatches
inline constexpr int kFloat32 = 0x21000020;
inline constexpr int kInt32 = 0x10000020;
inline constexpr int kNotReached = static_cast<int>(Code::DEFERRED);

// Devices opened from one registry share a driver instance.
inline Ref<hal::DriverRegistry> open_registry() {
  hal::RegistryOptions options;
  options.folders = {HALYARD_BUILD_DIR "/lib/halyard/drivers"};
  options.use_environment = false;
  options.use_default_folders = false;
  return hal::DriverRegistry::create(std::move(options));
}
// The registry is never destroyed, because its destructor would wait for the device.
inline Result<Ref<hal::Device>> open_device(std::string_view uri) {
  static const auto& registry = *new Ref<hal::DriverRegistry>(open_registry());
  return registry->open_device(uri);
}

// One argument: a number (of any width), an object, or the entries of a variadic item, one after another.
struct Entries;
struct Argument {
  Argument(int value) : bits(static_cast<uint64_t>(static_cast<int64_t>(value))) {}
  Argument(unsigned value) : bits(value) {}
  Argument(int64_t value) : bits(static_cast<uint64_t>(value)) {}
  Argument(uint64_t value) : bits(value) {}
  Argument(std::nullptr_t) {}
  Argument(Object* object) : object(object) {}
  template <typename T>
  Argument(const Ref<T>& object) : object(object.get()) {}
  Argument(Entries entries);

  uint64_t bits = 0;
  Object* object = nullptr;
  std::vector<Argument> entries;
};
// A separate class, because braces around a vector of arguments would copy the vector.
struct Entries {
  Entries(std::initializer_list<Argument> list) : values(list) {}
  Entries(size_t count, const Argument& value) : values(count, value) {}
  std::vector<Argument> values;
};
inline Argument::Argument(Entries from) : entries(std::move(from.values)) {}

// A native module in a separate context.
class ModuleCaller {
 public:
  explicit ModuleCaller(Ref<vm::NativeModule> module) : module_(std::move(module)) {
    auto state = module_->create_state();
    if (state) state_ = *state;
  }
  ModuleCaller(const ModuleCaller&) = delete;
  ModuleCaller& operator=(const ModuleCaller&) = delete;
  ~ModuleCaller() {
    if (state_.destroy) state_.destroy(state_.pointer);
  }

  // Returns values as variants of their own width.
  Result<std::vector<vm::Variant>> call(std::string_view name, std::string_view convention,
                                        const std::vector<Argument>& arguments) {
    const vm::Export* function = HALYARD_TRY(module_->resolve(name, convention));
    const vm::Convention types = HALYARD_TRY(vm::Convention::parse(function->convention));
    Registers registers;
    std::vector<uint16_t> segments;
    for (size_t i = 0; i < types.arguments.size(); ++i) {
      const vm::ConventionItem& item = types.arguments[i];
      EXPECT_LT(i, arguments.size()) << name;
      if (item.type != 'C') {
        registers.put(item.type, arguments[i]);
        segments.push_back(0xFFFF);
        continue;
      }
      const std::vector<Argument>& entries = arguments[i].entries;
      EXPECT_EQ(entries.size() % item.span.size(), 0u) << name;
      for (size_t j = 0; j < entries.size(); ++j) registers.put(item.span[j % item.span.size()], entries[j]);
      segments.push_back(static_cast<uint16_t>(entries.size() / item.span.size()));
    }
    EXPECT_EQ(arguments.size(), types.arguments.size()) << name;
    std::vector<uint16_t> results;
    for (const vm::ConventionItem& item : types.results) results.push_back(registers.reserve(item.type));

    vm::NativeCall call;
    call.invocation = &invocation_;
    call.may_defer = false;
    call.state = state_.pointer;
    call.values = registers.values.data();
    call.refs = registers.refs.data();
    call.arguments = registers.names.data();
    call.segments = types.has_span ? segments.data() : nullptr;
    call.results = results.data();
    HALYARD_TRY(to_result(module_->native_export(function->function).function(call)));

    std::vector<vm::Variant> values;
    for (size_t i = 0; i < results.size(); ++i) {
      const char type = types.results[i].type;
      if (type == 'r') {
        values.push_back(
            vm::Variant::ref(Ref<Object>::adopt(registers.refs[results[i] & vm::kRefOrdinalMask])));
      } else if (type == 'i') {
        values.push_back(vm::Variant::i32(static_cast<int32_t>(registers.values[results[i]])));
      } else {
        values.push_back(vm::Variant::i64(static_cast<int64_t>(
            registers.values[results[i]] | static_cast<uint64_t>(registers.values[results[i] + 1]) << 32)));
      }
    }
    return values;
  }

  // The only result, as an object of type T, an i32 or an i64. Fails the test if the call fails.
  template <typename T>
  Ref<T> object(std::string_view name, std::string_view convention, const std::vector<Argument>& arguments) {
    auto results = call(name, convention, arguments);
    EXPECT_TRUE(results) << name << ": " << (results ? "" : results.error().text());
    return results ? Ref<T>::share(cast<T>((*results)[0].object())) : nullptr;
  }
  int64_t number(std::string_view name, std::string_view convention, const std::vector<Argument>& arguments) {
    auto results = call(name, convention, arguments);
    EXPECT_TRUE(results) << name << ": " << (results ? "" : results.error().text());
    if (!results) return INT64_MIN;
    return (*results)[0].type() == vm::ValueType::i32 ? (*results)[0].as_i32() : (*results)[0].as_i64();
  }
  Status status(std::string_view name, std::string_view convention, const std::vector<Argument>& arguments) {
    auto results = call(name, convention, arguments);
    return results ? Status() : results.error();
  }

  const vm::NativeModule& module() const { return *module_; }

 private:
  struct Registers {
    std::vector<uint32_t> values;
    std::vector<Object*> refs;
    std::vector<uint16_t> names;  // of the arguments

    uint16_t reserve(char type) {
      if (type == 'r') {
        refs.push_back(nullptr);
        return static_cast<uint16_t>((refs.size() - 1) | vm::kRefBit);
      }
      const bool wide = type == 'I' || type == 'F';
      if (wide && values.size() % 2) values.push_back(0);
      values.resize(values.size() + (wide ? 2 : 1));
      return static_cast<uint16_t>(values.size() - (wide ? 2 : 1));
    }
    void put(char type, const Argument& argument) {
      const uint16_t name = reserve(type);
      names.push_back(name);
      if (type == 'r') {
        refs.back() = argument.object;
      } else {
        values[name] = static_cast<uint32_t>(argument.bits);
        if (type == 'I' || type == 'F') values[name + 1] = static_cast<uint32_t>(argument.bits >> 32);
      }
    }
  };

  Ref<vm::NativeModule> module_;
  vm::NativeState state_;
  vm::Invocation invocation_{vm::Context::create({})};
};

// local-sync, and the module `hal` with that device.
class HalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device = ASSERT_VALUE(open_device("local-sync"));
    hal = std::make_unique<ModuleCaller>(create_hal_module({.devices = {device}}));
  }

  Ref<hal::Device> device;
  std::unique_ptr<ModuleCaller> hal;
};

// A buffer with these elements, and the elements of a buffer.
template <typename T>
Ref<hal::Buffer> buffer_of(hal::Device& device, const std::vector<T>& elements, uint32_t usage,
                           uint32_t memory) {
  const size_t size = elements.size() * sizeof(T);
  auto made = hal::Buffer::allocate(device, hal::kAnyQueue, memory, usage, size);
  EXPECT_TRUE(made) << made.error().text();
  EXPECT_OK((*made)->write(0, elements.data(), size));
  return *made;
}
template <typename T>
std::vector<T> contents_of(const hal::Buffer& buffer) {
  std::vector<T> elements(buffer.length() / sizeof(T));
  EXPECT_OK(buffer.read(0, elements.data(), buffer.length()));
  return elements;
}

inline Ref<vm::Buffer> bytes_of(std::vector<uint8_t> contents, bool is_mutable = false) {
  auto owned = std::make_shared<std::vector<uint8_t>>(std::move(contents));
  return vm::Buffer::wrap({owned->data(), owned->size()}, is_mutable, [owned] {});
}
inline Ref<vm::Buffer> text_of(std::string_view text) { return bytes_of({text.begin(), text.end()}); }

}  // namespace halyard::modules
