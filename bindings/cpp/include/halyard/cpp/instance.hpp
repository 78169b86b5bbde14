// Instances, traces, drivers and devices.
#ifndef HALYARD_CPP_INSTANCE_HPP_
#define HALYARD_CPP_INSTANCE_HPP_

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "halyard/cpp/handle.hpp"

namespace halyard::inline HALYARD_CPP_FORM {

// The library's version: "0.2.0"
inline const char* version() noexcept { return halyard_version(); }

// How the library was built. Texts are static.
inline Result<halyard_build_t> build() {
  auto built = detail::sized<halyard_build_t>();
  return detail::finish(halyard_build_describe(&built), [&] { return built; });
}

// The library that compiles bytecode (docs/jit.md): its name and version, and its path. Texts live as long as
// the process. Loads nothing. NOT_FOUND: none is installed; INCOMPATIBLE: it belongs to another build.
struct Compiler {
  const char* name;
  const char* path;
};
inline Result<Compiler> find_compiler() {
  Compiler found = {};
  return detail::finish(halyard_compiler_find(&found.name, &found.path), [&] { return found; });
}

// Reads what the compiler has done in this process; all zero if it has not been opened.
inline Result<halyard_compiler_stats_t> compiler_stats() {
  auto stats = detail::sized<halyard_compiler_stats_t>();
  return detail::finish(halyard_compiler_stats(&stats), [&] { return stats; });
}

// "AddressSanitizer", "no sanitizer"
inline const char* sanitizer_name(uint32_t sanitizer) noexcept { return halyard_sanitizer_name(sanitizer); }
// "runs in caller" for bit 0, "alloca" for operation 1; null for unknown numbers.
inline const char* capability_name(uint32_t bit) noexcept { return halyard_capability_name(bit); }
inline const char* operation_name(uint32_t operation) noexcept { return halyard_operation_name(operation); }

// Loads a driver, tries it and its devices, and unloads it (halyard_driver_probe). Calls `step` with the name
// of each step before it begins.
inline Result<void> probe_driver(CString path, std::function<void(const char*)> step = nullptr) {
  const halyard_step_fn tell = [](void* user, const char* name) noexcept {
    (*static_cast<std::function<void(const char*)>*>(user))(name);
  };
  return detail::finish(halyard_driver_probe(path.get(), step ? tell : nullptr, &step));
}

// A timeline of events (docs/traces.md). Any thread.
class Trace : public Handle<halyard_trace_t> {
 public:
  using Handle::Handle;

  // Replaces an existing file. "": no file, only totals.
  static Result<Trace> create(CString path) {
    halyard_trace_t made = nullptr;
    return detail::finish(halyard_trace_create(path.get(), &made), [&] { return Trace(adopt, made); });
  }
  // Writes all buffered events; more events may follow.
  Result<void> finish() const { return detail::finish(halyard_trace_finish(get())); }
  Result<halyard_trace_totals_t> totals() const {
    auto totals = detail::sized<halyard_trace_totals_t>();
    return detail::finish(halyard_trace_totals(get(), &totals), [&] { return totals; });
  }

  // Calls `function(slice)` for each slice that is buffered from now on; see halyard_trace_observe.
  // `function` must live until end_observation() or the end of the trace, and must not throw.
  template <typename Observer>
  Result<void> observe(Observer& function) const {
    const halyard_slice_fn pass_on = [](void* user, const halyard_trace_slice_t* slice) noexcept {
      (*static_cast<Observer*>(user))(*slice);
    };
    return detail::finish(halyard_trace_observe(get(), pass_on, &function));
  }
  Result<void> end_observation() const {
    return detail::finish(halyard_trace_observe(get(), nullptr, nullptr));
  }

  // A slice on the calling thread, from constructor to destructor. The trace must outlive it.
  class Slice {
   public:
    Slice(const Trace& trace, CString name) noexcept : trace_(trace.get()) {
      halyard_trace_begin(trace_, name.get());
    }
    Slice(const Slice&) = delete;
    Slice& operator=(const Slice&) = delete;
    ~Slice() { halyard_trace_end(trace_); }

   private:
    halyard_trace_t trace_;
  };

  // A track for work that does not belong to one thread, such as a request. The trace must outlive it. Any
  // thread.
  class Track {
   public:
    using Clock = std::chrono::steady_clock;

    Track(const Trace& trace, CString name) noexcept
        : trace_(trace.get()), number_(halyard_trace_track(trace_, name.get())) {}
    // Adds a finished slice. Slices may nest (add the outer one first), but must not overlap otherwise.
    void span(CString name, Clock::time_point begin, Clock::time_point end) const noexcept {
      halyard_trace_span(trace_, number_, name.get(), nanoseconds(begin), nanoseconds(end));
    }

   private:
    static uint64_t nanoseconds(Clock::time_point time) noexcept {
      return static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
    }
    halyard_trace_t trace_;
    uint64_t number_;
  };
};

// A device. Any thread.
class Device : public Handle<halyard_device_t> {
 public:
  using Handle::Handle;

  const char* uri() const noexcept { return halyard_device_uri(get()); }  // lives as long as the device
  // Texts live as long as the device.
  Result<halyard_device_description_t> describe() const {
    auto description = detail::sized<halyard_device_description_t>();
    return detail::finish(halyard_device_describe(get(), &description), [&] { return description; });
  }
  // Asks the device, like hal.device.query; empty for an unknown key.
  Result<std::optional<int64_t>> query(CString category, CString key) const {
    int32_t known = 0;
    int64_t value = 0;
    return detail::finish(halyard_device_query(get(), category.get(), key.get(), &known, &value),
                          [&] { return known ? std::optional<int64_t>(value) : std::nullopt; });
  }
  // Grades an executable without loading it; without bytes, grades the format alone.
  Result<halyard_executable_fit_t> judge(CString format, std::span<const std::byte> executable = {}) const {
    auto fit = detail::sized<halyard_executable_fit_t>();
    return detail::finish(
        halyard_device_judge(get(), format.get(), executable.data(), executable.size(), &fit),
        [&] { return fit; });
  }
  // How `user` can use memory of this device: HALYARD_SHARING_*.
  uint32_t sharing_with(const Device& user) const noexcept {
    return halyard_device_sharing(get(), user.get());
  }
  Result<halyard_memory_use_t> memory() const {
    auto use = detail::sized<halyard_memory_use_t>();
    return detail::finish(halyard_device_memory(get(), &use), [&] { return use; });
  }
  // What programs have allocated over time, as JSON. FAILED_PRECONDITION: the instance has no trace and does
  // not count objects.
  Result<std::string> memory_log() const {
    char* text = nullptr;
    size_t size = 0;
    return detail::finish(halyard_device_memory_log(get(), &text, &size),
                          [&] { return detail::take_text(text, size); });
  }
  // Frees memory that the device keeps for reuse.
  Result<void> trim() const { return detail::finish(halyard_device_trim(get())); }
  // FAILED_PRECONDITION: the instance does not count objects.
  Result<Block<halyard_object_count_t>> objects() const {
    halyard_object_count_t* counts = nullptr;
    size_t size = 0;
    return detail::finish(halyard_device_objects(get(), &counts, &size),
                          [&] { return Block<halyard_object_count_t>(adopt, counts, size); });
  }
};

// A log of the search for drivers.
class Search : public Handle<halyard_search_t> {
 public:
  using Handle::Handle;

  // An entry by index. OUT_OF_RANGE after the last. Texts live as long as the search.
  Result<halyard_search_entry_t> entry(size_t index) const {
    auto entry = detail::sized<halyard_search_entry_t>();
    return detail::finish(halyard_search_entry(get(), index, &entry), [&] { return entry; });
  }
};

struct InstanceOptions {
  uint32_t flags = 0;                           // HALYARD_INSTANCE_*
  std::vector<std::string> driver_libraries{};  // searched first
  std::vector<std::string> driver_folders{};    // searched next
  Trace trace{};                                // may be empty
  // A boost::asio::io_context that the program runs, and its BOOST_ASIO_VERSION: on_context in
  // halyard/asio.hpp sets both. It must outlive the instance and all objects made with it.
  void* asio_context = nullptr;
  uint32_t asio_version = 0;
  std::string jit_cache{};  // with HALYARD_INSTANCE_JIT_*: the folder for compiled functions; empty: none
};

// Where drivers are searched, and the event loop. Any thread.
class Instance : public Handle<halyard_instance_t> {
 public:
  using Handle::Handle;

  static Result<Instance> create(const InstanceOptions& options = {}) {
    std::vector<const char*> libraries, folders;
    for (const std::string& each : options.driver_libraries) libraries.push_back(each.c_str());
    for (const std::string& each : options.driver_folders) folders.push_back(each.c_str());
    auto given = detail::sized<halyard_instance_options_t>();
    given.flags = options.flags;
    given.driver_libraries = libraries.data();
    given.driver_library_count = libraries.size();
    given.driver_folders = folders.data();
    given.driver_folder_count = folders.size();
    given.trace = options.trace.get();
    given.asio_context = options.asio_context;
    given.asio_version = options.asio_version;
    given.jit_cache = options.jit_cache.c_str();
    halyard_instance_t made = nullptr;
    return detail::finish(halyard_instance_create(&given, &made), [&] { return Instance(adopt, made); });
  }

  // With HALYARD_INSTANCE_RUN_BY_EMBEDDER: runs ready handlers; if none is ready, waits up to the limit
  // (negative: no limit). Returns the number of handlers that ran.
  Result<size_t> run(std::chrono::nanoseconds limit) const {
    size_t ran = 0;
    return detail::finish(halyard_instance_run(get(), limit.count(), &ran), [&] { return ran; });
  }
  void interrupt_run() const noexcept { halyard_instance_interrupt_run(get()); }

  // Opens "local-sync", "vulkan://0"; opening a URI twice gives two logical devices.
  Result<Device> open(CString uri) const {
    halyard_device_t made = nullptr;
    return detail::finish(halyard_device_open(get(), uri.get(), &made), [&] { return Device(adopt, made); });
  }
  Result<Device> open(CString uri, std::span<const halyard_device_setting_t> settings) const {
    halyard_device_t made = nullptr;
    return detail::finish(halyard_device_open_with(get(), uri.get(), settings.data(), settings.size(), &made),
                          [&] { return Device(adopt, made); });
  }

  // The next two functions load drivers (halyard_instance_drivers); search() does not.
  Result<Block<halyard_driver_entry_t>> drivers() const {
    halyard_driver_entry_t* entries = nullptr;
    size_t size = 0;
    return detail::finish(halyard_instance_drivers(get(), &entries, &size),
                          [&] { return Block<halyard_driver_entry_t>(adopt, entries, size); });
  }
  // Devices of one driver, or of all ("").
  Result<Block<halyard_device_entry_t>> devices(CString driver = "") const {
    halyard_device_entry_t* entries = nullptr;
    size_t size = 0;
    return detail::finish(halyard_instance_devices(get(), driver.get(), &entries, &size),
                          [&] { return Block<halyard_device_entry_t>(adopt, entries, size); });
  }
  Result<Block<halyard_driver_candidate_t>> candidates() const {
    halyard_driver_candidate_t* entries = nullptr;
    size_t size = 0;
    return detail::finish(halyard_instance_candidates(get(), &entries, &size),
                          [&] { return Block<halyard_driver_candidate_t>(adopt, entries, size); });
  }
  Result<Search> search() const {
    halyard_search_t made = nullptr;
    return detail::finish(halyard_instance_search(get(), &made), [&] { return Search(adopt, made); });
  }
  // The number of functions that are being compiled or queued (halyard_instance_compiling).
  Result<size_t> compiling() const {
    size_t functions = 0;
    return detail::finish(halyard_instance_compiling(get(), &functions), [&] { return functions; });
  }
  // FAILED_PRECONDITION: the instance was made without HALYARD_INSTANCE_COUNT_OBJECTS.
  Result<Block<halyard_object_count_t>> objects() const {
    halyard_object_count_t* counts = nullptr;
    size_t size = 0;
    return detail::finish(halyard_instance_objects(get(), &counts, &size),
                          [&] { return Block<halyard_object_count_t>(adopt, counts, size); });
  }
};

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_INSTANCE_HPP_
