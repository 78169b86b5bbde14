// Trees of statements as C.
#pragma once

#include <functional>
#include <string>

#include "plan/nodes.h"

namespace halyard::aot {

struct NodeTexts {
  const Values& values;
  std::function<std::string(MemoryId)> memory;       // the C of a memory
  std::function<std::string(const Node&)> dispatch;  // statements, without indentation, each with a newline
  std::function<std::string(const Node&)> allocation;
};

std::string text_of(const Nodes& nodes, const NodeTexts& texts, int depth);

}  // namespace halyard::aot
