// Executes a function of bytecode as far as it is known when the program is translated, and writes down the
// rest as a tree (nodes.h). Objects are always known: a function whose objects depend on its arguments is
// given up. Host code and kernels are lifted alike; imports differ.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "aot/forms.h"
#include "aot/kernels.h"
#include "aot/signature.h"
#include "plan/body.h"
#include "plan/objects.h"

namespace halyard::aot {

// An argument of an exported function.
struct Argument {
  char type = 'i';
  ValueId value = kNoValue;
  ObjectId object = kNull;  // a view
  MemoryId memory = kNoMemory;
  bool is_checked = false;  // the program states the type
  uint32_t element_type = 0;
  uint32_t encoding = 1;
  std::string name;            // for messages
  std::vector<ValueId> shape;  // constants, or parameters
  std::vector<ValueId> asked;  // dimensions that were read before the type was stated
};

// What a returned register holds.
struct Returned {
  ValueId value = kNoValue;
  ObjectId object = kNull;
  bool is_ref = false;
};

class Lifter {
 public:
  Lifter(const Plan& host, const std::vector<Kernels>& kernels) : host_(host), kernels_(kernels) {
    objects_.push_back({});
    values_.constant(vm::Bank::i32, 0);
  }
  virtual ~Lifter() = default;

  Values& values() { return values_; }
  std::vector<Memory>& memories() { return memories_; }
  std::vector<Site>& sites() { return sites_; }
  std::vector<Object>& objects() { return objects_; }
  // Refs of the module that have been read or written, by number; others are kNull.
  std::map<uint32_t, ObjectId>& refs() { return refs_; }
  const std::string& reason() const { return reason_; }
  bool is_stuck() const { return !reason_.empty(); }
  void give_up(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }

  MemoryId add_memory(Memory memory);
  ObjectId add_object(Object object);
  ValueId i32(uint32_t bits) { return values_.constant(vm::Bank::i32, bits); }
  ValueId i64(uint64_t bits) { return values_.constant(vm::Bank::i64, bits); }
  // A value that is a name in C: a parameter.
  ValueId parameter(vm::Bank bank, std::string name, Range range);

  // Lifts a call. `results` gets what it returns.
  Nodes lift(const Plan& plan, uint32_t function, const std::vector<Returned>& passed,
             std::vector<Returned>& results);

  // The function of the host that is being lifted, from 1; 0: the initializer.
  size_t current = 0;
  std::vector<Argument> arguments;        // of the current function
  std::span<const ParameterBytes> given;  // parameters whose bytes are known
  bool has_checks = true;                 // of bounds, in loads and stores
  // The devices that the program sees: one object each, and its allocator.
  struct Device {
    ObjectId device = kNull;
    ObjectId allocator = kNull;
  };
  std::vector<Device> devices = std::vector<Device>(1);
  std::vector<UsedParameter> parameters;
  std::vector<ValueId> constants;  // of a dispatch: the words of the memory of this kind

 protected:
  struct Slot {
    ValueId value = kNoValue;
    uint8_t part = 0;  // 0: all 32 bits of an i32 or f32; 1, 2: the low or high half
    bool operator==(const Slot&) const = default;
  };
  struct State {
    std::vector<Slot> slots;
    std::vector<ObjectId> refs;
    std::vector<Returned> results;
    bool is_reachable = true;
  };
  struct Context {
    Body* body = nullptr;
    const Types* types = nullptr;
  };
  struct Loop {
    LoopShape* shape = nullptr;
    size_t head = 0;
    const std::set<ValueId>* variables = nullptr;
    std::map<uint16_t, ValueId> exits;  // the variables that hold slots after the loop
    State* after = nullptr;             // the state after the loop
    ValueId first_value = 0;            // values from here on belong to the loop
    Nodes* outside = nullptr;
    bool has_test = false;  // the loop begins with the test of its counter
    Loop* outer = nullptr;
  };

  // Structure (lifter.cpp).
  State lift_from(Context& context, size_t block, State state, size_t stop, Loop* loop, Nodes& out);
  State lift_loop(Context& context, size_t head, State state, Loop* outer, Nodes& out);
  bool search_loop(Context& context, size_t head, const State& state, Loop* outer);
  State leave_loop(Context& context, State state, Loop& loop, Nodes& out);
  State merge(Context& context, size_t block, State a, Nodes& a_nodes, State b, Nodes& b_nodes, Nodes& out);
  void move(Context& context, const vm::Flow::Edge& edge, State& state);
  std::map<uint16_t, ValueId> variables_of(Context& context, LoopShape& shape, size_t head,
                                           const State& state, Nodes& out);
  void learn(State& state, ValueId condition, bool holds);
  void refine(State& state, ValueId value, Range range);

  // Values.
  ValueId read(State& state, uint16_t slot, vm::Bank bank, Nodes& out);
  void write(State& state, uint16_t slot, vm::Bank bank, ValueId value);
  ValueId operate(vm::Op op, vm::Bank bank, std::array<ValueId, 3> operands, Nodes& out);
  ValueId let(vm::Bank bank, std::string text, std::vector<ValueId> uses, bool removable, Nodes& out,
              Range range, std::vector<Access> accesses = {});
  ValueId variable(vm::Bank bank, ValueId first, Range range, Nodes& out);
  ValueId as(ValueId value, vm::Bank bank, Nodes& out);
  std::string expand(std::string_view form, const std::array<ValueId, 6>& operands,
                     const std::array<vm::Bank, 6>& banks);
  std::string condition_text(ValueId condition, bool negated);
  Node branch_on(ValueId condition, bool negated);

  // Instructions (lift_steps.cpp). Returns false at the end of a block.
  void step(Context& context, State& state, size_t step, Nodes& out);
  void access(Context& context, State& state, size_t step, Nodes& out);
  void whole(Context& context, State& state, size_t step, Nodes& out);
  void call(Context& context, State& state, size_t step, Nodes& out);
  void take_moves(Context& context, State& state, const vm::Instruction& instruction);
  ObjectId ref(Context& context, State& state, uint16_t reg) {
    (void)context;
    return state.refs[reg & vm::kRefOrdinalMask];
  }
  const Object* bytes(ObjectId id);
  void check_range(ValueId offset, ValueId length, ValueId limit, uint32_t width, Nodes& out);
  std::string address(const Place& place, ValueId index, uint32_t width);

  // Imports (lift_hal.cpp, lift_queue.cpp, lift_modules.cpp).
  struct Call {
    std::string_view callee;          // of imports.inc
    std::vector<Returned> arguments;  // those of spans too, in order
    std::vector<uint32_t> counts;     // of spans
    std::vector<Returned> results;

    ObjectId object(size_t i) const { return arguments[i].object; }
    ValueId value(size_t i) const { return arguments[i].value; }
    // Adds an object to the results; true, for functions that return whether they know the callee.
    bool give(ObjectId id) {
      results.push_back({.object = id, .is_ref = true});
      return true;
    }
  };
  bool import(Call& call, Nodes& out);
  bool import_device(Call& call, Nodes& out);
  bool import_queue(Call& call, Nodes& out);
  bool import_commands(Call& call, Nodes& out);
  bool import_inline(Call& call, Nodes& out);
  bool import_parameters(Call& call, Nodes& out);
  bool import_microkernel(Call& call, Nodes& out);
  ObjectId of_kind(ObjectId id, Object::Kind kind);
  std::string_view text_of(ObjectId id);
  uint64_t constant_of(ValueId id);
  Place part(const Place& place, ValueId offset, ValueId length, Nodes& out);
  ObjectId allocate(ValueId length, uint32_t type, uint32_t usage, Nodes& out);
  void run(const Command& command, const std::vector<Returned>& table, Nodes& out);
  Place resolve(const Command::Binding& binding, const std::vector<Returned>& table, Nodes& out);
  void fill(const Place& target, ValueId pattern, uint32_t width, Nodes& out);
  bool may_overlap(const Place& x, const Place& y) const;
  void copy(const Place& source, const Place& target, Nodes& out);
  ValueId sum(ValueId a, ValueId b, Nodes& out);
  ValueId dimension(ObjectId view, uint32_t index);
  void assert_view(Call& call, Nodes& out);
  ObjectId make_view(ObjectId buffer, const Call& call, size_t first, Nodes& out);
  ObjectId create_executable(ObjectId format, ObjectId data, ObjectId constants);
  void dispatch(size_t kernels, uint32_t function, const std::array<ValueId, 3>& counts,
                std::vector<ValueId> constants, std::vector<Place> bindings, Nodes& out);
  void dispatch_static(const Kernels& library, uint32_t function, const std::array<ValueId, 3>& counts,
                       const std::vector<ValueId>& constants, const std::vector<Place>& bindings, Nodes& out);
  MemoryId constant_memory(uint32_t ordinal);

  Body* body_of(const Plan& plan, uint32_t function);

  const Plan& host_;
  const std::vector<Kernels>& kernels_;
  Values values_;
  std::vector<Memory> memories_;
  std::vector<Object> objects_;
  std::vector<Site> sites_;
  std::map<uint32_t, ObjectId> refs_;
  std::map<std::pair<const Plan*, uint32_t>, std::unique_ptr<Body>> bodies_;
  std::map<std::pair<const Plan*, uint32_t>, MemoryId> constants_;
  const Plan* plan_ = nullptr;  // of the function that is being lifted
  size_t depth_ = 0;            // of calls
  size_t branches_ = 0;         // around the current place
  size_t work_ = 0;
  std::string reason_;
};

}  // namespace halyard::aot
