/* Views over memory behind file descriptors: mapped ones on every device, and memory of Vulkan that this
 * program allocates and exports itself, as another process would. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "halyard/memory.h"

#if defined(__has_include)
#if __has_include(<vulkan/vulkan.h>)
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>
#define HAVE_VULKAN 1
#endif
#endif

static int open_descriptors(void) {
  int count = 0, fd;
  for (fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

/* Mappings of files of that name in this process. */
static int mappings(const char* name) {
  char line[4096];
  int count = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) count += strstr(line, name) != NULL;
  fclose(maps);
  return count;
}

static void mapped(halyard_device_t device) {
  const int64_t shape[] = {256};
  const int before = open_descriptors();
  halyard_object_t view = NULL;
  uint32_t is_copy = 9;
  uint8_t seen[256];
  int fd = memfd_create("halyard-test-frames", MFD_CLOEXEC);
  EXPECT(ftruncate(fd, 8192) == 0);
  halyard_fd_memory_t memory = {.struct_size = sizeof memory, .kind = HALYARD_FD_MAPPABLE, .fd = fd};

  /* In place, at any multiple of what the device wants; the descriptor may go. */
  memory.offset = 4096 + 64;
  const int other = dup(fd);
  memory.fd = other;
  OK(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, &is_copy, &view));
  close(other);
  EXPECT(is_copy == 0 && mappings("halyard-test-frames") == 1);
  EXPECT(pwrite(fd, "abc", 3, 4096 + 64) == 3);
  OK(halyard_view_read(view, 0, seen, sizeof seen));
  EXPECT(memcmp(seen, "abc\0", 4) == 0);
  void* data = NULL;
  size_t size = 0;
  OK(halyard_view_map(view, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, &data, &size));
  EXPECT(size == 256);
  memcpy(data, "xyz", 3);
  halyard_view_unmap(view);
  EXPECT(pread(fd, seen, 4, 4096 + 64) == 4 && memcmp(seen, "xyz\0", 4) == 0);
  halyard_release(view);
  EXPECT(mappings("halyard-test-frames") == 0);

  /* Up to the last byte, and no further. */
  memory.fd = fd;
  memory.offset = 8192 - 256;
  OK(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view));
  halyard_release(view);
  memory.offset = 8192 - 255;
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "it has 8192 bytes");
  memory.offset = UINT64_MAX;
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "it has 8192 bytes");
  memory.offset = 1;
  if (device) { /* memory of the host has no alignment that it asks for */
    OK(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, &is_copy, &view));
    EXPECT(is_copy == 1 && mappings("halyard-test-frames") == 0);
    halyard_release(view);
    memory.flags = HALYARD_IMPORT_NO_COPY;
    FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, &is_copy, &view),
          HALYARD_OUT_OF_RANGE, "multiple of");
    EXPECT(mappings("halyard-test-frames") == 0);
  }

  /* Of a device file, whose end is unknown: 2^64 - 1 bytes, which overflow with the start of their page, and
   * 2^63. */
  const int zeros = open("/dev/zero", O_RDWR);
  memory = (halyard_fd_memory_t){.struct_size = sizeof memory,
                                 .kind = HALYARD_FD_MAPPABLE,
                                 .fd = zeros,
                                 .flags = HALYARD_IMPORT_NO_COPY,
                                 .offset = 4032};
  const int64_t most[] = {4294967295, 4294967297}, half[] = {INT64_C(1) << 32, INT64_C(1) << 31};
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, most, 2, &memory, NULL, &view),
        HALYARD_RESOURCE_EXHAUSTED, "a view of 18446744073709551615 bytes");
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, half, 2, &memory, NULL, &view),
        HALYARD_RESOURCE_EXHAUSTED, "a view of 9223372036854775808 bytes");
  close(zeros);

  /* Descriptors that may only be read from. */
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int readable = open(path, O_RDONLY);
  memory = (halyard_fd_memory_t){.struct_size = sizeof memory, .kind = HALYARD_FD_MAPPABLE, .fd = readable};
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_PERMISSION_DENIED, "HALYARD_IMPORT_READ_ONLY");
  memory.flags = HALYARD_IMPORT_READ_ONLY;
  OK(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view));
  FAILS(halyard_view_map(view, HALYARD_VIEW_WRITE, &data, &size), HALYARD_PERMISSION_DENIED, "");
  halyard_release(view);
  close(readable);

  memory = (halyard_fd_memory_t){.struct_size = sizeof memory, .kind = HALYARD_FD_MAPPABLE, .fd = -1};
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "Bad file descriptor");
  int ends[2];
  EXPECT(pipe(ends) == 0);
  memory.fd = ends[0];
  memory.flags = HALYARD_IMPORT_READ_ONLY;
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "expected a memfd");
  close(ends[0]);
  close(ends[1]);
  memory.fd = fd;
  memory.size = 4096;
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "`size`");
  memory.kind = 3;
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "kind 3");
  memory.struct_size = 0;
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "struct_size");
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, NULL, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "null pointer");

  /* What devices of other kinds export. */
  memory =
      (halyard_fd_memory_t){.struct_size = sizeof memory, .kind = HALYARD_FD_OPAQUE, .fd = fd, .size = 4096};
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_UNIMPLEMENTED, "import");
  memory.size = 255;
  FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "has 255 bytes");
  close(fd);
  EXPECT(open_descriptors() == before);
}

#if HAVE_VULKAN
/* Memory of the first Vulkan device, which Halyard knows nothing of. */
struct exporter {
  PFN_vkGetInstanceProcAddr get;
  VkInstance instance;
  VkDevice device;
  VkDeviceMemory memory;
  uint64_t size;
};
#define VK(name) ((PFN_vk##name)self->get(self->instance, "vk" #name))

/* A descriptor of memory that begins with the text; -1: there is no such device. */
static int export_text(struct exporter* self, const char* text) {
  void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  uint32_t count = 1, i;
  int fd = -1;
  VkPhysicalDevice physical;
  if (!library) return -1;
  *(void**)&self->get = dlsym(library, "vkGetInstanceProcAddr");
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                         .pApplicationInfo = &application};
  if (VK(CreateInstance)(&instance, NULL, &self->instance) != VK_SUCCESS) return -1;
  if (VK(EnumeratePhysicalDevices)(self->instance, &count, &physical) < 0 || count == 0) return -1;
  const float priority = 1;
  const char* const extensions[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
  const VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = 1,
                                     .ppEnabledExtensionNames = extensions};
  if (VK(CreateDevice)(physical, &device, NULL, &self->device) != VK_SUCCESS) return -1;
  VkPhysicalDeviceMemoryProperties types;
  VK(GetPhysicalDeviceMemoryProperties)(physical, &types);
  const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                       VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (i = 0; i < types.memoryTypeCount; ++i)
    if ((types.memoryTypes[i].propertyFlags & wanted) == wanted) break;
  self->size = 1 << 20;
  const VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                               .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  const VkMemoryAllocateFlagsInfo address = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .pNext = &exported};
  const VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .pNext = &address,
                                           .allocationSize = self->size,
                                           .memoryTypeIndex = i};
  void* data = NULL;
  if (i == types.memoryTypeCount ||
      VK(AllocateMemory)(self->device, &allocation, NULL, &self->memory) != VK_SUCCESS ||
      VK(MapMemory)(self->device, self->memory, 0, VK_WHOLE_SIZE, 0, &data) != VK_SUCCESS)
    return -1;
  strcpy((char*)data + 4096, text);
  const VkMemoryGetFdInfoKHR get = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                    .memory = self->memory,
                                    .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  return VK(GetMemoryFdKHR)(self->device, &get, &fd) == VK_SUCCESS ? fd : -1;
}

static void end(struct exporter* self) {
  if (self->memory) VK(FreeMemory)(self->device, self->memory, NULL);
  if (self->device) VK(DestroyDevice)(self->device, NULL);
  if (self->instance) VK(DestroyInstance)(self->instance, NULL);
}

static void of_a_device(halyard_instance_t instance) {
  struct exporter exporter = {0};
  halyard_device_t device = NULL;
  halyard_object_t view = NULL;
  const int64_t shape[] = {64};
  char seen[64] = "";
  uint32_t is_copy = 9;
  halyard_status_t none = halyard_device_open(instance, "vulkan://0", &device);
  const int fd = none ? -1 : export_text(&exporter, "from elsewhere");
  halyard_status_release(none);
  if (fd < 0) {
    fprintf(stderr, "no Vulkan device that exports memory: not tested\n");
  } else {
    halyard_fd_memory_t memory = {.struct_size = sizeof memory,
                                  .kind = HALYARD_FD_OPAQUE,
                                  .fd = fd,
                                  .offset = 4096,
                                  .size = exporter.size};
    const int before = open_descriptors();
    if (!OK(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, &is_copy, &view))) exit(1);
    EXPECT(is_copy == 0);
    OK(halyard_view_read(view, 0, seen, sizeof seen));
    EXPECT(strcmp(seen, "from elsewhere") == 0);
    void* data = NULL;
    size_t size = 0;
    OK(halyard_view_map(view, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, &data, &size));
    strcpy(data, "and back"); /* the same memory, also after it is written to */
    halyard_view_unmap(view);
    halyard_release(view);
    OK(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, &is_copy, &view));
    OK(halyard_view_read(view, 0, seen, sizeof seen));
    EXPECT(strcmp(seen, "and back") == 0);
    halyard_release(view);
    memory.flags = HALYARD_IMPORT_READ_ONLY;
    FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
          HALYARD_UNIMPLEMENTED, "read-only");
    memory.flags = 0;
    memory.fd = memfd_create("no memory of a device", MFD_CLOEXEC);
    EXPECT(ftruncate(memory.fd, 4096) == 0);
    FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
          HALYARD_INVALID_ARGUMENT, "same device and driver");
    close(memory.fd);
    memory.fd = -1;
    FAILS(halyard_view_import_fd(device, HALYARD_ELEMENT_UI8, shape, 1, &memory, NULL, &view),
          HALYARD_INVALID_ARGUMENT, "-1 is no open file descriptor");
    EXPECT(open_descriptors() == before);
    close(fd);
  }
  halyard_release(device);
  end(&exporter);
}
#endif

int main(void) {
  static const char* const devices[] = {"local-sync", "local-task", NULL};
  halyard_instance_t instance = NULL;
  int i;
  OK(halyard_instance_create(NULL, &instance));
  for (i = 0; i < 3; ++i) {
    halyard_device_t device = NULL;
    if (devices[i]) OK(halyard_device_open(instance, devices[i], &device));
    mapped(device);
    halyard_release(device);
  }
#if HAVE_VULKAN
  of_a_device(instance);
#endif
  halyard_release(instance);
  return failures != 0;
}
