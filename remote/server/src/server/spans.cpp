// The tracer has no file; it calls an observer when its buffers are written.
#include "server/spans.h"

#include <algorithm>
#include <new>
#include <utility>

namespace halyard::device_server {

namespace {
constexpr size_t kMost = 16384;  // that wait to be sent; more are dropped
}

Result<std::shared_ptr<Spans>> Spans::create() {
  auto made = std::make_shared<Spans>();
  made->tracer_ = HALYARD_TRY(Tracer::create(""));
  made->tracer_->observe([spans = made.get()](const TracedSlice& slice) { spans->observe(slice); });
  return made;
}

// The device may keep the tracer for longer.
Spans::~Spans() {
  if (tracer_) tracer_->observe({});
}

void Spans::observe(const TracedSlice& slice) {
  if (slice.category != TraceCategory::device) return;
  try {
    const std::lock_guard lock(mutex_);
    if (spans_.size() >= kMost) return;
    const uint32_t track =
        tracks_.try_emplace(slice.track, static_cast<uint32_t>(tracks_.size())).first->second;
    spans_.push_back({track, std::string(slice.name), slice.begin, slice.end,
                      slice.dispatch ? *slice.dispatch : TracedDispatch()});
  } catch (const std::bad_alloc&) {  // the client's trace lacks the span
  }
}

std::atomic<uint64_t>* Spans::begin(uint64_t submission) {
  const std::lock_guard lock(mutex_);
  return &executions_[submission];
}

void Spans::forget(uint64_t submission) {
  const std::lock_guard lock(mutex_);
  executions_.erase(submission);
}

bool Spans::take(uint64_t submission, remote::Message& message,
                 flatbuffers::Offset<schema::remote::Spans>& body) {
  (void)tracer_->totals();  // writes the buffers
  std::vector<Span> spans;
  {
    const std::lock_guard lock(mutex_);
    const auto ended = executions_.extract(submission);
    const uint64_t own = ended ? ended.mapped().load(std::memory_order_relaxed) : 0;
    const auto is_running = [&](uint64_t execution) {
      return std::ranges::any_of(executions_, [&](const auto& each) { return each.second == execution; });
    };
    // Spans of no submission go with any. A thread may report its part of a dispatch after the end of the
    // work: nobody asks for it any more.
    std::erase_if(spans_, [&](Span& span) {
      const uint64_t of = span.facts.execution;
      const bool is_taken = of == own || of == 0;
      if (is_taken) spans.push_back(std::move(span));
      return is_taken || !is_running(of);
    });
  }
  if (spans.empty()) return false;
  std::vector<flatbuffers::Offset<schema::remote::Span>> all;
  for (const Span& it : spans) {
    const auto name = message.text(it.name);
    all.push_back(schema::remote::CreateSpan(
        message.builder(), it.track, name, it.begin, it.end, it.facts.workgroups,
        it.facts.dispatch_workgroups, it.facts.operations, it.facts.bytes_read, it.facts.bytes_written,
        it.facts.known, it.facts.code, it.facts.threads, static_cast<uint32_t>(it.facts.command)));
  }
  const auto list = message.builder().CreateVector(all);
  body = schema::remote::CreateSpans(message.builder(), submission, list);
  return true;
}

}  // namespace halyard::device_server
