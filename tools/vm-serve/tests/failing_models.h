// Models that give no result: one runs until it is stopped, one fails.
#pragma once

#include <string>
#include <string_view>

#include "fixtures.h"
#include "request_texts.h"

namespace halyard::tools::serve::testing_support {

// A model that takes as long as it is let: the loop of the product without its step.
inline std::string endless_model(const TemporaryFolder& folder) {
  std::string text = file_text(HALYARD_SOURCE_DIR "/examples/inline_mul.vmasm");
  const std::string step = "vm.add.i64 %i14:15, %i12:13";
  const size_t at = text.find(step);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, step.size(), "vm.add.i64 %i14:15, %i10:11");
  return folder.write("endless.vmasm", text);
}
// A model whose calls fail, by no fault of the request.
inline std::string failing_model(const TemporaryFolder& folder) {
  std::string text = file_text(HALYARD_SOURCE_DIR "/examples/inline_mul.vmasm");
  const std::string end = "vm.return %R7";
  const size_t at = text.find(end);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, end.size(), "%i0 = vm.const.i32 13\n  vm.fail %i0, \"it fails\"");
  return folder.write("failing.vmasm", text);
}
inline std::string endless_request(std::string_view headers = "") {
  return request("POST /v2/models/endless/infer", headers, small_json());
}

}  // namespace halyard::tools::serve::testing_support
