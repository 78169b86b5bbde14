// Formats findings for programs: JUnit's XML and JSON.
#include "common/json.h"
#include "common/printable.h"
#include "common/xml.h"
#include "findings.h"

namespace halyard::cts {

namespace {

using tools::xml;

using tools::Json;
using tools::printable;

constexpr int kLines = 2;  // depth of a document with one line for each case

std::string lines(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) text += (text.empty() ? "" : "\n") + to_line(problem);
  return text;
}

}  // namespace

std::string to_junit(const std::string& driver, std::span<const Finding> findings) {
  const Counts counts = count(findings);
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"hal-cts {}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\">\n",
      xml(driver), findings.size(), counts.failed, counts.skipped);
  for (const Finding& it : findings) {
    text += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                        xml(it.device.empty() ? "driver" : it.device), it.about->name, it.seconds);
    if (it.verdict == Verdict::failed) {
      const std::string problems = xml(lines(it.problems));
      text += fmt::format(">\n    <failure message=\"{}\"></failure>\n  </testcase>\n", problems);
    } else if (it.verdict == Verdict::skipped) {
      text += fmt::format(">\n    <skipped message=\"{}\"/>\n  </testcase>\n", xml(it.reason));
    } else if (!it.remark.empty()) {
      text += fmt::format(">\n    <system-out>{}</system-out>\n  </testcase>\n", xml(it.remark));
    } else {
      text += "/>\n";
    }
  }
  return text + "</testsuite>\n";
}

// Texts come from drivers: bytes that are not UTF-8 are written as \xNN.
std::string to_json(const std::string& driver, std::span<const Finding> findings, bool interrupted,
                    size_t not_run) {
  constexpr int kPlaces = 3;
  const Counts counts = count(findings);
  Json cases = Json::array();
  for (const Finding& it : findings) {
    Json object = {{"device", printable(it.device)},
                   {"name", it.about->name},
                   {"result", verdict_name(it.verdict)},
                   {"seconds", tools::json_rounded(it.seconds, kPlaces)}};
    if (!it.reason.empty()) object["reason"] = printable(it.reason);
    if (!it.remark.empty()) object["remark"] = printable(it.remark);
    for (const Problem& problem : it.problems)
      object["problems"].push_back({{"rule", printable(problem.rule)},
                                    {"what", printable(problem.what)},
                                    {"expected", printable(problem.expected)},
                                    {"found", printable(problem.found)}});
    cases.push_back(std::move(object));
  }
  return tools::json_document({{"driver", printable(driver)},
                               {"passed", counts.passed},
                               {"failed", counts.failed},
                               {"skipped", counts.skipped},
                               {"interrupted", interrupted},
                               {"not_run", not_run},
                               {"cases", std::move(cases)}},
                              kLines);
}

std::string to_json(std::span<const Case* const> cases) {
  Json list = Json::array();
  for (const Case* it : cases) {
    const std::string_view tags = it->tags;
    list.push_back({{"name", it->name},
                    {"tags", tags.substr(0, tags.find_last_not_of(' ') + 1)},
                    {"rules", it->rules},
                    {"description", it->description}});
  }
  return tools::json_document({{"cases", std::move(list)}}, kLines);
}

}  // namespace halyard::cts
