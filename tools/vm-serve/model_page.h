// The page of a model: what vm-dump --html writes of its module.
#pragma once

#include "model.h"
#include "response.h"

namespace halyard::tools::serve {

// Reads the file of the module; the answer says why, if that fails.
Response model_page(const Model& model);

}  // namespace halyard::tools::serve
