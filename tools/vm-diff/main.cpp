// vm-diff: runs one call in two ways, and reports the first step at which they part.
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "capture_side.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/npy.h"
#include "common/program.h"
#include "common/program_flags.h"
#include "common/tool.h"
#include "diff.h"
#include "diff_flags.h"
#include "program_side.h"
#include "report.h"
#include "side_flags.h"

namespace halyard::tools {

namespace {

constexpr const Flag* kSideFlags[] = {&flag::side_a, &flag::side_b};
constexpr const Flag* kToleranceFlags[] = {&flag::atol, &flag::rtol, &flag::ulps, &flag::type};
constexpr const Flag* kReportFlags[] = {&flag::worst, &flag::keep, &flag::hold, &flag::json};

// The flags that a side cannot have.
constexpr const Flag* kFlagsOfBoth[] = {&flag::side_a, &flag::side_b, &flag::atol,  &flag::rtol,
                                        &flag::ulps,   &flag::type,   &flag::worst, &flag::keep,
                                        &flag::hold,   &flag::json,   &flag::help,  &flag::version};

constexpr FlagGroup kGroups[] = {
    {"Sides", kSideFlags},
    {"Tolerance", kToleranceFlags},
    {"Reports", kReportFlags},
    {"Program", kProgramFlags},
    {"Loading and limits", kLoadingFlags},
    {"Devices", kDeviceFlags},
    {"From other runtimes", kForeignFlags},
};

constexpr int kDiffers = 2;

constexpr ExitCode kExitCodes[] = {
    {0, "No step is beyond tolerance."},
    {1, "The comparison failed; standard error has the reason."},
    {kDiffers, "A step is beyond tolerance, or no steps of the runs are alike."},
    {kInterrupted, "Stopped by Ctrl-C."},
    {kTerminated, "Stopped by SIGTERM."},
    {kHungUp, "Stopped by SIGHUP: the terminal was closed."},
};

constexpr ToolDescription kTool = {
    "vm-diff",
    "vm-diff MODULE|CAPTURE --a=FLAGS --b=FLAGS [--function=NAME] [--input=VALUE]... [flags]",
    "Runs one call in two ways, and reports the first step at which they part: compares the tensors after "
    "each dispatch, copy and fill, those that the program shows to the host, and the results. The flags of "
    "--a and --b select device, module, parameters and others for one run; all other flags are those of "
    "vm-run, for both. More: docs/vm-diff.md.",
    kGroups,
    "  vm-diff model.vmfb --function=main --input=@x.npy --a=--device=local-sync --b=--device=vulkan\n"
    "  vm-diff --a=--module=old.vmfb --b=--module=new.vmfb --input=@x.npy --rtol=1e-5 --atol=1e-6\n"
    "  vm-diff model.vmfb --input=@x.npy --device=local-sync --b=--jit_math=fast --ulps=4 --keep=tensors\n"
    "  vm-diff run.hycap --a=recorded --b=--device=vulkan\n",
    kExitCodes,
    "FILE"};

// The command line. Flags are parsed for each side, from all arguments.
std::vector<std::string> g_arguments;

// A function's name without special characters of paths.
std::string file_name(std::string_view name) {
  std::string text(name.substr(0, 150));
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '$') c = '_';
  return text;
}

// --keep: writes the tensors. npy has no 8-bit floats, so these are written as bytes.
Result<> keep_tensors(const std::string& folder, const Step& step, size_t place,
                      const TensorDifference& tensor, std::span<const uint8_t> a,
                      std::span<const uint8_t> b) {
  const ElementKind& kind = *tensor.type.kind;
  uint64_t count = 1;
  for (const int64_t size : tensor.shape) count *= static_cast<uint64_t>(size);
  const bool is_whole = tensor.first == 0 && count * kind.size == a.size();
  for (const auto& [side, bytes] : {std::pair("a", a), std::pair("b", b)}) {
    const std::vector<int64_t> shape =
        is_whole ? tensor.shape : std::vector<int64_t>{static_cast<int64_t>(bytes.size() / kind.size)};
    Result<std::vector<uint8_t>> file = npy_header(std::string(kind.name), shape);
    if (!file) file = npy_header("ui8", {static_cast<int64_t>(bytes.size())});
    std::vector<uint8_t> contents = TOOL_TRY(std::move(file));
    contents.insert(contents.end(), bytes.begin(), bytes.end());
    const std::string name =
        step.is_dispatch() || step.kind != Step::Kind::device ? step.name : step.operation;
    TOOL_TRY(
        write_file(fmt::format("{}/{:05}_{}.{}.{}.npy", folder, place, file_name(name), tensor.binding, side),
                   false, contents));
  }
  return {};
}

Result<DiffOptions> diff_options(const Flags& flags) {
  constexpr uint64_t kHold = 256'000'000;
  DiffOptions options;
  options.tolerances = TOOL_TRY(Tolerances::of(flags));
  options.types = TOOL_TRY(GivenTypes::of(flags));
  options.worst = TOOL_TRY(flags[flag::worst]);
  if (options.worst > 10'000)
    return wrong_value(flag::worst, flags.given(flag::worst).back(), "at most 10000");
  options.hold = TOOL_TRY(flags[flag::hold]).value_or(kHold);
  if (!flags.has(flag::keep)) return options;
  const std::string folder = flags[flag::keep];
  if (folder.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "{} needs the name of a folder, such as {}", flag::keep,
                flag::keep.example);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(code_of_errno(error.value()), "{}={}: cannot create the folder: {}; choose another",
                flag::keep, folder, error.message());
  options.keep = [folder](const Step& step, size_t place, const TensorDifference& tensor,
                          std::span<const uint8_t> a, std::span<const uint8_t> b) {
    return keep_tensors(folder, step, place, tensor, a, b);
  };
  return options;
}

// The flags of the command line, and the module that is no flag as --module.
Result<std::vector<std::string>> common_arguments(const Flags& flags) {
  if (flags.positional().size() > 1)
    return fail(HALYARD_INVALID_ARGUMENT, "expected one module, found '{}' and '{}'; pass the second in {}",
                flags.positional()[0], flags.positional()[1], flag::side_b);
  if (!flags.positional().empty() && flags.has(flag::module))
    return fail(HALYARD_INVALID_ARGUMENT, "found both '{}' and {}; pass one of them", flags.positional()[0],
                flag::module);
  std::vector<std::string> arguments;
  for (const std::string& argument : g_arguments)
    if (argument.starts_with("--")) arguments.push_back(argument);
  if (!flags.positional().empty())
    arguments.push_back(fmt::format("{}={}", flag::module, flags.positional().front()));
  return arguments;
}

// The recorded bytes of a capture, instead of flags.
constexpr std::string_view kRecorded = "recorded";

struct Sides {
  Flags flags_a;
  Flags flags_b;
  std::unique_ptr<Side> a;
  std::unique_ptr<Side> b;
};

Result<> choose_sides(const Flags& flags, Sides& sides) {
  const std::vector<std::string> arguments = TOOL_TRY(common_arguments(flags));
  const auto given = [&](const List& side) { return fmt::to_string(fmt::join(flags[side], " ")); };
  const auto flags_of = [&](const List& side) -> Result<Flags> {
    std::vector<std::string> words;
    if (given(side) != kRecorded) words = TOOL_TRY(split_words(given(side)));
    return side_flags(kTool, arguments, side, words, kFlagsOfBoth);
  };
  sides.flags_a = TOOL_TRY(flags_of(flag::side_a));
  sides.flags_b = TOOL_TRY(flags_of(flag::side_b));
  const auto description_of = [&](const List& side) {
    return given(side).empty() ? std::string("as given") : given(side);
  };
  const std::string text_a = description_of(flag::side_a);
  const std::string text_b = description_of(flag::side_b);
  const std::string capture = flags.positional().empty() ? "" : flags.positional().front();
  if (capture.empty() || !is_capture(capture)) {
    if (text_a == kRecorded || text_b == kRecorded)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "'{}' is for captures; pass the file of one, written by vm-run {}=FILE", kRecorded,
                  flag::capture);
    sides.a = program_side(sides.flags_a, text_a);
    sides.b = program_side(sides.flags_b, text_b);
    return {};
  }
  for (const Flags* const each : {&sides.flags_a, &sides.flags_b})
    if ((*each)[flag::untrusted])
      return fail(
          HALYARD_PERMISSION_DENIED,
          "{} with a capture: replay runs the code in it, on any device; replay only captures that you trust",
          flag::untrusted);
  for (const Flag* const other : std::initializer_list<const Flag*>{&flag::function, &flag::input,
                                                                    &flag::inputs_from, &flag::parameters})
    if (sides.flags_a.has(*other) || sides.flags_b.has(*other))
      return fail(HALYARD_INVALID_ARGUMENT, "{} has no effect on a capture, which has its inputs; remove it",
                  *other);
  if (text_a == kRecorded && text_b == kRecorded)
    return fail(HALYARD_INVALID_ARGUMENT, "both runs are '{}'; pass the flags of a device for one of them",
                kRecorded);
  if (text_a != kRecorded) sides.a = replay_side(sides.flags_a, capture, text_a);
  if (text_b != kRecorded) sides.b = replay_side(sides.flags_b, capture, text_b);
  if (!sides.a) sides.a = recorded_side(*sides.b, capture, text_a);
  if (!sides.b) sides.b = recorded_side(*sides.a, capture, text_b);
  return {};
}

Result<int> vm_diff(const Flags& flags) {
  if (!flags.has(flag::side_a) && !flags.has(flag::side_b))
    return fail(HALYARD_INVALID_ARGUMENT,
                "there is nothing to compare: pass the flags of one run in {} or {}, such as {}",
                flag::side_a, flag::side_b, flag::side_b.example);
  Sides sides;
  TOOL_TRY(choose_sides(flags, sides));
  const Descriptions descriptions = {sides.a->description(), sides.b->description(),
                                     sides.flags_a[flag::function]};
  const DiffOptions options = TOOL_TRY(diff_options(flags));
  const Diff found = TOOL_TRY(diff(*sides.a, *sides.b, options));
  const std::optional<std::string> json = flags[flag::json];
  if (json) {
    const std::string document = json_document(json_report(found, descriptions), 3);
    if (json->empty()) {
      std::fwrite(document.data(), 1, document.size(), stdout);
    } else {
      TOOL_TRY(
          write_file(*json, false, {reinterpret_cast<const uint8_t*>(document.data()), document.size()}));
    }
  }
  if (!json || !json->empty()) {
    const std::string text = text_report(found, descriptions);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return found.first_beyond || outcome_of(found) == "not alike" ? kDiffers : 0;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  halyard::tools::g_arguments.assign(argv + 1, argv + argc);
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_diff);
}
