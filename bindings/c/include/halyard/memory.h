/* Memory that programs share with their embedder: views over host memory, parts of buffers, mappings, and
 * tensors of other libraries through DLPack. Plain C11; link with libhalyard.
 *
 * These functions do not order work on devices. Before the embedder reads shared bytes, it waits for the work
 * that writes them: results of a synchronous function are complete when it returns, those of an asynchronous
 * function when its fence is reached. Any thread; but only one thread at a time on the bytes of a view.
 */
#ifndef HALYARD_MEMORY_H_
#define HALYARD_MEMORY_H_

#include "halyard/halyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Views over host memory ---------------------------------------------------------------------------- */

enum {
  HALYARD_IMPORT_READ_ONLY = 1u << 0, /* programs must not write: a writing kernel is PERMISSION_DENIED */
  HALYARD_IMPORT_NO_COPY = 1u << 1,   /* fail if the device cannot use the memory in place */
};

/* Called once, when nothing uses the bytes any longer, on the thread that drops the last reference. It must
 * not call functions of the context or the device that dropped the reference. */
typedef void (*halyard_release_fn)(void* user);

/* Creates a view over `size` bytes at `data`. The device uses the bytes in place if it can: `local` devices
 * if `data` is a multiple of their import_alignment (halyard_device_describe; 64 bytes), memory without a
 * device always. Otherwise the view holds a copy, and `release` (may be null) is called before this function
 * returns. *is_copy (may be null) is 1 for a copy, else 0. `device` null: for programs that use no device. If
 * this function fails, `release` is not called. INVALID_ARGUMENT: shape and size disagree, unknown flags.
 * With NO_COPY also OUT_OF_RANGE (wrong alignment) and UNIMPLEMENTED (the device cannot import). */
HALYARD_API halyard_status_t halyard_view_import(halyard_device_t device, uint32_t element_type,
                                                 const int64_t* shape, size_t rank, void* data, size_t size,
                                                 uint32_t flags, halyard_release_fn release, void* user,
                                                 uint32_t* is_copy, halyard_object_t* out);

/* Kinds of file descriptors. */
enum {
  /* Bytes that a process can map: a memfd, a file, shared memory, a dma-buf in CPU memory. They become host
   * memory, as with halyard_view_import. The file must not shrink while the view lives. */
  HALYARD_FD_MAPPABLE = 1,
  /* Device memory, exported by the same kind of driver for the same device. Vulkan: an OPAQUE_FD of memory
   * for buffers, of the memory type that the driver chooses for its own device memory. */
  HALYARD_FD_OPAQUE = 2,
};

typedef struct halyard_fd_memory {
  uint32_t struct_size;
  uint32_t kind;   /* HALYARD_FD_* */
  int32_t fd;      /* owned by the caller, who may close it after the import */
  uint32_t flags;  /* HALYARD_IMPORT_* */
  uint64_t offset; /* bytes, start of the view */
  uint64_t size;   /* OPAQUE: size of the exporter's whole allocation, in bytes; else 0 */
} halyard_fd_memory_t;

/* Creates a view over the memory of a file descriptor. The device uses MAPPABLE memory in place if it can,
 * otherwise the view holds a copy and *is_copy (may be null) is 1; OPAQUE memory is never copied. `device`
 * null: for programs that use no device. INVALID_ARGUMENT: no such descriptor, or the file ends before the
 * view; RESOURCE_EXHAUSTED: the view does not fit into the address space; PERMISSION_DENIED: MAPPABLE memory
 * is not writable and READ_ONLY is not set; UNIMPLEMENTED: the device does not import OPAQUE memory, or not
 * with READ_ONLY. With NO_COPY also fails like halyard_view_import. */
HALYARD_API halyard_status_t halyard_view_import_fd(halyard_device_t device, uint32_t element_type,
                                                    const int64_t* shape, size_t rank,
                                                    const halyard_fd_memory_t* memory, uint32_t* is_copy,
                                                    halyard_object_t* out);

/* Creates a view of the bytes from `offset` on of a view or a buffer, with its own shape and type, without a
 * copy. OUT_OF_RANGE: too few bytes; INVALID_ARGUMENT: neither a view nor a buffer, or the shape has no size.
 * For a view, also fails like halyard_view_byte_count. */
HALYARD_API halyard_status_t halyard_view_part(halyard_object_t view, uint64_t offset, uint32_t element_type,
                                               const int64_t* shape, size_t rank, halyard_object_t* out);

/* Returns the device to which the memory of a view or a buffer belongs; the caller owns the reference. Memory
 * without a device belongs to a device with the URI "host://", which has only memory. INVALID_ARGUMENT:
 * neither a view nor a buffer. */
HALYARD_API halyard_status_t halyard_view_device(halyard_object_t view, halyard_device_t* out);

enum {
  HALYARD_VIEW_READ = 1u << 0,
  HALYARD_VIEW_WRITE = 1u << 1,
};
/* Maps the elements of a view, or the bytes of a buffer, into this process until halyard_view_unmap, and
 * keeps the object alive until then. Mappings nest. `access` is HALYARD_VIEW_*. PERMISSION_DENIED: the memory
 * is not host-visible, or is read-only; halyard_view_read may still read it. FAILED_PRECONDITION: the bytes
 * do not exist yet, or no longer exist. Also fails like halyard_view_byte_count. */
HALYARD_API halyard_status_t halyard_view_map(halyard_object_t view, uint32_t access, void** data,
                                              size_t* size);
/* Ends one mapping of the view. */
HALYARD_API void halyard_view_unmap(halyard_object_t view);

/* ---- DLPack (github.com/dmlc/dlpack, versions 0.x and 1.x): tensors of PyTorch, JAX, numpy and others -- */

struct DLManagedTensor;
struct DLManagedTensorVersioned;

enum {
  HALYARD_DLPACK_COPY = 1u << 0,      /* always copy */
  HALYARD_DLPACK_READ_ONLY = 1u << 1, /* to_dlpack: mark as read-only; not with the unversioned struct */
};

/* Exports the view as a CPU tensor over the same memory; the memory may belong to any device if it is
 * host-visible. The consumer calls the tensor's deleter once, on any thread. UNIMPLEMENTED: DLPack lacks the
 * element type. PERMISSION_DENIED: read-only memory, in the unversioned struct, which cannot express it. Also
 * fails like halyard_view_map. */
HALYARD_API halyard_status_t halyard_view_to_dlpack(halyard_object_t view, uint32_t flags,
                                                    struct DLManagedTensorVersioned** out);
HALYARD_API halyard_status_t halyard_view_to_dlpack_unversioned(halyard_object_t view, uint32_t flags,
                                                                struct DLManagedTensor** out);

/* Calls the tensor's deleter, if it has one, for callers without DLPack's header. Null is allowed. */
HALYARD_API void halyard_dlpack_release(struct DLManagedTensorVersioned* tensor);
HALYARD_API void halyard_dlpack_release_unversioned(struct DLManagedTensor* tensor);

/* Creates a view of the tensor. The view uses the tensor's memory in place if halyard_view_import would and
 * the elements are dense and row-major; else it holds a copy. On success the function takes ownership of the
 * tensor: its deleter is called when nothing uses the bytes any longer, perhaps before this function returns.
 * *is_copy may be null. UNIMPLEMENTED: the tensor is not in CPU memory, its element type is unsupported, or
 * its major version is newer; INVALID_ARGUMENT: the tensor is invalid; the message names the reason. */
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
