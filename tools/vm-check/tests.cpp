// Finds the names of tests in modules.
#include "tests.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "check_flags.h"
#include "filter.h"
#include "text/suggest.h"

namespace halyard::tools {

namespace {

// Exports without arguments and results whose names do not begin with "__".
Result<std::vector<std::string>> tests_of(const Module& module) {
  std::vector<std::string> names;
  const uint32_t count = TOOL_TRY(module.info()).function_count;
  for (uint32_t i = 0; i < count; ++i) {
    const halyard_function_description_t function = TOOL_TRY(module.function(i));
    const std::string_view name = view(function.name);
    if (view(function.convention) == "0v_v" && !name.starts_with("__")) names.emplace_back(name);
  }
  return names;
}

Result<std::vector<std::string>> paths_of(const Flags& flags) {
  std::vector<std::string> paths = flags[flag::test_module];
  paths.insert(paths.end(), flags.positional().begin(), flags.positional().end());
  if (paths.empty())
    return fail(HALYARD_INVALID_ARGUMENT,
                "no module given; pass one or more, as in 'vm-check tests.vmfb' ('--help' shows examples)");
  for (auto path = paths.begin(); path != paths.end(); ++path)
    if (std::find(paths.begin(), path, *path) != path)
      return fail(HALYARD_INVALID_ARGUMENT, "module '{}' is given twice; pass each module once", *path);
  return paths;
}

// Renames suites that have the same name.
void tell_apart(std::vector<Suite>& suites, std::string (*other_name)(const Suite& suite)) {
  std::map<std::string, size_t> counts;
  for (const Suite& suite : suites) ++counts[suite.name];
  for (Suite& suite : suites)
    if (counts[suite.name] > 1) suite.name = other_name(suite);
}

}  // namespace

std::string full_name(const Suite& suite, std::string_view test) {
  return fmt::format("{}.{}", suite.name, test);
}

Result<std::vector<Suite>> load_suites(const Flags& flags, const Program& program) {
  std::vector<Suite> suites;
  for (const std::string& path : TOOL_TRY(paths_of(flags))) {
    Suite suite{.name = {},
                .path = path,
                .module = TOOL_TRY(load_module(flags, program.instance, path)),
                .tests = {}};
    const halyard_module_info_t info = TOOL_TRY(suite.module.info());
    suite.name = view(info.name);
    suite.tests = TOOL_TRY(tests_of(suite.module));
    if (suite.tests.empty())
      return fail(
          HALYARD_INVALID_ARGUMENT,
          "module '{}' of '{}' has no tests: expected exports without arguments and results, but none of "
          "its {} exports is one; 'vm-dump' lists them, and {}=FILE is for modules that tests import",
          suite.name, path, info.function_count, flag::import_from);
    suites.push_back(std::move(suite));
  }
  tell_apart(suites, [](const Suite& suite) { return std::filesystem::path(suite.path).stem().string(); });
  tell_apart(suites, [](const Suite& suite) { return suite.path; });
  return suites;
}

Result<std::vector<Module>> load_imports(const Flags& flags, const Program& program) {
  std::vector<Module> modules;
  for (const std::string& path : flags[flag::import_from])
    modules.push_back(TOOL_TRY(load_module(flags, program.instance, path)));
  return modules;
}

Result<> choose_tests(const Flags& flags, std::vector<Suite>& suites) {
  if (!flags.has(flag::filter)) return {};
  const std::string text = flags[flag::filter];
  if (text.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "{} is empty; expected patterns, such as {}='*.add*'", flag::filter,
                flag::filter);
  const Filter filter(text);
  std::vector<std::string> names;
  for (Suite& suite : suites) {
    for (const std::string& test : suite.tests) names.push_back(full_name(suite, test));
    std::erase_if(suite.tests,
                  [&](const std::string& test) { return !filter.takes(full_name(suite, test)); });
  }
  std::erase_if(suites, [](const Suite& suite) { return suite.tests.empty(); });
  if (!suites.empty()) return {};
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return fail(HALYARD_NOT_FOUND, "{}={}: none of {} tests matches{}; {} lists the tests", flag::filter, text,
              names.size(), did_you_mean(text, candidates), flag::list);
}

}  // namespace halyard::tools
