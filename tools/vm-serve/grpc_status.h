// gRPC's status codes, and those that stand for the statuses of HTTP that vm-serve answers with.
#pragma once

#include <cstddef>
#include <string_view>

namespace halyard::tools::serve {

inline constexpr size_t kGrpcCodes = 17;

// "INVALID_ARGUMENT"; "" beyond the codes.
std::string_view grpc_code_name(int code);
// 200: OK. Other statuses than those of inference: INTERNAL.
int grpc_code_of(unsigned http_status);

}  // namespace halyard::tools::serve
