// Calls a function of a context repeatedly; has the arguments, results, and the fences of asynchronous
// functions.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"
#include "common/inputs.h"
#include "common/interrupt.h"
#include "common/program.h"

namespace halyard::tools {

// A function to be measured.
struct Target {
  std::string name;
  halyard_function_description_t description = {};
  bool is_dispatch = false;  // compiler-generated: repeats one dispatch, as often as its argument says
};

// The function of --function. Without the flag: all exports without parameters and all that repeat a
// dispatch; if there are none, the only export. INVALID_ARGUMENT: none of these. NOT_FOUND.
Result<std::vector<Target>> chosen_targets(const Flags& flags, const Module& module);

// The arguments of --input; for a function that repeats a dispatch, the number of repetitions. `device`: see
// parse_inputs().
Result<Arguments> arguments_of(const Flags& flags, const Target& target, const Device& device,
                               uint64_t batch);

// The calls that a signal cancels. Any thread.
class RunningCalls {
 public:
  void add(halyard_call_t call);
  void remove(halyard_call_t call);
  void cancel();

 private:
  std::mutex mutex_;
  std::set<halyard_call_t> calls_;
};

// Signals that ask for a stop, and the work that they stop.
struct Stop {
  RunningCalls calls;
  std::function<void()> also;  // also called; may be empty
  std::mutex mutex;            // guards `also`
  Interrupt interrupt{[this] { now(); }};

  void set_also(std::function<void()> action);  // empty: no action
  void now();
  bool asked_for() const { return interrupt.happened(); }
};

// One thread at a time. The target and Stop must outlive it.
class Caller {
 public:
  static Result<std::unique_ptr<Caller>> make(const Context& context, const Target& target,
                                              const Arguments& arguments, const Device& device, Stop& stop);
  Caller(const Caller&) = delete;
  ~Caller();

  // A complete call, including the wait for an asynchronous function. Results are released.
  Result<> call();
  // A batch. An asynchronous function is called `count` times, with up to `in_flight` calls in flight: each
  // call waits for the call `in_flight` calls before it, and call_batch() waits for the last ones. Other
  // functions are called once, because that call does the work of the batch.
  Result<> call_batch(uint64_t count, uint64_t in_flight);

  // A call in steps. Asynchronous functions need make_fence() first and the wait last.
  Result<> make_fence();
  Result<> submit();
  Result<> wait();
  const std::vector<Value>& results() const { return results_; }
  void release_results();

 private:
  Caller(const Target& target, const Device& device, Stop& stop);
  Result<> wait_for(const Fence& fence);

  const Target& target_;
  const Device device_;
  Stop& stop_;
  Function function_;
  Call call_;
  std::vector<Value> arguments_;  // the fences are at the end
  std::vector<Value> results_;
  std::vector<Fence> fences_;  // of the calls in flight
};

}  // namespace halyard::tools
