// Sets up a run, step by step.
#include "bench.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "bench_flags.h"
#include "common/drivers.h"
#include "common/ranks.h"
#include "common/standard_streams.h"
#include "samples.h"

namespace halyard::tools {

Result<ModuleSource> ModuleSource::open(const Flags& flags, const Instance& instance,
                                        const std::string& path) {
  ModuleSource source;
  source.path_ = path;
  if (path != kStandard) {
    Module module = TOOL_TRY(load_module(flags, instance, path));
    if (TOOL_TRY(module.info()).bytecode_version == 0) {
      source.native_ = std::move(module);
      source.native_instance_ = instance.get();
      return source;
    }
  }
  const bool is_text = path.ends_with(".vmasm");
  const bool is_mapped = path != kStandard && !is_text && flags[flag::module_mode] == ModuleMode::mmap;
  if (is_mapped) return source;
  source.contents_.emplace(TOOL_TRY(FileContents::open(path)));
  if (!is_text) return source;
  source.assembled_ = TOOL_TRY(assemble(source.contents_->text(), path));
  return source;
}

Result<Module> ModuleSource::load(const Instance& instance, uint32_t options) const {
  if (native_ && instance.get() == native_instance_) return native_;
  if (!assembled_.empty())
    return check(Module::load(instance, std::span(assembled_.data(), assembled_.size()), options));
  if (contents_) return check(Module::load(instance, std::as_bytes(contents_->bytes()), options));
  return check(Module::load(instance, path_, options));
}

Result<std::vector<Module>> Bench::load_again() const {
  std::vector<Module> modules;
  for (const ModuleSource& source : sources) modules.push_back(TOOL_TRY(source.load(program.instance, 0)));
  return modules;
}

Result<Context> Bench::make_context(const std::vector<Module>& modules) const {
  return create_context(program.instance, modules, context_options);
}

Result<std::unique_ptr<Caller>> Bench::make_caller(const Context& context, const Measured& function) {
  return Caller::make(context, function.target, function.arguments, program.device(), stop);
}

std::string Bench::note(const Failure& failure) {
  if (stop.asked_for()) return kStopped;
  const std::lock_guard lock(failures_mutex);
  if (std::ranges::find(failures, failure.text, &Failure::text) == failures.end())
    failures.push_back(failure);
  return failure.line();
}

namespace {

// Checks that the number is between 1 and `most`.
Result<uint64_t> count_of(const Flags& flags, const Number& flag, uint64_t most) {
  const uint64_t count = TOOL_TRY(flags[flag]);
  if (count >= 1 && count <= most) return count;
  return wrong_value(flag, std::to_string(count),
                     fmt::format("a number from 1 to {}, such as {}", most, flag.example_value()));
}

// While this object exists, a signal finishes the trace and ends the process.
class Unstoppable {
 public:
  explicit Unstoppable(Bench& bench) : bench_(bench) {
    bench.stop.set_also([&bench] {
      static_cast<void>(bench.program.trace.finish());
      print_error("vm-bench: CANCELLED; stopped by {} before anything was measured\n",
                  bench.stop.interrupt.cause());
      std::_Exit(bench.stop.interrupt.exit_code());
    });
  }
  Unstoppable(const Unstoppable&) = delete;
  ~Unstoppable() { bench_.stop.set_also({}); }

 private:
  Bench& bench_;
};

}  // namespace

Result<> set_up(const Flags& flags, Bench& bench) {
  bench.flags = &flags;
  constexpr uint64_t kMaxThreads = 1024;
  constexpr uint64_t kMaxInFlight = 4096;
  constexpr uint64_t kMaxBatch = std::numeric_limits<int32_t>::max();  // some functions take it as an i32
  const Number& batch = flags.has(flag::batch) ? flag::batch : flag::batch_size;
  bench.batch = TOOL_TRY(count_of(flags, batch, kMaxBatch));
  bench.in_flight = TOOL_TRY(count_of(flags, flag::batch_concurrency, kMaxInFlight));
  bench.threads = static_cast<int>(TOOL_TRY(count_of(flags, flag::threads, kMaxThreads)));
  bench.clock_cost = clock_cost();

  Program& program = bench.program;
  TOOL_TRY(make_instance(flags, program));
  const Unstoppable loading(bench);
  const uint32_t options = TOOL_TRY(module_options(flags));
  for (const std::string& path : TOOL_TRY(module_paths(flags))) {
    bench.sources.push_back(TOOL_TRY(ModuleSource::open(flags, program.instance, path)));
    program.modules.push_back(TOOL_TRY(bench.sources.back().load(program.instance, options)));
  }
  TOOL_TRY(open_devices(flags, program));
  if (TOOL_TRY(rank_of(flags)).count > 1) {
    TOOL_TRY(check_flags_for_ranks(flags));
    bench.agreement = TOOL_TRY(Agreement::make(flags, program));
    bench.clock_cost = TOOL_TRY(bench.slowest(bench.clock_cost));
  }
  bench.context_options = TOOL_TRY(context_options(flags, program));
  TOOL_TRY(bench.make_context(program.modules));  // reports a failure here instead of in a row

  for (Target& target : TOOL_TRY(chosen_targets(flags, program.modules.back()))) {
    Arguments arguments = TOOL_TRY(arguments_of(flags, target, program.device(), bench.batch));
    bench.functions.push_back({std::move(target), std::move(arguments)});
  }
  return {};
}

}  // namespace halyard::tools
