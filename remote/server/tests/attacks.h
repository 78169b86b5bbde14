// Shared by the tests of attacks by a client that may connect: each kind of hole that servers of devices have
// had, and more.
#pragma once

#include <cstdio>

#include "raw_client.h"

namespace halyard::device_server {

inline constexpr uint64_t kHuge = uint64_t{1} << 62;

inline void expect_refused(RawClient& client, halyard_status_code_t code, const char* text) {
  const remote::Failure refusal = client.refusal();
  EXPECT_EQ(refusal.code, code) << refusal.message;
  EXPECT_NE(refusal.message.find(text), std::string::npos) << refusal.message;
}

inline void await_barrier(RawClient& client, uint64_t id) {
  client.submit_barrier(id, {}, {});
  EXPECT_EQ(client.completion(id).code, HALYARD_OK);
}

inline uint64_t resident_bytes() {
  unsigned long pages = 0, resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (std::fscanf(file, "%lu %lu", &pages, &resident) != 2) resident = 0;
  std::fclose(file);
  return resident * 4096;
}

}  // namespace halyard::device_server
