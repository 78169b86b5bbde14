// Analyses modules through the C ABI: types of arguments come from declarations and from the caller's texts.
#include "analysis/analysis.h"

#include <charconv>

#include "analysis_json.h"
#include "declaration.h"
#include "export.h"
#include "hal/view/element_type.h"
#include "handles.h"
#include "inspection.h"
#include "vm/module/calling_convention.h"

using namespace halyard;
using namespace halyard::c;

namespace {

using analysis::ArgumentType;

constexpr size_t kFencesOfCall = 2;

std::vector<ArgumentType> declared_arguments(const vm::Export& function) {
  std::vector<ArgumentType> types;
  const auto convention = vm::Convention::parse(function.convention);
  if (!convention) return types;
  types.resize(convention->arguments.size());
  const bool is_async = is_asynchronous(function) && types.size() >= kFencesOfCall;
  const size_t plain = is_async ? types.size() - kFencesOfCall : types.size();
  for (size_t i = 0; i < types.size(); ++i) {
    if (i >= plain) types[i].kind = ArgumentType::Kind::fence;
    if (convention->arguments[i].type != 'r') types[i].kind = ArgumentType::Kind::number;
  }
  const auto declaration = parse_declaration(function.attribute(kDeclarationAttribute));
  if (!declaration || declaration->arguments.size() != plain) return types;
  for (size_t i = 0; i < plain; ++i) {
    types[i].name = declaration->arguments[i].name;
    if (types[i].kind == ArgumentType::Kind::number) continue;
    auto tensor = declared_tensor(declaration->arguments[i].type);
    if (!tensor) continue;
    types[i].kind = ArgumentType::Kind::tensor;
    types[i].element_bits = hal::bit_count(tensor->element_type);
    if (tensor->is_ranked) types[i].shape = std::move(tensor->shape);
  }
  return types;
}

// "2x?xf32": sizes, "?" for any, then the element type.
Result<> read_tensor(std::string_view text, size_t index, ArgumentType& type) {
  const auto refused = [&](std::string_view why) {
    return fail(Code::INVALID_ARGUMENT,
                "input {} is '{}', {}; expected a shape and an element type, such as "
                "'2x3xf32', or a number for a number",
                index, text.substr(0, 100), why);
  };
  std::vector<int64_t> shape;
  std::string_view rest = text;
  while (!rest.empty() && (rest.front() == '?' || (rest.front() >= '0' && rest.front() <= '9'))) {
    const size_t end = rest.find('x');
    if (end == std::string_view::npos) return refused("without an element type");
    const std::string_view size = rest.substr(0, end);
    int64_t dimension = -1;
    if (size != "?") {
      const auto [last, error] = std::from_chars(size.data(), size.data() + size.size(), dimension);
      if (error != std::errc() || last != size.data() + size.size())
        return refused("whose size is no number");
    }
    shape.push_back(dimension);
    rest.remove_prefix(end + 1);
  }
  const auto element = hal::parse_element_type(rest);
  if (!element) return refused(fmt::format("whose element type '{}' is not known", rest.substr(0, 50)));
  if (type.shape && type.shape->size() != shape.size())
    return fail(Code::INVALID_ARGUMENT, "input {} has {} dimensions; the function expects {}", index,
                shape.size(), type.shape->size());
  for (size_t i = 0; type.shape && i < shape.size(); ++i)
    if ((*type.shape)[i] >= 0 && shape[i] >= 0 && (*type.shape)[i] != shape[i])
      return fail(Code::INVALID_ARGUMENT, "dimension {} of input {} is {}; the function expects {}", i, index,
                  shape[i], (*type.shape)[i]);
  type.kind = ArgumentType::Kind::tensor;
  type.shape = std::move(shape);
  type.element_bits = hal::bit_count(*element);
  return {};
}

Result<> read_number(std::string_view text, size_t index, ArgumentType& type) {
  int64_t value = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && last == text.data() + text.size()) {
    type.value = value;
    return {};
  }
  double number = 0;  // of a float, which has no effect on sizes
  const auto [end, unread] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (unread == std::errc() && end == text.data() + text.size()) return {};
  return fail(Code::INVALID_ARGUMENT, "input {} is '{}'; the function expects a number there", index,
              text.substr(0, 100));
}

Result<> read_inputs(const halyard_analyze_options_t& options, std::vector<ArgumentType>& types) {
  size_t next = 0;
  for (ArgumentType& type : types) {
    if (type.kind == ArgumentType::Kind::fence) continue;
    if (next == options.input_count) break;
    const size_t index = next++;
    const std::string_view text = view(options.inputs[index]);
    if (text.empty()) continue;
    HALYARD_TRY(type.kind == ArgumentType::Kind::number ? read_number(text, index, type)
                                                        : read_tensor(text, index, type));
  }
  if (next < options.input_count)
    return fail(Code::INVALID_ARGUMENT, "found {} inputs; function '{}' has {}", options.input_count,
                view(options.function), next);
  return {};
}

}  // namespace

halyard_status_t halyard_module_analyze(const void* data, size_t size,
                                        const halyard_analyze_options_t* options, char** out,
                                        size_t* out_size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const halyard_analyze_options_t known = HALYARD_TRY(known_fields(options));
    HALYARD_TRY(check_array(known.inputs, known.input_count, "inputs", "inputs"));
    HALYARD_TRY(check_array(data, size, "bytes", "data"));
    if (known.input_count != 0 && !known.function)
      return fail(Code::INVALID_ARGUMENT, "found {} inputs without a function; set `function`",
                  known.input_count);
    const Inspection inspection =
        HALYARD_TRY(inspect(Bytes::borrow({static_cast<const uint8_t*>(data), size}, {})));
    const vm::BytecodeModule& module = inspection.view.module();
    analysis::Options how;
    how.function = view(known.function);
    std::vector<ArgumentType> given;
    if (known.function) {
      const vm::Export* const chosen = module.find_export(how.function);
      if (!chosen) return module.no_export(how.function);
      given = declared_arguments(*chosen);
      HALYARD_TRY(read_inputs(known, given));
    }
    how.arguments = [&](const vm::Export& each) { return known.function ? given : declared_arguments(each); };
    const analysis::Analysis made = HALYARD_TRY(analysis::analyze(inspection.view, how));
    give_text(HALYARD_TRY(analysis_json(made, inspection)), out, out_size);
    return {};
  });
}
