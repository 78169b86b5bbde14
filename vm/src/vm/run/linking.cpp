// Contexts: linking of dependencies and imports, __init and __deinit.
#include <algorithm>
#include <new>
#include <optional>
#include <ranges>

#include "text/suggest.h"
#include "vm/compile/loaded_module.h"
#include "vm/object/value.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"
#include "vm/verify/verifier.h"

namespace halyard::vm {

const ObjectType Context::kType = object_type<Context>("vm.context");

namespace {

using Instances = std::span<const std::unique_ptr<ModuleInstance>>;

constexpr uint64_t kMaxSignatureBytes = 16384;

// The module with this name: the first one added, or the last.
ModuleInstance* find_first(Instances instances, std::string_view name) {
  const auto found =
      std::ranges::find_if(instances, [&](const auto& each) { return each->module->name() == name; });
  return found == instances.end() ? nullptr : found->get();
}
ModuleInstance* find_last(Instances instances, std::string_view name) {
  for (const auto& instance : instances | std::views::reverse) {
    if (instance->module->name() == name) return instance.get();
  }
  return nullptr;
}

std::string suggest_module(Instances instances, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& instance : instances) names.push_back(instance->module->name());
  return did_you_mean(name, names);
}

Result<> check_dependencies(Instances instances, const Module& module) {
  for (const Dependency& dependency : module.dependencies()) {
    const ModuleInstance* found = find_first(instances, dependency.name);
    if (!found) {
      if (dependency.optional) continue;
      return fail(Code::NOT_FOUND,
                  "module '{}', which this module depends on, is not loaded; load it first{}",
                  dependency.name, suggest_module(instances, dependency.name));
    }
    if (dependency.required && found->module->version() < dependency.minimum_version) {
      return fail(Code::NOT_FOUND, "module '{}' has version {}; expected {} or later; load a newer one",
                  dependency.name, found->module->version(), dependency.minimum_version);
    }
  }
  return {};
}

// The size of arguments or results when they are passed in a struct. A span counts only its count field.
uint64_t signature_bytes(std::span<const ConventionItem> items) {
  uint64_t bytes = 0;
  for (const ConventionItem& item : items) {
    const uint64_t alignment = item.type == 'i' || item.type == 'f' || item.type == 'C' ? 4 : 8;
    const uint64_t size = item.type == 'r' ? 16 : alignment;
    bytes = (bytes + alignment - 1) / alignment * alignment + size;
  }
  return bytes;
}

struct Link {
  Target target;
  std::optional<Convention> convention;  // of the provider; null: not resolved
};

Result<Link> link_import(Instances instances, const Import& import) {
  const size_t dot = import.name.find('.');
  const std::string_view module_name = import.name.substr(0, dot);
  const std::string_view name =
      dot == std::string_view::npos ? std::string_view() : import.name.substr(dot + 1);
  if (module_name.empty() || name.empty()) {
    return fail(Code::INVALID_ARGUMENT, "import '{}' is not a name of the form module.function", import.name);
  }
  ModuleInstance* provider = find_last(instances, module_name);
  if (!provider) {
    if (import.optional) return Link();
    return fail(Code::NOT_FOUND, "module '{}', which import '{}' needs, is not loaded; load it first{}",
                module_name, import.name, suggest_module(instances, module_name));
  }
  Result<const Export*> resolved = provider->module->resolve(name, import.convention);
  if (!resolved) {
    if (import.optional && resolved.error().code() == Code::NOT_FOUND) return Link();
    return std::unexpected(std::move(resolved).error());
  }
  const Export& function = **resolved;
  Convention convention = HALYARD_TRY(Convention::parse(function.convention));
  if (std::max(signature_bytes(convention.arguments), signature_bytes(convention.results)) >
      kMaxSignatureBytes) {
    return fail(Code::INVALID_ARGUMENT, "import '{}': arguments or results take more than {} bytes",
                import.name, kMaxSignatureBytes);
  }
  Link link;
  link.target = {.instance = provider, .function = function.function};
  if (provider->module->kind() == ModuleKind::native) {
    const auto& native = static_cast<const NativeModule&>(*provider->module);
    link.target.native = native.native_export(function.function).function;
    link.target.native_data = native.native_export(function.function).data;
    link.target.is_program = native.program() != nullptr;
  }
  link.convention = std::move(convention);
  return link;
}

Result<> link_imports(Instances instances, ModuleInstance& instance) {
  std::vector<std::optional<Convention>> conventions;  // of imports that state none
  for (const Import& import : instance.module->imports()) {
    Link link = HALYARD_TRY(link_import(instances, import));
    instance.imports.push_back(link.target);
    if (!instance.bytecode)
      instance.import_conventions.push_back(link.convention ? *std::move(link.convention) : Convention());
    else
      conventions.push_back(import.convention.empty() ? std::move(link.convention) : std::nullopt);
  }
  if (!instance.bytecode) return {};
  std::vector<const Convention*> unstated;
  for (const auto& convention : conventions) unstated.push_back(convention ? &*convention : nullptr);
  if (std::ranges::all_of(unstated, [](const Convention* each) { return each == nullptr; })) return {};
  return check_import_calls(*instance.bytecode, unstated);
}

Result<> create_globals(ModuleInstance& instance, std::string_view module, uint64_t bytes, uint64_t refs,
                        const Limits& limits) {
  if (bytes > limits.buffer_bytes || refs > limits.list_elements) {
    return fail(Code::RESOURCE_EXHAUSTED,
                "module '{}' needs {} bytes and {} refs of globals; the limits are {} and {}", module, bytes,
                refs, limits.buffer_bytes, limits.list_elements);
  }
  instance.charge = HALYARD_TRY(Charge::take(
      limits.memory, block_bytes(bytes) + block_bytes(refs * sizeof(Object*)), "the globals of a module"));
  try {
    static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);
    instance.global_bytes = std::make_unique<uint8_t[]>(bytes);
    instance.global_refs.resize(refs);
  } catch (const std::bad_alloc&) {
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for the globals of module '{}'", module);
  }
  return {};
}

Result<std::unique_ptr<ModuleInstance>> instantiate(Ref<Module> module, const Limits& limits) {
  auto instance = std::make_unique<ModuleInstance>();
  if (module->kind() == ModuleKind::native) {
    const auto& native = static_cast<const NativeModule&>(*module);
    if (const NativeProgram* const program = native.program())
      HALYARD_TRY(
          create_globals(*instance, module->name(), program->global_bytes, program->global_refs, limits));
    instance->native_state = HALYARD_TRY(native.create_state());
  } else {
    if (module->type() != &LoadedModule::kType)
      return fail(Code::FAILED_PRECONDITION,
                  "module '{}' was opened for inspection; expected one that was loaded to run",
                  module->name());
    const auto& loaded = static_cast<const LoadedModule&>(*module);
    instance->bytecode = &loaded;
    instance->store = &loaded.store();
    HALYARD_TRY(
        create_globals(*instance, module->name(), loaded.global_bytes(), loaded.global_refs(), limits));
  }
  instance->module = std::move(module);
  return instance;
}

// Calls a () -> () function if the module exports it.
Result<> call_special(Context& context, ModuleInstance& instance, std::string_view name) {
  const Export* function = instance.module->find_export(name);
  if (!function) return {};
  const Callable callable = HALYARD_TRY(context.callable(&instance, *function));
  if (!callable.convention.arguments.empty() || !callable.convention.results.empty()) {
    return fail(Code::INVALID_ARGUMENT, "'{}.{}' has the signature '{}'; expected '0v_v'",
                instance.module->name(), name, function->convention);
  }
  return Invocation(Ref<Context>::share(&context)).call(callable, {}, {});
}

}  // namespace

Context::Context(Limits limits, Ref<Tracer> tracer, Ref<Loop> loop)
    : limits_(std::move(limits)), tracer_(std::move(tracer)), loop_(std::move(loop)) {
  if (!loop_ && limits_.time.count() != 0) loop_ = Loop::create();
}

Ref<Context> Context::create(Limits limits, Ref<Tracer> tracer, Ref<Loop> loop) {
  return make<Context>(std::move(limits), std::move(tracer), std::move(loop));
}

Context::~Context() {
  // __deinit runs in an invocation, which holds a reference to its context. This extra reference keeps the
  // count from reaching zero again when the invocation ends.
  retain();
  for (const auto& instance : modules_ | std::views::reverse)
    (void)call_special(*this, *instance, "__deinit");
  while (!modules_.empty()) modules_.pop_back();
}

Result<> Context::add(Ref<Module> module) {
  if (!module) return fail(Code::INVALID_ARGUMENT, "no module given");
  std::unique_ptr<ModuleInstance> instance = HALYARD_TRY(instantiate(std::move(module), limits_));
  HALYARD_TRY(check_dependencies(modules_, *instance->module));
  HALYARD_TRY(with_note(link_imports(modules_, *instance),
                        fmt::format("linking the imports of module '{}'", instance->module->name())));
  ModuleInstance& added = *instance;
  modules_.push_back(std::move(instance));
  Result<> initialized = with_note(call_special(*this, added, "__init"),
                                   fmt::format("initializing module '{}'", added.module->name()));
  if (!initialized) {
    (void)call_special(*this, added, "__deinit");
    modules_.pop_back();
  }
  return initialized;
}

Result<Callable> Context::find(std::string_view module, std::string_view function) const {
  ModuleInstance* instance = find_last(modules_, module);
  if (!instance) {
    return fail(Code::NOT_FOUND, "no module '{}' in the context{}", module, suggest_module(modules_, module));
  }
  const Export* found = instance->module->find_export(function);
  if (!found) return instance->module->no_export(function);
  return callable(instance, *found);
}

Result<Callable> Context::callable(ModuleInstance* instance, const Export& function) const {
  Convention convention = HALYARD_TRY(Convention::parse(function.convention));
  std::vector<ValueType> arguments;
  for (const ConventionItem& item : convention.arguments) arguments.push_back(value_type(item.type));
  std::string results = convention.result_types();
  return Callable{.instance = instance,
                  .function = &function,
                  .convention = std::move(convention),
                  .arguments = std::move(arguments),
                  .results = std::move(results)};
}

std::unexpected<Status> Context::is_running(const Export& running, const Export& refused) {
  return fail(
      Code::FAILED_PRECONDITION,
      "'{}' cannot be called while the context runs '{}', on another thread or in an outer call of this one; "
      "wait for its end, or create a context for each thread",
      refused.name, running.name);
}

}  // namespace halyard::vm
