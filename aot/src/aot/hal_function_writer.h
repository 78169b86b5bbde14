// Writes a function of a program over a host (vm-cc --runtime=hal). Beside the statements of FunctionWriter,
// it accounts for the stack of bytecode, reads the stop word where loops close, calls imports through the
// host, adds places to failures, and can leave where it waits: it keeps its variables at the host, and
// continues there when it is called again.
#pragma once

#include <set>
#include <string>

#include "aot/function_writer.h"
#include "aot/waits.h"

namespace halyard::aot {

class HalFunctionWriter final : public FunctionWriter {
 public:
  // `waiting` are the functions that may wait; `frame_bytes` is the size of a frame of bytecode.
  HalFunctionWriter(const Plan& plan, uint32_t function, const vm::Flow& flow,
                    const std::set<uint32_t>& waiting, uint32_t frame_bytes);

 private:
  void write_frame(Text& declarations, Text& arrivals, Text& releases) override;
  Text ending() const override;
  bool zeroes_variables() const override { return waits_; }
  bool leaves_once() const override { return true; }
  void write_own(Form::Own kind, size_t step) override;
  void call(size_t step) override;
  void resolved(size_t step) override;
  void branch_if(std::string_view condition, size_t block) override;
  void check(std::string_view call) override;
  void fail_if(std::string_view condition, std::string_view failure) override;
  void fail_now(std::string_view failure) override;

  void call_function(size_t step, const CallOperands& operands);
  void call_import(size_t step, const CallOperands& operands);
  void fail_through(bool is_waiting, std::string_view failure);
  void stop_if_asked();
  Text place() const;  // of the current step
  Text place_text() const;
  Text trace_line() const;  // of the call that is the current step
  size_t begin_point();     // a place where the function may be entered again

  const std::set<uint32_t>& waiting_;
  const bool waits_;
  const uint32_t frame_bytes_;
  bool reads_stop_ = false;
  size_t points_ = 0;
  Text kept_fields_;
  Text stores_;
};

}  // namespace halyard::aot
