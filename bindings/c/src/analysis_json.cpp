// A size is a number, or a text if it is an expression. Bytes of names that are not UTF-8 become U+FFFD.
#include "analysis_json.h"

#include <fmt/core.h>

#include <map>

#include "json_writer.h"
#include "vm/module/source_location.h"

namespace halyard::c {
namespace {

using analysis::Allocation;
using analysis::Expression;
using analysis::Function;
using analysis::Peak;
using analysis::Place;
using analysis::Step;
using analysis::Use;

constexpr size_t kMaxSource = 500;
constexpr size_t kMaxSources = 20'000;  // a look-up reads the whole table

constexpr std::string_view kSources[] = {"argument", "queue.alloca", "allocator.allocate",
                                         "import",   "parameter",    "inline buffer"};

// Locations of several lines, such as fused ones, with single blanks.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char character : text) {
    const bool is_blank = character == ' ' || character == '\n';
    if (!is_blank || (!line.empty() && line.back() != ' ')) line += is_blank ? ' ' : character;
  }
  return line;
}

class AnalysisWriter {
 public:
  AnalysisWriter(const analysis::Analysis& analysis, const Inspection& inspection)
      : analysis_(analysis), inspection_(inspection), module_(inspection.view.module()) {}

  Result<std::string> write() {
    json_.begin('{');
    json_.field("module", module_.name());
    json_.field("file_bytes", inspection_.file_size);
    json_.field("hal", inspection_.uses_hal ? hal_text(inspection_.hal) : std::string());
    json_.field("devices", uint64_t{analysis_.devices});
    texts("device_ids", analysis_.device_ids);
    texts("formats", analysis_.formats);
    texts("warnings", inspection_.warnings);
    json_.key("state");
    json_.begin('{');
    size("bytes", analysis_.state);
    size("in_place_bytes", analysis_.state_in_place);
    json_.end('}');
    json_.list("constants", module_.rodata().size(), [&](size_t i) {
      const auto number = static_cast<uint32_t>(i);
      json_.field("bytes", inspection_.view.segment(number).size());
      const auto use = analysis_.constant_uses.find(number);
      json_.field("use", use == analysis_.constant_uses.end() ? std::string() : use->second);
    });
    json_.list("executables", inspection_.executables.size(), [&](size_t i) {
      const Executable& executable = inspection_.executables[i];
      json_.field("constant", executable.constant);
      json_.field("format", format_of(inspection_, executable));
      json_.field("kind", executable.kind);
      json_.field("bytes", inspection_.view.segment(executable.constant).size());
    });
    json_.list("parameters", analysis_.parameters.size(), [&](size_t i) {
      const analysis::Parameter& parameter = analysis_.parameters[i];
      json_.field("scope", parameter.scope);
      json_.field("key", parameter.key);
      if (parameter.bytes) json_.field("bytes", *parameter.bytes);
    });
    json_.key("initializer");
    if (analysis_.initializer) {
      json_.begin('{');
      function(*analysis_.initializer);
      json_.end('}');
    } else {
      json_.null();
    }
    json_.list("functions", analysis_.functions.size(), [&](size_t i) { function(analysis_.functions[i]); });
    json_.end('}');
    if (json_.full())
      return fail(Code::RESOURCE_EXHAUSTED,
                  "the analysis of module '{}' has more than {} bytes; analyze one function",
                  module_.name().substr(0, 100), Json::kMaxBytes);
    return json_.take() + "\n";
  }

 private:
  void size(std::string_view name, const Expression& bytes) {
    json_.key(name);
    value(bytes);
  }

  void value(const Expression& number) {
    const auto constant = number.constant();
    if (constant && *constant >= 0) {
      json_.number(static_cast<uint64_t>(*constant));
    } else {
      json_.string(analysis_.symbols.text(number));
    }
  }

  void texts(std::string_view name, const std::vector<std::string>& list) {
    json_.key(name);
    json_.begin('[');
    for (const std::string& text : list) json_.string(text);
    json_.end(']');
  }

  void numbers(std::string_view name, const std::vector<uint32_t>& list) {
    json_.key(name);
    json_.begin('[');
    for (const uint32_t number : list) json_.number(number);
    json_.end(']');
  }

  void sizes(std::string_view name, const std::vector<Expression>& list) {
    json_.key(name);
    json_.begin('[');
    for (const Expression& each : list) value(each);
    json_.end(']');
  }

  void place(const Place& at) {
    const std::string_view name = module_.function_name(at.function);
    json_.field("place", name.empty() ? fmt::format("@{}+{:08X}", at.function, at.pc)
                                      : fmt::format("{}+{:08X}", name.substr(0, 1000), at.pc));
    const auto [source, is_new] = sources_.try_emplace({at.function, at.pc});
    if (is_new && sources_.size() <= kMaxSources)
      source->second = one_line(vm::source_location(module_, at.function, at.pc)).substr(0, kMaxSource);
    if (!source->second.empty()) json_.field("source", source->second);
  }

  void function(const Function& of) {
    json_.field("name", of.name);
    json_.field("function", of.index);
    json_.field("declaration", of.declaration);
    texts("inputs", of.inputs);
    json_.field("paths", of.paths);
    json_.field("trouble", of.trouble);
    texts("notes", of.notes);
    json_.key("unknowns");
    json_.begin('{');
    for (const auto& [name, origin] : of.unknowns) json_.field(name, origin);
    json_.end('}');
    json_.list("peaks", of.peaks.size(), [&](size_t i) {
      const Peak& peak = of.peaks[i];
      size("bytes", peak.level.total);
      size("arguments", peak.level.arguments);
      size("results", peak.level.results);
      size("transients", peak.level.transients);
      size("state", peak.level.state);
      json_.field("step", peak.steps);
      numbers("alive", peak.alive);
    });
    json_.list("allocations", of.allocations.size(), [&](size_t i) { allocation(of.allocations[i]); });
    json_.list("steps", of.steps.size(), [&](size_t i) { step(of.steps[i]); });
  }

  void allocation(const Allocation& of) {
    size("bytes", of.size);
    json_.field("origin", analysis::name_of(of.origin));
    json_.field("source", kSources[static_cast<size_t>(of.source)]);
    if (of.in_place) json_.flag("in_place", true);
    if (!of.name.empty()) json_.field("name", of.name);
    if (of.constant) json_.field("constant", *of.constant);
    json_.field("device", of.device);
    json_.field("begin", of.begin);
    if (of.end != UINT32_MAX) json_.field("end", of.end);
    if (of.place) {
      json_.key("made_at");
      json_.begin('{');
      place(*of.place);
      json_.end('}');
    }
  }

  void step(const Step& of) {
    json_.field("kind", analysis::name_of(of.kind));
    if (!of.name.empty()) json_.field("name", of.name);
    if (of.executable) json_.field("executable", *of.executable);
    if (of.kind == Step::Kind::dispatch) {
      json_.field("entry", of.entry);
      sizes("workgroups", of.workgroups);
      sizes("push_constants", of.constants);
    }
    json_.field("device", of.device);
    if (of.submission) json_.field("submission", *of.submission);
    place(of.place);
    json_.list("uses", of.uses.size(), [&](size_t i) {
      const Use& use = of.uses[i];
      if (use.allocation != UINT32_MAX) json_.field("allocation", use.allocation);
      size("offset", use.offset);
      size("bytes", use.length);
      json_.field("access", use.writes ? (use.reads ? "read and write" : "write") : "read");
      if (use.is_assumed) json_.flag("assumed", true);
    });
    numbers("after", of.after);
    size("live_bytes", of.live);
  }

  const analysis::Analysis& analysis_;
  const Inspection& inspection_;
  const vm::BytecodeModule& module_;
  Json json_;
  std::map<std::pair<uint32_t, uint32_t>, std::string> sources_;
};

}  // namespace

Result<std::string> analysis_json(const analysis::Analysis& analysis, const Inspection& inspection) {
  return AnalysisWriter(analysis, inspection).write();
}

}  // namespace halyard::c
