// The description of a capture for programs, without the bytes.
#include "capture.h"
#include "json_writer.h"

namespace halyard::c {
namespace {

using hal::CapturedExecution;

class Writer {
 public:
  Writer(const hal::CaptureFile& file, Executions executions) : file_(file), executions_(executions) {}

  Result<std::string> write() {
    json_.begin('{');
    json_.field("made_by", file_.made_by);
    json_.flag("complete", file_.is_complete);
    json_.list("executables", file_.executables.size(), [&](size_t i) {
      const hal::CapturedExecutable& executable = file_.executables[i];
      json_.field("format", executable.format);
      json_.field("bytes", executable.data.size());
      numbers("constants", executable.constants);
    });
    json_.field("execution_count", file_.executions.size());
    json_.list("executions", executions_.end - executions_.begin, [&](size_t i) {
      json_.field("number", executions_.begin + i);
      execution(file_.executions[executions_.begin + i]);
    });
    json_.end('}');
    if (json_.full())
      return fail(Code::RESOURCE_EXHAUSTED,
                  "the description of the capture has more than {} bytes; describe one of its {} executions",
                  Json::kMaxBytes, file_.executions.size());
    return json_.take() + "\n";
  }

 private:
  void numbers(std::string_view name, std::span<const uint32_t> values) {
    json_.key(name);
    json_.begin('[');
    for (size_t i = 0; i < values.size() && !json_.full(); ++i) json_.number(values[i]);
    json_.end(']');
  }

  void execution(const CapturedExecution& execution) {
    json_.field("device", execution.device);
    json_.field("affinity", execution.affinity);
    json_.field("mode", execution.mode);
    json_.field("outcome", outcome_name(execution.outcome));
    json_.key("error");
    if (execution.outcome == CapturedExecution::Outcome::failed) {
      json_.string(execution.message);
    } else {
      json_.null();
    }
    json_.list("commands", execution.commands.size(), [&](size_t i) {
      std::visit([&](const auto& command) { members(command); }, execution.commands[i]);
      json_.field("text", hal::command_text(execution.commands[i]));
    });
    json_.key("binding_table");
    json_.begin('[');
    for (size_t i = 0; i < execution.entries.size() && !json_.full(); ++i) {
      const hal::CapturedEntry& entry = execution.entries[i];
      if (entry.buffer == hal::kNoBuffer) {
        json_.null();
      } else {
        object(hal::CommandRange{entry.buffer, 0, entry.offset, entry.length});
      }
    }
    json_.end(']');
    json_.list("buffers", execution.buffers.size(),
               [&](size_t i) { buffer(execution.buffers[i], execution.outcome); });
  }

  void buffer(const hal::CapturedBuffer& buffer, CapturedExecution::Outcome outcome) {
    json_.field("device", buffer.device);
    json_.field("bytes", buffer.size);
    json_.field("memory_type", buffer.memory_type);
    json_.field("usage", buffer.usage);
    json_.field("access", buffer.access);
    json_.list("ranges", buffer.ranges.size(), [&](size_t i) {
      json_.field("offset", buffer.ranges[i].offset);
      json_.field("length", buffer.ranges[i].length);
      json_.key("changed");
      if (outcome == CapturedExecution::Outcome::done) {
        json_.boolean(is_changed(buffer.ranges[i]));
      } else {
        json_.null();
      }
    });
  }

  void object(const hal::CommandRange& range) {
    json_.begin('{');
    const bool is_slot = range.buffer == hal::kNoBuffer;
    json_.field(is_slot ? "slot" : "buffer", is_slot ? range.slot : range.buffer);
    json_.field("offset", range.offset);
    json_.field("length", range.length);
    json_.end('}');
  }
  void range(std::string_view name, const hal::CommandRange& range) {
    json_.key(name);
    object(range);
  }

  // Writes the members of a command, by the kinds of its fields.
  template <typename Command>
  void members(const Command& command) {
    json_.field("kind", hal::word_of(command));
    hal::for_each_field(command, [this](auto kind, std::string_view name, const auto& value) {
      this->member(kind, name, value);
    });
  }
  void member(hal::command_field::Number, std::string_view name, uint32_t value) { json_.field(name, value); }
  void member(hal::command_field::Text, std::string_view name, std::string_view value) {
    json_.field(name, value);
  }
  void member(hal::command_field::Source, std::string_view name, const hal::CommandRange& value) {
    range(name, value);
  }
  void member(hal::command_field::Target, std::string_view name, const hal::CommandRange& value) {
    range(name, value);
  }
  void member(hal::command_field::Data, std::string_view, std::span<const uint8_t>) {}
  void member(hal::command_field::ChannelNumber, std::string_view name, uint32_t value) {
    json_.field(name, value);
  }
  void member(hal::command_field::Elements, std::string_view name, uint64_t value) {
    json_.field(name, value);
  }

  void members(const hal::DispatchCommand& command) {
    json_.field("kind", hal::word_of(command));
    json_.field("executable", command.executable);
    json_.field("function", command.function);
    json_.field("name", command.function_name);
    if (command.counts) {
      range("workgroups_from", *command.counts);
    } else {
      numbers("workgroups", command.workgroups);
    }
    numbers("constants", command.constants);
    json_.key("bindings");
    json_.begin('[');
    for (const hal::CommandRange& binding : command.bindings) object(binding);
    json_.end(']');
  }

  const hal::CaptureFile& file_;
  Executions executions_;
  Json json_;
};

}  // namespace

Result<std::string> capture_json(const hal::CaptureFile& file, Executions executions) {
  return Writer(file, executions).write();
}

}  // namespace halyard::c
