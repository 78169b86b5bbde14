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

Result<ModuleSource> ModuleSource::open(halyard_instance_t instance, const std::string& path,
                                        uint32_t options) {
  ModuleSource source;
  source.path_ = path;
  if (path != kStandard) {
    Handle<halyard_module_t> module;
    TOOL_TRY(check(halyard_module_load_file(instance, path.c_str(), options, module.out())));
    if (TOOL_TRY(info_of(module.get())).bytecode_version == 0) {
      source.native_ = std::move(module);
      source.native_instance_ = instance;
      return source;
    }
  }
  const bool is_text = path.ends_with(".vmasm");
  const bool is_mapped = path != kStandard && !is_text && (options & HALYARD_MODULE_PRELOAD) == 0;
  if (is_mapped) return source;
  source.contents_.emplace(TOOL_TRY(FileContents::open(path)));
  if (!is_text) return source;
  const std::string_view text = source.contents_->text();
  halyard_assemble_options_t assemble = {};
  assemble.struct_size = sizeof assemble;
  assemble.file = path.c_str();
  void* bytes = nullptr;
  TOOL_TRY(check(halyard_assemble(text.data(), text.size(), &assemble, &bytes, &source.assembled_size_)));
  source.assembled_.reset(bytes);
  return source;
}

Result<Handle<halyard_module_t>> ModuleSource::load(halyard_instance_t instance, uint32_t options) const {
  if (native_ && instance == native_instance_) return native_;
  Handle<halyard_module_t> module;
  if (assembled_) {
    TOOL_TRY(check(
        halyard_module_load_memory(instance, assembled_.get(), assembled_size_, options, module.out())));
  } else if (contents_) {
    TOOL_TRY(check(halyard_module_load_memory(instance, contents_->bytes().data(), contents_->bytes().size(),
                                              options, module.out())));
  } else {
    TOOL_TRY(check(halyard_module_load_file(instance, path_.c_str(), options, module.out())));
  }
  return module;
}

Result<std::vector<Handle<halyard_module_t>>> Bench::load_again() const {
  std::vector<Handle<halyard_module_t>> modules;
  for (const ModuleSource& source : sources)
    modules.push_back(TOOL_TRY(source.load(program.instance.get(), 0)));
  return modules;
}

Result<Handle<halyard_context_t>> Bench::make_context(
    const std::vector<Handle<halyard_module_t>>& modules) const {
  Handle<halyard_context_t> context;
  TOOL_TRY(context_options->create(program.instance.get(), modules, context.out()));
  return context;
}

Result<std::unique_ptr<Caller>> Bench::make_caller(halyard_context_t context, const Measured& function) {
  return Caller::make(context, function.target, function.arguments, device(), stop);
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
      static_cast<void>(check(halyard_trace_finish(bench.program.trace.get())));
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
    bench.sources.push_back(TOOL_TRY(ModuleSource::open(program.instance.get(), path, options)));
    program.modules.push_back(TOOL_TRY(bench.sources.back().load(program.instance.get(), options)));
  }
  TOOL_TRY(open_devices(flags, program));
  if (TOOL_TRY(rank_of(flags)).count > 1) {
    TOOL_TRY(check_flags_for_ranks(flags));
    bench.agreement = TOOL_TRY(Agreement::make(flags, program));
    bench.clock_cost = TOOL_TRY(bench.slowest(bench.clock_cost));
  }
  bench.context_options = TOOL_TRY(ContextOptions::of(flags, program));
  TOOL_TRY(bench.make_context(program.modules));  // reports a failure here instead of in a row

  const halyard_module_t main_module = program.modules.back().get();
  for (Target& target : TOOL_TRY(chosen_targets(flags, main_module))) {
    Arguments arguments = TOOL_TRY(arguments_of(flags, target, bench.device(), bench.batch));
    bench.functions.push_back({std::move(target), std::move(arguments)});
  }
  return {};
}

}  // namespace halyard::tools
