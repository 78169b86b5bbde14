#include "write/report.h"

#include <fmt/core.h>

#include <algorithm>

namespace halyard::aot {

namespace {

constexpr uint64_t kAlignment = 16;

size_t count(const Nodes& nodes) {
  size_t all = 0;
  for_each_node(nodes, [&](const Node&) { ++all; });
  return all;
}

uint64_t by_size(const HostFunction& function) {
  std::vector<Lifetime> all;
  for (const Placed& each : function.placed) all.push_back(each.lifetime);
  return place_by_size(all, kAlignment);
}

std::string escaped(std::string_view text) {
  std::string all;
  for (const char c : text)
    all += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return all;
}

}  // namespace

std::string report_of(const Program& program, uint64_t constant_bytes, uint64_t stack_bytes) {
  std::string text = fmt::format(
      "objects    none at run time\nconstants  {} bytes\nstate      {} bytes besides the message\narena      "
      "{} bytes{}\nstack      at most {} bytes\n",
      constant_bytes, program.state_bytes(), program.arena_bytes(),
      program.has_dynamic_memory() ? ", and buffers whose size depends on the arguments" : "", stack_bytes);
  for (const HostFunction& function : program.functions()) {
    text += fmt::format(
        "\nfunction '{}': {} statements, arena {} bytes; alive at once {}, first fit by decreasing size {}\n",
        function.face.name, count(function.body), function.arena_bytes, function.peak_bytes,
        by_size(function));
    std::vector<Placed> sorted = function.placed;
    std::ranges::sort(
        sorted, {}, [](const Placed& each) { return std::pair(each.lifetime.first, each.lifetime.offset); });
    if (!sorted.empty()) text += "      offset       bytes    from      to  buffer\n";
    for (const Placed& each : sorted)
      text += fmt::format("  {:>10}  {:>10}  {:>6}  {:>6}  {}\n", each.lifetime.offset, each.lifetime.size,
                          each.lifetime.first, each.lifetime.last, each.what);
  }
  if (!program.kernels().empty()) text += "\n  statements     scratch  kernel\n";
  for (const KernelFunction& kernel : program.kernels())
    text += fmt::format("  {:>10}  {:>10}  {}{}\n", count(kernel.body), kernel.scratch_bytes, kernel.name,
                        kernel.can_fail ? " (checks bounds)" : "");
  return text;
}

std::string picture_of(const Program& program) {
  constexpr uint64_t kWidth = 900;
  constexpr uint64_t kHeight = 420;
  constexpr uint64_t kMargin = 60;
  std::string body;
  uint64_t top = 0;
  for (const HostFunction& function : program.functions()) {
    if (function.placed.empty() || function.arena_bytes == 0) continue;
    size_t end = 1;
    for (const Placed& each : function.placed) end = std::max(end, each.lifetime.last + 1);
    body += fmt::format("<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}: {} bytes</text>\n", kMargin,
                        top + 24, escaped(function.face.name), function.arena_bytes);
    body +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n",
                    kMargin, top + 36, kWidth, kHeight);
    for (size_t i = 0; i < function.placed.size(); ++i) {
      const Lifetime& each = function.placed[i].lifetime;
      const double x =
          static_cast<double>(kMargin) + static_cast<double>(kWidth * each.first) / static_cast<double>(end);
      const double width =
          static_cast<double>(kWidth * (each.last + 1 - each.first)) / static_cast<double>(end);
      const double height = static_cast<double>(kHeight) * static_cast<double>(each.size) /
                            static_cast<double>(function.arena_bytes);
      const double y = static_cast<double>(top + 36 + kHeight) -
                       static_cast<double>(kHeight) * static_cast<double>(each.offset) /
                           static_cast<double>(function.arena_bytes) -
                       height;
      body += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"hsl({},60%,75%)\" "
          "stroke=\"#333\">"
          "<title>{}: {} bytes at {}, from {} to {}</title></rect>\n",
          x, y, width, height, i * 47 % 360, escaped(function.placed[i].what), each.size, each.offset,
          each.first, each.last);
    }
    top += kHeight + 70;
  }
  if (body.empty()) {
    body = "<text x=\"60\" y=\"24\">the program needs no arena</text>\n";
    top = 40;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"14\">\n{2}</svg>\n",
      kWidth + 2 * kMargin, top + 20, body);
}

}  // namespace halyard::aot
