// halyard/halyard.hpp in a file that is compiled without exceptions: `expected` in the place of throwing.
#include "program.h"

namespace {

using namespace halyard;

static_assert(!HALYARD_CPP_EXCEPTIONS, "this file is compiled with -fno-exceptions");
static_assert(std::is_same_v<Result<int>, expected<int, Error>>);

TEST(Expected, CallsAndFailures) {
  const Result<Instance> instance = Instance::create();
  ASSERT_TRUE(instance) << instance.error().what();
  const Result<Device> device = instance->open("local-sync");
  ASSERT_TRUE(device) << device.error().what();
  const Result<Function> add =
      Module::from_text(*instance, kProgram)
          .and_then([&](Module module) {
            return Context::create(*instance, {.modules = {module}, .devices = {*device}});
          })
          .and_then([](const Context& context) { return context.find("add"); });
  ASSERT_TRUE(add) << add.error().what();
  EXPECT_EQ(add->call<float>(2.0f, 3.0f).value(), 5.0f);
  const auto wrong = add->call<int32_t>(2.0f, 3.0f);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(add->call<float>(2.0f).value_or(-1.0f), -1.0f);
  EXPECT_FALSE(add->call<>(1.0f, 1.0f));
  const Result<Function> none = add->context().find("none");
  EXPECT_TRUE(none->call<>());

  const Result<Tensor> tensor = Tensor::create<float>(*device, {2}, {1, 2});
  EXPECT_EQ(tensor->read<float>().value()[1], 2.0f);
  EXPECT_EQ(tensor->map<const int32_t>().error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(tensor->map<float>().transform([](Mapping<float> mapped) { return mapped.size(); }).value(), 2u);
  const Result<Tensor> recovered =
      Tensor::create<float>(*device, {3}, {1, 2}).or_else([&](const Error&) -> Result<Tensor> {
        return *tensor;
      });
  EXPECT_EQ(*recovered, *tensor);
}

TEST(Expected, NativeFunctionsReturnErrors) {
  const Result<Instance> instance = Instance::create();
  const Result<Module> app =
      NativeModule("app")
          .add("first",
               [](const Tensor& tensor) -> Result<float> {
                 return tensor.read<float>().transform(
                     [](const std::vector<float>& elements) { return elements[0]; });
               })
          .add("plain", [](int32_t number) { return number + 1; })
          .add("check",
               [](int32_t number) -> Result<void> {
                 if (number > 0) return {};
                 return unexpected<Error>(Error(StatusCode::OUT_OF_RANGE, "too small"));
               })
          .create(*instance);
  ASSERT_TRUE(app) << app.error().what();
  const Result<Context> context = Context::create(*instance, {.modules = {*app}});
  ASSERT_TRUE(context) << context.error().what();
  const Result<Tensor> tensor = Tensor::create<float>(Device(), {1}, {4});
  EXPECT_EQ(context->find("first")->call<float>(*tensor).value(), 4.0f);
  EXPECT_EQ(context->find("first")->call<float>(nullptr).error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(context->find("plain")->call<int32_t>(1).value(), 2);
  EXPECT_TRUE(context->find("check")->call<>(1));
  EXPECT_EQ(context->find("check")->call<>(0).error().code(), StatusCode::OUT_OF_RANGE);
}

#if !HALYARD_CPP_STD_EXPECTED_
TEST(Expected, IsLikeThatOfTheStandard) {
  using Number = expected<std::unique_ptr<int>, Error>;
  Number number = std::make_unique<int>(3);
  Number other = unexpected<Error>(Error(StatusCode::ABORTED, "x"));
  std::swap(number, other);
  EXPECT_FALSE(number);
  EXPECT_EQ(**other, 3);
  number = std::move(other);
  EXPECT_EQ(**number, 3);
  expected<std::string, Error> text = std::string("a");
  expected<std::string, Error> copy = text;
  copy = unexpected<Error>(Error(StatusCode::ABORTED, "x"));
  copy = text;
  EXPECT_EQ(copy->size(), 1u);
  EXPECT_EQ((copy.value_or("b")), "a");
  const auto size = copy.transform([](const std::string& of) { return of.size(); });
  EXPECT_EQ(size.and_then([](size_t of) { return expected<size_t, Error>(of + 1); }).value(), 2u);
  EXPECT_EQ(copy.or_else([](const Error&) { return expected<std::string, Error>("none"); }).value(), "a");
  EXPECT_TRUE(copy.transform([](const std::string&) {}));
  EXPECT_EQ(*copy, "a");  // they do not take from what is no temporary
  expected<void, Error> nothing;
  EXPECT_TRUE(nothing);
  nothing = unexpected<Error>(Error(StatusCode::ABORTED, "x"));
  EXPECT_FALSE(std::move(nothing).and_then([] { return expected<void, Error>(); }));
}
#endif

}  // namespace
