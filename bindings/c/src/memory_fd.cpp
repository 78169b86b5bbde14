// Views over memory of file descriptors (halyard/memory.h): mapped by this process, or imported by the
// device's driver.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "hal/device/external_memory.h"
#include "halyard/memory.h"
#include "shared_memory.h"

using namespace halyard;
using namespace halyard::c;

namespace {

struct Mapping {
  void* begin;     // start of a page
  uint64_t whole;  // bytes from `begin`
  uint8_t* data;
};

std::unexpected<Status> not_mapped(const halyard_fd_memory_t& memory, int error) {
  const std::string reason = std::generic_category().message(error);
  switch (error) {
    case EACCES:
    case EPERM:
      return fail(
          Code::PERMISSION_DENIED,
          "file descriptor {} cannot be mapped for reading and writing ({}); open it for both, or import it "
          "with HALYARD_IMPORT_READ_ONLY",
          memory.fd, reason);
    case ENOMEM:
      return fail(Code::RESOURCE_EXHAUSTED, "file descriptor {} cannot be mapped: {}", memory.fd, reason);
    default:
      return fail(Code::INVALID_ARGUMENT,
                  "file descriptor {} cannot be mapped ({}); expected a memfd, a file or shared memory; for "
                  "memory of a device use HALYARD_FD_OPAQUE",
                  memory.fd, reason);
  }
}

// Checks the end of the file, because accessing bytes beyond it terminates the process.
Result<> check_end(const halyard_fd_memory_t& memory, uint64_t size) {
  struct stat about = {};
  if (::fstat(memory.fd, &about) != 0) return not_mapped(memory, errno);
  if (!S_ISREG(about.st_mode)) return {};
  const auto end = static_cast<uint64_t>(about.st_size);
  if (memory.offset <= end && size <= end - memory.offset) return {};
  return fail(Code::INVALID_ARGUMENT,
              "a view of {} bytes from byte {} of file descriptor {} needs a longer file; it has {} bytes",
              size, memory.offset, memory.fd, end);
}

Result<Mapping> map(const halyard_fd_memory_t& memory, uint64_t size) {
  HALYARD_TRY(check_end(memory, size));
  if (size > kMaxArray)
    return fail(Code::RESOURCE_EXHAUSTED,
                "a view of {} bytes of file descriptor {} cannot be mapped, because it is larger than the "
                "address space; expected a smaller shape",
                size, memory.fd);
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t slack = memory.offset % page;
  const int access = memory.flags & HALYARD_IMPORT_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;
  const uint64_t whole = slack + std::max<uint64_t>(size, 1);
  void* const begin =
      ::mmap(nullptr, whole, access, MAP_SHARED, memory.fd, static_cast<off_t>(memory.offset - slack));
  if (begin == MAP_FAILED) return not_mapped(memory, errno);
  return Mapping{begin, whole, static_cast<uint8_t*>(begin) + slack};
}

Result<Imported> import_mapped(halyard_device_t device, std::span<const int64_t> shape, uint32_t element_type,
                               const halyard_fd_memory_t& memory, uint64_t size) {
  if (memory.size != 0)
    return fail(Code::INVALID_ARGUMENT, "expected 0 in `size` for HALYARD_FD_MAPPABLE, found {}",
                memory.size);
  const Mapping mapping = HALYARD_TRY(map(memory, size));
  const auto unmap = [mapping] { ::munmap(mapping.begin, mapping.whole); };
  Result<Imported> made = import_view(device, shape, element_type, mapping.data, size, memory.flags, unmap);
  if (!made) unmap();
  return made;
}

Result<Imported> import_opaque(halyard_device_t device, std::span<const int64_t> shape, uint32_t element_type,
                               const halyard_fd_memory_t& memory, uint64_t size) {
  const Ref<hal::Device> owner = HALYARD_TRY(device_or_host(device));
  if (memory.flags & HALYARD_IMPORT_READ_ONLY)
    return fail(Code::UNIMPLEMENTED,
                "device memory cannot be imported as read-only; omit HALYARD_IMPORT_READ_ONLY");
  if (memory.offset > memory.size || size > memory.size - memory.offset)
    return fail(Code::INVALID_ARGUMENT,
                "a view of {} bytes from byte {} exceeds the memory, which has {} bytes (`size`)", size,
                memory.offset, memory.size);
  Ref<hal::Buffer> whole =
      HALYARD_TRY(hal::import_fd(*owner, kWishes, kUsage, memory.fd, memory.size, memory.offset + size));
  Ref<hal::Buffer> part = HALYARD_TRY(whole->subspan(memory.offset, size));
  return Imported{
      HALYARD_TRY(hal::BufferView::create(std::move(part), shape, element_type, hal::kEncodingDenseRowMajor)),
      false};
}

}  // namespace

halyard_status_t halyard_view_import_fd(halyard_device_t device, uint32_t element_type, const int64_t* shape,
                                        size_t rank, const halyard_fd_memory_t* memory, uint32_t* is_copy,
                                        halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_dimensions(shape, rank));
    HALYARD_TRY(check_array(memory, 1, "halyard_fd_memory_t", "memory"));
    const halyard_fd_memory_t known = HALYARD_TRY(known_fields(memory));
    HALYARD_TRY(
        check_flags(known.flags, HALYARD_IMPORT_READ_ONLY | HALYARD_IMPORT_NO_COPY, "HALYARD_IMPORT_*"));
    const std::span<const int64_t> dimensions(shape, rank);
    const uint64_t size = HALYARD_TRY(hal::dense_byte_count(dimensions, element_type));
    if (known.kind != HALYARD_FD_MAPPABLE && known.kind != HALYARD_FD_OPAQUE)
      return fail(
          Code::INVALID_ARGUMENT,
          "kind {} of a file descriptor does not exist; choose HALYARD_FD_MAPPABLE or HALYARD_FD_OPAQUE",
          known.kind);
    Imported made = HALYARD_TRY(known.kind == HALYARD_FD_MAPPABLE
                                    ? import_mapped(device, dimensions, element_type, known, size)
                                    : import_opaque(device, dimensions, element_type, known, size));
    if (is_copy) *is_copy = made.is_copy;
    *out = give<halyard_object_t>(std::move(made.view));
    return {};
  });
}
