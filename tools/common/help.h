// Documentation of a tool, generated from its ToolDescription: the text of --help, the manual page, and
// completions for shells.
#pragma once

#include <string>
#include <string_view>

#include "common/flags.h"

namespace halyard::tools {

// "--input=VALUE", "--list_devices[=DRIVER]", "--explain".
std::string usage_of(const Flag& flag);

// The completions that shells offer for a value, derived from Flag::value: "URI" is a device, "NAME" of
// --function a function of the module that the command line names.
enum class Completion { none, files, devices, functions, choices };
Completion completion_of(std::string_view value);
Completion completion_of(const Flag& flag);

std::string help_text(const ToolDescription& tool);    // as wide as the terminal, at most 100 columns
std::string manual_page(const ToolDescription& tool);  // roff, section 1, macros of man(7)
std::string bash_completion(const ToolDescription& tool);
std::string zsh_completion(const ToolDescription& tool);

// The text for the value of --help: "", "man", "bash", "zsh".
std::string help(const ToolDescription& tool, std::string_view form);

}  // namespace halyard::tools
