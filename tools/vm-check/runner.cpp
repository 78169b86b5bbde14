// Worker threads, each of which takes one test after another.
#include "runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "common/interrupt.h"

namespace halyard::tools {

namespace {

// The running calls, which a signal cancels. Any thread.
class Calls {
 public:
  void add(halyard_call_t call) {
    const std::lock_guard lock(mutex_);
    running_.push_back(call);
  }
  void remove(halyard_call_t call) {
    const std::lock_guard lock(mutex_);
    std::erase(running_, call);
  }
  void cancel() {
    const std::lock_guard lock(mutex_);
    for (halyard_call_t call : running_) halyard_call_cancel(call);
  }

 private:
  std::mutex mutex_;
  std::vector<halyard_call_t> running_;
};

// Collects findings and reports them in the order of the tests. Any thread.
class InOrder {
 public:
  InOrder(std::span<const Test> tests, Listener& listener)
      : tests_(tests), listener_(listener), begun_(tests.size()), findings_(tests.size()) {}

  void begin(size_t test) {
    const std::lock_guard lock(mutex_);
    begun_[test] = true;
    announce();
  }
  void end(size_t test, Finding finding) {
    const std::lock_guard lock(mutex_);
    findings_[test] = std::move(finding);
    for (; told_ < tests_.size() && findings_[told_]; announce()) listener_.ended(*findings_[told_++]);
  }
  std::vector<Finding> take() {
    std::vector<Finding> all;
    for (std::optional<Finding>& finding : findings_)
      if (finding) all.push_back(std::move(*finding));
    return all;
  }

 private:
  // Announces the first test that has not ended, once.
  void announce() {
    if (told_ == tests_.size() || !begun_[told_] || announced_ > told_) return;
    announced_ = told_ + 1;
    listener_.begins(tests_[told_]);
  }

  const std::span<const Test> tests_;
  Listener& listener_;
  std::mutex mutex_;
  std::vector<bool> begun_;
  std::vector<std::optional<Finding>> findings_;
  size_t told_ = 0;       // the number of tests whose end has been reported
  size_t announced_ = 0;  // the number of tests whose begin has been reported
};

class Runner {
 public:
  Runner(const Program& program, const ContextOptions& options,
         const std::vector<Handle<halyard_module_t>>& modules)
      : program_(program), options_(options), modules_(modules) {}

  Finding run(const Test& test) {
    Finding finding{.test = &test};
    const auto begin = std::chrono::steady_clock::now();
    const std::string name = full_name(*test.suite, test.name);
    halyard_trace_begin(program_.trace.get(), name.c_str());
    Result<> done = call(test, finding);
    halyard_trace_end(program_.trace.get());
    finding.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!done) finding.failure = std::move(done).error();
    if (finding.failure || !finding.expectations.empty()) finding.verdict = Verdict::failed;
    return finding;
  }

  Calls& calls() { return calls_; }

 private:
  static void keep(void* user, const halyard_failed_expectation_t* failed) {
    auto* const finding = static_cast<Finding*>(user);
    if (finding->expectations.size() < kMaxExpectations) {
      finding->expectations.emplace_back(*failed);
    } else {
      ++finding->more_expectations;
    }
  }

  Result<> call(const Test& test, Finding& finding) {
    std::vector<Handle<halyard_module_t>> modules = modules_;
    modules.push_back(test.suite->module);
    Handle<halyard_context_t> context;
    Handle<halyard_function_t> function;
    Handle<halyard_call_t> call;
    finding.has_run = false;
    TOOL_TRY(options_.create(program_.instance.get(), modules, context.out(), {keep, &finding}));
    TOOL_TRY(check(halyard_context_find(context.get(), nullptr, test.name.c_str(), function.out())));
    TOOL_TRY(check(halyard_call_create(context.get(), call.out())));
    finding.has_run = true;
    calls_.add(call.get());
    const Result<> done = check(halyard_call_invoke(call.get(), function.get(), nullptr, 0, nullptr, 0));
    calls_.remove(call.get());
    return done;
  }

  const Program& program_;
  const ContextOptions& options_;
  const std::vector<Handle<halyard_module_t>>& modules_;
  Calls calls_;
};

}  // namespace

Findings run_tests(const Program& program, const ContextOptions& options,
                   const std::vector<Handle<halyard_module_t>>& modules, std::span<const Test> tests,
                   size_t jobs, Listener& listener) {
  Runner runner(program, options, modules);
  InOrder findings(tests, listener);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr thrown;  // the first exception
  const Interrupt interrupt([&] { runner.calls().cancel(); });
  const auto work = [&] {
    try {
      while (!interrupt.happened()) {
        const size_t test = next++;
        if (test >= tests.size()) return;
        findings.begin(test);
        Finding finding = runner.run(tests[test]);
        if (finding.failure && finding.failure->code == HALYARD_CANCELLED && interrupt.happened())
          finding.verdict = Verdict::stopped;
        findings.end(test, std::move(finding));
      }
    } catch (...) {
      next = tests.size();
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  try {
    while (threads.size() + 1 < std::min(jobs, tests.size())) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // If no more threads can be started, the existing threads do the work.
  }
  work();
  for (std::jthread& thread : threads) thread.join();
  if (thrown) std::rethrow_exception(thrown);
  return {.all = findings.take(),
          .interrupted = interrupt.happened(),
          .exit_code = interrupt.happened() ? interrupt.exit_code() : 0};
}

}  // namespace halyard::tools
