// Tracer: no event is lost, and times are counted once. The contents of the file: tests/test_traces.py.
#include "base/tracer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "fixtures.h"
#include "status_testing.h"

namespace halyard {
namespace {

uint64_t time_of(const Tracer::Totals& totals, TraceCategory category) {
  return totals.nanoseconds[static_cast<size_t>(category)];
}

// As many bytes as there are between two occurrences: each event is at least its time and its track.
size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Tracer, SlicesCountWithoutThoseWithin) {
  const Ref<Tracer> tracer = *Tracer::create("");
  const uint64_t first = Tracer::now();
  tracer->begin(TraceCategory::machine, "outer");
  const uint64_t begin = Tracer::now();
  while (Tracer::now() - begin < 2'000'000) {
  }
  const uint64_t end = Tracer::now();
  tracer->span(TraceCategory::device, "kernel", begin, end);
  tracer->end();
  const uint64_t whole = Tracer::now() - first;
  const Tracer::Totals totals = tracer->totals();
  EXPECT_EQ(totals.events, 3u);
  EXPECT_EQ(time_of(totals, TraceCategory::device), end - begin);
  EXPECT_LE(time_of(totals, TraceCategory::machine), whole - (end - begin));
  EXPECT_EQ(time_of(totals, TraceCategory::import), 0u);
}

TEST(Tracer, WhatIsOpenDoesNotCount) {
  const Ref<Tracer> tracer = *Tracer::create("");
  tracer->begin(TraceCategory::wait, "for ever");
  EXPECT_EQ(time_of(tracer->totals(), TraceCategory::wait), 0u);
  tracer->end();
  EXPECT_GT(time_of(tracer->totals(), TraceCategory::wait), 0u);
}

TEST(Tracer, AnEndWithoutABeginIsNothing) {
  const Ref<Tracer> tracer = *Tracer::create("");
  tracer->end();
  EXPECT_EQ(tracer->totals().events, 1u);
}

TEST(Tracer, OnlySoManyNamesAreKept) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "trace";
  constexpr size_t kNames = PerfettoWriter::kMaxNames + 100;
  {
    const Ref<Tracer> tracer = *Tracer::create(path);
    for (int round = 0; round < 2; ++round)
      for (size_t i = 0; i < kNames; ++i)
        tracer->instant(TraceCategory::phase, "request-" + std::to_string(i) + ";");
    ASSERT_TRUE(tracer->finish());
  }
  const std::string text = file_text(path);
  EXPECT_EQ(count(text, "request-0;"), 1u);     // once, and then its number
  EXPECT_EQ(count(text, "request-4095;"), 1u);  // the last that is kept
  EXPECT_EQ(count(text, "request-4096;"), 2u);
  EXPECT_EQ(count(text, "request-"), kNames + 100);
}

TEST(Tracer, ManyThreadsLoseNothing) {
  constexpr int kThreads = 70;   // more than one table of slots holds
  constexpr int kSlices = 2000;  // more than one buffer holds
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "trace";
  {
    const Ref<Tracer> tracer = *Tracer::create(path);
    std::atomic<int> ready = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();  // all live at the same time
        for (int slice = 0; slice < kSlices; ++slice) {
          const TraceScope scope(tracer.get(), TraceCategory::phase, slice == 0 ? "first-of-thread" : "more");
        }
      });
    for (int i = 0; i < 20; ++i) static_cast<void>(tracer->totals());  // while they write
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(tracer->totals().events, uint64_t{kThreads} * kSlices * 2);
    EXPECT_TRUE(tracer->finish());
  }
  const std::string bytes = file_text(path);
  EXPECT_EQ(count(bytes, "first-of-thread"), 1u);  // a name is written once
  EXPECT_GT(bytes.size(), size_t{kThreads} * kSlices * 2 * 12);
}

TEST(Tracer, ArgumentsOfSlicesAreInTheFile) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "trace";
  {
    const Ref<Tracer> tracer = *Tracer::create(path);
    const TraceArgument arguments[] = {{.name = "threads", .number = 4}, {.name = "why", .text = "because"}};
    tracer->span(TraceCategory::device, "kernel", 1, 2, arguments);
    tracer->span(TraceCategory::device, "kernel", 3, 4);
    ASSERT_TRUE(tracer->finish());
  }
  const std::string bytes = file_text(path);
  // Name (field 10), then the number (field 3) or the text (field 6).
  EXPECT_EQ(count(bytes, "\x52\x07threads\x18\x04"), 1u);
  EXPECT_EQ(count(bytes,
                  "\x52\x03why\x32\x07"
                  "because"),
            1u);
  EXPECT_EQ(count(bytes, "kernel"), 1u);
}

TEST(Tracer, LongNamesAreCut) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "trace";
  {
    const Ref<Tracer> tracer = *Tracer::create(path);
    const TraceScope scope(tracer.get(), TraceCategory::phase, std::string(1000, 'x'));
  }
  const std::string bytes = file_text(path);
  EXPECT_EQ(count(bytes, std::string(255, 'x')), 1u);
  EXPECT_EQ(count(bytes, std::string(256, 'x')), 0u);
}

TEST(Tracer, AFileThatCannotBeMade) {
  EXPECT_FAILS(NOT_FOUND, "'/no/such/folder/trace.perfetto'",
               Tracer::create("/no/such/folder/trace.perfetto"));
}

TEST(Tracer, AFullDiskIsToldAtTheEnd) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "the system has no /dev/full";
  const Ref<Tracer> tracer = *Tracer::create("/dev/full");
  for (int i = 0; i < 5000; ++i) tracer->instant(TraceCategory::phase, "a name");
  EXPECT_FAILS(UNAVAILABLE, "'/dev/full'", tracer->finish());
}

}  // namespace
}  // namespace halyard
