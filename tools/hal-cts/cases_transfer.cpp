// Fill, copy and update: every small offset and length, and larger ones around sizes where implementations
// change, each surrounded by bytes that must not change.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "bytes.h"
#include "cases.h"

namespace halyard::cts {

namespace {

// How work is submitted to the device.
enum class Way { in_list, through_slots, as_operation };
constexpr uint32_t kTargetSlot = 1, kSourceSlot = 0;

struct Step {
  uint32_t kind = HALYARD_COMMAND_FILL;
  uint64_t target = 0;  // byte offset
  uint64_t length = 0;
  uint64_t source = 0;  // copy: offset in the source; update: offset in the host bytes
  uint32_t pattern = 0, pattern_size = 1;

  std::string text() const {
    const char* const names[] = {"fill", "update", "copy"};
    std::string what =
        fmt::format("{} of {} bytes at {}", names[kind - HALYARD_COMMAND_FILL], length, target);
    if (kind == HALYARD_COMMAND_FILL) return what + fmt::format(" with a pattern of {}", pattern_size);
    return what + fmt::format(" from {}", source);
  }
};

// A target whose bytes are all known, before and after.
struct Field {
  Memory source, target;
  std::vector<uint8_t> source_bytes, host_bytes, expected;
};

Field make_field(Session& s, uint64_t size, uint32_t type) {
  Field field;
  field.source_bytes = noise(size, 7);
  field.host_bytes = noise(size, 8);
  field.expected = noise(size, 9);
  field.source = s.allocate(field.source_bytes, type);
  field.target = s.allocate(field.expected, type);
  return field;
}

// Computes the expected bytes.
void predict(Field& field, const Step& step) {
  uint8_t* const target = &field.expected[step.target];
  if (step.kind == HALYARD_COMMAND_UPDATE) std::memcpy(target, &field.host_bytes[step.source], step.length);
  if (step.kind == HALYARD_COMMAND_COPY) std::memcpy(target, &field.source_bytes[step.source], step.length);
  if (step.kind != HALYARD_COMMAND_FILL) return;
  for (uint64_t i = 0; i < step.pattern_size; ++i) target[i] = static_cast<uint8_t>(step.pattern >> 8 * i);
  for (uint64_t done = step.pattern_size; done < step.length; done *= 2)
    std::memcpy(target + done, target, std::min(done, step.length - done));
}

// The steps access different bytes, so their order does not matter.
void apply(Session& s, Way way, Field& field, const std::vector<Step>& steps) {
  Recording recording;
  std::vector<Work*> works;
  // A slot's entry begins in the middle of its memory.
  const uint64_t base = way == Way::through_slots ? field.expected.size() / 2 / 64 * 64 : 0;
  for (const Step& step : steps) {
    predict(field, step);
    const void* const host = field.host_bytes.data() + step.source;
    // Ranges before the start of the entry are direct.
    const auto used = [&](uint32_t number, const Memory& memory, uint64_t offset) {
      return way == Way::through_slots && offset >= base ? slot(number, offset - base, step.length)
                                                         : range(memory.handle, offset, step.length);
    };
    const halyard_range_t target = used(kTargetSlot, field.target, step.target),
                          source = used(kSourceSlot, field.source, step.source);
    if (way == Way::as_operation) {
      works.push_back(&s.submit(step.kind == HALYARD_COMMAND_FILL
                                    ? fill_operation(target, step.pattern, step.pattern_size)
                                : step.kind == HALYARD_COMMAND_UPDATE ? update_operation(host, target)
                                                                      : copy_operation(source, target)));
    } else if (step.kind == HALYARD_COMMAND_FILL) {
      recording.fill(target, step.pattern, step.pattern_size);
    } else if (step.kind == HALYARD_COMMAND_UPDATE) {
      recording.update(host, target);
    } else {
      recording.copy(source, target);
    }
  }
  for (Work* work : works) s.must("R63", "a transfer as an operation", s.end_of(*work));
  const uint64_t length = field.expected.size() - base;
  if (way == Way::in_list)
    s.must_execute(std::move(recording));
  else if (way == Way::through_slots)
    s.must_execute(std::move(recording),
                   {{field.source.handle, base, length}, {field.target.handle, base, length}});
}

// Reports the first byte that is wrong, and the step that is nearest to it.
void check_field(Session& s, std::string_view rule, const Field& field, const std::vector<Step>& steps) {
  const std::vector<uint8_t> found = s.read(field.target);
  if (std::memcmp(found.data(), field.expected.data(), found.size()) == 0) return;
  const auto [wrong, is] = std::ranges::mismatch(field.expected, found);
  if (wrong == field.expected.end()) return;
  const auto at = static_cast<uint64_t>(wrong - field.expected.begin());
  const auto distance = [&](const Step& step) {
    return at < step.target                 ? step.target - at
           : at < step.target + step.length ? 0
                                            : at - (step.target + step.length) + 1;
  };
  const Step& nearest = *std::ranges::min_element(steps, {}, distance);
  s.problem(rule, fmt::format("byte {} after {}", at, nearest.text()),
            fmt::format("0x{:02x}, {}", *wrong,
                        distance(nearest) ? "which it must leave alone" : "which it must write"),
            fmt::format("0x{:02x}", *is));
}

// Each small offset with each small length, each in its own window.
std::vector<Step> small_steps(uint32_t kind, uint32_t pattern_size, uint64_t most_offset,
                              uint64_t most_length, uint64_t* size) {
  constexpr uint64_t kGuard = 64;
  const uint64_t window = (most_offset + most_length + 2 * kGuard + 63) / 64 * 64;
  std::vector<Step> steps;
  uint64_t at = 0;
  for (uint64_t offset = 0; offset <= most_offset; offset += pattern_size)
    for (uint64_t length = pattern_size; length <= most_length; length += pattern_size, at += window) {
      Step step{kind, at + kGuard + offset, length};
      step.source = at + kGuard + (offset * 3 + length) % 61;  // differs from the target's alignment
      step.pattern = 0xC3A5960Fu + static_cast<uint32_t>(steps.size()) * 0x01030507u;
      step.pattern_size = pattern_size;
      steps.push_back(step);
    }
  *size = at;
  return steps;
}

void small(Session& s, Way way, uint32_t kind, std::string_view rule) {
  const bool operations = way == Way::as_operation;  // each is a separate submission, so there are fewer
  for (const uint32_t type : {kStaging, kDeviceLocal}) {
    for (const uint32_t pattern_size : {1u, 2u, 4u}) {
      if (kind != HALYARD_COMMAND_FILL && pattern_size != 1) continue;
      uint64_t size = 0;
      const std::vector<Step> steps =
          small_steps(kind, pattern_size, operations ? 17 : 66, operations ? 34 : 131, &size);
      Field field = make_field(s, size, type);
      apply(s, way, field, steps);
      check_field(s, rule, field, steps);
      s.free(field.source);
      s.free(field.target);
      if (s.failed()) return;
    }
  }
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

void transfer_fill_in_lists(Session& s) { small(s, Way::in_list, HALYARD_COMMAND_FILL, "R103"); }
void transfer_fill_through_slots(Session& s) { small(s, Way::through_slots, HALYARD_COMMAND_FILL, "R104"); }
void transfer_fill_as_operation(Session& s) {
  s.need_operation(HALYARD_OPERATION_FILL, "fill");
  small(s, Way::as_operation, HALYARD_COMMAND_FILL, "R63");
}
void transfer_copy_in_lists(Session& s) { small(s, Way::in_list, HALYARD_COMMAND_COPY, "R103"); }
void transfer_copy_through_slots(Session& s) { small(s, Way::through_slots, HALYARD_COMMAND_COPY, "R104"); }
void transfer_copy_as_operation(Session& s) {
  s.need_operation(HALYARD_OPERATION_COPY, "copy");
  small(s, Way::as_operation, HALYARD_COMMAND_COPY, "R63");
}
void transfer_update_in_lists(Session& s) { small(s, Way::in_list, HALYARD_COMMAND_UPDATE, "R103"); }
void transfer_update_through_slots(Session& s) {
  small(s, Way::through_slots, HALYARD_COMMAND_UPDATE, "R104");
}
void transfer_update_as_operation(Session& s) {
  s.need_operation(HALYARD_OPERATION_UPDATE, "update");
  small(s, Way::as_operation, HALYARD_COMMAND_UPDATE, "R63");
}

void transfer_large(Session& s) {
  constexpr uint64_t kSize = (uint64_t{1} << 21) + 4096;
  Field field = make_field(s, kSize, kDeviceLocal);
  for (const uint64_t middle : {uint64_t{256}, uint64_t{4096}, uint64_t{65536}, uint64_t{1} << 20}) {
    for (const int64_t beside : {-4, -1, 0, 1, 4}) {
      for (const uint64_t offset : {0, 1, 4, 63, 4095}) {
        const uint64_t length = middle + static_cast<uint64_t>(beside);
        for (const uint32_t kind : {HALYARD_COMMAND_FILL, HALYARD_COMMAND_UPDATE, HALYARD_COMMAND_COPY}) {
          if (kind == HALYARD_COMMAND_UPDATE && length > 65536) continue;  // the limit of updates by the host
          Step step{kind, offset, length, (offset + 13) % 64};
          step.pattern = static_cast<uint32_t>(length * 31 + offset * 7 + kind);
          step.pattern_size = offset % 4 == 0 && length % 4 == 0 ? 4 : 1;
          apply(s, Way::in_list, field, {step});
          if (length <= 65537 || offset == 1) check_field(s, "R103", field, {step});
          if (s.failed()) return;
        }
      }
    }
    check_field(s, "R103", field, {Step{HALYARD_COMMAND_COPY, 0, kSize}});
  }
}

void transfer_files(Session& s) {
  s.need_operation(HALYARD_OPERATION_READ, "read");
  s.need_operation(HALYARD_OPERATION_WRITE, "write");
  const File file(std::tmpfile());
  if (!file) unsupported("this system gives no temporary file");
  const int fd = fileno(file.get());
  const std::vector<uint8_t> contents = noise(100000);
  if (pwrite(fd, contents.data(), contents.size(), 0) != static_cast<ssize_t>(contents.size()))
    unsupported("the temporary file cannot be written");
  for (const auto& [file_offset, offset, length] :
       {std::array<uint64_t, 3>{0, 0, 100000}, {1, 3, 77}, {99999, 64, 1}, {4096, 4095, 8193}}) {
    std::vector<uint8_t> expected = noise(100000, 5);
    const Memory memory = s.allocate(expected);
    const std::string what = fmt::format("read of {} bytes at {} of a file", length, file_offset);
    s.must(
        "R63", what,
        s.run(file_operation(HALYARD_OPERATION_READ, fd, file_offset, range(memory.handle, offset, length))));
    std::copy_n(contents.begin() + static_cast<ptrdiff_t>(file_offset), length,
                expected.begin() + static_cast<ptrdiff_t>(offset));
    same_bytes(s, "R63", what, expected, s.read(memory));
  }
  const std::vector<uint8_t> other = noise(5000, 6);
  const Memory memory = s.allocate(other);
  s.must("R63", "write of 3000 bytes to a file",
         s.run(file_operation(HALYARD_OPERATION_WRITE, fd, 1001, range(memory.handle, 7, 3000))));
  std::vector<uint8_t> expected = contents, found(contents.size());
  std::copy_n(other.begin() + 7, 3000, expected.begin() + 1001);
  if (pread(fd, found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()))
    same_bytes(s, "R63", "the file after a write", expected, found);
}

void transfer_files_that_end_early(Session& s) {
  s.need_operation(HALYARD_OPERATION_READ, "read");
  const File file(std::tmpfile());
  if (!file) unsupported("this system gives no temporary file");
  const Memory memory = s.allocate(100);
  const Semaphore signal = s.semaphore();
  Work& work =
      s.submit(file_operation(HALYARD_OPERATION_READ, fileno(file.get()), 0, range(memory.handle, 0, 100)),
               {}, {{signal, 1}});
  const Outcome outcome = s.end_of(work);
  s.check("R63", !outcome.ok(), "read of 100 bytes of an empty file", "a failure", "success");
  uint64_t value = 0;
  s.equal("R63", "the signal of a read that failed, against what completed was told", outcome.code,
          s.query(signal, &value).code);
}

}  // namespace halyard::cts
