// Native modules of C++ functions, which programs import from their embedder. The calling convention is
// derived from the type of the function.
//
//   auto math = halyard::NativeModule("math")
//                   .add("hypot", [](double x, double y) { return std::hypot(x, y); })
//                   .add("first", [](const halyard::Tensor& tensor) { return tensor.read<float>()[0]; })
//                   .create(instance);
#ifndef HALYARD_CPP_NATIVE_HPP_
#define HALYARD_CPP_NATIVE_HPP_

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "halyard/cpp/module.hpp"
#include "halyard/cpp/value.hpp"
#include "halyard/module.h"

namespace halyard::inline HALYARD_CPP_FORM {

namespace detail {

// The character for T in a calling convention.
template <typename T>
constexpr char convention_of() {
  if constexpr (std::is_same_v<T, int32_t>) return 'i';
  if constexpr (std::is_same_v<T, int64_t>) return 'I';
  if constexpr (std::is_same_v<T, float>) return 'f';
  if constexpr (std::is_same_v<T, double>) return 'F';
  if constexpr (std::is_base_of_v<Object, T>) return 'r';
  return 0;
}
template <typename T>
concept NativeValue = convention_of<T>() != 0;

template <typename T>
T native_argument(const halyard_value_t& value) noexcept {
  if constexpr (std::is_base_of_v<Object, T>) {
    return T(share, value.kind == HALYARD_VALUE_OBJECT ? value.object : nullptr);
  } else {
    return take<T>(value);
  }
}

// Results of a function: none, one, or a tuple; optionally in an `expected`.
template <typename R>
struct NativeResults {
  static_assert(NativeValue<R>, "a native function returns int32_t, int64_t, float, double or an Object");
  static std::string convention() { return {convention_of<R>()}; }
  static void give(R&& result, halyard_value_t* results) noexcept {
    *results = Value(std::move(result)).release();
  }
};
template <>
struct NativeResults<void> {
  static std::string convention() { return "v"; }
};
template <typename... R>
struct NativeResults<std::tuple<R...>> {
  static std::string convention() { return {convention_of<R>()...}; }
  static void give(std::tuple<R...> all, halyard_value_t* results) noexcept {
    std::apply([&](R&... each) { ((*results++ = Value(std::move(each)).release()), ...); }, all);
  }
};
template <typename R>
struct Unwrapped {
  using type = R;
};
template <typename R>
struct Unwrapped<expected<R, Error>> {
  using type = R;
};

// The type R(A...) of a callable object.
template <typename F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <typename R, typename... A>
struct SignatureOf<R (*)(A...)> {
  using Returns = R;
  using Results = NativeResults<typename Unwrapped<R>::type>;
  static_assert((NativeValue<std::remove_cvref_t<A>> && ...),
                "a native function takes int32_t, int64_t, float, double and Objects");
  static std::string convention() {
    const std::string arguments = {convention_of<std::remove_cvref_t<A>>()...};
    return "0" + (arguments.empty() ? "v" : arguments) + "_" + Results::convention();
  }
  template <typename F>
  static R apply(F& function, const halyard_value_t* arguments) {
    return [&]<size_t... I>(std::index_sequence<I...>) -> R {
      return function(native_argument<std::remove_cvref_t<A>>(arguments[I])...);
    }(std::index_sequence_for<A...>());
  }
};
template <typename R, typename... A>
struct SignatureOf<R (*)(A...) noexcept> : SignatureOf<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct SignatureOf<R (C::*)(A...) const> : SignatureOf<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct SignatureOf<R (C::*)(A...)> : SignatureOf<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct SignatureOf<R (C::*)(A...) const noexcept> : SignatureOf<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct SignatureOf<R (C::*)(A...) noexcept> : SignatureOf<R (*)(A...)> {};

}  // namespace detail

// Collects functions; create() makes the module. Functions are called on the threads that run programs,
// concurrently if several threads use contexts. An exception or a returned error fails the call. Object
// arguments may be null. A function must not call into the context that called it.
class NativeModule {
 public:
  // `name` is the part of an import's name before '.'.
  explicit NativeModule(std::string name, uint32_t version = 0) : name_(std::move(name)), version_(version) {}

  template <typename F>
  NativeModule&& add(std::string name, F function) && {
    add_function(std::move(name), std::move(function));
    return std::move(*this);
  }
  template <typename F>
  NativeModule& add(std::string name, F function) & {
    add_function(std::move(name), std::move(function));
    return *this;
  }

  // INVALID_ARGUMENT: a name is invalid or a duplicate.
  Result<Module> create(const Instance& instance) && {
    auto functions = std::make_unique<Functions>(std::move(functions_));
    std::vector<halyard_module_export_t> exports;
    for (const Export& each : *functions)
      exports.push_back({each.name.c_str(), each.convention.c_str(), nullptr, call, 0, 0});
    auto definition = detail::sized<halyard_module_definition_t>();
    definition.abi_version = HALYARD_MODULE_ABI_V1;
    definition.name = name_.c_str();
    definition.version = version_;
    definition.export_size = sizeof(halyard_module_export_t);
    definition.exports = exports.data();
    definition.export_count = exports.size();
    definition.user = functions.get();
    definition.release = [](void* user) { delete static_cast<Functions*>(user); };
    halyard_module_t made = nullptr;
    const halyard_status_t status = halyard_module_create_native(instance.get(), &definition, &made);
    if (!status) static_cast<void>(functions.release());
    return detail::finish(status, [&] { return Module(adopt, made); });
  }

 private:
  struct Export {
    std::string name;
    std::string convention;
    std::function<halyard_status_t(halyard_module_call_t&)> function;
  };
  using Functions = std::vector<Export>;

  static halyard_status_t call(void* state, halyard_module_call_t* call) {
    return (*static_cast<Functions*>(state))[call->export_index].function(*call);
  }

  template <typename F>
  void add_function(std::string name, F function) {
    using Signature = detail::SignatureOf<F>;
    functions_.push_back({std::move(name), Signature::convention(),
                          [function = std::move(function)](halyard_module_call_t& call) mutable {
                            return detail::status_of([&] { return run<Signature>(function, call); });
                          }});
  }
  template <typename Signature, typename F>
  static Result<void> run(F& function, halyard_module_call_t& call) {
    using Returns = typename Signature::Returns;
    using Plain = typename detail::Unwrapped<Returns>::type;
    if constexpr (std::is_void_v<Returns>) {
      Signature::apply(function, call.arguments);
    } else if constexpr (std::is_same_v<Returns, Plain>) {
      Signature::Results::give(Signature::apply(function, call.arguments), call.results);
    } else {
      Returns result = Signature::apply(function, call.arguments);
      if (!result) return detail::fail<void>(std::move(result).error());
      if constexpr (!std::is_void_v<Plain>) Signature::Results::give(*std::move(result), call.results);
    }
    return Result<void>();
  }

  std::string name_;
  uint32_t version_;
  Functions functions_;
};

// The services for native modules (halyard/module.h). Static storage.
inline const halyard_module_services_t& module_services() noexcept { return *halyard_module_services(); }

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_NATIVE_HPP_
