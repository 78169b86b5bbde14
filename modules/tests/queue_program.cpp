// Work on an allocation waits for the work before it on the same allocation, so that results do not depend on
// threads. Whether work fails is known from the gates that it depends on.
#include "queue_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "hal/queue/queue.h"
#include "hal/queue/wait.h"

namespace halyard::modules {

namespace {

using hal::Fence;

constexpr uint64_t kBytes = 64;  // of each allocation and file
constexpr size_t kMostOperations = 64;
constexpr size_t kMostAllocations = 6;
constexpr size_t kMostGates = 4;
constexpr uint32_t kPatience = 60'000;  // milliseconds until work counts as lost
constexpr uint32_t kUsage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED;
constexpr uint32_t kMemory = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_DEVICE_VISIBLE;

enum class Fate : uint8_t { pending, done, failed };

struct Gate {
  Ref<Fence> fence;
  Fate fate = Fate::pending;
};

// Bytes as they are computed here.
using Computed = std::shared_ptr<std::vector<uint8_t>>;

// Submitted work, and what it does to computed bytes.
struct Work {
  Ref<Fence> signal;
  std::vector<size_t> before;  // work that it waits for
  std::optional<size_t> gate;
  std::function<void()> effect;
  Fate fate = Fate::pending;
  bool settled = false;
};

// An allocation with views of it, or a file.
struct Place {
  size_t device = 0;
  std::vector<Ref<hal::Buffer>> views;
  std::vector<uint64_t> origins;  // of the views
  bool queue_ordered = false;
  size_t first_fill = 0;  // of a queue-ordered allocation: the work that gives it bytes
  std::shared_ptr<std::vector<uint8_t>> stored;  // a file's own bytes
  Ref<hal::File> file;
  Computed computed;
  std::vector<size_t> chain;  // submitted work on it that is not settled
};

class Program {
 public:
  Program(std::span<const uint8_t> bytes, std::span<const Ref<hal::Device>> devices)
      : bytes_(bytes), devices_(devices) {}

  QueueOutcome run() {
    for (size_t i = 0; i < 2 || i < devices_.size(); ++i) allocate(i % devices_.size());
    add_file();
    while (!bytes_.empty() && outcome_.operations < kMostOperations && outcome_.defect.empty()) step();
    for (Gate& gate : gates_)
      if (gate.fate == Fate::pending) decide(gate);
    settle();
    for (Place& place : places_) check(place);
    gates_.clear();
    return std::move(outcome_);
  }

 private:
  // ---- choices

  uint8_t next() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  size_t below(size_t count) { return next() % count; }
  // Mostly within a range; sometimes at its end or beyond.
  uint64_t offset() {
    const uint8_t byte = next();
    return byte == 255 ? UINT64_MAX - 3 : byte % 72;
  }
  uint64_t length() {
    const uint8_t byte = next();
    return byte == 255 ? hal::kWholeLength : byte % 40;
  }

  void defect(std::string text) {
    if (outcome_.defect.empty()) outcome_.defect = std::move(text);
  }
  // Whether a call has succeeded; its code is part of the outcome.
  template <typename T>
  bool noted(const Result<T>& result) {
    outcome_.codes.push_back(result ? Code::OK : result.error().code());
    return result.has_value();
  }

  // ---- places

  void add_views(Place& place, const Ref<hal::Buffer>& whole) {
    place.views = {whole};
    place.origins = {0};
    for (const auto& [origin, size] : {std::pair<uint64_t, uint64_t>{16, 32}, {4, 8}}) {
      Result<Ref<hal::Buffer>> part = whole->subspan(origin, size);
      if (!part) return defect("a part of a buffer is refused: " + part.error().text());
      place.views.push_back(*part);
      place.origins.push_back(origin);
    }
  }

  void allocate(size_t device) {
    Result<Ref<hal::Buffer>> buffer =
        hal::Buffer::allocate(*devices_[device], hal::kAnyQueue, kMemory, kUsage, kBytes);
    if (!buffer) return defect("no buffer: " + buffer.error().text());
    Place place = {.device = device, .computed = std::make_shared<std::vector<uint8_t>>(kBytes)};
    for (size_t i = 0; i < kBytes; ++i) (*place.computed)[i] = static_cast<uint8_t>(i * 3 + places_.size());
    const Result<> written = (*buffer)->write(0, place.computed->data(), kBytes);
    if (!written) return defect("a buffer cannot be written: " + written.error().text());
    add_views(place, *buffer);
    places_.push_back(std::move(place));
  }

  void add_file() {
    Place place = {.stored = std::make_shared<std::vector<uint8_t>>(kBytes, 0x5A),
                   .computed = std::make_shared<std::vector<uint8_t>>(kBytes, 0x5A)};
    place.file = hal::File::from_memory(*place.stored, hal::kRead | hal::kWrite, nullptr);
    places_.push_back(std::move(place));
  }

  // A place that is no file; one is always there.
  size_t buffer_place() {
    size_t index = below(places_.size());
    while (places_[index].file) index = (index + 1) % places_.size();
    return index;
  }
  size_t file_place() {
    return static_cast<size_t>(
        std::ranges::find_if(places_, [](const Place& place) { return place.file != nullptr; }) -
        places_.begin());
  }

  // ---- work

  // Updates what is known about submitted work, and computes its effects.
  void compute() {
    for (Work& work : work_) {
      if (work.fate != Fate::pending) continue;
      Fate fate = work.gate ? gates_[*work.gate].fate : Fate::done;
      for (const size_t before : work.before) {
        const Fate other = work_[before].fate;
        if (other == Fate::failed || fate == Fate::failed)
          fate = Fate::failed;
        else if (other == Fate::pending)
          fate = Fate::pending;
      }
      work.fate = fate;
      if (fate == Fate::done && work.effect) work.effect();
      if (fate != Fate::pending) work.effect = nullptr;
    }
  }

  struct Point {
    Ref<Fence> wait;
    Ref<Fence> signal;
    std::vector<size_t> before;
    std::optional<size_t> gate;
  };

  // Fences for work on these places, which waits for the last work on each, and perhaps for a gate.
  std::optional<Point> point(std::initializer_list<size_t> used, size_t device) {
    Point point;
    std::vector<Fence*> waits;
    for (const size_t place : used) {
      if (places_[place].chain.empty()) continue;
      point.before.push_back(places_[place].chain.back());
      waits.push_back(work_[places_[place].chain.back()].signal.get());
    }
    if (!gates_.empty() && next() % 4 == 0) {
      const size_t gate = below(gates_.size());
      if (gates_[gate].fate == Fate::pending) {
        point.gate = gate;
        waits.push_back(gates_[gate].fence.get());
      }
    }
    Result<Ref<Fence>> wait = Fence::join(waits);
    Result<Ref<Fence>> signal = Fence::create(devices_[device]);
    if (!wait || !signal) {
      defect("no fence");
      return std::nullopt;
    }
    point.wait = *wait;
    point.signal = *signal;
    return point;
  }

  hal::QueuePoint queue_point(const Point& point, size_t device) {
    return {*devices_[device], hal::kAnyQueue, point.wait.get(), point.signal.get()};
  }

  void submitted(Point&& point, std::initializer_list<size_t> used, std::function<void()> effect) {
    ++outcome_.operations;
    const size_t number = work_.size();
    work_.push_back({.signal = std::move(point.signal),
                     .before = std::move(point.before),
                     .gate = point.gate,
                     .effect = std::move(effect)});
    for (const size_t place : used) places_[place].chain.push_back(number);
    compute();
  }

  // Waits for all work that no closed gate holds up.
  void settle() {
    compute();
    for (size_t i = 0; i < work_.size(); ++i) {
      Work& work = work_[i];
      if (work.settled || work.fate == Fate::pending) continue;
      Fence* const fences[] = {work.signal.get()};
      const Status status = hal::await(fences, kPatience);
      const bool expected = work.fate == Fate::done ? status.ok() : status.code() == Code::ABORTED;
      if (!expected)
        defect(fmt::format("work {} {}, and its fence says: {}", i,
                           work.fate == Fate::done ? "can run" : "waits for what has failed",
                           status.ok() ? "OK" : status.text()));
      work.settled = true;
      work.signal = nullptr;
    }
    for (Place& place : places_) std::erase_if(place.chain, [&](size_t work) { return work_[work].settled; });
    // Memory whose alloca or first fill has failed has no known bytes. The fill may fail, by a gate of its own, while
    // the alloca still waits for another one.
    std::erase_if(places_, [&](const Place& place) {
      return place.queue_ordered && place.computed->empty() &&
             (place.chain.empty() || work_[place.first_fill].fate == Fate::failed);
    });
  }

  void check(Place& place) {
    if (!place.chain.empty() || !outcome_.defect.empty()) return;
    std::vector<uint8_t> found(kBytes);
    if (place.file) {
      found = *place.stored;
    } else if (const Result<> read = place.views[0]->read(0, found.data(), kBytes); !read) {
      return defect("a buffer cannot be read: " + read.error().text());
    }
    if (found != *place.computed) {
      const auto at = std::ranges::mismatch(found, *place.computed).in1 - found.begin();
      defect(fmt::format("byte {} of {} {} is {}; expected {}", at, place.file ? "file" : "buffer",
                         &place - places_.data(), found[static_cast<size_t>(at)],
                         (*place.computed)[static_cast<size_t>(at)]));
    }
    outcome_.bytes.insert(outcome_.bytes.end(), found.begin(), found.end());
  }

  void decide(Gate& gate) {
    switch (below(3)) {
      case 0:
      default:
        noted(gate.fence->signal());
        gate.fate = Fate::done;
        break;
      case 1:
        gate.fence->fail(Status(Code::ABORTED, "the gate fails"));
        gate.fate = Fate::failed;
        break;
      case 2:
        gate.fence = nullptr;
        gate.fate = Fate::failed;
        break;
    }
    compute();
  }

  // ---- effects

  static void fill_bytes(const Computed& target, uint64_t at, uint64_t size, uint64_t pattern,
                         uint64_t pattern_size) {
    for (uint64_t i = 0; i < size; ++i)
      (*target)[at + i] = static_cast<uint8_t>(pattern >> (i % pattern_size * 8));
  }
  static void copy_bytes(const Computed& source, uint64_t from, const Computed& target, uint64_t to,
                         uint64_t size) {
    const std::vector<uint8_t> bytes(source->begin() + static_cast<ptrdiff_t>(from),
                                     source->begin() + static_cast<ptrdiff_t>(from + size));
    std::ranges::copy(bytes, target->begin() + static_cast<ptrdiff_t>(to));
  }

  struct View {
    size_t place;
    Ref<hal::Buffer> buffer;
    uint64_t origin;
  };
  View view(size_t place) {
    const size_t index = below(places_[place].views.size());
    return {place, places_[place].views[index], places_[place].origins[index]};
  }
  static uint64_t rest(const View& view, uint64_t offset, uint64_t length) {
    return length == hal::kWholeLength ? view.buffer->length() - offset : length;
  }

  // ---- the operations

  // Work never waits for something that is known to have failed: devices that run in the caller return such
  // failures, others do not.
  void step() {
    compute();
    if (std::ranges::any_of(places_, [&](const Place& place) {
          return !place.chain.empty() && work_[place.chain.back()].fate == Fate::failed;
        }))
      settle();
    switch (next() % 14) {
      case 0:
      case 1:
        return fill();
      case 2:
        return update();
      case 3:
      case 4:
        return copy();
      case 5:
        return read();
      case 6:
        return write();
      case 7:
        return add_gate();
      case 8:
        if (!gates_.empty())
          if (Gate& gate = gates_[below(gates_.size())]; gate.fate == Fate::pending) decide(gate);
        return;
      case 9:
      case 10:
        return execute();
      case 11:
        return allocate_in_queue();
      case 12:
        return free_in_queue();
      default:
        settle();
        for (Place& place : places_) check(place);
        outcome_.bytes.clear();
        return;
    }
  }

  void add_gate() {
    if (gates_.size() == kMostGates) return;
    Result<Ref<Fence>> fence = Fence::create(devices_[below(devices_.size())]);
    if (!fence) return defect("no fence: " + fence.error().text());
    gates_.push_back({*fence});
  }

  void fill() {
    const size_t place = buffer_place();
    std::optional<Point> at = point({place}, places_[place].device);
    if (!at) return;
    const View target = view(place);
    const uint64_t from = offset(), size = length(), pattern = next() * 0x01030507u;
    const uint32_t pattern_size = 1u << below(3);
    const size_t device = places_[place].device;
    if (!noted(hal::queue_fill(queue_point(*at, device), *target.buffer, from, size, pattern, pattern_size)))
      return;
    submitted(
        std::move(*at), {place},
        [computed = places_[place].computed, begin = target.origin + from, bytes = rest(target, from, size),
         pattern, pattern_size] { fill_bytes(computed, begin, bytes, pattern, pattern_size); });
  }

  void update() {
    const size_t place = buffer_place();
    std::optional<Point> at = point({place}, places_[place].device);
    if (!at) return;
    const View target = view(place);
    const uint64_t from = offset();
    std::vector<uint8_t> source(below(24));
    for (uint8_t& byte : source) byte = next();
    if (!noted(hal::queue_update(queue_point(*at, places_[place].device), source, *target.buffer, from)))
      return;
    submitted(std::move(*at), {place},
              [computed = places_[place].computed, begin = target.origin + from, source] {
                std::ranges::copy(source, computed->begin() + static_cast<ptrdiff_t>(begin));
              });
  }

  void copy() {
    const size_t from_place = buffer_place(), to_place = buffer_place();
    const size_t device = next() % 2 ? places_[from_place].device : places_[to_place].device;
    std::optional<Point> at = point({from_place, to_place}, device);
    if (!at) return;
    const View source = view(from_place), target = view(to_place);
    const uint64_t from = offset(), to = offset(), size = length();
    if (!noted(hal::queue_copy(queue_point(*at, device), *source.buffer, from, *target.buffer, to, size)))
      return;
    submitted(std::move(*at), {from_place, to_place},
              [a = places_[from_place].computed, b = places_[to_place].computed, begin = source.origin + from,
               end = target.origin + to,
               bytes = rest(source, from, size)] { copy_bytes(a, begin, b, end, bytes); });
  }

  void read() {
    const size_t file = file_place(), place = buffer_place();
    std::optional<Point> at = point({file, place}, places_[place].device);
    if (!at) return;
    const View target = view(place);
    const uint64_t from = offset(), to = offset(), size = next() % 40;
    if (!noted(hal::queue_read(queue_point(*at, places_[place].device), *places_[file].file, from,
                               *target.buffer, to, size)))
      return;
    submitted(std::move(*at), {file, place},
              [a = places_[file].computed, b = places_[place].computed, from, end = target.origin + to,
               size] { copy_bytes(a, from, b, end, size); });
  }

  void write() {
    const size_t file = file_place(), place = buffer_place();
    std::optional<Point> at = point({file, place}, places_[place].device);
    if (!at) return;
    const View source = view(place);
    const uint64_t from = offset(), to = offset(), size = next() % 40;
    if (!noted(hal::queue_write(queue_point(*at, places_[place].device), *source.buffer, from,
                                *places_[file].file, to, size)))
      return;
    submitted(std::move(*at), {file, place},
              [a = places_[place].computed, b = places_[file].computed, begin = source.origin + from, to,
               size] { copy_bytes(a, begin, b, to, size); });
  }

  // A recording with a direct buffer and a slot, both of one device, executed once or twice.
  void execute() {
    const size_t direct = buffer_place();
    const size_t device = places_[direct].device;
    size_t bound = buffer_place();
    if (places_[bound].device != device) bound = direct;
    std::optional<Point> at = point({direct, bound}, device);
    if (!at) return;
    const View first = view(direct), second = view(bound);
    const uint32_t mode = next() % 4 == 0 ? uint32_t{hal::kOneShot} : 0u;
    Result<Ref<hal::CommandBuffer>> created =
        hal::CommandBuffer::create(devices_[device], mode, hal::kTransfer, hal::kAnyQueue, 1);
    if (!noted(created)) return;
    hal::CommandBuffer& commands = **created;
    std::vector<std::function<void()>> effects;
    const Computed a = places_[direct].computed, b = places_[bound].computed;
    for (size_t count = 1 + below(3); count > 0; --count) {
      const uint64_t from = offset(), to = offset(), size = next() % 40;
      const uint32_t pattern = next() * 0x01030507u;
      const hal::BufferRange range = {first.buffer.get(), 0, from, size}, slot = {nullptr, 0, to, size};
      size_t command = below(4);
      // The bytes of a copy between overlapping ranges through a slot are undefined [R104].
      if (direct == bound && (command == 1 || command == 2)) command = 3;
      switch (command) {
        case 0:
          if (noted(commands.fill(range, pattern, 4)))
            effects.emplace_back(
                [=, begin = first.origin + from] { fill_bytes(a, begin, size, pattern, 4); });
          break;
        case 1:
          if (noted(commands.copy(range, slot)))
            effects.emplace_back([=, begin = first.origin + from, end = second.origin + to] {
              copy_bytes(a, begin, b, end, size);
            });
          break;
        case 2:
          if (noted(commands.copy(slot, range)))
            effects.emplace_back([=, begin = second.origin + to, end = first.origin + from] {
              copy_bytes(b, begin, a, end, size);
            });
          break;
        default: {
          const std::vector<uint8_t> source(size, static_cast<uint8_t>(pattern));
          if (noted(commands.update(slot, source)))
            effects.emplace_back([=, end = second.origin + to] {
              std::ranges::copy(source, b->begin() + static_cast<ptrdiff_t>(end));
            });
          break;
        }
      }
      noted(commands.barrier(28, 13));
    }
    if (!noted(commands.finalize())) return;
    const hal::Binding table[] = {{second.buffer.get(), 0, hal::kWholeLength}};
    if (!noted(hal::queue_execute(queue_point(*at, device), commands, table))) return;
    submitted(std::move(*at), {direct, bound}, [effects] {
      for (const std::function<void()>& effect : effects) effect();
    });
  }

  void allocate_in_queue() {
    if (places_.size() >= kMostAllocations) return;
    const size_t device = below(devices_.size());
    std::optional<Point> at = point({}, device);
    if (!at) return;
    Result<Ref<hal::Buffer>> buffer =
        hal::queue_alloca(queue_point(*at, device), 0, kMemory, kUsage, kBytes, 0);
    if (!noted(buffer)) return;
    Place place = {
        .device = device, .queue_ordered = true, .computed = std::make_shared<std::vector<uint8_t>>()};
    add_views(place, *buffer);
    const size_t index = places_.size();
    places_.push_back(std::move(place));
    submitted(std::move(*at), {index}, nullptr);
    // Its bytes are unknown until the first fill.
    std::optional<Point> filled = point({index}, device);
    if (!filled) return;
    if (!noted(hal::queue_fill(queue_point(*filled, device), *places_[index].views[0], 0, kBytes, 0x77, 1)))
      return defect("the first fill of memory is refused");
    places_[index].first_fill = work_.size();
    submitted(std::move(*filled), {index},
              [computed = places_[index].computed] { computed->assign(kBytes, 0x77); });
  }

  void free_in_queue() {
    const size_t place = buffer_place();
    if (!places_[place].queue_ordered) return;
    const size_t device = places_[place].device;
    std::optional<Point> at = point({place}, device);
    if (!at) return;
    if (!noted(hal::queue_dealloca(queue_point(*at, device), *places_[place].views[0], 0))) return;
    submitted(std::move(*at), {place}, nullptr);
    places_.erase(places_.begin() + static_cast<ptrdiff_t>(place));
  }

  std::span<const uint8_t> bytes_;
  std::span<const Ref<hal::Device>> devices_;
  QueueOutcome outcome_;
  std::vector<Place> places_;
  std::vector<Gate> gates_;
  std::vector<Work> work_;
};

}  // namespace

QueueOutcome run_queue_program(std::span<const uint8_t> program, std::span<const Ref<hal::Device>> devices) {
  return Program(program, devices).run();
}

}  // namespace halyard::modules
