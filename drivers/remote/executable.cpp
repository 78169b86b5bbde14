// The digest of the code is sent first, and the code only if the server does not have it.
#include "executable.h"

#include "remote/digest.h"

namespace halyard::remote {

kit::Result<std::unique_ptr<Executable>> Executable::load(const std::shared_ptr<Connection>& server,
                                                          const halyard_executable_args_t& args) {
  auto made = std::make_unique<Executable>(server);
  const Bytes code = {static_cast<const uint8_t*>(args.data), args.data_size};
  const Sha256 digest = sha256(code);
  const wire::Digest name = to_wire(digest);
  const bool has_sizes = HALYARD_HAS_FIELD(&args, halyard_executable_args_t, subgroup_size_count);
  const bool has_limit = server->version() >= kVersionWithMemoryLimits &&
                         HALYARD_HAS_FIELD(&args, halyard_executable_args_t, memory) && args.memory &&
                         args.memory->limit != UINT64_MAX;
  const uint64_t limit = has_limit ? args.memory->limit : 0;
  const uint64_t number = made->number_;
  const auto ask = [&](uint64_t request) {
    Message message;
    flatbuffers::FlatBufferBuilder& builder = message.builder();
    const auto format = message.text(kit::view(args.format));
    const auto constants = builder.CreateVector(args.constants, args.constant_count);
    const auto sizes = builder.CreateVector(has_sizes ? args.subgroup_sizes : nullptr,
                                            has_sizes ? args.subgroup_size_count : 0);
    server->send(
        message.to_server(wire::CreateExecutableCreate(builder, request, number, format, &name, code.size(),
                                                       args.affinity, constants, sizes, limit)),
        {}, Stream::Urgency::now);
  };
  for (const bool is_first : {true, false}) {
    Request request;
    request.may_take_long = true;
    HALYARD_KIT_TRY(server->request(request, ask, kit::Stop(args)));
    if (!request.needs_blob) {
      made->functions_ = std::move(request.functions);
      return made;
    }
    if (is_first) HALYARD_KIT_TRY(server->send_blob(digest, code));
  }
  return kit::Failure{HALYARD_RESOURCE_EXHAUSTED, "the server does not keep the executable of " +
                                                      std::to_string(code.size()) +
                                                      " bytes; raise --max_cache of vm-device"};
}

Executable::~Executable() {
  Message message;
  server_->send(message.to_server(wire::CreateExecutableDestroy(message.builder(), number_)));
}

kit::Result<halyard_function_info_t> Executable::function_info(uint32_t function) const {
  if (function >= functions_.size())
    return kit::Failure{HALYARD_OUT_OF_RANGE, "function " + std::to_string(function) +
                                                  " does not exist; there are " +
                                                  std::to_string(functions_.size())};
  halyard_function_info_t info = functions_[function].info;
  info.name = {functions_[function].name.data(), functions_[function].name.size()};
  info.source = {functions_[function].source.data(), functions_[function].source.size()};
  return info;
}

}  // namespace halyard::remote
