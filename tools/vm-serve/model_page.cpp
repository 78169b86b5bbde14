// Analyses the module at each request: it takes milliseconds, and people ask for pages.
#include "model_page.h"

#include "common/analysis.h"
#include "common/module_file.h"
#include "common/page.h"
#include "page.h"

namespace halyard::tools::serve {

namespace {

// A page of at most so many bytes is sent.
constexpr size_t kMaxPage = size_t{64} << 20;

Result<std::string> text_of(const Model& model) {
  const std::string& path = model.source().file;
  if (path.ends_with(".so"))
    return fail(HALYARD_UNIMPLEMENTED, "the model is a native library; pages describe modules with bytecode");
  const ModuleFile module = TOOL_TRY(ModuleFile::open(path));
  PageContents contents;
  contents.file = std::filesystem::path(path).filename().string();
  contents.analysis = TOOL_TRY(analyze_module(module.bytes(), "", {}));
  std::string text = page_text(contents);
  if (text.size() > kMaxPage)
    return fail(HALYARD_RESOURCE_EXHAUSTED, "the page of the model has {} bytes; at most {} are sent",
                text.size(), kMaxPage);
  return text;
}

}  // namespace

Response model_page(const Model& model) {
  Result<std::string> text = text_of(model);
  if (!text)
    return error_response(text.error().code == HALYARD_UNIMPLEMENTED ? 501 : 500,
                          fmt::format("model '{}' has no page: {}", model.source().name,
                                      text.error().code == HALYARD_UNIMPLEMENTED ||
                                              text.error().code == HALYARD_RESOURCE_EXHAUSTED
                                          ? text.error().text
                                          : "its file cannot be read any more"));
  return {.content_type = "text/html; charset=utf-8",
          .headers = std::string(kPageHeaders),
          .body = *std::move(text)};
}

}  // namespace halyard::tools::serve
