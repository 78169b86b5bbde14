/* Memory that programs share with their embedder: views over bytes of the host's, parts of buffers, mappings,
 * and tensors of other libraries through DLPack. Plain C11; the functions are libhalyard's.
 *
 * These functions do not order work on devices. Before it reads shared bytes, the embedder waits for the work
 * that writes them: results of synchronous functions are complete, those of asynchronous functions are when
 * their fence is reached. Any thread; not two threads at once on one view's bytes.
 */
#ifndef HALYARD_MEMORY_H_
#define HALYARD_MEMORY_H_

#include "halyard/halyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Views over memory of the host's ------------------------------------------------------------------- */

enum {
  HALYARD_IMPORT_READ_ONLY =
      1u << 0, /* programs must not write: a kernel that does fails (PERMISSION_DENIED) */
  HALYARD_IMPORT_NO_COPY = 1u << 1, /* fail where the device cannot use the memory in place */
};

/* Called once, when nothing uses the bytes any longer, on the thread that drops the last reference. It must
 * not call functions of the context or the device that dropped it. */
typedef void (*halyard_release_fn)(void* user);

/* A view over `size` bytes at `data`, which the device uses in place where it can: `local` where they begin
 * at a multiple of its import_alignment (halyard_device_describe; 64), memory without a device always.
 * Otherwise it is a view of a copy, and `release` (may be null) is called before this returns. *is_copy (may
 * be null) says which. `device` null: for programs that use no device. On a failure `release` is not called.
 * INVALID_ARGUMENT: shape and size disagree, unknown flags; with NO_COPY also OUT_OF_RANGE (the alignment)
 * and UNIMPLEMENTED (the device imports nothing). */
HALYARD_API halyard_status_t halyard_view_import(halyard_device_t device, uint32_t element_type,
                                                 const int64_t* shape, size_t rank, void* data, size_t size,
                                                 uint32_t flags, halyard_release_fn release, void* user,
                                                 uint32_t* is_copy, halyard_object_t* out);

/* What a file descriptor stands for. */
enum {
  /* Bytes that a process can map: a memfd, a file, shared memory, a dma-buf of the CPU's. They become memory
   * of the host, as of halyard_view_import. The file must not shrink as long as the view lives. */
  HALYARD_FD_MAPPABLE = 1,
  /* Memory of a device, exported by the same kind of driver for the same device: of Vulkan, OPAQUE_FD, for
   * buffers, of the memory type that the driver would choose for a device's own. */
  HALYARD_FD_OPAQUE = 2,
};

typedef struct halyard_fd_memory {
  uint32_t struct_size;
  uint32_t kind;   /* HALYARD_FD_* */
  int32_t fd;      /* stays the caller's, who may close it after the import */
  uint32_t flags;  /* HALYARD_IMPORT_* */
  uint64_t offset; /* bytes, where the view begins */
  uint64_t size;   /* of OPAQUE: the exporter's whole allocation, in bytes; else 0 */
} halyard_fd_memory_t;

/* A view over memory behind a file descriptor, which the device uses in place where it can. *is_copy (may be
 * null): it cannot, so it is a view of a copy; never of OPAQUE. `device` null: for programs that use no
 * device. INVALID_ARGUMENT: no such descriptor, or it ends before the view does; PERMISSION_DENIED: MAPPABLE
 * that may not be written to, without READ_ONLY; UNIMPLEMENTED: the device does not import OPAQUE, or not
 * read-only; with NO_COPY as halyard_view_import. */
HALYARD_API halyard_status_t halyard_view_import_fd(halyard_device_t device, uint32_t element_type,
                                                    const int64_t* shape, size_t rank,
                                                    const halyard_fd_memory_t* memory, uint32_t* is_copy,
                                                    halyard_object_t* out);

/* A view of the bytes from `offset` on of a view or a buffer, with a shape and type of its own; nothing is
 * copied. OUT_OF_RANGE: more bytes than there are; INVALID_ARGUMENT: neither a view nor a buffer, a shape
 * without a size; as halyard_view_byte_count of a view. */
HALYARD_API halyard_status_t halyard_view_part(halyard_object_t view, uint64_t offset, uint32_t element_type,
                                               const int64_t* shape, size_t rank, halyard_object_t* out);

/* The device that the memory of a view or a buffer belongs to, owned by the caller. Memory without a device
 * belongs to one with the URI "host://", which has only memory. INVALID_ARGUMENT: neither a view nor a
 * buffer. */
HALYARD_API halyard_status_t halyard_view_device(halyard_object_t view, halyard_device_t* out);

enum {
  HALYARD_VIEW_READ = 1u << 0,
  HALYARD_VIEW_WRITE = 1u << 1,
};
/* The bytes of the view's elements, or of the buffer, in this process, until halyard_view_unmap; the view is
 * held until then. Mappings nest. `access` is HALYARD_VIEW_*. PERMISSION_DENIED: memory that the host does
 * not see, or must not write to; it is read with halyard_view_read at the most. FAILED_PRECONDITION: the
 * bytes are not there yet, or no longer; as halyard_view_byte_count. */
HALYARD_API halyard_status_t halyard_view_map(halyard_object_t view, uint32_t access, void** data,
                                              size_t* size);
HALYARD_API void halyard_view_unmap(halyard_object_t view);

/* ---- DLPack (github.com/dmlc/dlpack, versions 0.x and 1.x): tensors of PyTorch, JAX, numpy and others -- */

struct DLManagedTensor;
struct DLManagedTensorVersioned;

enum {
  HALYARD_DLPACK_COPY = 1u << 0,      /* a copy, also where the memory could be shared */
  HALYARD_DLPACK_READ_ONLY = 1u << 1, /* to: marked read-only; only the versioned struct can be */
};

/* The view as a tensor of the CPU whose memory it is; also memory of other devices that the host sees.
 * The consumer calls its deleter once, on any thread. UNIMPLEMENTED: an element type that DLPack lacks;
 * as halyard_view_map. The one without version cannot say that memory is read-only: PERMISSION_DENIED. */
HALYARD_API halyard_status_t halyard_view_to_dlpack(halyard_object_t view, uint32_t flags,
                                                    struct DLManagedTensorVersioned** out);
HALYARD_API halyard_status_t halyard_view_to_dlpack_unversioned(halyard_object_t view, uint32_t flags,
                                                                struct DLManagedTensor** out);

/* Calls the tensor's deleter, if it has one: for callers that do not include DLPack's header. Null is
 * allowed. */
HALYARD_API void halyard_dlpack_release(struct DLManagedTensorVersioned* tensor);
HALYARD_API void halyard_dlpack_release_unversioned(struct DLManagedTensor* tensor);

/* The tensor as a view, in place where halyard_view_import would and its elements lie dense and row-major;
 * else a copy. Takes the tensor over where it succeeds: its deleter is called when the bytes are not used any
 * longer, which may be before this returns. *is_copy may be null. UNIMPLEMENTED: a tensor that is not in
 * memory of the CPU, an element type that programs lack, a newer major version; INVALID_ARGUMENT: what is
 * wrong with it. */
HALYARD_API halyard_status_t halyard_view_from_dlpack(halyard_device_t device,
                                                      struct DLManagedTensorVersioned* tensor, uint32_t flags,
                                                      uint32_t* is_copy, halyard_object_t* out);
HALYARD_API halyard_status_t halyard_view_from_dlpack_unversioned(halyard_device_t device,
                                                                  struct DLManagedTensor* tensor,
                                                                  uint32_t flags, uint32_t* is_copy,
                                                                  halyard_object_t* out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_MEMORY_H_ */
