// Values go to a server before the host's next work can need them there.
#include "timeline.h"

namespace halyard::remote {

Semaphore::Semaphore(std::shared_ptr<SemaphoreServer> home, uint64_t initial)
    : BasicTimeline(home->services(), initial), home_(std::move(home)), number_(home_->new_number()) {
  home_->create_semaphore(number_, initial);
}

Semaphore::~Semaphore() {
  home_->destroy_semaphore(number_);
  for (const auto& [server, number] : mirrors_) server->destroy_semaphore(number);
}

uint64_t Semaphore::number_at(const std::shared_ptr<SemaphoreServer>& server) {
  if (server == home_) return number_;
  const std::lock_guard lock(mirrors_mutex_);
  for (const auto& [known, number] : mirrors_)
    if (known == server) return number;
  const uint64_t number = server->new_number();
  server->create_semaphore(number, 0);
  mirrors_.emplace_back(server, number);
  return number;
}

kit::Result<> Semaphore::signal(uint64_t to, kit::TaskList& ready) {
  if (kit::Result<> signalled = BasicTimeline::signal(to, ready); !signalled) return signalled;
  home_->signal_semaphore(number_, to);
  return {};
}

void Semaphore::fail(kit::Status status, kit::TaskList& ready) {
  home_->fail_semaphore(number_, home_->failure_of(status));
  BasicTimeline::fail(status, ready);
}

void Semaphore::advance_by(const SemaphoreServer& from, uint64_t to, kit::TaskList& ready) {
  if (&from != home_.get()) home_->signal_semaphore(number_, to);
  BasicTimeline::advance(to, ready);
}

void Semaphore::fail_by(const SemaphoreServer& from, const kit::Status& status, kit::TaskList& ready) {
  if (&from != home_.get()) home_->fail_semaphore(number_, home_->failure_of(status));
  BasicTimeline::fail(status, ready);
}

Forward::Forward(std::shared_ptr<SemaphoreServer> to, Semaphore& semaphore, uint64_t wanted)
    : to_(std::move(to)), semaphore_(&semaphore), number_(semaphore.number_at(to_)) {
  value = wanted;
  completed = [](kit::Waiter& waiter, kit::Status failure, kit::TaskList&) {
    const std::shared_ptr<Forward> self = std::move(static_cast<Forward&>(waiter).self_);
    self->pass_on(failure);
  };
}

void Forward::begin() {
  self_ = shared_from_this();
  semaphore_->home().flush();
  if (semaphore_->watch(*this)) return;
  self_.reset();
  pass_on(semaphore_->failure());
}

void Forward::end() {
  if (semaphore_->unwatch(*this)) self_.reset();
}

void Forward::pass_on(const kit::Status& failure) {
  if (failure) {
    to_->fail_semaphore(number_, to_->failure_of(failure));
  } else {
    to_->signal_semaphore(number_, value);
  }
}

}  // namespace halyard::remote
