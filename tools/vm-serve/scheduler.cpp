// The life of a job: submit, choose, launch, run, call, finish, end.
#include "scheduler.h"

#include <algorithm>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>

namespace halyard::tools::serve {

namespace asio = boost::asio;

namespace {

// Codes after which the context may be unusable: its device is lost, or its memory is damaged.
bool breaks_context(halyard_status_code_t code) {
  return code == HALYARD_UNAVAILABLE || code == HALYARD_INTERNAL || code == HALYARD_DATA_LOSS ||
         code == HALYARD_ABORTED || code == HALYARD_UNKNOWN;
}

}  // namespace

bool Scheduler::is_full(const Model& model) const {
  const std::lock_guard lock(mutex_);
  return model.schedule.queue.size() >= limits_.queue;
}

bool Scheduler::submit(const std::shared_ptr<Job>& job) {
  std::optional<Start> here;
  {
    const std::lock_guard lock(mutex_);
    if (job->state == Job::State::over) return true;  // abandoned before it was submitted
    Model::Schedule& schedule = job->model->schedule;
    if (schedule.queue.size() >= limits_.queue) return false;
    job->queued_at = Clock::now();
    here = start_here(job);
    if (!here) enqueue(job);
  }
  if (here) {
    run(*std::move(here));
  } else {
    pump();
  }
  return true;
}

void Scheduler::enqueue(const std::shared_ptr<Job>& job) {
  Model::Schedule& schedule = job->model->schedule;
  schedule.queue.push_back(job);
  schedule.queued_rows += job->rows();
  schedule.rule.set_in_flight(schedule.queued_rows + schedule.running_rows);
  job->model->metrics().queued.fetch_add(1, std::memory_order_relaxed);
  if (!std::exchange(schedule.is_listed, true)) waiting_.push_back(job->model);
}

// Starts the job on this thread if no other job is waiting and the call will probably end before another
// thread would begin it.
std::optional<Scheduler::Start> Scheduler::start_here(const std::shared_ptr<Job>& job) {
  Model& model = *job->model;
  Model::Schedule& schedule = model.schedule;
  if (!waiting_.empty() || running_ >= limits_.calls || schedule.idle.empty() || model.has_batches() ||
      !model.is_quick())
    return std::nullopt;
  Start start{.model = job->model, .worker = std::move(schedule.idle.back()), .jobs = {job}, .is_here = true};
  schedule.idle.pop_back();
  model.metrics().queued.fetch_add(1, std::memory_order_relaxed);
  mark_running(start);
  return start;
}

void Scheduler::mark_running(Start& start) {
  ModelMetrics& metrics = start.model->metrics();
  const Clock::time_point now = Clock::now();
  for (const auto& job : start.jobs) start.rows += job->counted_rows();
  start.model->schedule.running_rows += start.rows;
  for (const auto& job : start.jobs) {
    job->state = Job::State::running;
    job->queue_time = now - job->queued_at;
    metrics.queued.fetch_sub(1, std::memory_order_relaxed);
    metrics.queue_seconds.add(job->queue_time);
  }
  ++running_;
  metrics.running.fetch_add(1, std::memory_order_relaxed);
}

void Scheduler::abandon(const std::shared_ptr<Job>& job, Failure why) {
  {
    const std::lock_guard lock(mutex_);
    if (job->state == Job::State::over) return;
    if (job->state == Job::State::waiting) {
      Model::Schedule& schedule = job->model->schedule;
      if (std::erase(schedule.queue, job) > 0) {
        schedule.queued_rows -= job->rows();
        job->model->metrics().queued.fetch_sub(1, std::memory_order_relaxed);
      }
    } else if (job->worker && --job->worker->live_jobs == 0) {
      job->worker->call.cancel();  // under the mutex, so that the worker has not begun another job
    }
    job->worker = nullptr;
  }
  end(job, std::move(why), {});
}

void Scheduler::add_worker(Model& model, std::unique_ptr<Worker> worker) {
  const std::lock_guard lock(mutex_);
  ++model.schedule.workers;
  model.schedule.idle.push_back(std::move(worker));
}

void Scheduler::check_device(const Model& model, const Failure& failure) {
  if (!breaks_context(failure.code) || model.devices().is_lost() || !model.devices().check_loss()) return;
  runtime_.metrics.lost_devices.fetch_add(1, std::memory_order_relaxed);
  log_.error("device_lost", {{"model", model.spec().name}, {"error", failure.line()}});
}

// The next jobs of the model; empty if a batch may still grow.
Scheduler::Jobs Scheduler::take_jobs(Model& model) {
  Model::Schedule& schedule = model.schedule;
  const auto take_first = [&](Jobs& jobs) {
    jobs.push_back(std::move(schedule.queue.front()));
    schedule.queue.pop_front();
    schedule.queued_rows -= jobs.back()->rows();
  };
  Jobs jobs;
  const uint64_t most = model.source().batch;
  const bool alone =
      !model.has_batches() || schedule.queue.front()->never_batched || schedule.queue.front()->rows() == 0;
  const uint64_t share = std::min(most, schedule.rule.share(std::min(limits_.calls, limits_.contexts)));
  if (!alone) {
    const Clock::time_point first = schedule.queue.front()->queued_at;
    const bool has_delay = limits_.batch_delay.count() > 0;
    const Clock::time_point due =
        has_delay ? first + limits_.batch_delay : schedule.rule.due(first, model.mean_time());
    if (schedule.queued_rows < (has_delay ? most : share) && Clock::now() < due) {
      schedule.batch_due = due;
      return {};
    }
  }
  schedule.batch_due.reset();
  take_first(jobs);
  if (alone) return jobs;
  uint64_t rows = jobs.front()->rows();
  while (!schedule.queue.empty()) {
    const Job& next = *schedule.queue.front();
    if (next.never_batched || next.rows() == 0 || rows + next.rows() > share || !next.fits(*jobs.front()))
      break;
    rows += next.rows();
    take_first(jobs);
  }
  return jobs;
}

std::vector<Scheduler::Start> Scheduler::choose() {
  std::vector<Start> starts;
  size_t passed = 0;  // consecutive models that could not start a job
  while (running_ < limits_.calls && !waiting_.empty() && passed < waiting_.size()) {
    const std::shared_ptr<Model> model = std::move(waiting_.front());
    waiting_.pop_front();
    Model::Schedule& schedule = model->schedule;
    if (schedule.queue.empty()) {
      schedule.is_listed = false;
      continue;
    }
    const bool can_run = !schedule.idle.empty() || schedule.workers < limits_.contexts;
    Jobs jobs = can_run ? take_jobs(*model) : Jobs();
    if (schedule.queue.empty()) {
      schedule.is_listed = false;
    } else {
      waiting_.push_back(model);
    }
    if (jobs.empty()) {
      ++passed;
      continue;
    }
    passed = 0;
    Start start{.model = model, .worker = nullptr, .jobs = std::move(jobs)};
    if (!schedule.idle.empty()) {
      start.worker = std::move(schedule.idle.back());  // the last used, whose memory is in the cache
      schedule.idle.pop_back();
    } else {
      ++schedule.workers;
    }
    mark_running(start);
    starts.push_back(std::move(start));
  }
  set_timer();
  return starts;
}

void Scheduler::set_timer() {
  Clock::time_point due = Clock::time_point::max();
  // If nothing may start, the end of a call looks at the batches again; a timer that has expired before would
  // expire again and again.
  if (running_ < limits_.calls)
    for (const auto& model : waiting_)
      if (model->schedule.batch_due) due = std::min(due, *model->schedule.batch_due);
  if (due == timer_due_) return;
  timer_due_ = due;
  timer_.cancel();
  if (due == Clock::time_point::max()) return;
  timer_.expires_at(due);
  timer_.async_wait([this, due](const boost::system::error_code& error) {
    if (error) return;
    {
      const std::lock_guard lock(mutex_);
      if (timer_due_ == due) timer_due_ = Clock::time_point::max();
    }
    pump();
  });
}

void Scheduler::pump() {
  std::vector<Start> starts;
  {
    const std::lock_guard lock(mutex_);
    starts = choose();
  }
  for (Start& start : starts) launch(std::move(start));
}

void Scheduler::launch(Start start) {
  if (start.worker) return run(std::move(start));
  // Created on another thread, because initializers may take long, and the current thread serves the latest
  // request.
  asio::post(runtime_.io, [this, held = std::make_shared<Start>(std::move(start))] {
    auto made = held->model->make_worker(runtime_);
    if (made) {
      held->model->has_contexts = true;
      held->worker = *std::move(made);
      return run(std::move(*held));
    }
    const Failure& failure = made.error();
    bool is_last = false;
    {
      const std::lock_guard lock(mutex_);
      is_last = held->model->schedule.workers == 1;
    }
    log_.error("context_failed", {{"model", held->model->spec().name},
                                  {"version", held->model->spec().version},
                                  {"error", failure.line()}});
    // If the model has other contexts, it still works. The jobs that waited for this context end in any case.
    if (is_last) held->model->has_contexts = false;
    check_device(*held->model, failure);
    for (const auto& job : held->jobs)
      end(job,
          Failure{HALYARD_UNAVAILABLE, "the model could not be started; the server's log has the reason"},
          {});
    give_back(*held, false);
  });
}

void Scheduler::run(Start start) {
  const auto held = std::make_shared<Start>(std::move(start));
  {
    const std::lock_guard lock(mutex_);
    held->worker->live_jobs = 0;
    for (const auto& job : held->jobs) {
      if (job->state != Job::State::running) continue;
      job->worker = held->worker.get();
      ++held->worker->live_jobs;
    }
  }
  if (held->worker->live_jobs == 0) return give_back(*held, true);
  const bool is_batch = held->jobs.size() > 1;
  const ModelSpec& spec = held->model->spec();
  const Clock::time_point begin = Clock::now();
  auto arguments = [&]() -> Result<std::vector<halyard::Value>> {
    if (!is_batch) return arguments_of(spec, held->model->device(), held->jobs.front()->inputs);
    std::vector<RequestInput> all = TOOL_TRY(joined(spec, held->jobs));
    return arguments_of(spec, held->model->device(), all);
  }();
  if (arguments && held->model->is_async()) {
    if (auto made = Fence::create(held->model->device())) {
      const std::lock_guard lock(mutex_);
      held->worker->signal = *std::move(made);
      arguments->emplace_back();
      arguments->emplace_back(held->worker->signal);
    } else {
      arguments = std::unexpected(failure_of(made.error()));
    }
  }
  if (!arguments) return finish(*held, std::move(arguments).error(), {});
  held->times.input = Clock::now() - begin;
  call(held, *std::move(arguments));
  // Cancels if all jobs were abandoned before the call could be cancelled.
  const std::lock_guard lock(mutex_);
  if (held->worker && held->worker->live_jobs == 0) held->worker->call.cancel();
}

void Scheduler::call(const std::shared_ptr<Start>& start, std::vector<halyard::Value> arguments) {
  const Clock::time_point begin = Clock::now();
  if (start->model->has_batches()) start->model->metrics().batch_rows.add(static_cast<double>(start->rows));
  Worker& worker = *start->worker;
  worker.call.begin_here(start->is_here);
  if (runtime_.traces.chooses())
    worker.call.core()->call().set_traced(std::ranges::any_of(start->jobs, &Job::is_traced));
  const auto executor = runtime_.io.get_executor();
  auto ended = [this, start, begin](const halyard::Fence& signal,
                                    const halyard::expected<void, halyard::Error>& done) {
    std::optional<Failure> failure;
    if (!done) failure = failure_of(done.error());
    if (failure || !signal) return finish(*start, std::move(failure), Clock::now() - begin);
    halyard::async_wait(runtime_.io.get_executor(), signal,
                        [this, start, begin](const halyard::expected<void, halyard::Error>& reached) {
                          std::optional<Failure> late;
                          if (!reached) late = failure_of(reached.error());
                          finish(*start, std::move(late), Clock::now() - begin);
                        });
  };
  halyard::async_call_into(
      worker.call, worker.function, std::move(arguments), std::span<halyard::Value>(worker.results),
      asio::bind_executor(executor,
                          [ended = std::move(ended), signal = worker.signal](
                              const halyard::expected<void, halyard::Error>& done) { ended(signal, done); }));
}

void Scheduler::finish(Start& start, std::optional<Failure> failure, Clock::duration time) {
  const bool is_batch = start.jobs.size() > 1;
  std::vector<halyard::Value> results(start.model->spec().outputs.size());
  {
    // From now on the jobs do not use the worker, so abandon() does not access it.
    const std::lock_guard lock(mutex_);
    for (const auto& job : start.jobs) job->worker = nullptr;
    start.worker->live_jobs = start.jobs.size();  // abandoned jobs are no longer counted
    start.worker->signal = {};
    std::swap(results, start.worker->results);
  }
  start.model->metrics().call_seconds.add(time);
  start.model->count_time(time);
  start.times.infer = time;
  const Clock::time_point split_begin = Clock::now();
  std::vector<std::vector<halyard::Value>> parts;
  if (!failure && is_batch) {
    auto made = split(results, start.jobs);
    if (made) {
      parts = *std::move(made);
    } else {
      start.model->stop_batches();
      log_.warning("batches_stopped", {{"model", start.model->spec().name}, {"error", made.error().line()}});
    }
  } else if (!failure) {
    parts.push_back(std::move(results));
  }
  start.times.output = Clock::now() - split_begin;
  if (!parts.empty()) start.model->metrics().statistics.add_call(start.rows, start.times);
  const bool is_usable = !failure || !breaks_context(failure->code);
  if (failure) check_device(*start.model, *failure);
  if (is_batch && parts.empty()) {
    // Runs each job alone, because one request must not fail the others.
    run_apart(start);
    return give_back(start, is_usable);
  }
  // Gives back the worker first, so that the next call begins, on another thread, before these responses are
  // written.
  give_back(start, is_usable);
  for (size_t i = 0; i < start.jobs.size(); ++i) {
    if (failure) {
      end(start.jobs[i], failure, {}, start.times);
    } else {
      end(start.jobs[i], std::nullopt, std::move(parts[i]), start.times);
    }
  }
}

void Scheduler::run_apart(Start& start) {
  const std::lock_guard lock(mutex_);
  Model::Schedule& schedule = start.model->schedule;
  for (const auto& job : start.jobs) {
    if (job->state == Job::State::over) continue;
    job->state = Job::State::waiting;
    job->never_batched = true;
    schedule.queue.push_front(job);
    schedule.queued_rows += job->rows();
    start.model->metrics().queued.fetch_add(1, std::memory_order_relaxed);
  }
  if (!schedule.queue.empty() && !std::exchange(schedule.is_listed, true)) waiting_.push_back(start.model);
}

void Scheduler::give_back(Start& start, bool is_usable) {
  std::unique_ptr<Worker> dropped;  // destroyed without the mutex
  bool has_more = false;
  {
    const std::lock_guard lock(mutex_);
    Model::Schedule& schedule = start.model->schedule;
    schedule.running_rows -= start.rows;
    schedule.rule.end_call(schedule.queued_rows + schedule.running_rows,
                           std::min(limits_.calls, limits_.contexts), Clock::now());
    if (start.worker && is_usable) {
      schedule.idle.push_back(std::move(start.worker));
    } else {
      dropped = std::move(start.worker);
      --schedule.workers;
    }
    --running_;
    has_more = !waiting_.empty();
  }
  start.model->metrics().running.fetch_sub(1, std::memory_order_relaxed);
  dropped.reset();
  if (!has_more) return;
  // The caller of submit() must not wait for other jobs.
  if (start.is_here) return asio::post(runtime_.io, [this] { pump(); });
  pump();
}

void Scheduler::end(const std::shared_ptr<Job>& job, std::optional<Failure> failure,
                    std::vector<halyard::Value> results, const CallTimes& times) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(job->state, Job::State::over) == Job::State::over) return;
  }
  job->call_times = times;
  StatisticsCounter& statistics = job->model->metrics().statistics;
  const Clock::duration total = Clock::now() - job->queued_at;
  if (failure) {
    statistics.add_failure(total);
  } else {
    statistics.add_success(job->counted_rows(), total, job->queue_time, times);
  }
  job->set_outcome(std::move(results), std::move(failure));
}

}  // namespace halyard::tools::serve
