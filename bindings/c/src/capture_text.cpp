// The description of a capture for people: a block for each execution, a line for each command.
#include <fmt/format.h>

#include "capture.h"

namespace halyard::c {
namespace {

using hal::CapturedExecution;

constexpr size_t kMaxBytes = size_t{256} << 20;

class Text {
 public:
  Text(const hal::CaptureFile& file, Executions executions) : file_(file), executions_(executions) {}

  Result<std::string> write() {
    line("capture of {} and {}{}", counted(file_.executions.size(), "execution"),
         counted(file_.executables.size(), "executable"), file_.is_complete ? "" : ", cut short");
    for (size_t i = 0; i < file_.executables.size() && !full(); ++i) executable(i);
    for (size_t i = executions_.begin; i < executions_.end && !full(); ++i) execution(i);
    if (full())
      return fail(Code::RESOURCE_EXHAUSTED,
                  "the text of the capture has more than {} bytes; print one of its {} executions", kMaxBytes,
                  file_.executions.size());
    return std::move(text_);
  }

 private:
  bool full() const { return text_.size() > kMaxBytes; }

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  static std::string counted(size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  }

  void executable(size_t number) {
    const hal::CapturedExecutable& executable = file_.executables[number];
    line("executable{} {}, {} bytes{}", number, executable.format, executable.data.size(),
         executable.constants.empty()
             ? ""
             : fmt::format(", constants ({})", fmt::join(executable.constants, ", ")));
  }

  void execution(size_t number) {
    const CapturedExecution& execution = file_.executions[number];
    line("");
    line("execution {} on {}: {}, {}", number, execution.device,
         counted(execution.commands.size(), "command"), outcome(execution));
    for (size_t i = 0; i < execution.buffers.size() && !full(); ++i) buffer(execution, i);
    for (size_t i = 0; i < execution.entries.size() && !full(); ++i) {
      const hal::CapturedEntry& entry = execution.entries[i];
      if (entry.buffer != hal::kNoBuffer)
        line("  slot{} = {}", i, hal::range_text({entry.buffer, 0, entry.offset, entry.length}));
    }
    std::string indent;
    for (size_t i = 0; i < execution.commands.size() && !full(); ++i) {
      const hal::Command& command = execution.commands[i];
      if (std::holds_alternative<hal::EndGroupCommand>(command) && !indent.empty())
        indent.resize(indent.size() - 2);
      line("  {:4}  {}{}", i, indent, hal::command_text(command));
      constexpr size_t kDeepest = 40;
      if (std::holds_alternative<hal::BeginGroupCommand>(command) && indent.size() < kDeepest) indent += "  ";
    }
  }

  static std::string outcome(const CapturedExecution& execution) {
    switch (execution.outcome) {
      case CapturedExecution::Outcome::done:
        return "done";
      case CapturedExecution::Outcome::failed:
        return fmt::format("failed: {}", execution.message);
      default:
        return "the capture ends before the end of the execution";
    }
  }

  void buffer(const CapturedExecution& execution, size_t number) {
    const hal::CapturedBuffer& buffer = execution.buffers[number];
    line("  buffer{}: {} bytes{}", number, buffer.size,
         buffer.device == execution.device ? "" : fmt::format(" on {}", buffer.device));
    for (const hal::CapturedRange& range : buffer.ranges) {
      const bool is_done = execution.outcome == CapturedExecution::Outcome::done;
      line("    [{}, +{}){}", range.offset, range.length,
           !is_done            ? ""
           : is_changed(range) ? " changed"
                               : " unchanged");
      if (full()) return;
    }
  }

  const hal::CaptureFile& file_;
  Executions executions_;
  std::string text_;
};

}  // namespace

Result<std::string> capture_text(const hal::CaptureFile& file, Executions executions) {
  return Text(file, executions).write();
}

}  // namespace halyard::c
