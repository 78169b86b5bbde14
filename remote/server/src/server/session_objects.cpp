// Queries, semaphores, code and recordings.
#include <algorithm>

#include "server/budget_part.h"
#include "server/failures.h"
#include "server/session.h"

namespace halyard::device_server {

namespace {

// Machine code of the processor runs in the server's process, with all its rights.
bool is_machine_code(std::string_view format) {
  return format.starts_with("embedded-elf") || format.starts_with("system-elf");
}

constexpr const char* kNoNative =
    "the server runs no machine code of clients; compile the program for VMVX, or start vm-device with "
    "--allow_native if all "
    "clients are trusted";

}  // namespace

Result<> Session::on(const wire::Query& asked) {
  const hal::Device::Answer answer =
      device_->query_i64(remote::view(asked.category()), remote::view(asked.key()));
  send([&](remote::Message& message) {
    return wire::CreateAnswer(message.builder(), asked.request(), answer.known, answer.value);
  });
  return {};
}

Result<> Session::on(const wire::Grade& asked, remote::Bytes data) {
  const std::string_view format = remote::view(asked.format());
  hal::Device::Grade grade = {HALYARD_GRADE_NO, kNoNative};
  if (shared_.allows_native || !is_machine_code(format))
    grade = device_->grade_executable(format, data.empty() ? nullptr : data.data(), data.size());
  send([&](remote::Message& message) {
    const auto reason = message.text(grade.reason);
    return wire::CreateAnswer(message.builder(), asked.request(), true, grade.grade, reason);
  });
  return {};
}

// ---- Semaphores

Result<> Session::on(const wire::SemaphoreCreate& asked) {
  return create_semaphore(asked.id(), asked.initial());
}

Result<> Session::create_semaphore(uint64_t number, uint64_t initial) {
  SemaphoreObject object;
  Result<Ref<hal::Semaphore>> made = hal::Semaphore::create(device_, initial, client_->memory.get());
  if (made) {
    object.semaphore = *std::move(made);
  } else {
    object.failure = std::move(made.error());
  }
  return objects_.semaphores.add(number, std::move(object));
}

Result<> Session::on(const wire::SemaphoreDestroy& asked) { return destroy_semaphore(asked.id()); }

Result<> Session::destroy_semaphore(uint64_t number) {
  abandon(*HALYARD_TRY(objects_.semaphores.find(number)));
  return objects_.semaphores.destroy(number);
}

Result<> Session::on(const wire::Destroy& asked) {
  if (asked.semaphores())
    for (const uint64_t number : *asked.semaphores()) HALYARD_TRY(destroy_semaphore(number));
  if (asked.memories())
    for (const uint64_t number : *asked.memories()) HALYARD_TRY(destroy_memory(number));
  return {};
}

Result<> Session::on(const wire::SemaphoreSignal& asked) {
  const SemaphoreObject* const object = HALYARD_TRY(objects_.semaphores.find(asked.id()));
  // The client's signals of two threads may come in another order: a value that is reached already is no
  // error.
  if (object->semaphore) (void)object->semaphore->signal(asked.value());
  return {};
}

Result<> Session::on(const wire::SemaphoreFail& asked) {
  constexpr size_t kLongestText = 4 << 10;
  SemaphoreObject* const object = HALYARD_TRY(objects_.semaphores.find(asked.id()));
  if (!object->semaphore) return {};
  remote::Failure failure = remote::failure_of(asked.status());
  if (failure.code == HALYARD_OK) failure.code = HALYARD_UNKNOWN;
  std::string text = failure.message.substr(0, kLongestText);
  Result<Charge> charge = Charge::take(client_->memory, block_bytes(text.size()), "the text of a failure");
  if (charge) {
    object->text = *std::move(charge);
  } else {
    text = "the client's memory has no room for the text of its failure";
  }
  object->semaphore->fail(Status(static_cast<Code>(failure.code), std::move(text)));
  return {};
}

// ---- Bytes with a digest

Result<> Session::on(const wire::BlobWrite& asked, remote::Bytes data) {
  if (!asked.digest()) return fail(Code::INVALID_ARGUMENT, "bytes of a blob come without its digest");
  const remote::Sha256 digest = remote::from_wire(*asked.digest());
  if (asked.offset() == 0) {
    blob_.emplace();
    blob_->digest = digest;
    // Without room the request that comes again is answered by Need again.
    if (asked.size() > 0)
      if (Result<BlobUpload> upload = client_->blobs->begin(asked.size()))
        blob_->upload.emplace(*std::move(upload));
  }
  if (!blob_ || blob_->digest != digest)
    return fail(Code::INVALID_ARGUMENT, "bytes of a blob come before its beginning");
  if (!blob_->upload) return {};
  BlobUpload& upload = *blob_->upload;
  if (asked.size() != upload.size())
    return fail(Code::INVALID_ARGUMENT,
                "expected the next bytes of a blob of {} bytes, found those of one of {}", upload.size(),
                asked.size());
  if (asked.offset() != upload.written() || data.empty() || data.size() > upload.size() - upload.written())
    return fail(Code::INVALID_ARGUMENT,
                "expected the bytes of a blob from {} on, at most {}, found {} bytes from {} on",
                upload.written(), upload.size() - upload.written(), data.size(), asked.offset());
  if (!upload.append(data)) {
    blob_->upload.reset();
    return {};
  }
  if (upload.written() < upload.size()) return {};
  BlobUpload whole = *std::move(blob_->upload);
  blob_.reset();
  HALYARD_TRY(whole.finish(digest));
  return {};
}

Result<> Session::on(const wire::StageWrite& asked, remote::Bytes data) {
  if (asked.offset() == 0) {
    stage_.reset();
    Stage upload;
    upload.number = asked.id();
    upload.size = asked.size();
    upload.charge = HALYARD_TRY(Charge::take(client_->memory, asked.size(), "the bytes of an update"));
    upload.bytes.reserve(asked.size());
    stage_ = std::move(upload);
  }
  if (!stage_ || stage_->number != asked.id() || asked.offset() != stage_->bytes.size() || data.empty() ||
      data.size() > stage_->size - stage_->bytes.size())
    return fail(Code::INVALID_ARGUMENT, "bytes of an update are not those that come next");
  stage_->bytes.insert(stage_->bytes.end(), data.begin(), data.end());
  return {};
}

// ---- Executables and recordings

Result<> Session::on(const wire::ExecutableCreate& asked) {
  if (!asked.digest()) return fail(Code::INVALID_ARGUMENT, "an executable has no digest");
  const std::string_view format = remote::view(asked.format());
  const Ref<Bytes> code =
      asked.size() == 0 ? Bytes::own({}) : client_->blobs->find(remote::from_wire(*asked.digest()));
  if (!code && (shared_.allows_native || !is_machine_code(format))) {
    send([&](remote::Message& message) { return wire::CreateNeed(message.builder(), asked.request()); });
    return {};
  }
  std::vector<uint32_t> sizes;
  if (asked.subgroup_sizes()) sizes.assign(asked.subgroup_sizes()->begin(), asked.subgroup_sizes()->end());
  std::vector<uint32_t> constants;
  if (asked.constants()) constants.assign(asked.constants()->begin(), asked.constants()->end());
  const Ref<WorkScope> scope = make<WorkScope>();
  {
    const std::lock_guard lock(mutex_);
    loading_ = asked.request();
    loading_scope_ = scope;
    loading_deadline_ = deadline_of_work();
    if (is_lost_) scope->stop(Code::CANCELLED);
  }
  Ref<Budget> memory = client_->memory;
  Ref<Bytes> keep = code;
  if (code && asked.memory_limit() != 0 && asked.memory_limit() < memory->limit()) {
    auto part = std::make_shared<BudgetPart>(asked.memory_limit(), memory);
    memory = part->budget();
    // The executable keeps its code longer than its charges, and those of its kernels.
    keep = Bytes::borrow(code->span(), [code, part = std::move(part)]() mutable { part.reset(); });
  }
  Result<Ref<hal::Executable>> made = fail(Code::PERMISSION_DENIED, "{}", kNoNative);
  if (code)
    made = hal::Executable::create(
        device_, asked.affinity(), format, code->span(), keep, constants,
        {.memory = memory.get(), .subgroup_sizes = sizes, .stop = scope->stop_word()});
  {
    const std::lock_guard lock(mutex_);
    loading_ = 0;
    loading_scope_ = nullptr;
  }
  ExecutableObject object;
  if (made) {
    object.executable = *made;
  } else {
    object.failure = made.error();
  }
  HALYARD_TRY(objects_.executables.add(asked.id(), std::move(object)));
  if (!made) {
    done(asked.request(), made.error());
    return {};
  }
  send([&](remote::Message& message) {
    flatbuffers::FlatBufferBuilder& builder = message.builder();
    std::vector<flatbuffers::Offset<wire::Function>> functions;
    for (const hal::ExecutableFunction& it : (*made)->functions()) {
      const auto name = message.text(it.name);
      const auto source = it.source.empty() ? 0 : message.text(it.source);
      const wire::Workgroups size(it.workgroup_size[0], it.workgroup_size[1], it.workgroup_size[2]);
      functions.push_back(wire::CreateFunction(builder, name, it.binding_count, it.constant_count, it.flags,
                                               &size, it.local_memory, source));
    }
    return wire::CreateFunctions(builder, asked.request(), builder.CreateVector(functions));
  });
  return {};
}

Result<> Session::on(const wire::ListCreate& asked) {
  ListObject list = HALYARD_TRY(record(objects_, device_, *client_->memory, asked));
  return objects_.lists.add(asked.id(), std::move(list));
}

}  // namespace halyard::device_server
