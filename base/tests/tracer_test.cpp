// Tracer: no event is lost, and times are counted once. The contents of the file: tests/test_traces.py.
#include "base/tracer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
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

// A slice, as an observer keeps it.
struct Seen {
  TraceCategory category;
  bool is_of_thread;
  uint64_t track, begin, end, self;
  std::string name, texts;
  uint64_t workgroups;
};

TEST(Tracer, ObserversSeeSlicesInOrderWithTheFactsOfDispatches) {
  for (const bool to_file : {false, true}) {
    const TemporaryFolder folder;
    const Ref<Tracer> tracer = *Tracer::create(to_file ? (folder / "trace").string() : "");
    std::vector<Seen> seen;
    tracer->begin(TraceCategory::machine, "before");  // not all of it is seen: its name is not known
    tracer->observe([&](const TracedSlice& slice) {
      seen.push_back({slice.category, slice.is_of_thread, slice.track, slice.begin, slice.end, slice.self,
                      std::string(slice.name),
                      std::string(slice.texts[0]) + "," + std::string(slice.texts[2]),
                      slice.dispatch ? slice.dispatch->workgroups : 0});
    });
    tracer->begin(TraceCategory::machine, "within");
    tracer->dispatch(0, "kernel", 100, 130, {.workgroups = 7}, {"why", "", std::string(300, 'w')});
    tracer->end();
    tracer->end();
    const Tracer::Track worker = tracer->add_track("worker");
    tracer->dispatch(worker, "tile", 300, 200, {.workgroups = 8}, {});  // its end is its begin at least
    tracer->span_on(worker, TraceCategory::wait, "idle", 400, 450);
    tracer->count(tracer->add_counter("bytes", worker), -5);
    tracer->instant_on(worker, TraceCategory::queue, "now", 500);
    EXPECT_EQ(tracer->totals().events, 9u);
    tracer->observe({});
    tracer->span(TraceCategory::device, "unseen", 1, 2);
    EXPECT_OK(tracer->finish());
    ASSERT_EQ(seen.size(), 5u);
    EXPECT_EQ(seen[0].name, "kernel");
    EXPECT_EQ(seen[0].self, 30u);
    EXPECT_EQ(seen[0].workgroups, 7u);
    EXPECT_EQ(seen[0].texts, "why," + std::string(255, 'w'));
    EXPECT_TRUE(seen[0].is_of_thread);
    EXPECT_EQ(seen[1].name, "within");
    EXPECT_EQ(seen[1].self,
              seen[1].end - seen[1].begin - std::min<uint64_t>(30, seen[1].end - seen[1].begin));
    EXPECT_EQ(seen[2].name, "");
    EXPECT_EQ(seen[3].name, "tile");
    EXPECT_EQ(seen[3].track, worker);
    EXPECT_EQ(seen[3].end, 300u);
    EXPECT_FALSE(seen[3].is_of_thread);
    EXPECT_EQ(seen[4].name, "idle");
    EXPECT_EQ(seen[4].workgroups, 0u);
  }
}

TEST(Tracer, SourcesSettleBeforeAnySumsUpUntilTheyAreRemoved) {
  const Ref<Tracer> tracer = *Tracer::create("");
  std::string calls;
  const uint64_t number = tracer->add_source({[&] { calls += "a"; }, [&] { calls += "A"; }});
  tracer->add_source({[&] { calls += "b"; }, {}});
  tracer->add_source({{}, [&] { calls += "C"; }});
  EXPECT_OK(tracer->finish());
  EXPECT_EQ(calls, "abAC");
  tracer->remove_source(number);
  tracer->remove_source(number);
  EXPECT_OK(tracer->finish());
  EXPECT_EQ(calls, "abACbC");
  tracer->settle();
  EXPECT_EQ(calls, "abACbCb");
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
  const Ref<Tracer> small = *Tracer::create("/dev/full");  // all of it fits into the buffer of the file
  small->instant(TraceCategory::phase, "a name");
  EXPECT_FAILS(UNAVAILABLE, "'/dev/full'", small->finish());
}

TEST(Tracer, FlowsHaveNumbersOfTheProcess) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "trace";
  {
    const Ref<Tracer> tracer = *Tracer::create(path);
    const uint64_t flows[] = {0x77, 0};
    tracer->instant(TraceCategory::queue, "submitted", flows);
    ASSERT_TRUE(tracer->finish());
  }
  // Flows are field 47, 64 bits: the number and the process; 0 stays 0.
  const auto process = static_cast<uint32_t>(::getpid());
  std::string expected = std::string("\xF9\x02\x77\0\0\0", 6);
  for (int i = 0; i < 4; ++i) expected += static_cast<char>(process >> 8 * i);
  EXPECT_EQ(count(file_text(path), expected + std::string("\xF9\x02\0\0\0\0\0\0\0\0", 10)), 1u);
}

}  // namespace
}  // namespace halyard
