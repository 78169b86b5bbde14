// A program side makes a new program for each run, so that no state of an earlier call is left.
#include "program_side.h"

#include <utility>

#include "common/convention.h"
#include "common/inputs.h"
#include "common/interrupt.h"
#include "common/program.h"
#include "recording_side.h"

namespace halyard::tools {

namespace {

// Reports a failure of the recorder through a callback of the library.
template <typename Take>
halyard::Result<void> reported(Take&& take) {
  try {
    const Result<> taken = take();
    if (taken) return {};
    return unexpected<Error>(Error(static_cast<StatusCode>(taken.error().code), taken.error().text));
  } catch (const std::exception& exception) {
    return unexpected<Error>(Error(StatusCode::RESOURCE_EXHAUSTED, exception.what()));
  }
}

class ProgramSide final : public RecordingSide {
 public:
  ProgramSide(const Flags& flags, std::string description)
      : RecordingSide(std::move(description)), flags_(flags) {}

 private:
  Result<> run(Recorder& recorder) const override {
    Program program;
    TOOL_TRY(make_instance(flags_, program));
    program.waiting = Waiting::on_terminal();
    TOOL_TRY(load_modules(flags_, program));
    const Module main_module = program.modules.back();
    const std::string name = TOOL_TRY(chosen_function(flags_, main_module));
    TOOL_TRY(open_devices(flags_, program));
    ContextOptions options = TOOL_TRY(context_options(flags_, program));
    options.tensor_pattern = "*";
    options.flags |= HALYARD_CONTEXT_TRACE_STEPS;
    options.flags |= HALYARD_CONTEXT_SEPARATE_CALLS;  // new memory is zero, so both runs begin with the same
    options.tensor = [&recorder](const halyard_traced_tensor_t& tensor) {
      return reported([&]() -> Result<> {
        recorder.take(tensor);
        return {};
      });
    };
    Result<> shown;
    options.trace = [&](std::string_view key, std::span<const halyard_object_t> views) {
      for (halyard_object_t each : views)
        if (shown) shown = recorder.take(Step::Kind::shown, key, 0, Tensor(share, each));
    };
    {
      const Phase phase(program, "make context");
      program.context = TOOL_TRY(create_context(program.instance, program.modules, std::move(options)));
    }
    const std::vector<Value> results = TOOL_TRY(call(program, main_module, name));
    TOOL_TRY(std::move(shown));
    for (size_t i = 0; i < results.size(); ++i) TOOL_TRY(take_result(recorder, program, i, results[i]));
    return {};
  }

  Result<std::vector<Value>> call(const Program& program, const Module& module,
                                  const std::string& name) const {
    const Function function = TOOL_TRY(program.context.find(name));
    const halyard_function_description_t description = TOOL_TRY(describe(module, name));
    const std::string types = TOOL_TRY(input_types(description));
    Arguments arguments = TOOL_TRY(given_inputs(flags_, types, program.device()));
    TOOL_TRY(check_inputs(description, types, arguments));
    Fence signal;
    if (description.is_async) signal = TOOL_TRY(add_fences(program.device(), arguments));
    const Phase phase(program, "call");
    const Call call = TOOL_TRY(Call::create(program.context));
    const Interrupt interrupt([&] { call.cancel(); });
    std::vector<Value> results(description.result_count);
    Result<> done = check(call.invoke_with(function, arguments.values(), results));
    if (done && signal) done = check(signal.wait());
    if (!done) return std::unexpected(interrupt.explain(std::move(done).error()));
    return results;
  }

  // A number is a tensor of one element. Other objects are not compared.
  Result<> take_result(Recorder& recorder, const Program& program, size_t place, const Value& value) const {
    const std::string name = fmt::format("result[{}]", place);
    if (value.kind() == HALYARD_VALUE_OBJECT) {
      if (value.is_null() || value.object().type() != std::string_view("hal.buffer_view")) return {};
      return recorder.take(Step::Kind::result, name, place, TOOL_TRY(value.as<Tensor>()));
    }
    const halyard_value_t& raw = value.raw();
    const auto make = [&]<typename T>(T number) {
      return Tensor::create<T>(program.device(), std::span<const int64_t>(), std::span<const T>(&number, 1));
    };
    switch (value.kind()) {
      case HALYARD_VALUE_F32:
        return recorder.take(Step::Kind::result, name, place, TOOL_TRY(make(raw.f32)));
      case HALYARD_VALUE_F64:
        return recorder.take(Step::Kind::result, name, place, TOOL_TRY(make(raw.f64)));
      case HALYARD_VALUE_I64:
        return recorder.take(Step::Kind::result, name, place, TOOL_TRY(make(raw.i64)));
      case HALYARD_VALUE_I32:
      case HALYARD_VALUE_I16:
      case HALYARD_VALUE_I8:
        return recorder.take(Step::Kind::result, name, place, TOOL_TRY(make(raw.i32)));
      default:
        return {};
    }
  }

  const Flags& flags_;
};

}  // namespace

std::unique_ptr<Side> program_side(const Flags& flags, std::string description) {
  return std::make_unique<ProgramSide>(flags, std::move(description));
}

}  // namespace halyard::tools
