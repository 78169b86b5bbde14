// Telling machines: JUnit's XML and JSON.
#include <cstdint>

#include "common/printable.h"
#include "common/xml.h"
#include "findings.h"

namespace halyard::cts {

namespace {

using tools::xml;

// Texts come from drivers: what is not UTF-8 is written as \xNN before anything else.
std::string json(std::string_view text) {
  std::string safe = "\"";
  for (const char character : tools::printable(text)) {
    if (character == '"' || character == '\\') {
      safe += '\\';
      safe += character;
    } else if (character == '\n') {
      safe += "\\n";
    } else {
      safe += character;
    }
  }
  return safe + "\"";
}

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

std::string to_json(const std::string& driver, std::span<const Finding> findings, bool interrupted) {
  const Counts counts = count(findings);
  std::string text = fmt::format(
      "{{\n  \"driver\": {},\n  \"passed\": {},\n  \"failed\": {},\n  \"skipped\": {},\n  "
      "\"interrupted\": {},\n  \"cases\": [",
      json(driver), counts.passed, counts.failed, counts.skipped, interrupted);
  const char* comma = "\n";
  for (const Finding& it : findings) {
    text += fmt::format("{}    {{\"device\": {}, \"name\": \"{}\", \"result\": \"{}\", \"seconds\": {:.3f}",
                        comma, json(it.device), it.about->name, verdict_name(it.verdict), it.seconds);
    if (!it.reason.empty()) text += fmt::format(", \"reason\": {}", json(it.reason));
    if (!it.remark.empty()) text += fmt::format(", \"remark\": {}", json(it.remark));
    if (!it.problems.empty()) {
      text += ", \"problems\": [";
      const char* between = "";
      for (const Problem& problem : it.problems) {
        text +=
            fmt::format("{}{{\"rule\": {}, \"what\": {}, \"expected\": {}, \"found\": {}}}", between,
                        json(problem.rule), json(problem.what), json(problem.expected), json(problem.found));
        between = ", ";
      }
      text += "]";
    }
    text += "}";
    comma = ",\n";
  }
  return text + "\n  ]\n}\n";
}

std::string to_json(std::span<const Case* const> cases) {
  std::string text = "{\n  \"cases\": [";
  const char* comma = "\n";
  for (const Case* it : cases) {
    text += fmt::format("{}    {{\"name\": {}, \"tags\": {}, \"rules\": {}, \"description\": {}}}", comma,
                        json(it->name), json(it->tags), json(it->rules), json(it->description));
    comma = ",\n";
  }
  return text + "\n  ]\n}\n";
}

}  // namespace halyard::cts
