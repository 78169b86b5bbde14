// A folder of models: FOLDER/NAME/VERSION/, each with a module, parameters and settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/failure.h"
#include "model.h"

namespace halyard::tools::serve {

// The versions in FOLDER/NAME/VERSION/. The module is model.vmfb or model.vmasm, or the only file with such
// an extension. The scope of a parameter file beside it (.irpa, .gguf, .safetensors) is the file's name.
// model.json overrides this: {"function": "main", "batch": 8, "parameters": [{"scope": "", "file":
// "weights.irpa"}]}. An invalid version has the reason in `failure`.
struct FoundModel {
  ModelSource source;
  std::string stamp;  // changes when the files change
  std::optional<Failure> failure;
};
Result<std::vector<FoundModel>> find_models(const std::string& folder);

// Identifies the files of the source and their modification times.
std::string stamp_of(const ModelSource& source);

}  // namespace halyard::tools::serve
