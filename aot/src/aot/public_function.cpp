#include "aot/public_function.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "aot/c_text.h"

namespace halyard::aot {

namespace {

// The C of a value outside of the program, where integers are signed, and within it.
struct Outside {
  const char* type;
  const char* inside;
  const char* member;  // of vm_value
};
Outside outside(char type) {
  switch (type) {
    case 'i':
      return {"int32_t", "uint32_t", "i32"};
    case 'I':
      return {"int64_t", "uint64_t", "i64"};
    case 'f':
      return {"float", "float", "f32"};
    case 'F':
      return {"double", "double", "f64"};
    default:
      return {"", "vm_ref", "tensor"};
  }
}

bool has_refs(const Types& types) { return (types.arguments + types.results).find('r') != std::string::npos; }

}  // namespace

std::string outside_prototype(std::string_view begin, const Types& types, std::string_view prefix) {
  std::string text(begin);
  for (size_t i = 0; i < types.arguments.size(); ++i)
    text += types.arguments[i] == 'r' ? fmt::format(", const {}_tensor* a{}", prefix, i)
                                      : fmt::format(", {} a{}", outside(types.arguments[i]).type, i);
  for (size_t i = 0; i < types.results.size(); ++i)
    text += types.results[i] == 'r' ? fmt::format(", {}_tensor* o{}", prefix, i)
                                    : fmt::format(", {}* o{}", outside(types.results[i]).type, i);
  return text + ")";
}

size_t PublicFunction::tensor_results() const {
  return static_cast<size_t>(std::ranges::count(types.results, 'r'));
}

std::string PublicFunction::prototype(std::string_view prefix) const {
  return outside_prototype(fmt::format("int {}({}_state* s", symbol, prefix), types, prefix);
}

// Arguments become refs one after another; each is released if a later one fails.
std::string PublicFunction::definition(std::string_view prefix, bool has_tensors) const {
  std::string text = prototype(prefix) + " {\n";
  std::string inner_call = call;
  std::string begin;
  std::string results;
  std::string releases;
  for (size_t i = 0; i < types.arguments.size(); ++i) {
    const char type = types.arguments[i];
    if (type != 'r') {
      inner_call += fmt::format(", ({})a{}", outside(type).inside, i);
      continue;
    }
    text += fmt::format("  vm_ref p{} = NULL;\n", i);
    begin += fmt::format("  if (status == 0) status = hal_tensor_view(s, a{0}, &p{0});\n", i);
    inner_call += fmt::format(", p{}", i);
    releases += fmt::format("    vm_release(s, p{});\n", i);
  }
  if (is_async) {
    text += "  vm_ref end = NULL;\n";
    begin += "  if (status == 0) status = hal_make_fence(s, &end);\n";
    inner_call += ", NULL, vm_share(end)";
  }
  size_t tensor = 0;
  for (size_t i = 0; i < types.results.size(); ++i) {
    const char type = types.results[i];
    text += fmt::format("  {} r{} = 0;\n", outside(type).inside, i);
    if (!is_direct) inner_call += fmt::format(", &r{}", i);
    results +=
        type == 'r'
            ? fmt::format(
                  "  if (status == 0)\n    status = hal_view_tensor(s, r{0}, &s->results[{1}], o{0});\n"
                  "  else\n    vm_release(s, r{0});\n",
                  i, tensor++)
            : fmt::format("  if (status == 0) *o{0} = ({1})r{0};\n", i, outside(type).type);
  }
  text += "  int status = 0;\n";
  if (has_tensors) text += "  hal_drop_results(s);\n";
  text += begin;
  if (is_direct) {
    if (is_bounded) text += "  if (s->depth >= VM_MAX_DEPTH) return vm_too_deep(s);\n";
    text += fmt::format("  r0 = {});\n", inner_call);
    if (is_bounded) text += "  if (s->stopped != 0) status = vm_was_too_deep(s);\n";
  } else if (releases.empty() && !is_async) {
    text += fmt::format("  status = {});\n", inner_call);
  } else {
    text += fmt::format("  if (status != 0) {{\n{}    return status;\n  }}\n  status = {});\n", releases,
                        inner_call);
  }
  if (is_async)
    text += "  if (status == 0)\n    status = hal_end_of(s, end);\n  else\n    vm_release(s, end);\n";
  return text + results + "  return status;\n}\n\n";
}

std::string PublicFunction::caller(size_t index) const {
  std::string text =
      fmt::format("static int vm_call_{}(vm_state* s, const vm_value* in, vm_value* out) {{\n", index);
  std::string own_call = symbol + "(s";
  for (size_t i = 0; i < types.arguments.size(); ++i)
    own_call += fmt::format(", {}in[{}].{}", types.arguments[i] == 'r' ? "&" : "", i,
                            outside(types.arguments[i]).member);
  for (size_t i = 0; i < types.results.size(); ++i)
    own_call += fmt::format(", &out[{}].{}", i, outside(types.results[i]).member);
  if (types.arguments.empty()) text += "  (void)in;\n";
  if (types.results.empty()) text += "  (void)out;\n";
  return text + fmt::format("  return {});\n}}\n\n", own_call);
}

Result<std::vector<PublicFunction>> public_functions(const Plan& plan, std::string& initializer) {
  // Programs with devices pass tensors; the refs of others are objects of their own.
  const bool has_tensors =
      std::ranges::any_of(plan.imports, [](const ImportPlan& each) { return each.takes_state; });
  std::set<std::string> taken;
  for (std::string& each : own_names(plan.prefix)) taken.insert(std::move(each));
  for (const ImportPlan& each : plan.imports) taken.insert(each.callee);
  std::vector<PublicFunction> all;
  for (const vm::Export& each : plan.module.exports()) {
    if (each.name.starts_with("__")) {
      if (each.name == "__init") initializer = plan.functions[each.function];
      continue;
    }
    PublicFunction made = {.name = each.name,
                           .symbol = plan.prefix + "_" + identifier(each.name),
                           .call = plan.call(each.function),
                           .is_direct = plan.direct.all.contains(each.function),
                           .is_bounded = plan.direct.bounded.contains(each.function),
                           .types = function_types(plan.module, each.function)};
    if (has_refs(made.types) && !has_tensors)
      return fail(
          Code::UNIMPLEMENTED,
          "function '{}' ({}) takes or returns objects; without a runtime, exported functions take and "
          "return numbers, and tensors if the program imports hal",
          each.name, each.convention);
    made.is_async =
        each.attribute("iree.abi.model") == "coarse-fences" && made.types.arguments.ends_with("rr");
    if (made.is_async) made.types.arguments.resize(made.types.arguments.size() - 2);
    // A function whose arena depends on dimensions has another one that gives its bytes.
    const std::string_view size = has_refs(made.types) ? "_arena_size" : "";
    while (taken.contains(made.symbol) || taken.contains(fmt::format("{}{}", made.symbol, size)))
      made.symbol += '_';
    taken.insert({made.symbol, fmt::format("{}{}", made.symbol, size)});
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace halyard::aot
