// Instances, drivers and devices in the C ABI.
#include <algorithm>
#include <boost/asio/version.hpp>
#include <chrono>

#include "handles.h"
#include "linked_drivers.h"
#include "made_here.h"
#include "modules/hal_module.h"
#include "vm/compile/compile_queue.h"
#include "vm/compile/compiler.h"

namespace halyard::c {

const ObjectType Instance::kType = object_type<Instance>("halyard.instance");

namespace {

Result<std::vector<std::string>> strings(const char* const* texts, size_t count, const char* array) {
  HALYARD_TRY(check_array(texts, count, "texts", array));
  std::vector<std::string> copies;
  for (size_t i = 0; i < count; ++i) {
    HALYARD_TRY(check_text(texts[i], array, i));
    copies.emplace_back(texts[i]);
  }
  return copies;
}

Result<Ref<Loop>> loop_of(const halyard_instance_options_t& options) {
  const bool run_by_embedder = (options.flags & HALYARD_INSTANCE_RUN_BY_EMBEDDER) != 0;
  if (!options.asio_context) return run_by_embedder ? Loop::run_by_embedder() : Loop::create();
  if (run_by_embedder)
    return fail(Code::INVALID_ARGUMENT,
                "expected either an asio_context or HALYARD_INSTANCE_RUN_BY_EMBEDDER, found both");
  if (options.asio_version != BOOST_ASIO_VERSION)
    return fail(
        Code::FAILED_PRECONDITION,
        "asio_version is {}, but libhalyard was built with Boost.Asio {}; build with the same Boost, or use "
        "HALYARD_INSTANCE_RUN_BY_EMBEDDER",
        options.asio_version, BOOST_ASIO_VERSION);
  return Loop::on(*static_cast<boost::asio::io_context*>(options.asio_context));
}

void give_counts(const LiveObjects& objects, halyard_object_count_t** out, size_t* count) {
  EntryBlock<halyard_object_count_t> block;
  objects.each([&](const ObjectType& type, uint64_t live, uint64_t made) {
    halyard_object_count_t& entry = block.add();
    entry.live = live;
    entry.made = made;
    block.text(&halyard_object_count_t::type, type.name);
  });
  block.give(out, count);
}

}  // namespace
}  // namespace halyard::c

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_instance_create(const halyard_instance_options_t* options, halyard_instance_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const halyard_instance_options_t known = HALYARD_TRY(known_fields(options));
    HALYARD_TRY(check_flags(known.flags,
                            HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS |
                                HALYARD_INSTANCE_COUNT_OBJECTS | HALYARD_INSTANCE_RUN_BY_EMBEDDER |
                                HALYARD_INSTANCE_JIT_ALWAYS | HALYARD_INSTANCE_JIT_AUTO |
                                HALYARD_INSTANCE_JIT_FAST_MATH,
                            "HALYARD_INSTANCE_*"));
    HALYARD_TRY(check_reserved(known.reserved, "halyard_instance_options_t"));
    const bool always = (known.flags & HALYARD_INSTANCE_JIT_ALWAYS) != 0;
    const bool hot = (known.flags & HALYARD_INSTANCE_JIT_AUTO) != 0;
    if (always && hot)
      return fail(Code::INVALID_ARGUMENT,
                  "expected HALYARD_INSTANCE_JIT_ALWAYS or HALYARD_INSTANCE_JIT_AUTO, found both");
    auto instance = make<Instance>();
    if (always) instance->compiler = HALYARD_TRY(vm::Compiler::find());
    instance->compile_cache = view(known.jit_cache);
    instance->fast_math = (known.flags & HALYARD_INSTANCE_JIT_FAST_MATH) != 0;
    if (hot) instance->compile_queue = std::make_shared<vm::CompileQueue>();
    instance->loop = HALYARD_TRY(loop_of(known));
    modules::add_hal_types(instance->types);
    hal::RegistryOptions registry;
    registry.linked = linked_drivers();
    registry.libraries =
        HALYARD_TRY(strings(known.driver_libraries, known.driver_library_count, "driver_libraries"));
    registry.folders =
        HALYARD_TRY(strings(known.driver_folders, known.driver_folder_count, "driver_folders"));
    if (known.trace) instance->tracer = Ref<Tracer>::share(HALYARD_TRY(checked<Tracer>(known.trace)));
    registry.tracer = instance->tracer;
    registry.loop = instance->loop;
    registry.counts_objects = (known.flags & HALYARD_INSTANCE_COUNT_OBJECTS) != 0;
    if (registry.counts_objects) instance->objects = std::make_shared<LiveObjects>();
    registry.use_environment = !(known.flags & HALYARD_INSTANCE_NO_ENVIRONMENT);
    registry.use_default_folders = !(known.flags & HALYARD_INSTANCE_NO_DEFAULT_FOLDERS);
    instance->drivers = hal::DriverRegistry::create(std::move(registry));
    note_made(instance.get());
    *out = give<halyard_instance_t>(std::move(instance));
    return {};
  });
}

halyard_status_t halyard_instance_compiling(halyard_instance_t instance, size_t* functions) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(functions, "functions"));
    const auto& queue = HALYARD_TRY(checked<Instance>(instance))->compile_queue;
    *functions = queue ? queue->pending() : 0;
    return {};
  });
}

halyard_status_t halyard_instance_run(halyard_instance_t instance, int64_t timeout_ns, size_t* ran) {
  return guarded([&]() -> Result<> {
    Loop& loop = *HALYARD_TRY(checked<Instance>(instance))->loop;
    if (!loop.is_run_by_embedder())
      return fail(
          Code::FAILED_PRECONDITION,
          "the instance runs its event loop itself; create it with HALYARD_INSTANCE_RUN_BY_EMBEDDER to use "
          "halyard_instance_run");
    // If the deadline exceeds the clock's range, there is none.
    const auto now = Loop::Clock::now();
    const std::chrono::nanoseconds left = Loop::Clock::time_point::max() - now;
    const bool limited = timeout_ns >= 0 && timeout_ns < left.count();
    const size_t count =
        loop.run(limited ? now + std::chrono::nanoseconds(timeout_ns) : Loop::Clock::time_point::max());
    if (ran) *ran = count;
    return {};
  });
}

void halyard_instance_interrupt_run(halyard_instance_t instance) {
  if (const Result<Instance*> known = checked<Instance>(instance)) (*known)->loop->interrupt_run();
}

halyard_status_t halyard_instance_drivers(halyard_instance_t instance, halyard_driver_entry_t** out,
                                          size_t* count) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_output(count, "count"));
    EntryBlock<halyard_driver_entry_t> block;
    for (const auto& kind : HALYARD_TRY(checked<Instance>(instance))->drivers->kinds()) {
      block.add();
      block.text(&halyard_driver_entry_t::name, kind.name);
      block.text(&halyard_driver_entry_t::description, kind.description);
      block.text(&halyard_driver_entry_t::library, kind.library_path);
    }
    block.give(out, count);
    return {};
  });
}

halyard_status_t halyard_instance_devices(halyard_instance_t instance, const char* driver,
                                          halyard_device_entry_t** out, size_t* count) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_output(count, "count"));
    EntryBlock<halyard_device_entry_t> block;
    for (const auto& device :
         HALYARD_TRY(HALYARD_TRY(checked<Instance>(instance))->drivers->devices(view(driver)))) {
      block.add();
      block.text(&halyard_device_entry_t::uri, device.uri);
      block.text(&halyard_device_entry_t::name, device.name);
    }
    block.give(out, count);
    return {};
  });
}

halyard_status_t halyard_instance_candidates(halyard_instance_t instance, halyard_driver_candidate_t** out,
                                             size_t* count) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_output(count, "count"));
    EntryBlock<halyard_driver_candidate_t> block;
    for (const auto& candidate : HALYARD_TRY(checked<Instance>(instance))->drivers->explain()) {
      block.add().accepted = candidate.status.ok();
      block.text(&halyard_driver_candidate_t::path, candidate.path);
      block.text(&halyard_driver_candidate_t::drivers, joined(candidate.kinds));
      block.text(&halyard_driver_candidate_t::reason, candidate.status.ok() ? "" : candidate.status.text());
    }
    block.give(out, count);
    return {};
  });
}

halyard_status_t halyard_device_open(halyard_instance_t instance, const char* uri, halyard_device_t* out) {
  return halyard_device_open_with(instance, uri, nullptr, 0, out);
}

halyard_status_t halyard_device_open_with(halyard_instance_t instance, const char* uri,
                                          const halyard_device_setting_t* settings, size_t count,
                                          halyard_device_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_array(settings, count, "settings", "settings"));
    std::vector<hal::DeviceOption> options;
    for (size_t i = 0; i < count; ++i) {
      HALYARD_TRY(check_text(settings[i].key, "settings", i, ".key"));
      HALYARD_TRY(check_text(settings[i].value, "settings", i, ".value"));
      options.emplace_back(settings[i].key, settings[i].value);
    }
    const Instance* const owner = HALYARD_TRY(checked<Instance>(instance));
    Ref<hal::Device> device =
        HALYARD_TRY(owner->drivers->open_device(HALYARD_TRY(given_text(uri, "uri")), options));
    note_made(device.get());
    device->add_user();
    *out = give<halyard_device_t>(std::move(device));
    return {};
  });
}

const char* halyard_device_uri(halyard_device_t device) {
  const Result<hal::Device*> known = checked<hal::Device>(device);
  return known ? (*known)->uri().c_str() : "";
}

halyard_status_t halyard_device_objects(halyard_device_t device, halyard_object_count_t** out,
                                        size_t* count) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_output(count, "count"));
    const auto* of = HALYARD_TRY(checked<hal::Device>(device));
    if (!of->live())
      return fail(Code::FAILED_PRECONDITION,
                  "device '{}' does not count its objects; create its instance with "
                  "HALYARD_INSTANCE_COUNT_OBJECTS",
                  of->uri());
    give_counts(*of->live(), out, count);
    return {};
  });
}

halyard_status_t halyard_instance_objects(halyard_instance_t instance, halyard_object_count_t** out,
                                          size_t* count) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_output(count, "count"));
    const auto& objects = HALYARD_TRY(checked<Instance>(instance))->objects;
    if (!objects)
      return fail(Code::FAILED_PRECONDITION,
                  "the instance does not count objects; create it with HALYARD_INSTANCE_COUNT_OBJECTS");
    give_counts(*objects, out, count);
    return {};
  });
}
