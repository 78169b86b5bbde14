// The parameters of files, as bytes that stay there. Apart from main.cpp, because the reader has statuses of
// its own.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aot/translate.h"

namespace halyard::tools {

struct ParameterFiles {
  std::vector<aot::ParameterBytes> parameters;
  std::shared_ptr<void> keep;  // the files
};

// Scopes and paths; an earlier file of a scope is used first.
std::expected<ParameterFiles, aot::Refusal> read_parameter_files(
    const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace halyard::tools
