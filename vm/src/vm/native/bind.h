// bind: creates a NativeFunction and its calling convention from the type of a C++ function.
//
//   Result<Ref<Fence>> fence_create(HalState& state, Device& device, int32_t flags);
//   {"fence.create", convention_of<&fence_create>, bind<&fence_create>}      // "0ri_r"
//
// Parameters, in the order of the convention:
//   int32_t uint32_t  i      int64_t uint64_t  I      float  f      double  F
//   T&           r  of type T; null and other types are INVALID_ARGUMENT
//   T*           r  null or of type T; other types are INVALID_ARGUMENT
//   Lenient<T>   r  like T*, but a ref of another type is read as null
//   Object& Object*  r  of any type
//   Span<A, B>   CabD  all entries are checked before the function runs
// and, in addition to the convention:
//   State&       the module's state in this context: any class that is not an Object
//   CallContext& the call, so that the function can defer
// Results: void, one of the values, Ref<T>, or a std::tuple of them; written only on success, and not if the
// call was deferred. Refs among the arguments are borrowed; to keep one, retain it with Ref<T>::share.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/object.h"
#include "base/status.h"
#include "vm/format/opcodes.h"
#include "vm/module/native_module.h"
#include "vm/run/invocation.h"

namespace halyard::vm {

// A ref parameter that is null if the argument has another type.
template <typename T>
class Lenient {
 public:
  Lenient() = default;
  explicit Lenient(T* object) : object_(object) {}
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// The deferral services of a call. When the invocation resumes, a deferred function is called again with the
// same arguments. Results of a deferred attempt are ignored.
class CallContext {
 public:
  explicit CallContext(NativeCall& call) : call_(call) {}
  Invocation& invocation() const { return *call_.invocation; }
  // The scope of the work that the call submits; null if there is no invocation.
  WorkScope* work_scope() const { return call_.invocation ? &call_.invocation->work_scope() : nullptr; }
  // The location of the calling bytecode, for messages; empty if there is none.
  std::string place() const { return call_.invocation ? call_.invocation->place() : std::string(); }
  bool resumed() const { return call_.resumed; }
  // Defers: the function is called again at once. Not allowed if the caller cannot wait (may_defer).
  void defer() { call_.deferred = true; }
  bool may_defer() const { return call_.may_defer && call_.invocation; }
  // Whether the calling thread blocks while the call waits, and so has nothing else to do.
  bool caller_blocks() const { return call_.invocation->blocks(); }
  // Defers: the function is called again after the returned wakeup is used, or at the deadline.
  Wakeup wait(const Deadline& deadline = {}) {
    call_.deferred = true;
    return call_.invocation->begin_wait(deadline);
  }

 private:
  NativeCall& call_;
};

namespace internal {

Status null_ref();  // "expected a ref, found null"
Status wrong_ref(const ObjectType* expected,
                 const Object* found);  // "expected a, found b"

struct BindCursor {
  const NativeCall& call;
  const uint16_t* argument;  // the next argument
  size_t item = 0;           // the next item of the convention
};

inline Object* load_ref(const NativeCall& call, uint16_t reg) { return call.refs[reg & kRefOrdinalMask]; }

template <typename T>
T load_value(const NativeCall& call, uint16_t reg) {
  T value;
  std::memcpy(&value, call.values + reg, sizeof value);
  return value;
}

// Passing<P>: how a parameter of type P is passed. `type` is its character; accepts() checks the register,
// refusal() explains why it is wrong, load() reads it.
template <typename P>
struct Passing {
  static constexpr bool in_convention = false;
};

template <typename T, char kType>
struct PassingValue {
  static constexpr bool in_convention = true;
  static constexpr char type = kType;
  static bool accepts(const NativeCall&, uint16_t) { return true; }
  static Status refusal(const NativeCall&, uint16_t) { return {}; }
  static T load(const NativeCall& call, uint16_t reg) { return load_value<T>(call, reg); }
};
template <>
struct Passing<int32_t> : PassingValue<int32_t, 'i'> {};
template <>
struct Passing<uint32_t> : PassingValue<uint32_t, 'i'> {};
template <>
struct Passing<int64_t> : PassingValue<int64_t, 'I'> {};
template <>
struct Passing<uint64_t> : PassingValue<uint64_t, 'I'> {};
template <>
struct Passing<float> : PassingValue<float, 'f'> {};
template <>
struct Passing<double> : PassingValue<double, 'F'> {};

template <typename T>
inline constexpr bool kIsObject = std::is_base_of_v<Object, std::remove_const_t<T>>;

template <typename T>
inline constexpr bool kIsAnyObject = std::is_same_v<std::remove_const_t<T>, Object>;

// Null for a parameter that accepts any type.
template <typename T>
constexpr const ObjectType* type_of() {
  if constexpr (kIsAnyObject<T>)
    return nullptr;
  else
    return &T::kType;
}

template <typename T>
  requires kIsObject<T>
struct Passing<T*> {
  static constexpr bool in_convention = true;
  static constexpr char type = 'r';
  static bool is_one(const Object& object) {
    if constexpr (kIsAnyObject<T>)
      return true;
    else
      return object.type() == &T::kType;
  }
  static bool accepts(const NativeCall& call, uint16_t reg) {
    const Object* object = load_ref(call, reg);
    return !object || is_one(*object);
  }
  static Status refusal(const NativeCall& call, uint16_t reg) {
    return wrong_ref(type_of<T>(), load_ref(call, reg));
  }
  static T* load(const NativeCall& call, uint16_t reg) { return static_cast<T*>(load_ref(call, reg)); }
};

template <typename T>
  requires kIsObject<T>
struct Passing<T&> {
  static constexpr bool in_convention = true;
  static constexpr char type = 'r';
  static bool accepts(const NativeCall& call, uint16_t reg) {
    const Object* object = load_ref(call, reg);
    return object && Passing<T*>::is_one(*object);
  }
  static Status refusal(const NativeCall& call, uint16_t reg) {
    return load_ref(call, reg) ? Passing<T*>::refusal(call, reg) : null_ref();
  }
  static T& load(const NativeCall& call, uint16_t reg) { return *Passing<T*>::load(call, reg); }
};

template <typename T>
struct Passing<Lenient<T>> {
  static constexpr bool in_convention = true;
  static constexpr char type = 'r';
  static bool accepts(const NativeCall&, uint16_t) { return true; }
  static Status refusal(const NativeCall&, uint16_t) { return {}; }
  static Lenient<T> load(const NativeCall& call, uint16_t reg) {
    return Lenient<T>(cast<T>(load_ref(call, reg)));
  }
};

}  // namespace internal

// The tuples of a variadic argument.
template <typename... Types>
class Span {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::tuple<Types...> operator[](size_t index) const {
    return load(registers_ + index * sizeof...(Types), std::index_sequence_for<Types...>());
  }

  Span() = default;
  Span(const NativeCall& call, const uint16_t* registers, size_t size)
      : call_(&call), registers_(registers), size_(size) {}

 private:
  template <size_t... kIndex>
  std::tuple<Types...> load(const uint16_t* tuple, std::index_sequence<kIndex...>) const {
    return std::tuple<Types...>(internal::Passing<Types>::load(*call_, tuple[kIndex])...);
  }

  const NativeCall* call_ = nullptr;
  const uint16_t* registers_ = nullptr;
  size_t size_ = 0;
};

namespace internal {

template <typename P>
inline constexpr bool kIsSpan = false;
template <typename... Types>
inline constexpr bool kIsSpan<Span<Types...>> = true;

template <typename P>
[[gnu::cold, gnu::noinline]] void refuse(const NativeCall& call, uint16_t reg, Status& error) {
  error = Passing<P>::refusal(call, reg);
}

template <typename P>
bool check_next(BindCursor& cursor, Status& error) {
  const uint16_t reg = *cursor.argument++;
  if (Passing<P>::accepts(cursor.call, reg)) [[likely]]
    return true;
  refuse<P>(cursor.call, reg, error);
  return false;
}

// Parameter<P>: a parameter in the sequence. check() and load() each advance their cursor.
template <typename P>
struct Parameter {
  static constexpr bool in_convention = Passing<P>::in_convention;
  static_assert(in_convention || std::is_lvalue_reference_v<P>, "no way to pass a parameter of this type");
  static constexpr size_t length = in_convention ? 1 : 0;
  static constexpr char* write(char* text) {
    if constexpr (in_convention) *text++ = Passing<P>::type;
    return text;
  }
  static bool check(BindCursor& cursor, Status& error) {
    if constexpr (in_convention) {
      ++cursor.item;
      return check_next<P>(cursor, error);
    }
    return true;
  }
  static P load(BindCursor& cursor, NativeCall& call) {
    if constexpr (in_convention) {
      ++cursor.item;
      return Passing<P>::load(cursor.call, *cursor.argument++);
    } else {
      return *static_cast<std::remove_reference_t<P>*>(call.state);
    }
  }
};

template <>
struct Parameter<CallContext&> {
  static constexpr size_t length = 0;
  static constexpr char* write(char* text) { return text; }
  static bool check(BindCursor&, Status&) { return true; }
  static CallContext load(BindCursor&, NativeCall& call) { return CallContext(call); }
};

template <typename... Types>
struct Parameter<Span<Types...>> {
  static constexpr size_t length = sizeof...(Types) + 2;
  static constexpr char* write(char* text) {
    *text++ = 'C';
    ((*text++ = Passing<Types>::type), ...);
    *text++ = 'D';
    return text;
  }
  static bool check(BindCursor& cursor, Status& error) {
    for (size_t count = cursor.call.segments[cursor.item++]; count > 0; --count) {
      if (!(check_next<Types>(cursor, error) && ...)) return false;
    }
    return true;
  }
  static Span<Types...> load(BindCursor& cursor, NativeCall& call) {
    const size_t count = cursor.call.segments[cursor.item++];
    const uint16_t* first = cursor.argument;
    cursor.argument += count * sizeof...(Types);
    return Span<Types...>(call, first, count);
  }
};

// Returning<R>: results of type R.
template <typename R>
struct Returning {
  static constexpr std::array<char, 1> types = {Passing<R>::type};
  static void store(NativeCall& call, const uint16_t* reg, R value) {
    std::memcpy(call.values + *reg, &value, sizeof value);
  }
};

template <typename T>
struct Returning<Ref<T>> {
  static constexpr std::array<char, 1> types = {'r'};
  static void store(NativeCall& call, const uint16_t* reg, Ref<T> value) {
    Object* old = std::exchange(call.refs[*reg & kRefOrdinalMask], static_cast<Object*>(value.detach()));
    release(old);
  }
};

template <>
struct Returning<void> {
  static constexpr std::array<char, 0> types = {};
};

template <typename... Types>
struct Returning<std::tuple<Types...>> {
  static constexpr std::array<char, sizeof...(Types)> types = {Returning<Types>::types[0]...};
  static void store(NativeCall& call, const uint16_t* reg, std::tuple<Types...> values) {
    std::apply([&](auto&... value) { (Returning<Types>::store(call, reg++, std::move(value)), ...); },
               values);
  }
};

template <auto kFunction>
struct Binder;

template <typename R, typename... Parameters, Result<R> (*kFunction)(Parameters...)>
struct Binder<kFunction> {
  static constexpr size_t kArgumentLength = (Parameter<Parameters>::length + ... + 0);
  static constexpr size_t kResultLength = Returning<R>::types.size();
  // "0", the arguments or "v", "_", the results or "v", and a terminating zero.
  static constexpr size_t kLength =
      2 + (kArgumentLength ? kArgumentLength : 1) + (kResultLength ? kResultLength : 1);
  static constexpr std::array<char, kLength + 1> kConvention = [] {
    std::array<char, kLength + 1> convention = {};
    char* text = convention.data();
    *text++ = '0';
    ((text = Parameter<Parameters>::write(text)), ...);
    if (kArgumentLength == 0) *text++ = 'v';
    *text++ = '_';
    for (char type : Returning<R>::types) *text++ = type;
    if (kResultLength == 0) *text++ = 'v';
    return convention;
  }();

  static Status call(NativeCall& call) {
    [[maybe_unused]] BindCursor checking{call, call.arguments};
    Status error;
    if (!(Parameter<Parameters>::check(checking, error) && ...)) return error;
    [[maybe_unused]] BindCursor loading{call, call.arguments};
    return run(call, loading, std::index_sequence_for<Parameters...>());
  }

 private:
  template <size_t... kIndex>
  static Status run(NativeCall& call, [[maybe_unused]] BindCursor& cursor, std::index_sequence<kIndex...>) {
    // Braces guarantee evaluation from left to right.
    std::tuple<decltype(Parameter<Parameters>::load(cursor, call))...> arguments{
        Parameter<Parameters>::load(cursor, call)...};
    Result<R> result = kFunction(std::forward<Parameters>(std::get<kIndex>(arguments))...);
    if (!result) return std::move(result).error();
    if (call.deferred) return {};
    if constexpr (!std::is_void_v<R>) Returning<R>::store(call, call.results, *std::move(result));
    return {};
  }
};

}  // namespace internal

template <auto kFunction>
inline constexpr NativeFunction bind = &internal::Binder<kFunction>::call;

// The calling convention of the function, for the module's table.
template <auto kFunction>
inline constexpr const char* convention_of = internal::Binder<kFunction>::kConvention.data();

}  // namespace halyard::vm
