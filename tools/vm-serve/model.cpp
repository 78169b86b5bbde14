// Loads models, and converts signatures.
#include "model.h"

#include <algorithm>

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
    return fail(HALYARD_INVALID_ARGUMENT,
                "{} {} of function '{}' is {}; expected tensors and numbers: compile with declarations "
                "(iree.abi.declaration), which iree-compile writes, or serve another function",
                role, index, function,
                value.type.size > 0 ? fmt::format("'{}'", view(value.type)) : "not declared as a tensor");
  }
  spec.type = datatype_of(spec.element_type);
  if (!spec.type) {
    return fail(HALYARD_INVALID_ARGUMENT,
                "{} '{}' of function '{}' has elements of type {}, which the protocol does not have", role,
                spec.name, function, TOOL_TRY(text_of(static_cast<ElementType>(spec.element_type))));
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

std::string why_no_batches(const ModelSpec& model) {
  if (model.inputs.empty()) return "the function has no inputs";
  if (model.outputs.empty()) return "the function has no outputs";
  for (const auto& [role, tensors] :
       {std::pair("input", &model.inputs), std::pair("output", &model.outputs)}) {
    for (const TensorSpec& tensor : *tensors) {
      if (tensor.is_number)
        return fmt::format("{} '{}' is a number, which all requests of a call would share", role,
                           tensor.name);
      if (tensor.any_shape) return fmt::format("{} '{}' has no declared rank", role, tensor.name);
      if (tensor.shape.empty() || tensor.shape.front() != kAnySize)
        return fmt::format("{} '{}' has the shape {}", role, tensor.name, shape_text(tensor.shape));
    }
  }
  return "";
}

Result<std::shared_ptr<Model>> Model::load(const Runtime& runtime, const ModelSource& source) {
  std::shared_ptr<Model> model(new Model);
  model->source_ = source;
  model->spec_.name = source.name;
  model->spec_.version = source.version;
  model->metrics_ = runtime.metrics.of_model(source.name, source.version);
  model->module_ = TOOL_TRY(load_module(runtime.flags, runtime.program.instance, source.file));
  TOOL_TRY(model->read_signature());
  model->has_batches_ = source.batch > 1 && why_no_batches(model->spec_).empty();
  return model;
}

Result<> Model::check_batches() const {
  if (!source_.needs_batches || source_.batch <= 1) return {};
  const std::string why = why_no_batches(spec_);
  if (why.empty()) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "model '{}' cannot have batches of {} rows: {}; {}", source_.name,
              source_.batch, why, kExpectedForBatches);
}

Result<> Model::read_signature() {
  const halyard_module_info_t info = TOOL_TRY(module_.info());
  std::string callable;
  size_t found = 0;
  for (uint32_t i = 0; i < info.function_count; ++i) {
    const std::string_view name = view(TOOL_TRY(module_.function(i)).name);
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
        "module '{}' exports several functions: {}; select one with --model={}:NAME=FILE, or \"function\" in "
        "model.json",
        view(info.name), callable, source_.name);

  const Signature signature = TOOL_TRY(module_.signature(function_index_));
  const halyard_function_description_t function = TOOL_TRY(signature.describe());
  is_async_ = function.is_async != 0;
  const size_t fences = is_async_ ? 2 : 0;
  for (size_t i = 0; i + fences < function.argument_count; ++i)
    spec_.inputs.push_back(TOOL_TRY(spec_of(TOOL_TRY(signature.argument(i)), "input", i, function_)));
  for (size_t i = 0; i < function.result_count; ++i)
    spec_.outputs.push_back(TOOL_TRY(spec_of(TOOL_TRY(signature.result(i)), "output", i, function_)));
  make_unique(spec_.inputs, "input");
  make_unique(spec_.outputs, "output");
  return {};
}

Result<> Model::prepare(const Runtime& runtime, std::shared_ptr<Devices> devices) {
  const halyard_module_info_t info = TOOL_TRY(module_.info());
  needs_devices_ = info.needs_devices;
  devices_ = std::move(devices);
  if (needs_devices_ && devices_->list().empty())
    return fail(HALYARD_FAILED_PRECONDITION,
                "module '{}' needs a device, but the server has none; start it with --device=local-task",
                view(info.name));
  options_ =
      TOOL_TRY(context_options(runtime.flags, devices_->program(), source_.parameters, runtime.longest_call));
  options_.flags |= HALYARD_CONTEXT_SEPARATE_CALLS;  // calls come from different clients
  return {};
}

Result<std::unique_ptr<Worker>> Model::make_worker(const Runtime& runtime) const {
  Context context = TOOL_TRY(create_context(runtime.program.instance, {module_}, options_));
  Function function = TOOL_TRY(context.find(function_));
  AsyncCall call = TOOL_TRY(AsyncCall::create(runtime.io.get_executor(), context));
  auto worker = std::make_unique<Worker>(Worker{.count = ContextCount(metrics_),
                                                .context = std::move(context),
                                                .function = std::move(function),
                                                .call = std::move(call)});
  worker->results.resize(spec_.outputs.size());
  return worker;
}

}  // namespace halyard::tools::serve
