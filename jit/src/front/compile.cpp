// The cache key of a function is a digest of everything on which its code depends. The code generator is
// called only if there is no entry with that key.
#include "front/compile.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "front/cache.h"
#include "front/codegen_library.h"
#include "front/names.h"
#include "front/placed_code.h"
#include "front/plain_function.h"
#include "front/processor.h"

namespace halyard::jit {

namespace {

// The handle of compiled code.
struct Handle {
  std::unique_ptr<PlacedCode> code;
  std::unique_ptr<GdbName> name;
};

// Data of the process.
struct Process {
  std::mutex naming;
  std::atomic<uint64_t> functions = 0;
  std::atomic<uint64_t> cached = 0;
  std::atomic<uint64_t> refused = 0;
  std::atomic<uint64_t> nanoseconds = 0;
  std::atomic<uint64_t> object_bytes = 0;
};
Process& process() {
  static Process& process = *new Process;  // not destroyed at exit
  return process;
}

constexpr size_t kReasonBytes = 256;

Digest key_of(const PlainFunction& function) {
  Digester digester;
  digester.add(std::string_view(CodegenLibrary::get().build_id()));
  digester.add(std::string_view(processor_id()));
  function.add_to(digester);
  return digester.finish();
}

Result<std::string> generate(const PlainFunction& function) {
  const halyard_jit_codegen_t* const codegen = HALYARD_TRY(CodegenLibrary::get().open());
  std::string image;
  char reason[kReasonBytes] = {};
  const auto take = [](void* user, const char* bytes, size_t size) {
    static_cast<std::string*>(user)->assign(bytes, size);
  };
  if (codegen->generate(&function.get(), &image, take, reason, sizeof reason) == 0)
    return fail(Code::UNIMPLEMENTED, "{}", reason);
  return image;
}

Result<Handle*> make(const halyard_jit_function_t& function, const halyard_jit_host_t& host,
                     const char* cache_folder, halyard_jit_code_t& code) {
  const PlainFunction plain(function);
  if (const std::string refusal = plain.refusal(); !refusal.empty())
    return fail(Code::UNIMPLEMENTED, "{}", refusal);
  std::optional<Cache> cache;
  Digest key = {};
  std::optional<std::string> bytes;
  if (cache_folder && !CodegenLibrary::get().build_id().empty()) {
    cache.emplace(cache_folder);
    std::snprintf(code.cache_refusal, sizeof code.cache_refusal, "%s", cache->refusal().c_str());
    key = key_of(plain);
    bytes = cache->find(key);
  }
  code.cached = bytes.has_value();
  if (!bytes) {
    if (function.cached_only) return fail(Code::NOT_FOUND, "it is not in the cache");
    bytes = HALYARD_TRY(generate(plain));
    if (cache) cache->store(key, *bytes);
  }
  code.object_bytes = bytes->size();
  const Image image = HALYARD_TRY(Image::from_bytes(*bytes));
  auto handle = std::make_unique<Handle>();
  handle->code = HALYARD_TRY(PlacedCode::place(image, host));
  const void* const entry = handle->code->entry();
  {
    const std::lock_guard lock(process().naming);
    handle->name = announce(function.name, reinterpret_cast<uintptr_t>(entry), image.entry_size);
  }
  code.run = reinterpret_cast<halyard_jit_run_fn>(const_cast<void*>(entry));
  code.handle = handle.get();
  return handle.release();
}

}  // namespace

bool compile(const halyard_jit_function_t& function, const halyard_jit_host_t& host, const char* cache,
             halyard_jit_code_t& code, std::string& reason) {
  Process& process = jit::process();
  const auto begin = std::chrono::steady_clock::now();
  const Result<Handle*> made = make(function, host, cache, code);
  process.nanoseconds +=
      static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  if (made) {
    ++process.functions;
  } else {
    process.refused += made.error().code() != Code::NOT_FOUND;
    reason = made.error().message();
    return false;
  }
  process.cached += code.cached;
  process.object_bytes += code.object_bytes;
  return true;
}

void release(void* handle) {
  const std::unique_ptr<Handle> owned(static_cast<Handle*>(handle));
  if (!owned->name) return;
  const std::lock_guard lock(process().naming);
  owned->name.reset();
}

void get_stats(halyard_jit_stats_t& stats) {
  const Process& process = jit::process();
  stats.functions = process.functions;
  stats.cached = process.cached;
  stats.refused = process.refused;
  stats.nanoseconds = process.nanoseconds;
  stats.object_bytes = process.object_bytes;
}

bool explain(const halyard_jit_function_t& function, const halyard_jit_explanation_t& explanation,
             std::string& reason) {
  const PlainFunction plain(function);
  reason = plain.refusal();
  if (!reason.empty()) return false;
  const Result<const halyard_jit_codegen_t*> codegen = CodegenLibrary::get().open();
  if (!codegen) {
    reason = codegen.error().message();
    return false;
  }
  char why[kReasonBytes] = {};
  if ((*codegen)->explain(&plain.get(), &explanation, why, sizeof why)) return true;
  reason = why;
  return false;
}

}  // namespace halyard::jit
