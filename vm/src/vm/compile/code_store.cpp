// Verifies, decodes and compiles functions.
#include "vm/compile/code_store.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/work_scope.h"
#include "vm/compile/compiler.h"
#include "vm/decode/code.h"
#include "vm/module/bytecode_module.h"
#include "vm/verify/verifier.h"

namespace halyard::vm {

CodeStore::CodeStore(BytecodeModule& module, const LoadOptions& options)
    : module_(module),
      count_(module.functions().size()),
      fuse_(options.fuse),
      fast_math_(options.fast_math),
      call_writes_(options.call_writes),
      compiler_(options.compiler),
      queue_(options.queue),
      sampling_(options.queue ? options.queue->sampling() : Sampling()),
      cache_(options.cache),
      tracer_(options.tracer),
      heat_(options.queue ? std::make_unique<Heat[]>(count_) : nullptr),
      code_(std::make_unique<std::atomic<const FunctionCode*>[]>(count_)) {}

CodeStore::~CodeStore() {
  for (size_t i = 0; i < count_; ++i) delete code_[i].load(std::memory_order_relaxed);
}

Result<const FunctionCode*> CodeStore::make_code(uint32_t function) {
  if (function >= count_)
    return fail(Code::INVALID_ARGUMENT, "module '{}' has no function {}; it has {}", module_.name(), function,
                count_);
  std::atomic<const FunctionCode*>& slot = code_[function];
  const std::lock_guard lock(mutex_);
  if (const FunctionCode* ready = slot.load(std::memory_order_relaxed)) return ready;
  HALYARD_TRY(verify_function(module_, function));
  std::unique_ptr<const FunctionCode> decoded = HALYARD_TRY(decode(function));
  slot.store(decoded.get(), std::memory_order_release);
  return decoded.release();
}

Result<> CodeStore::verify_all(const uint32_t* stop) {
  for (uint32_t i = 0; i < count_; ++i) {
    if (const Code code = stop_code(stop); code != Code::OK)
      return std::unexpected(stopped_work(code).note("while functions were verified and compiled"));
    HALYARD_TRY(code(i));
  }
  return {};
}

// Functions that the compiler does not support are decoded with fusing, so that they run as fast as without a
// compiler.
Result<std::unique_ptr<const FunctionCode>> CodeStore::decode(uint32_t function) {
  if (compiler_) {
    std::unique_ptr<FunctionCode> code = HALYARD_TRY(decode_function(
        module_, function, {.fuse = false, .entries = Entries::calls, .call_writes = call_writes_}));
    if (Result<CompiledFunction> compiled = run_compiler(*compiler_, *code)) {
      code->compiled = *std::move(compiled);
      return code;
    }
  }
  std::unique_ptr<FunctionCode> code =
      HALYARD_TRY(decode_function(module_, function, {.fuse = fuse_, .tiers = heat_ != nullptr}));
  if (heat_) code->heat = &heat_[function];
  return code;
}

void CodeStore::request(uint32_t function, bool for_loops) noexcept {
  if (const std::shared_ptr<CompileQueue> queue = queue_.lock())
    queue->add(Ref<Object>::share(&module_), *this, {function, for_loops});
}

void CodeStore::request_early(uint32_t function, uint64_t priority) noexcept {
  const std::shared_ptr<CompileQueue> queue = queue_.lock();
  if (queue && !heat_[function].asked_for.exchange(true, std::memory_order_relaxed))
    queue->add(Ref<Object>::share(&module_), *this, {function, false, priority});
}

bool CodeStore::take_from_cache(uint32_t function) noexcept try {
  if (cache_.empty() || !heat_ || heat_[function].asked_for.exchange(true, std::memory_order_relaxed))
    return false;
  if (compile(function, /*for_loops=*/false, /*cached_only=*/true)) return true;
  heat_[function].asked_for.store(false, std::memory_order_relaxed);
  return false;
} catch (const std::exception&) {
  return false;  // out of memory: the function stays interpreted
}

void CodeStore::finish_request(uint32_t function, const uint32_t* stop) noexcept {
  if (const std::shared_ptr<CompileQueue> queue = queue_.lock()) queue->finish(*this, function, stop);
}

void CodeStore::compile(uint32_t function, bool for_loops) noexcept try {
  compile(function, for_loops, /*cached_only=*/false);
} catch (const std::exception&) {
  return;  // out of memory: the function stays interpreted
}

bool CodeStore::compile(uint32_t function, bool for_loops, bool cached_only) {
  Result<std::unique_ptr<FunctionCode>> decoded =
      decode_function(module_, function,
                      {.fuse = false,
                       .entries = for_loops ? Entries::loops : Entries::calls,
                       .tiers = true,
                       .call_writes = call_writes_});
  // Without either, entering and leaving compiled code around each call would cost more than it saves.
  if (!decoded) return false;
  if (!(*decoded)->has_compiled_loop && !calls_itself(**decoded)) {
    refuse(function, "none of its loops can be compiled as a whole");
    return false;
  }
  const Result<const Compiler*> compiler = Compiler::find();
  if (!compiler) {
    refuse(function, compiler.error().message());
    return false;
  }
  Result<CompiledFunction> compiled = run_compiler(**compiler, **decoded, cached_only);
  if (!compiled) return false;
  (*decoded)->compiled = *std::move(compiled);
  const std::lock_guard lock(mutex_);
  const FunctionCode& code = **decoded;
  other_code_.reserve(other_code_.size() + 1);
  if (for_loops) {
    other_code_.push_back(*std::move(decoded));
    heat_[function].for_loops.store(&code, std::memory_order_release);
  } else {
    other_code_.emplace_back(code_[function].load(std::memory_order_relaxed));
    code_[function].store(decoded->release(), std::memory_order_release);
    heat_[function].for_calls.store(&code, std::memory_order_release);
  }
  return true;
}

void CodeStore::refuse(uint32_t function, std::string_view reason) {
  const std::lock_guard lock(refusals_mutex_);
  refusals_.try_emplace(function, reason);
}

CodeStore::Form CodeStore::form(uint32_t function) const {
  const FunctionCode* const code = code_[function].load(std::memory_order_acquire);
  if (code && code->compiled) return {.is_compiled = true};
  {
    const std::lock_guard lock(refusals_mutex_);
    if (const auto refusal = refusals_.find(function); refusal != refusals_.end())
      return {.reason = refusal->second};
  }
  if (!heat_) return {.reason = "compilation is off"};
  return {.reason = heat_[function].asked_for.load(std::memory_order_relaxed)
                        ? "its compiled code was not ready"
                        : "it did not run long enough to be compiled"};
}

Result<CompiledFunction> CodeStore::run_compiler(const Compiler& compiler, const FunctionCode& code,
                                                 bool cached_only) {
  std::string title;
  if (tracer_) title = fmt::format("compile {}.{}", module_.name(), module_.function_name(code.function));
  const TraceScope scope(tracer_.get(), TraceCategory::phase, title);
  Result<CompiledFunction> compiled =
      compiler.compile(code, {.cache = cache_, .fast_math = fast_math_, .cached_only = cached_only});
  if (!compiled && !cached_only) refuse(code.function, compiled.error().message());
  return compiled;
}

}  // namespace halyard::vm
