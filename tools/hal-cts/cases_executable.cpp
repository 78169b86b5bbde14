// Executables: grading, refusing, loading, querying.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bytes.h"
#include "cases.h"
#include "cts_flags.h"
#include "kernels.h"
#include "sample.h"

namespace halyard::cts {

namespace {

constexpr std::string_view kNoFormat = "no-device-has-this-format";
constexpr uint64_t kMaxDamaged = 1000;  // number of tried places, if there is enough time

std::vector<std::string> described(Session& s, Executable executable) {
  std::vector<std::string> functions;
  each_function(s, executable, [&](uint32_t, const auto& info, std::string_view name) {
    functions.push_back(
        fmt::format("{} ({} bindings, {} constants)", name, info.binding_count, info.constant_count));
  });
  return functions;
}

// The driver may create or refuse the executable, but must not crash, nor return a handle with a refusal.
void try_damaged(Session& s, const std::string& what, const std::string& format,
                 std::span<const uint8_t> data) {
  auto* const untouched = reinterpret_cast<Executable>(0x5EED);
  Executable executable = untouched;
  s.step(what);
  static_cast<void>(s.grade(format, data));
  const Outcome outcome = s.try_executable(format, data, &executable);
  if (outcome.ok()) {
    static_cast<void>(described(s, executable));
    s.destroy(executable);
    return;
  }
  s.check("R51", !outcome.message.empty(), what, "a message that says why", "an empty one");
  s.check("R50", executable == untouched, "*executable after executable_create failed, " + what, "untouched",
          "changed");
}

}  // namespace

void executable_grades_of_unknown_formats(Session& s) {
  for (const std::string_view format : {kNoFormat, std::string_view()}) {
    const halyard_executable_grade_t alone = s.grade(format, {});
    s.equal<uint32_t>("R90", fmt::format("the grade of format '{}' without data", format), HALYARD_GRADE_NO,
                      alone.grade);
    s.check("R90", alone.reason[0] != 0, "the reason of a grade that is not NATIVE", "text", "none");
    s.equal<uint32_t>("R90", fmt::format("the grade of format '{}' with data", format), HALYARD_GRADE_NO,
                      s.grade(format, noise(100)).grade);
  }
  // A long name must not overflow the reason.
  static_cast<void>(s.grade(std::string(1000, 'f'), {}));
}

void executable_grades_for_newer_hosts(Session& s) {
  struct {
    halyard_executable_grade_t grade;
    uint8_t behind[64];
  } guarded;
  for (const bool newer : {false, true}) {
    std::memset(static_cast<void*>(&guarded), 0xA5, sizeof guarded);
    guarded.grade.struct_size = newer ? sizeof guarded : sizeof guarded.grade;
    const uint32_t size = guarded.grade.struct_size;
    s.table().executable_grade(s.device(), text(kNoFormat), nullptr, 0, &guarded.grade);
    s.equal("R11", "struct_size of a grade afterwards", size, guarded.grade.struct_size);
    if (!newer)
      s.equal<size_t>("R11", "bytes behind a grade that were left alone", sizeof guarded.behind,
                      std::ranges::count(guarded.behind, 0xA5));
  }
}

void executable_unknown_formats(Session& s) {
  auto* const untouched = reinterpret_cast<Executable>(0x5EED);
  Executable executable = untouched;
  s.refused_naming("executable_create", "executable_create of an unknown format", HALYARD_NOT_FOUND,
                   kNoFormat, s.try_executable(kNoFormat, noise(100), &executable));
  s.check("R50", executable == untouched, "*executable after executable_create failed", "untouched",
          "changed");
}

void executable_grades_of_programs(Session& s) {
  for (const Program* program : s.programs()) {
    const halyard_executable_grade_t whole = s.grade(program->format, program->data),
                                     alone = s.grade(program->format, {});
    s.check("R90", alone.grade >= whole.grade,
            "the grade of a format of which an executable is graded " + fmt::format("{}", whole.grade),
            "at least that", fmt::format("{}", alone.grade));
    s.check("R90", (whole.grade == HALYARD_GRADE_NATIVE) == (whole.reason[0] == 0), "the reason of a grade",
            "empty exactly when NATIVE", fmt::format("'{}' with grade {}", whole.reason, whole.grade));
    static_cast<void>(s.executable(*program));  // programs that it grades as loadable must load
    const std::vector<uint8_t> junk = noise(1000);
    s.check("R90", s.grade(program->format, junk).grade < HALYARD_GRADE_LOADABLE,
            "the grade of 1000 random bytes", "NO or RECOMPILE", "LOADABLE or NATIVE");
    Executable executable = nullptr;
    s.refused("executable_create", "executable_create of 1000 random bytes", HALYARD_INVALID_ARGUMENT,
              s.try_executable(program->format, junk, &executable));
    s.refused("executable_create", "executable_create of no bytes", HALYARD_INVALID_ARGUMENT,
              s.try_executable(program->format, {}, &executable));
  }
}

void executable_functions(Session& s) {
  for (const Program* program : s.programs()) {
    const Executable executable = s.executable(*program), again = s.executable(*program);
    const std::vector<std::string> functions = described(s, executable);
    s.check("R93", !functions.empty(), "functions of " + program->origin, "at least one", "none");
    s.check("R93", functions == described(s, executable), "functions asked for again", "the same", "others");
    s.check("R93", functions == described(s, again), "functions of the same executable, loaded again",
            "the same", "others");
    struct {
      halyard_function_info_t info;
      uint8_t behind[64];
    } guarded;
    std::memset(static_cast<void*>(&guarded), 0xA5, sizeof guarded);
    guarded.info.struct_size = HALYARD_FIELD_END(halyard_function_info_t, name);
    if (!functions.empty())
      s.must("executable_function_info", "executable_function_info",
             s.take(s.table().executable_function_info(executable, 0, &guarded.info)));
    s.equal<size_t>("R11", "bytes behind a function's info that were left alone", sizeof guarded.behind,
                    std::ranges::count(guarded.behind, 0xA5));
    for (const uint32_t beyond : {static_cast<uint32_t>(functions.size()), 0xFFFFFFFFu})
      s.refused("executable_function_info",
                fmt::format("executable_function_info of function {} of {}", beyond, functions.size()),
                HALYARD_OUT_OF_RANGE,
                s.take(s.table().executable_function_info(executable, beyond, &guarded.info)));
  }
}

// Without one of them every case of the group dispatch is skipped, so nothing would have been tested.
void executable_known_functions(Session& s) {
  std::string refused;
  bool one_runs = false;
  for (const Program& program : s.all_programs()) {
    if (!program.is_given) continue;
    const halyard_executable_grade_t judged = s.grade(program.format, program.data);
    one_runs = one_runs || judged.grade >= HALYARD_GRADE_LOADABLE;
    refused += fmt::format("{}{} for {} ({}): {}", refused.empty() ? "" : "; ", judged.grade, program.format,
                           program.origin, judged.reason);
  }
  s.check(flag::executable.text(), one_runs || refused.empty(),
          "the grades of the executables that were given", "LOADABLE (2) or NATIVE (3) for one of them",
          refused);
  for (const Program* program : s.programs()) {
    std::string names;
    bool is_known = false;
    each_function(s, s.executable(*program), [&](uint32_t, const auto&, std::string_view name) {
      is_known = is_known || std::ranges::find(kFunctions, name) != std::end(kFunctions);
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", name);
    });
    s.check("R93", is_known,
            fmt::format("the names of the functions of {} ({})", program->format, program->origin),
            fmt::format("one at least of '{}', which cases dispatch (docs/hal-cts.md)",
                        fmt::join(kFunctions, "', '")),
            names.empty() ? "no function" : names);
  }
}

void executable_data_at_any_alignment(Session& s) {
  for (const Program* program : s.programs()) {
    const std::vector<std::string> functions = described(s, s.executable(*program));
    for (size_t shift = 0; shift < 17; ++shift) {
      std::vector<uint8_t> shifted(shift + program->data.size());
      std::copy(program->data.begin(), program->data.end(), shifted.begin() + static_cast<ptrdiff_t>(shift));
      Executable executable = nullptr;
      s.must("R92",
             fmt::format("executable_create of data at an address that is {} above a multiple of 16", shift),
             s.try_executable(program->format, {shifted.data() + shift, program->data.size()}, &executable));
      s.check("R92", functions == described(s, executable), "its functions", "the same", "others");
      s.destroy(executable);
    }
  }
}

void executable_truncated_data(Session& s) {
  for (const Program* program : s.programs())
    try_sample(s, program->data.size(), kMaxDamaged, [&](uint64_t size) {
      const std::vector<uint8_t> cut(
          program->data.begin(),
          program->data.begin() + static_cast<ptrdiff_t>(size));  // the bytes after it are not readable
      try_damaged(s, fmt::format("the first {} bytes of {}", size, program->format), program->format, cut);
    });
}

void executable_altered_data(Session& s) {
  constexpr std::array<uint8_t, 3> kFlips = {0x01, 0x80, 0xFF};
  for (const Program* program : s.programs())
    try_sample(s, program->data.size() * kFlips.size(), kMaxDamaged * kFlips.size(), [&](uint64_t number) {
      const uint64_t at = number / kFlips.size();
      const uint8_t flip = kFlips[number % kFlips.size()];
      std::vector<uint8_t> altered = program->data;
      altered[at] ^= flip;
      try_damaged(s, fmt::format("byte {} of {} flipped by 0x{:02x}", at, program->format, flip),
                  program->format, altered);
    });
}

void executable_extensions(Session& s) {
  for (const Program* program : s.programs()) {
    const halyard_extension_t may = extension(0), must = extension(1);
    halyard_executable_args_t args = {.struct_size = sizeof args,
                                      .format = text(program->format),
                                      .data = program->data.data(),
                                      .data_size = program->data.size(),
                                      .affinity = s.all_queues(),
                                      .extensions = &must};
    Executable executable = nullptr;
    s.refused_naming("R13", "executable_create with an unknown extension that must be understood",
                     HALYARD_UNIMPLEMENTED, fmt::format("{}", kUnknownExtension),
                     s.take(s.table().executable_create(s.device(), &args, &executable)));
    args.extensions = &may;
    s.must("R13", "executable_create with an unknown extension that need not be understood",
           s.take(s.table().executable_create(s.device(), &args, &executable)));
    s.table().executable_destroy(s.device(), executable);
  }
}

}  // namespace halyard::cts
