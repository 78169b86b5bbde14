// Timeline: the allocations of one run of a function in the order of the program, and the highest levels of
// memory. A level that is known to be at most another one is dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/analysis.h"

namespace halyard::analysis {

class Timeline final : public std::enable_shared_from_this<Timeline> {
 public:
  static constexpr size_t kMaxPeaks = 8;
  static constexpr size_t kMaxSteps = 200'000;
  static constexpr size_t kMaxAllocations = 200'000;
  static constexpr size_t kMaxUses = 2'000'000;
  static constexpr size_t kMaxWriters = 4'096;  // of one allocation

  explicit Timeline(Symbols& symbols) : symbols_(symbols) { consider(); }  // nothing is alive

  uint32_t allocate(Allocation allocation);  // returns its index
  void free(uint32_t allocation);            // once; later calls have no effect
  // Begins the timeline of a call, after that of `__init`: living allocations become state, and the lists of
  // steps and levels become empty.
  void begin_call();
  // Ends the call, after which nothing is freed. `results`: the allocations that the call's results hold.
  void end_call(const std::vector<uint32_t>& results);
  // Ends `__init`, after which nothing is freed: living allocations are the module's state.
  void end_initializer();
  void add(Step step);  // finds the steps that it comes after

  bool is_full() const { return is_full_; }
  const Expression& live() const { return live_; }
  std::vector<Allocation>& allocations() { return allocations_; }
  std::vector<Step>& steps() { return steps_; }
  std::vector<Peak> peaks() const;

 private:
  struct Candidate {
    Expression live;
    uint32_t event;
    uint32_t steps;
  };
  struct Lifetime {
    uint32_t begin = 0;
    uint32_t end = UINT32_MAX;
  };
  struct Writer {
    Expression offset, length;
    uint32_t step;
  };
  void consider();
  void replace(std::vector<Writer>& writers, const Use& use);
  bool may_overlap(const Expression& offset, const Expression& length, const Writer& writer);

  Symbols& symbols_;
  std::vector<Allocation> allocations_;
  std::vector<Lifetime> lifetimes_;           // in events, by allocation
  std::vector<std::vector<Writer>> writers_;  // by allocation
  std::vector<Step> steps_;
  std::vector<Candidate> candidates_;
  Expression live_;
  uint32_t events_ = 0;
  size_t uses_ = 0;
  bool is_full_ = false;
  bool is_over_ = false;
};

}  // namespace halyard::analysis
