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
    for (; reported_ < tests_.size() && findings_[reported_]; announce())
      listener_.ended(*findings_[reported_++]);
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
    if (reported_ == tests_.size() || !begun_[reported_] || announced_ > reported_) return;
    announced_ = reported_ + 1;
    listener_.begins(tests_[reported_]);
  }

  const std::span<const Test> tests_;
  Listener& listener_;
  std::mutex mutex_;
  std::vector<bool> begun_;
  std::vector<std::optional<Finding>> findings_;
  size_t reported_ = 0;   // the number of tests whose end has been reported
  size_t announced_ = 0;  // the number of tests whose begin has been reported
};

class Runner {
 public:
  Runner(const Program& program, const ContextOptions& options, const std::vector<Module>& modules)
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
  static void keep(const halyard_failed_expectation_t& failed, Finding& finding) {
    if (finding.expectations.size() < kMaxExpectations) {
      finding.expectations.emplace_back(failed);
    } else {
      ++finding.more_expectations;
    }
  }

  Result<> call(const Test& test, Finding& finding) {
    std::vector<Module> modules = modules_;
    modules.push_back(test.suite->module);
    ContextOptions options = options_;
    options.expectation = [&finding](const auto& failed) { keep(failed, finding); };
    finding.has_run = false;
    const Context context = TOOL_TRY(create_context(program_.instance, modules, std::move(options)));
    const Function function = TOOL_TRY(context.find(test.name));
    const Call call = TOOL_TRY(Call::create(context));
    finding.has_run = true;
    calls_.add(call.get());
    const Result<> done = check(call.invoke<>(function));
    calls_.remove(call.get());
    return done;
  }

  const Program& program_;
  const ContextOptions& options_;
  const std::vector<Module>& modules_;
  Calls calls_;
};

}  // namespace

Findings run_tests(const Program& program, const ContextOptions& options, const std::vector<Module>& modules,
                   std::span<const Test> tests, size_t jobs, Listener& listener) {
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
