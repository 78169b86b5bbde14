// The files of a module, in two forms, and the texts that both have.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aot/kernels.h"
#include "aot/plan.h"
#include "aot/translate.h"
#include "plan/program.h"

namespace halyard::aot {

// Objects exist at run time.
Result<std::vector<File>> write_dynamic(const Plan& plan, const std::vector<Kernels>& kernels,
                                        const Options& options);
// Objects are known when the module is translated.
std::vector<File> write_planned(Program& program, const std::vector<Kernels>& kernels, const Options& options,
                                Report& report);

std::string upper(std::string text);
std::string module_comment(std::string_view module, std::string_view source);

}  // namespace halyard::aot
