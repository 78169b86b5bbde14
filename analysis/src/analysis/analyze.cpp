// Follows `__init`, then each export on all paths that its unknown branches give.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/analysis.h"
#include "analysis/machine.h"
#include "analysis/program.h"
#include "vm/module/calling_convention.h"

namespace halyard::analysis {

namespace {

constexpr uint64_t kMaxPaths = 64;
constexpr std::string_view kInitializer = "__init";
constexpr std::string_view kDeinitializer = "__deinit";

class Analyzer {
 public:
  Analyzer(const vm::ModuleView& view, const Options& options, Analysis& analysis)
      : view_(view), options_(options), analysis_(analysis), kernels_(view) {
    steps_left_ = options.max_steps;
  }

  Result<> run() {
    const vm::BytecodeModule& module = view_.module();
    initializer_ = module.find_export(kInitializer);
    if (initializer_) analysis_.initializer = follow_paths(*initializer_);
    if (!options_.function.empty()) {
      const vm::Export* const chosen = module.find_export(options_.function);
      if (!chosen) return module.no_export(options_.function);
      analysis_.functions.push_back(follow_paths(*chosen));
      return {};
    }
    for (const vm::Export& each : module.exports())
      if (each.name != kInitializer && each.name != kDeinitializer)
        analysis_.functions.push_back(follow_paths(each));
    return {};
  }

 private:
  struct Path {
    std::shared_ptr<Timeline> timeline;
    std::set<std::string> notes;
    std::vector<std::string> inputs;
    std::vector<Peak> peaks;
    std::string trouble;
    bool has_failed = false;  // the program fails on this path
  };

  Symbols& symbols() { return analysis_.symbols; }

  Function follow_paths(const vm::Export& of) {
    Function function;
    function.index = of.function;
    function.name = of.name.substr(0, 1000);
    function.declaration = of.attribute("iree.abi.declaration").substr(0, 4000);
    // So that a function without an end leaves some for those after it.
    const uint64_t share = steps_left_ / 2;
    budget_.steps = share;
    Choices choices;
    Path shown;
    std::vector<Level> levels;  // the highest of all paths
    for (function.paths = 0; function.paths < kMaxPaths;) {
      choices.begin();
      Path path = follow(of, choices);
      for (const std::string& note : path.notes)
        if (std::ranges::find(function.notes, note) == function.notes.end()) function.notes.push_back(note);
      const bool ends = &of == initializer_ && !path.has_failed;
      if (ends) {
        initializer_choices_ = choices;
        keep_state(*path.timeline);
      }
      // A path that fails says nothing about calls that succeed.
      if (!path.has_failed)
        for (const Peak& peak : path.timeline->peaks()) add_level(levels, peak.level);
      if (function.paths++ == 0 || is_higher(path, shown)) shown = std::move(path);
      if (ends || !choices.advance()) break;
    }
    steps_left_ -= share - budget_.steps;
    if (function.paths == kMaxPaths)
      function.notes.push_back(
          fmt::format("only the first {} paths through the function were followed", kMaxPaths));
    function.trouble = shown.trouble;
    function.inputs = shown.inputs;
    function.allocations = std::move(shown.timeline->allocations());
    function.steps = std::move(shown.timeline->steps());
    function.peaks = std::move(shown.peaks);
    for (const Level& level : levels)
      if (std::ranges::none_of(function.peaks, [&](const Peak& own) {
            return symbols().is_at_least(own.level.total, level.total);
          }))
        function.peaks.push_back({level, {}, 0});
    for (const Peak& peak : function.peaks) symbols().list_origins(peak.level.total, function.unknowns);
    return function;
  }

  void add_level(std::vector<Level>& levels, const Level& level) {
    for (const Level& known : levels)
      if (symbols().is_at_least(known.total, level.total)) return;
    std::erase_if(levels,
                  [&](const Level& known) { return symbols().is_at_least(level.total, known.total); });
    if (levels.size() < Timeline::kMaxPeaks) levels.push_back(level);
  }

  // Whether a level of `path` is above all those of `shown`.
  bool is_higher(const Path& path, const Path& shown) {
    if (path.has_failed != shown.has_failed) return shown.has_failed;
    return std::ranges::any_of(path.peaks, [&](const Peak& mine) {
      return std::ranges::all_of(shown.peaks, [&](const Peak& theirs) {
        return symbols().is_at_least(mine.level.total, theirs.level.total) &&
               !(mine.level.total == theirs.level.total);
      });
    });
  }

  void keep_state(Timeline& timeline) {
    analysis_.state = timeline.live();
    analysis_.state_in_place = 0;
    for (const Allocation& each : timeline.allocations())
      if (each.in_place && each.end == UINT32_MAX)
        analysis_.state_in_place = symbols().add(analysis_.state_in_place, each.size);
  }

  Path follow(const vm::Export& of, Choices& choices) {
    Path path;
    path.timeline = std::make_shared<Timeline>(symbols());
    Program program{view_, analysis_, kernels_, path.timeline, 0, {}, {}};
    Machine machine(program, choices, budget_);
    const bool is_initializer = &of == initializer_;
    Result<std::vector<Value>> results = std::vector<Value>();
    if (initializer_ && !is_initializer) {
      Choices again = initializer_choices_;
      again.begin();
      machine.use(again);
      results = machine.run(initializer_->function, {});
      machine.use(choices);
      program.notes.clear();
      program.submissions = 0;
    }
    if (results) {
      if (!is_initializer) path.timeline->begin_call();
      machine.begin_function();
      std::vector<Value> arguments;
      std::vector<Ref> held;  // the caller's references
      if (!is_initializer) arguments = arguments_of(program, of, path.inputs);
      for (const Value& argument : arguments) held.push_back(argument.ref);
      hold_arguments(program, held);
      results = machine.run(of.function, std::move(arguments));
      if (is_initializer && results) {
        path.timeline->end_initializer();
      } else {
        path.timeline->end_call(results ? allocations_of(*results) : std::vector<uint32_t>());
      }
      path.has_failed = machine.has_failed();
    } else {
      path.timeline->end_call({});
      path.has_failed = true;
    }
    if (!results) path.trouble = results.error().text();
    path.notes = program.notes;
    path.peaks = path.timeline->peaks();
    program.break_circles();
    return path;
  }

  // Tensors are in memory before the call.
  static void hold_arguments(Program& program, const std::vector<Ref>& held) {
    for (const Ref& ref : held) {
      const auto view = as<ViewObject>(ref);
      if (!view || !view->is_ranked || view->element_bits == 0) continue;
      Call call;
      call.name = "hal.buffer_view.buffer";
      call.arguments.push_back({{{}, ref}, false, {}});
      call.result_types = "r";
      call.results.resize(1);
      call_hal(program, call);
    }
  }

  std::vector<Value> arguments_of(Program& program, const vm::Export& of, std::vector<std::string>& inputs) {
    const auto convention = vm::Convention::parse(view_.module().functions()[of.function].convention);
    if (!convention) return {};
    const std::vector<ArgumentType> types =
        options_.arguments ? options_.arguments(of) : std::vector<ArgumentType>();
    std::vector<Value> values;
    for (size_t i = 0; i < convention->arguments.size(); ++i) {
      ArgumentType type = i < types.size() ? types[i] : ArgumentType{};
      if (type.name.empty()) type.name = fmt::format("input{}", i);
      const char passed = convention->arguments[i].type;
      if (type.kind != ArgumentType::Kind::fence) inputs.push_back(type.name);
      values.push_back(passed == 'r' ? Value{{}, object_of(program, type, i < types.size())}
                                     : Value{number_of(program, type), nullptr});
    }
    return values;
  }

  static Expression number_of(const Program& program, const ArgumentType& type) {
    return type.value ? Expression(*type.value) : program.symbols().named(type.name, false);
  }

  static Ref object_of(const Program& program, const ArgumentType& type, bool is_described) {
    if (type.kind == ArgumentType::Kind::fence) return std::make_shared<Unknown>();
    if (type.kind != ArgumentType::Kind::tensor && is_described && type.kind != ArgumentType::Kind::other)
      return std::make_shared<Unknown>();
    auto view = std::make_shared<ViewObject>();
    view->argument = type.name;
    view->is_ranked = type.shape.has_value();
    view->element_bits = type.element_bits;
    if (type.shape)
      for (size_t i = 0; i < type.shape->size(); ++i)
        view->dimensions.push_back((*type.shape)[i] >= 0
                                       ? Expression((*type.shape)[i])
                                       : program.symbols().named(fmt::format("{}[{}]", type.name, i), true));
    return view;
  }

  // What the results hold.
  static std::vector<uint32_t> allocations_of(const std::vector<Value>& results) {
    std::vector<uint32_t> found;
    const auto add = [&](const std::shared_ptr<BufferObject>& buffer) {
      if (buffer && buffer->memory) found.push_back(buffer->memory->allocation);
    };
    for (const Value& result : results) {
      if (const auto view = as<ViewObject>(result.ref)) add(view->buffer);
      add(as<BufferObject>(result.ref));
      if (const auto list = as<ListObject>(result.ref))
        for (const Element& element : list->elements)
          if (const Ref* const ref = std::get_if<Ref>(&element.value)) {
            if (const auto view = as<ViewObject>(*ref)) add(view->buffer);
            add(as<BufferObject>(*ref));
          }
    }
    return found;
  }

  const vm::ModuleView& view_;
  const Options& options_;
  Analysis& analysis_;
  Kernels kernels_;
  Budget budget_;
  uint64_t steps_left_ = 0;
  const vm::Export* initializer_ = nullptr;
  Choices initializer_choices_;
};

}  // namespace

Result<Analysis> analyze(const vm::ModuleView& module, const Options& options) {
  Analysis analysis;
  HALYARD_TRY(Analyzer(module, options, analysis).run());
  return analysis;
}

}  // namespace halyard::analysis
