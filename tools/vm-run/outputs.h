// --output: prints or writes results. Specified by run-module-cli.md, section 4.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

// One text for each result: "-" prints it, "" drops it, "@file" and "+file" write and append it, as an array
// if the name ends in .npy, else as bytes. OUT_OF_RANGE: the numbers of texts and results differ.
// UNIMPLEMENTED: another text.
Result<> check_outputs(const std::vector<std::string>& texts, size_t result_count);

// Precondition: check_outputs(texts, results.size()) has succeeded. UNIMPLEMENTED: an element type that npy
// does not have.
Result<> write_outputs(const std::vector<std::string>& texts, const std::vector<Value>& results,
                       uint64_t max_elements);

}  // namespace halyard::tools
