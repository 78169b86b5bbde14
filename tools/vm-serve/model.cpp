// Loads models, and converts signatures.
#include "model.h"

#include <algorithm>

#include "halyard/signature.h"

namespace halyard::tools::serve {

namespace {

// Functions that can be called from outside: not "__init", not "main$async".
bool is_callable(std::string_view name) {
  return !name.starts_with("__") && name.find('$') == std::string_view::npos;
}

uint32_t element_type_of_number(uint32_t value_kind) {
  switch (value_kind) {
    case HALYARD_VALUE_I32:
      return HALYARD_ELEMENT_I32;
    case HALYARD_VALUE_I64:
      return HALYARD_ELEMENT_I64;
    case HALYARD_VALUE_F32:
      return HALYARD_ELEMENT_F32;
    case HALYARD_VALUE_F64:
      return HALYARD_ELEMENT_F64;
    default:
      return HALYARD_ELEMENT_NONE;
  }
}

Result<TensorSpec> spec_of(const halyard_value_description_t& value, std::string_view role, size_t index,
                           std::string_view function) {
  TensorSpec spec;
  spec.name = value.name.size > 0 ? std::string(view(value.name)) : fmt::format("{}{}", role, index);
  if (value.kind == HALYARD_KIND_SCALAR) {
    spec.is_number = true;
    spec.shape = {1};
    // Numbers are passed with the types of the calling convention: a declared i8 is passed as an i32.
    spec.element_type = element_type_of_number(value.value_kind);
  } else if (value.kind == HALYARD_KIND_TENSOR) {
    spec.element_type = value.element_type;
    spec.any_shape = value.rank == HALYARD_RANK_UNKNOWN;
    if (spec.any_shape) {
      spec.shape = {kAnySize};
    } else {
      spec.shape.assign(value.shape, value.shape + value.rank);
    }
  } else {
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "{} {} of function '{}' is {}; expected tensors and numbers: compile with iree-compile's "
        "declarations "
        "(iree.abi.declaration), or serve another function",
        role, index, function,
        value.type.size > 0 ? fmt::format("'{}'", view(value.type)) : "no tensor that the module declares");
  }
  spec.type = datatype_of(spec.element_type);
  if (!spec.type) {
    const Block<char> text(halyard_element_type_text(spec.element_type));
    return fail(HALYARD_INVALID_ARGUMENT,
                "{} '{}' of function '{}' has elements of type {}, which the protocol has not", role,
                spec.name, function, text ? text.get() : "?");
  }
  return spec;
}

// The protocol identifies tensors by name, but declared names may repeat.
void make_unique(std::vector<TensorSpec>& tensors, std::string_view role) {
  const auto is_repeated = [&](const TensorSpec& tensor) {
    return std::ranges::count(tensors, tensor.name, &TensorSpec::name) > 1;
  };
  if (std::ranges::none_of(tensors, is_repeated)) return;
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].name = fmt::format("{}{}", role, i);
}

}  // namespace

Result<std::shared_ptr<Model>> Model::load(const Runtime& runtime, const ModelSource& source) {
  std::shared_ptr<Model> model(new Model);
  model->source_ = source;
  model->spec_.name = source.name;
  model->spec_.version = source.version;
  model->metrics_ = runtime.metrics.of_model(source.name, source.version);
  TOOL_TRY(check(halyard_module_load_file(runtime.program.instance.get(), source.file.c_str(),
                                          TOOL_TRY(module_options(runtime.flags)), model->module_.out())));
  TOOL_TRY(model->read_signature());
  const auto is_dynamic = [](const TensorSpec& tensor) {
    return !tensor.is_number && !tensor.any_shape && !tensor.shape.empty() &&
           tensor.shape.front() == kAnySize;
  };
  model->has_batches_ = source.batch > 1 && !model->spec_.inputs.empty() && !model->spec_.outputs.empty() &&
                        std::ranges::all_of(model->spec_.inputs, is_dynamic) &&
                        std::ranges::all_of(model->spec_.outputs, is_dynamic);
  return model;
}

Result<> Model::read_signature() {
  const halyard_module_info_t info = TOOL_TRY(info_of(module_.get()));
  std::string callable;
  size_t found = 0;
  for (uint32_t i = 0; i < info.function_count; ++i) {
    halyard_function_description_t function = {};
    function.struct_size = sizeof function;
    TOOL_TRY(check(halyard_module_function(module_.get(), i, &function)));
    const std::string_view name = view(function.name);
    const bool is_chosen = source_.function.empty() ? is_callable(name) : name == source_.function;
    if (is_callable(name)) callable += (callable.empty() ? "" : ", ") + std::string(name);
    if (!is_chosen) continue;
    ++found;
    function_ = name;
    function_index_ = i;
  }
  if (found == 0 && !source_.function.empty())
    return fail(HALYARD_NOT_FOUND, "module '{}' has no function '{}'; it has {}", view(info.name),
                source_.function, callable.empty() ? "none that can be called" : callable);
  if (found == 0)
    return fail(HALYARD_INVALID_ARGUMENT, "module '{}' exports no function that can be called",
                view(info.name));
  if (found > 1)
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "module '{}' exports several functions: {}; choose one: --model={}:NAME=FILE, or \"function\" in "
        "model.json",
        view(info.name), callable, source_.name);

  Handle<halyard_signature_t> signature;
  TOOL_TRY(check(halyard_module_signature(module_.get(), function_index_, signature.out())));
  halyard_function_description_t function = {};
  function.struct_size = sizeof function;
  TOOL_TRY(check(halyard_signature_describe(signature.get(), &function)));
  is_async_ = function.is_async != 0;
  const size_t fences = is_async_ ? 2 : 0;
  for (size_t i = 0; i + fences < function.argument_count; ++i) {
    halyard_value_description_t value = {};
    value.struct_size = sizeof value;
    TOOL_TRY(check(halyard_signature_argument(signature.get(), i, &value)));
    spec_.inputs.push_back(TOOL_TRY(spec_of(value, "input", i, function_)));
  }
  for (size_t i = 0; i < function.result_count; ++i) {
    halyard_value_description_t value = {};
    value.struct_size = sizeof value;
    TOOL_TRY(check(halyard_signature_result(signature.get(), i, &value)));
    spec_.outputs.push_back(TOOL_TRY(spec_of(value, "output", i, function_)));
  }
  make_unique(spec_.inputs, "input");
  make_unique(spec_.outputs, "output");
  return {};
}

Result<> Model::prepare(const Runtime& runtime, std::shared_ptr<Devices> devices) {
  const halyard_module_info_t info = TOOL_TRY(info_of(module_.get()));
  needs_devices_ = info.needs_devices;
  devices_ = std::move(devices);
  if (needs_devices_ && devices_->list().empty())
    return fail(
        HALYARD_FAILED_PRECONDITION,
        "module '{}' needs a device, and the server has opened none; start it with --device=local-task",
        view(info.name));
  auto options = TOOL_TRY(
      ContextOptions::of(runtime.flags, devices_->program(), source_.parameters, runtime.longest_call));
  options->separate_calls();  // calls come from different clients
  options_ = std::move(options);
  return {};
}

Result<std::unique_ptr<Worker>> Model::make_worker(const Runtime& runtime) const {
  Handle<halyard_context_t> context;
  Handle<halyard_function_t> function;
  TOOL_TRY(options_->create(runtime.program.instance.get(), {module_}, context.out()));
  TOOL_TRY(check(halyard_context_find(context.get(), nullptr, function_.c_str(), function.out())));
  halyard::Context owned(halyard::share, context.get());
  auto call = AsyncCall::create(runtime.io.get_executor(), owned);
  if (!call)
    return std::unexpected(
        Failure{halyard_status_code(call.error().status()), std::string(call.error().message())});
  auto worker = std::make_unique<Worker>(
      Worker{.context = std::move(owned),
             .function = halyard::Handle<halyard_function_t>(halyard::share, function.get()),
             .call = *std::move(call)});
  worker->results.resize(spec_.outputs.size());
  return worker;
}

}  // namespace halyard::tools::serve
