// Semaphores as file descriptors. Here both ends are on one device, used as by devices of two drivers.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "cases.h"

namespace halyard::cts {

namespace {

void need_descriptors(Session& s) {
  if (!s.has(HALYARD_DEVICE_SEMAPHORE_EXPORT)) unsupported("the capability SEMAPHORE_EXPORT is not set");
  if (!s.table().semaphore_export || !s.table().semaphore_import)
    s.stop("R68", "semaphore_export and semaphore_import of a device with SEMAPHORE_EXPORT", "there", "null");
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

int32_t exported(Session& s, Semaphore semaphore) {
  int32_t fd = -1;
  s.must("semaphore_export", "semaphore_export", s.take(s.table().semaphore_export(semaphore, &fd)));
  if (fd < 0)
    s.stop("semaphore_export", "fd of an exported semaphore", "a file descriptor", fmt::format("{}", fd));
  return fd;
}

Semaphore imported(Session& s, int32_t fd) {
  Semaphore semaphore = nullptr;
  s.must("semaphore_import", "semaphore_import",
         s.take(s.table().semaphore_import(s.device(), fd, &semaphore)));
  if (!semaphore) s.stop("semaphore_import", "an imported semaphore", "a handle", "null");
  return semaphore;
}

void destroy_import(Session& s, Semaphore semaphore) { s.table().semaphore_destroy(s.device(), semaphore); }

halyard_operation_t nothing() {
  halyard_operation_t operation = {};
  operation.struct_size = sizeof operation;
  operation.kind = HALYARD_OPERATION_BARRIER;
  return operation;
}

}  // namespace

void semaphore_export_and_import(Session& s) {
  need_descriptors(s);
  s.check("R110", s.properties().semaphore_fd_kind != HALYARD_SEMAPHORE_FD_NONE,
          "semaphore_fd_kind of a device with SEMAPHORE_EXPORT", "what its descriptors are",
          "HALYARD_SEMAPHORE_FD_NONE");
  // Done once before descriptors are counted, because a driver may open some and keep them.
  destroy_import(s, imported(s, exported(s, s.semaphore())));
  const size_t before = open_descriptors();
  const Semaphore semaphore = s.semaphore(3);
  const Semaphore first = imported(s, exported(s, semaphore)), second = imported(s, exported(s, semaphore));
  s.value_is("R110", "an imported semaphore", first, 3);
  s.must("semaphore_signal", "signal of the exported semaphore", s.signal(semaphore, 8));
  for (const Semaphore each : {first, second})
    s.succeeded("R110", "wait for an imported semaphore after a signal of 8 of the exported one",
                s.await(each, 8));
  s.refused("R110", "poll of an imported semaphore for more than the exported one has",
            HALYARD_DEADLINE_EXCEEDED, s.wait({{first, 9}}, false, 0));
  // Each import has its own descriptor, and must close it.
  destroy_import(s, first);
  s.must("semaphore_signal", "signal of the exported semaphore", s.signal(semaphore, 9));
  s.succeeded("R110", "wait for 9 of the other import when the first is gone", s.await(second, 9));
  s.destroy(semaphore);
  s.value_is("R113", "an imported semaphore when the exported one is gone", second, 9);
  destroy_import(s, second);
  s.equal("R75", "file descriptors that are open when all these semaphores are gone", before,
          open_descriptors());
}

void semaphore_import_of_something_else(Session& s) {
  need_descriptors(s);
  const int32_t file = ::memfd_create("no semaphore", MFD_CLOEXEC);
  if (file < 0) unsupported("this system has no memfd_create");
  Semaphore semaphore = nullptr;
  const Outcome outcome = s.take(s.table().semaphore_import(s.device(), file, &semaphore));
  s.check("R50", !outcome.ok(), "semaphore_import of a descriptor of something else", "a failure", "success");
  s.check("R50", semaphore == nullptr, "the semaphore of an import that failed", "null as before",
          "a handle");
  s.check("R75", ::fcntl(file, F_GETFD) >= 0, "a descriptor whose import failed", "open as before", "closed");
  ::close(file);
}

// As the host does: imports a semaphore whose signal has been submitted.
void semaphore_imported_waits(Session& s) {
  need_descriptors(s);
  const Semaphore origin = s.semaphore(), end = s.semaphore();
  const Semaphore follows = imported(s, exported(s, origin));
  Work& first = s.submit(nothing(), {}, {{origin, 1}});
  s.succeeded("R60", "the work that signals the exported semaphore", s.end_of(first));
  Work& second = s.submit(nothing(), {{follows, 1}}, {{end, 1}});
  s.succeeded("R110", "work that waits for the imported semaphore", s.end_of(second));
  s.value_is("R63", "what that work signals", end, 1);
  destroy_import(s, follows);
}

void semaphore_imported_failure(Session& s) {
  need_descriptors(s);
  const Semaphore origin = s.semaphore(4), end = s.semaphore();
  const Semaphore follows = imported(s, exported(s, origin));
  s.fail(follows, HALYARD_DATA_LOSS, "failed elsewhere");
  s.failed_with("R112", "an imported semaphore that the host failed", follows, HALYARD_DATA_LOSS,
                "failed elsewhere");
  s.refused_naming("R62", "work that waits for it", HALYARD_DATA_LOSS, "failed elsewhere",
                   s.end_of(s.submit(nothing(), {{follows, 5}}, {{end, 1}})));
  s.failed_with("R62", "what that work signals", end, HALYARD_DATA_LOSS, "failed elsewhere");
  s.value_is("R112", "the exported semaphore", origin, 4);
  destroy_import(s, follows);
}

void semaphore_underway(Session& s) {
  if (!s.table().semaphore_underway) unsupported("semaphore_underway is null");
  const auto is = [&](std::string_view what, Semaphore semaphore, uint64_t value, bool expected) {
    const bool found = s.table().semaphore_underway(semaphore, value) != 0;
    s.check("R111", found == expected, fmt::format("semaphore_underway of {}", what), expected ? "1" : "0",
            found ? "1" : "0");
  };
  const Semaphore start = s.semaphore(2), end = s.semaphore(), failed = s.semaphore(7);
  is("what is reached", start, 2, true);
  is("what nothing signals", start, 3, false);
  Work& work = s.submit(nothing(), {{start, 3}}, {{end, 1}});
  is("what work signals that waits for the host", end, 1, false);
  s.must("semaphore_signal", "signal of what the work waits for", s.signal(start, 3));
  s.succeeded("R60", "that work", s.end_of(work));
  is("what is done", end, 1, true);
  s.fail(failed, HALYARD_ABORTED, "failed");
  is("a failed semaphore", failed, 7, false);
}

}  // namespace halyard::cts
