// Analysis: what the functions of a module do with devices, computed from their verified bytecode. Nothing of
// the module runs: integers are constants or expressions in the dimensions of the inputs, and objects are
// tracked as the program would hold them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/expression.h"
#include "base/status.h"
#include "vm/text/module_view.h"

namespace halyard::analysis {

// An instruction of the module.
struct Place {
  uint32_t function = 0;
  uint32_t pc = 0;
  bool operator==(const Place&) const = default;
};

enum class Origin : uint8_t {
  argument,   // of the call; the caller holds it
  result,     // allocated by the call, and held by the caller afterwards
  transient,  // allocated and freed by the call
  state,      // held by the module's globals
};
std::string_view name_of(Origin origin);

// Memory of a device.
struct Allocation {
  enum class Source : uint8_t { argument, queue_alloca, allocate, imported, parameter, inline_buffer };
  Source source = Source::queue_alloca;
  Origin origin = Origin::transient;
  bool in_place = false;  // bytes of the module or of a parameter file that the device uses where they are
  Expression size;        // bytes
  std::string name;       // of an argument or parameter; may be empty
  std::optional<uint32_t> constant;  // the rodata segment that was imported
  std::optional<Place> place;        // none: an argument
  uint32_t device = 0;
  uint32_t begin = 0;         // the number of steps before it
  uint32_t end = UINT32_MAX;  // the number of steps before it was freed; UINT32_MAX: never
};

// A range of an allocation that a step uses.
struct Use {
  uint32_t allocation = UINT32_MAX;  // UINT32_MAX: not known
  Expression offset;
  Expression length;
  bool reads = true;
  bool writes = false;
  bool is_assumed = false;  // whether it is read or written follows from its position only
};

struct Step {
  enum class Kind : uint8_t { dispatch, fill, update, copy, read, write, collective, parameters };
  Kind kind = Kind::dispatch;
  Place place;
  uint32_t device = 0;
  std::optional<uint32_t> submission;  // number of the queue operation that executes it
  std::optional<uint32_t> executable;  // rodata segment
  uint64_t entry = 0;                  // of a dispatch: the kernel's index
  std::string name;                    // the kernel's name; may be empty
  std::vector<Expression> workgroups;  // x, y, z; empty: read from a buffer
  std::vector<Expression> constants;   // push constants
  std::vector<Use> uses;
  std::vector<uint32_t> after;  // earlier steps whose results it uses, the most recent writer of each range
  Expression live;              // bytes of the device's memory while it runs
};
std::string_view name_of(Step::Kind kind);

// Bytes by origin at one moment.
struct Level {
  Expression arguments, results, transients, state;
  Expression total;  // the sum
};

struct Peak {
  Level level;
  std::vector<uint32_t> alive;  // allocations
  uint32_t steps = 0;           // before it
};

struct Function {
  uint32_t index = 0;
  std::string name;
  std::string declaration;
  std::string trouble;              // why it could not be followed to its end; may be empty
  std::vector<std::string> notes;   // assumptions and limits of the answer
  std::vector<std::string> inputs;  // names of the arguments that are no fences
  std::vector<Allocation> allocations;
  std::vector<Step> steps;  // of the path with the highest peak
  // The highest levels, none of which is known to be above another: one without dynamic shapes.
  std::vector<Peak> peaks;
  uint64_t paths = 1;                           // that were followed
  std::map<std::string, std::string> unknowns;  // symbols that no shape determines, with their origins
};

struct Parameter {
  std::string scope, key;
  std::optional<uint64_t> bytes;
};

struct Analysis {
  Symbols symbols;
  std::optional<Function> initializer;  // __init
  std::vector<Function> functions;      // exports
  std::vector<Parameter> parameters;
  std::map<uint32_t, std::string> constant_uses;  // by rodata segment: "executable", "imported", ...
  std::vector<std::string> device_ids;  // patterns of hal.device.id queries, in the order of queries
  std::vector<std::string> formats;     // of executables that were asked for or created
  uint32_t devices = 0;                 // that the program uses
  Expression state;                     // bytes of devices' memory that the module holds after __init
  Expression state_in_place;            // bytes that it uses where they are
};

// An argument of an exported function, in the order of its calling convention.
struct ArgumentType {
  enum class Kind : uint8_t { tensor, number, fence, other };
  Kind kind = Kind::other;
  std::string name;
  std::optional<std::vector<int64_t>> shape;  // of a tensor, -1: any size; none: of any rank
  uint64_t element_bits = 0;                  // 0: not known
  std::optional<int64_t> value;               // of a number
};

struct Options {
  // The arguments of an export; fewer than it has: the rest is not known.
  std::function<std::vector<ArgumentType>(const vm::Export&)> arguments;
  std::string_view function;        // only this one; empty: all exports
  uint64_t max_steps = 10'000'000;  // instructions that are followed, of all functions together
};

// NOT_FOUND: no such function; the message lists similar ones.
Result<Analysis> analyze(const vm::ModuleView& module, const Options& options);

}  // namespace halyard::analysis
