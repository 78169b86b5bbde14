// Two tables. Specified by gRPC's "Status codes and their use in gRPC".
#include "grpc_status.h"

#include <algorithm>
#include <iterator>

#include "response.h"

namespace halyard::tools::serve {

namespace {

// By code.
constexpr std::string_view kNames[kGrpcCodes] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

struct Pair {
  unsigned http_status;
  std::string_view name;
};
constexpr Pair kPairs[] = {{200, "OK"},        {400, "INVALID_ARGUMENT"},   {403, "PERMISSION_DENIED"},
                           {404, "NOT_FOUND"}, {413, "RESOURCE_EXHAUSTED"}, {kClientGone, "CANCELLED"},
                           {500, "INTERNAL"},  {503, "UNAVAILABLE"},        {504, "DEADLINE_EXCEEDED"}};
constexpr int code_named(std::string_view name) {
  return static_cast<int>(std::ranges::find(kNames, name) - std::begin(kNames));
}

}  // namespace

std::string_view grpc_code_name(int code) {
  return code >= 0 && static_cast<size_t>(code) < kGrpcCodes ? kNames[code] : "";
}

int grpc_code_of(unsigned http_status) {
  const auto* const pair = std::ranges::find(kPairs, http_status, &Pair::http_status);
  return code_named(pair == std::end(kPairs) ? "INTERNAL" : pair->name);
}

}  // namespace halyard::tools::serve
