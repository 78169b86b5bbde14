// Allocates, maps, imports, exports and counts memory.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "bytes.h"
#include "cases.h"
#include "threads.h"

namespace halyard::cts {

namespace {

void is_not_allocated(Session& s, const std::string& what, halyard_status_code_t code,
                      const halyard_memory_request_t& request) {
  auto* const untouched = reinterpret_cast<halyard_driver_memory_t>(0x5EED);
  Memory memory{.handle = untouched};
  const Outcome outcome = s.try_allocate(request, &memory);
  s.refused("memory_allocate", what, code, outcome);
  if (!outcome.ok())
    s.check("R50", memory.handle == untouched, "*memory after " + what, "untouched", "changed");
}

struct FreeBytes {
  void operator()(uint8_t* bytes) const { std::free(bytes); }
};
using Aligned = std::unique_ptr<uint8_t, FreeBytes>;

// Host bytes that the device can import: `alignment` is a power of two.
Aligned aligned_bytes(uint64_t alignment, uint64_t size) {
  const uint64_t unit = std::max<uint64_t>(alignment, sizeof(void*));
  return Aligned(static_cast<uint8_t*>(std::aligned_alloc(unit, (size + unit - 1) / unit * unit)));
}

}  // namespace

void memory_sizes(Session& s) {
  for (const uint32_t type : {kStaging, kDeviceLocal}) {
    for (const uint64_t size :
         {0ull, 1ull, 2ull, 3ull, 63ull, 64ull, 65ull, 4095ull, 4096ull, 4097ull, 1048577ull, 67108864ull}) {
      if (size > s.properties().maximum_allocation) continue;
      const std::string what = fmt::format("{} bytes of type 0x{:x}", size, type);
      const Memory memory = s.allocate(size, type);
      if (memory.visible()) {
        void* pointer = nullptr;
        s.must("R71", "memory_map of all of " + what, s.map(memory, HALYARD_MAP_READ, 0, size, &pointer));
        s.check("R70", reinterpret_cast<uintptr_t>(pointer) % s.properties().memory_alignment == 0,
                "the address of " + what, fmt::format("a multiple of {}", s.properties().memory_alignment),
                fmt::format("{}", pointer));
        s.unmap(memory);
      }
      // The first and last bytes are usable.
      const std::vector<uint8_t> ends = noise(std::min<uint64_t>(size, 64), static_cast<uint32_t>(size));
      s.write(memory, 0, ends);
      s.write(memory, size - ends.size(), ends);
      same_bytes(s, "R70", "the last bytes of " + what, ends,
                 s.read(memory, size - ends.size(), ends.size()));
      s.free(memory);
    }
  }
}

void memory_types(Session& s) {
  struct {
    uint32_t wanted;
    uint32_t usage;
  } const kinds[] = {
      {kDeviceLocal, HALYARD_USAGE_DEFAULT},
      {kStaging, HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED},
      {HALYARD_MEMORY_OPTIMAL, HALYARD_USAGE_DEFAULT},
      {HALYARD_MEMORY_OPTIMAL | kDeviceLocal, HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_OPTIONAL},
      {kDeviceLocal, HALYARD_USAGE_DEFAULT | 0x40000000u}};  // a usage of a later version
  for (const auto& [wanted, usage] : kinds) {
    const std::string what = fmt::format("memory of type 0x{:x}, usage 0x{:x}", wanted, usage);
    halyard_memory_request_t request = s.request(100, wanted);
    request.usage = usage;
    halyard_memory_info_t info = {.struct_size = sizeof info};
    halyard_driver_memory_t handle = nullptr;
    s.must("R70", what, s.take(s.table().memory_allocate(s.device(), &request, &handle, &info)));
    s.keep({handle, info.memory_type, 100});
    s.check("R70", info.size >= 100, what + ": size given", "at least 100", fmt::format("{}", info.size));
    s.check("R70", (info.memory_type & HALYARD_MEMORY_OPTIMAL) == 0, what + ": type given",
            "no OPTIMAL (0x1)", fmt::format("0x{:x}", info.memory_type));
    s.check("R70", (wanted & HALYARD_MEMORY_OPTIMAL) || (info.memory_type & wanted) == wanted,
            what + ": type given", "every bit asked for", fmt::format("0x{:x}", info.memory_type));
    const uint32_t known = usage & 0x3FFFFFFFu;
    s.check("R70", (info.usage & known) == known, what + ": usage given", "every bit asked for",
            fmt::format("0x{:x}", info.usage));
    if (s.has(HALYARD_DEVICE_HOST_COHERENT) && (info.memory_type & HALYARD_MEMORY_HOST_VISIBLE))
      s.check("device_properties", (info.memory_type & HALYARD_MEMORY_HOST_COHERENT) != 0,
              what + " of a device that is HOST_COHERENT", "HOST_COHERENT",
              fmt::format("0x{:x}", info.memory_type));
  }
  // Bits that no heap has may be preferred, but not required.
  s.must("R14", "memory of unknown type bits that are wishes", s.take([&] {
    const halyard_memory_request_t request = s.request(16, HALYARD_MEMORY_OPTIMAL | 0x40000000u);
    halyard_memory_info_t info = {.struct_size = sizeof info};
    halyard_driver_memory_t handle = nullptr;
    halyard_status_t status = s.table().memory_allocate(s.device(), &request, &handle, &info);
    if (!status) s.keep({handle, info.memory_type, 16});
    return status;
  }()));
  is_not_allocated(s, "memory_allocate of a type that no heap has (0x40000010)", HALYARD_INVALID_ARGUMENT,
                   s.request(16, 0x40000000u | HALYARD_MEMORY_DEVICE_VISIBLE));
}

void memory_infos_for_newer_hosts(Session& s) {
  struct {
    halyard_memory_request_t request;
    uint8_t later[64];
  } grown = {};
  struct {
    halyard_memory_info_t info;
    uint8_t behind[64];
  } guarded = {};
  for (const bool newer : {false, true}) {
    std::memset(static_cast<void*>(&grown), 0xEE, sizeof grown);
    grown.request = s.request(32);
    std::memset(static_cast<void*>(&guarded), 0xA5, sizeof guarded);
    if (newer) grown.request.struct_size = sizeof grown;
    const uint32_t size = newer ? sizeof guarded : HALYARD_FIELD_END(halyard_memory_info_t, size);
    guarded.info.struct_size = size;
    halyard_driver_memory_t handle = nullptr;
    s.must("R11", newer ? "memory_allocate of a newer host" : "memory_allocate",
           s.take(s.table().memory_allocate(s.device(), &grown.request, &handle, &guarded.info)));
    s.keep({handle, guarded.info.memory_type, 32});
    s.equal("R11", "struct_size of the memory's info afterwards", size, guarded.info.struct_size);
    if (!newer)
      s.equal<size_t>("R11", "bytes behind the memory's info that were left alone", sizeof guarded.behind,
                      std::ranges::count(guarded.behind, 0xA5));
  }
}

void memory_too_large(Session& s) {
  // An allocation up to the promised size may fail, but with a status.
  Memory memory;
  const Outcome outcome = s.try_allocate(s.request(s.properties().maximum_allocation), &memory);
  if (outcome.ok()) {
    s.free(memory);
  } else {
    s.refused("memory_allocate", "memory_allocate of maximum_allocation bytes", HALYARD_RESOURCE_EXHAUSTED,
              outcome);
  }
  // The device still works.
  s.write(s.allocate(64), 0, noise(64));
}

void memory_is_its_own(Session& s) {
  std::vector<std::pair<Memory, std::vector<uint8_t>>> all;
  for (uint32_t i = 0; i < 64; ++i) {
    const std::vector<uint8_t> contents = noise(1 + 37 * i, i + 1);
    all.emplace_back(s.allocate(contents, i % 2 ? kStaging : kDeviceLocal), contents);
  }
  for (uint32_t i = 0; i < all.size(); i += 3)
    s.write(all[i].first, 0, all[i].second = noise(all[i].second.size(), 99 + i));
  for (const auto& [memory, contents] : all)
    if (!same_bytes(s, "R70", "memory, after others were written", contents, s.read(memory))) return;
}

// The byte that an owner writes to its memory.
uint8_t mark_of(uint64_t owner) {
  return static_cast<uint8_t>(owner == HALYARD_OWNER_WRITES_ALL ? 0xF0 : 0x50 + owner);
}

// Checks that every byte is 0, the owner's own mark, or a debug pattern of the driver.
void shows_nobody(Session& s, const std::string& what, const Memory& memory, uint64_t owner) {
  const std::vector<uint8_t> found = s.read(memory);
  const uint8_t pattern = found.front();
  const bool is_pattern = (pattern < 0x50 || pattern > 0x5F) &&
                          pattern != mark_of(HALYARD_OWNER_WRITES_ALL) &&
                          std::ranges::count(found, pattern) == static_cast<ptrdiff_t>(found.size());
  const auto may_be_there = [&](uint8_t byte) { return byte == 0 || (owner != 0 && byte == mark_of(owner)); };
  s.check("R78", is_pattern || std::ranges::all_of(found, may_be_there), what,
          owner != 0 ? "zeros, or what the owner has left" : "zeros", "bytes of somebody else");
}

void memory_of_others_is_not_seen(Session& s) {
  constexpr uint64_t kOwners[] = {0, 7, HALYARD_OWNER_WRITES_ALL, 8, 7, 8, 0, 0, 7};
  for (const uint32_t type : {kStaging, kDeviceLocal}) {
    // Sizes that allocators put into one class, smaller ones first, so that their unused bytes later belong
    // to another owner.
    for (const uint64_t size : {24ull, 60ull, 1000ull, 1024ull, 70000ull, 81920ull, 2500000ull, 2621440ull}) {
      if (size > s.properties().maximum_allocation) continue;
      for (const uint64_t owner : kOwners) {
        halyard_memory_request_t request = s.request(size, type);
        request.owner = owner;
        Memory memory;
        s.must("memory_allocate", "memory_allocate for an owner", s.try_allocate(request, &memory));
        if (owner != HALYARD_OWNER_WRITES_ALL)
          shows_nobody(s,
                       fmt::format("new memory of {} bytes of type 0x{:x} for owner {}", size, type, owner),
                       memory, owner);
        s.write(memory, 0, std::vector<uint8_t>(size, mark_of(owner)));
        s.free(memory);
      }
    }
  }
}

void memory_many(Session& s) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Memory> all;
    for (uint32_t i = 0; i < 2000; ++i) all.push_back(s.allocate(i % 257));
    for (size_t i = 0; i < all.size(); i += 2) s.free(all[i]);
    for (size_t i = 1; i < all.size(); i += 2) s.free(all[i]);
  }
}

void memory_maps_nest(Session& s) {
  const Memory memory = s.allocate(noise(256));
  void *outer = nullptr, *inner = nullptr, *other = nullptr;
  s.must("R72", "memory_map", s.map(memory, HALYARD_MAP_READ | HALYARD_MAP_WRITE, 0, 256, &outer));
  s.must("R72", "memory_map of a part of what is mapped", s.map(memory, HALYARD_MAP_READ, 64, 64, &inner));
  s.must("R72", "memory_map that overlaps what is mapped", s.map(memory, HALYARD_MAP_READ, 100, 100, &other));
  static_cast<uint8_t*>(outer)[110] ^= 0xFF;
  const uint8_t written = static_cast<uint8_t*>(outer)[110];
  if (memory.coherent()) {
    s.equal("R72", "byte 110 through a mapping from 64", written, static_cast<uint8_t*>(inner)[46]);
    s.equal("R72", "byte 110 through a mapping from 100", written, static_cast<uint8_t*>(other)[10]);
  }
  s.unmap(memory);
  s.unmap(memory);
  // One mapping remains.
  static_cast<uint8_t*>(outer)[111] ^= 0xFF;
  if (s.table().memory_flush && !memory.coherent())
    s.must("memory_flush", "memory_flush", s.take(s.table().memory_flush(s.device(), memory.handle, 0, 256)));
  s.unmap(memory);
  std::vector<uint8_t> expected = noise(256);
  expected[110] ^= 0xFF;
  expected[111] ^= 0xFF;
  same_bytes(s, "R72", "what was written while mappings nested", expected, s.read(memory));
}

void memory_maps_at_every_offset(Session& s) {
  const std::vector<uint8_t> contents = noise(300);
  const Memory memory = s.allocate(contents);
  for (uint64_t offset = 0; offset <= 300; ++offset) {
    for (const uint64_t length : {uint64_t{0}, uint64_t{1}, 300 - offset}) {
      if (offset + length > 300) continue;
      void* pointer = nullptr;
      const std::string what = fmt::format("memory_map of {} bytes at {}", length, offset);
      s.must("R72", what, s.map(memory, HALYARD_MAP_READ, offset, length, &pointer));
      if (length > 0)
        s.equal("memory_map", what + ": the first byte", contents[offset],
                *static_cast<const uint8_t*>(pointer));
      s.unmap(memory);
    }
  }
}

void memory_maps_keep_what_was_written(Session& s) {
  const Memory memory = s.allocate(noise(128));
  std::vector<uint8_t> expected = noise(128);
  for (const uint32_t access :
       {uint32_t{HALYARD_MAP_WRITE}, uint32_t{HALYARD_MAP_READ | HALYARD_MAP_WRITE}}) {
    void* pointer = nullptr;
    s.must("R72", fmt::format("memory_map with access {}", access), s.map(memory, access, 16, 16, &pointer));
    std::memset(pointer, static_cast<int>(access), 4);
    std::fill_n(expected.begin() + 16, 4, static_cast<uint8_t>(access));
    if (!memory.coherent() && s.table().memory_flush)
      s.must("memory_flush", "memory_flush",
             s.take(s.table().memory_flush(s.device(), memory.handle, 16, 16)));
    s.unmap(memory);
    same_bytes(s, "R72", "memory of which 4 bytes were written", expected, s.read(memory));
  }
  // DISCARD discards the bytes in the range, but not the bytes around it.
  void* pointer = nullptr;
  s.must("R72", "memory_map with DISCARD",
         s.map(memory, HALYARD_MAP_WRITE | HALYARD_MAP_DISCARD, 32, 32, &pointer));
  std::memset(pointer, 0x5A, 32);
  std::fill_n(expected.begin() + 32, 32, uint8_t{0x5A});
  if (!memory.coherent() && s.table().memory_flush)
    s.must("memory_flush", "memory_flush", s.take(s.table().memory_flush(s.device(), memory.handle, 32, 32)));
  s.unmap(memory);
  same_bytes(s, "R72", "memory of which a range was mapped with DISCARD", expected, s.read(memory));
}

void memory_direct_copies(Session& s) {
  if (!s.table().memory_read || !s.table().memory_write) unsupported("memory_read is null");
  const auto read = [&](const Memory& memory, uint64_t offset, uint64_t size) {
    std::vector<uint8_t> bytes(size);
    s.must("R79", fmt::format("memory_read of {} bytes", size),
           s.take(s.table().memory_read(s.device(), memory.handle, offset, size, bytes.data())));
    return bytes;
  };
  const auto write = [&](const Memory& memory, uint64_t offset, const std::vector<uint8_t>& bytes) {
    s.must("R79", fmt::format("memory_write of {} bytes", bytes.size()),
           s.take(s.table().memory_write(s.device(), memory.handle, offset, bytes.size(), bytes.data())));
  };
  for (const uint64_t size : {1ull, 100ull, 4097ull, 3000001ull}) {
    const Memory memory = s.allocate(size + 7, kStaging);
    const std::vector<uint8_t> first = noise(size, 1), second = noise(size, 2);
    write(memory, 7, first);
    same_bytes(s, "R79", "bytes that memory_write has written, mapped", first, s.read(memory, 7, size));
    s.write(memory, 7, second);
    same_bytes(s, "R79", "bytes that were written to a mapping, by memory_read", second,
               read(memory, 7, size));
    if (memory.coherent()) {
      void* pointer = nullptr;
      s.must("memory_map", "memory_map for both",
             s.map(memory, HALYARD_MAP_READ | HALYARD_MAP_WRITE, 0, size + 7, &pointer));
      auto* const bytes = static_cast<uint8_t*>(pointer);
      bytes[0] = 0x5C;
      same_bytes(s, "R79", "a byte of an open mapping, by memory_read", std::vector<uint8_t>{0x5C},
                 read(memory, 0, 1));
      write(memory, 7, first);
      same_bytes(s, "R79", "bytes that memory_write has written, in an open mapping", first,
                 std::span<const uint8_t>(bytes + 7, size));
      s.unmap(memory);
      same_bytes(s, "R79", "all bytes afterwards", first, read(memory, 7, size));
    }
    s.free(memory);
  }
}

void memory_flush_and_invalidate(Session& s) {
  if (!s.table().memory_flush || !s.table().memory_invalidate) {
    s.check("R72", s.has(HALYARD_DEVICE_HOST_COHERENT),
            "memory_flush and memory_invalidate of a device that is not HOST_COHERENT", "there", "null");
    unsupported("memory_flush or memory_invalidate is null");
  }
  const Memory memory = s.allocate(noise(100));
  const std::pair<uint64_t, uint64_t> ranges[] = {{0, 100}, {0, 0}, {100, 0}, {1, 1}, {37, 63}};
  for (const auto& [offset, length] : ranges) {
    s.succeeded("R72", fmt::format("memory_flush of {} bytes at {}", length, offset),
                s.take(s.table().memory_flush(s.device(), memory.handle, offset, length)));
    s.succeeded("R72", fmt::format("memory_invalidate of {} bytes at {}", length, offset),
                s.take(s.table().memory_invalidate(s.device(), memory.handle, offset, length)));
  }
  same_bytes(s, "R72", "memory after flushes and invalidates", noise(100), s.read(memory));
}

void memory_imports_host_bytes(Session& s) {
  const uint64_t alignment = s.properties().import_alignment;
  if (alignment == 0 || !s.table().memory_import) unsupported("import_alignment is 0, or memory_import null");
  for (const bool writable : {true, false}) {
    for (const uint64_t size : {uint64_t{1}, uint64_t{100}, uint64_t{4096}}) {
      const Aligned bytes = aligned_bytes(alignment, size + alignment);
      uint8_t* const start =
          bytes.get() + (writable ? 0 : alignment);  // the smallest alignment that is promised
      const std::vector<uint8_t> contents = noise(size);
      std::memcpy(start, contents.data(), size);
      halyard_memory_request_t request = s.request(size, HALYARD_MEMORY_OPTIMAL | kStaging);
      const halyard_external_memory_t external = {
          .struct_size = sizeof external,
          .kind = HALYARD_EXTERNAL_HOST_ALLOCATION,
          .pointer = start,
          .fd = -1,
          .access = HALYARD_MAP_READ | (writable ? uint32_t{HALYARD_MAP_WRITE} : 0),
          .size = size};
      halyard_memory_info_t info = {.struct_size = sizeof info};
      Memory memory{.size = size};
      const std::string what =
          fmt::format("memory_import of {} {} host bytes", size, writable ? "writable" : "read-only");
      s.must("memory_import", what,
             s.take(s.table().memory_import(s.device(), &request, &external, &memory.handle, &info)));
      memory.type = info.memory_type;
      s.equal("memory_import", what + ": size given", size, info.size);
      // The device reads the bytes, and writes them.
      const Memory copy = s.allocate(std::vector<uint8_t>(size, 0));
      s.must_execute(Recording().copy(range(memory.handle, 0, size), range(copy.handle, 0, size)));
      same_bytes(s, "R75", what + ": as the device copies them", contents, s.read(copy));
      if (writable) {
        s.must_execute(Recording().fill(range(memory.handle, 0, size), 0x77, 1));
        if (memory.visible() && !memory.coherent()) static_cast<void>(s.read(memory));
        same_bytes(s, "R75", what + ": the host's bytes after a fill", std::vector<uint8_t>(size, 0x77),
                   {start, size});
      }
      s.table().memory_free(s.device(), memory.handle);
      // The bytes still belong to the host.
      std::memset(start, 1, size);
    }
  }
}

void memory_imports_unknown_kinds(Session& s) {
  if (!s.table().memory_import) unsupported("memory_import is null");
  const halyard_memory_request_t request = s.request(64);
  const halyard_external_memory_t external = {
      .struct_size = sizeof external, .kind = 4711, .fd = -1, .size = 64};
  halyard_memory_info_t info = {.struct_size = sizeof info};
  auto* const untouched = reinterpret_cast<halyard_driver_memory_t>(0x5EED);
  halyard_driver_memory_t memory = untouched;
  s.refused_naming("memory_import", "memory_import of kind 4711", HALYARD_UNIMPLEMENTED, "4711",
                   s.take(s.table().memory_import(s.device(), &request, &external, &memory, &info)));
  s.check("R50", memory == untouched, "*memory after an import that failed", "untouched", "changed");
}

void memory_exports(Session& s) {
  if (!s.table().memory_export) unsupported("memory_export is null");
  halyard_memory_request_t request = s.request(4096);
  request.usage |= HALYARD_USAGE_SHARING_EXPORT;
  Memory memory;
  s.must("memory_allocate", "memory_allocate with SHARING_EXPORT", s.try_allocate(request, &memory));
  halyard_external_memory_t external = {.struct_size = sizeof external, .fd = -1};
  s.refused("R14", "memory_export as kind 4711", HALYARD_UNIMPLEMENTED,
            s.take(s.table().memory_export(s.device(), memory.handle, 4711, &external)));
  for (const uint32_t kind : {HALYARD_EXTERNAL_HOST_ALLOCATION, HALYARD_EXTERNAL_OPAQUE_FD}) {
    external = {.struct_size = sizeof external, .fd = -1};
    const Outcome outcome = s.take(s.table().memory_export(s.device(), memory.handle, kind, &external));
    const std::string what = fmt::format("memory_export as kind {}", kind);
    if (!outcome.ok()) {
      s.refused("memory_export", what, HALYARD_UNIMPLEMENTED, outcome);
      continue;
    }
    s.equal("memory_export", what + ": kind", kind, external.kind);
    s.check("memory_export", external.size >= 4096, what + ": size", "at least 4096",
            fmt::format("{}", external.size));
    if (kind == HALYARD_EXTERNAL_OPAQUE_FD) {
      s.check("R75", external.fd >= 0 && close(external.fd) == 0, what + ": fd",
              "a descriptor that is the host's to close", fmt::format("{}", external.fd));
    } else {
      s.check("memory_export", external.pointer != nullptr, what + ": pointer", "an address", "null");
    }
  }
}

void memory_statistics(Session& s) {
  const halyard_memory_statistics_t before = s.memory_statistics();
  const Memory memory = s.allocate(10000);
  const halyard_memory_statistics_t during = s.memory_statistics();
  s.free(memory);
  const halyard_memory_statistics_t after = s.memory_statistics();
  const bool host = (memory.type & HALYARD_MEMORY_HOST_LOCAL) == HALYARD_MEMORY_HOST_LOCAL;
  const auto allocated = [&](const halyard_memory_statistics_t& it) {
    return host ? it.host_bytes_allocated : it.device_bytes_allocated;
  };
  const auto live = [&](const halyard_memory_statistics_t& it) {
    return host ? it.host_bytes_live : it.device_bytes_live;
  };
  const auto freed = [&](const halyard_memory_statistics_t& it) {
    return host ? it.host_bytes_freed : it.device_bytes_freed;
  };
  const std::string where = host ? "host bytes " : "device bytes ";
  s.check("R76", allocated(during) >= allocated(before) + 10000, where + "allocated after 10000 more",
          fmt::format("at least {}", allocated(before) + 10000), fmt::format("{}", allocated(during)));
  s.check("R76", live(during) >= live(before) + 10000, where + "live after 10000 more",
          fmt::format("at least {}", live(before) + 10000), fmt::format("{}", live(during)));
  s.equal("R76", where + "live after they were freed", live(before), live(after));
  s.check("R76", (host ? after.host_bytes_peak : after.device_bytes_peak) >= live(during), where + "peak",
          fmt::format("at least {}", live(during)), "less");
  s.equal("R76", where + "allocated minus freed", live(after), allocated(after) - freed(after));
  const uint64_t other = host ? during.device_bytes_live - before.device_bytes_live
                              : during.host_bytes_live - before.host_bytes_live;
  s.equal<uint64_t>("R76", "live bytes counted in the other half", 0, other);
}

void memory_trim(Session& s) {
  if (!s.table().device_trim) unsupported("device_trim is null");
  const Memory kept = s.allocate(noise(5000));
  s.free(s.allocate(1 << 20));
  for (int i = 0; i < 2; ++i)
    s.succeeded("device_trim", "device_trim", s.take(s.table().device_trim(s.device())));
  same_bytes(s, "device_trim", "memory in use after a trim", noise(5000), s.read(kept));
}

void memory_threads(Session& s) {
  s.free(s.allocate(1));  // or Unsupported
  at_once(8, [&](int thread) {
    for (uint32_t i = 0; i < 100; ++i) {
      const uint32_t seed = static_cast<uint32_t>(thread) * 131 + i * 17;
      const std::vector<uint8_t> contents = noise(1 + seed % 5000, seed);
      const Memory memory = s.allocate(contents, i % 2 ? kStaging : kDeviceLocal);
      same_bytes(s, "R30", "memory of one of 8 threads", contents, s.read(memory));
      s.free(memory);
    }
  });
}

}  // namespace halyard::cts
