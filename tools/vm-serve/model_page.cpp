// Analyses the module, which takes milliseconds.
#include "model_page.h"

#include <filesystem>
#include <utility>

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

// Models that are gone leave room for others.
std::shared_ptr<const std::string> ModelPages::find(const std::shared_ptr<Model>& model) {
  const std::lock_guard lock(mutex_);
  for (auto each = kept_.begin(); each != kept_.end();) {
    const std::shared_ptr<Model> its = each->model.lock();
    if (its == model) {
      kept_.splice(kept_.begin(), kept_, each);
      return kept_.front().text;
    }
    if (its) {
      ++each;
    } else {
      bytes_ -= each->text->size();
      each = kept_.erase(each);
    }
  }
  return nullptr;
}

void ModelPages::keep(const std::shared_ptr<Model>& model, std::shared_ptr<const std::string> text) {
  const std::lock_guard lock(mutex_);
  bytes_ += text->size();
  kept_.push_front({model, std::move(text)});
  while (bytes_ > most_) {
    bytes_ -= kept_.back().text->size();
    kept_.pop_back();
  }
}

Response ModelPages::page(const std::shared_ptr<Model>& model) {
  std::shared_ptr<const std::string> found = find(model);
  if (!found) {
    const std::lock_guard lock(making_);
    found = find(model);
    if (!found) {
      Result<std::string> text = text_of(*model);
      if (!text)
        return error_response(text.error().code == HALYARD_UNIMPLEMENTED ? 501 : 500,
                              fmt::format("model '{}' has no page: {}", model->source().name,
                                          text.error().code == HALYARD_UNIMPLEMENTED ||
                                                  text.error().code == HALYARD_RESOURCE_EXHAUSTED
                                              ? text.error().text
                                              : "its file cannot be read any more"));
      found = std::make_shared<const std::string>(*std::move(text));
      keep(model, found);
    }
  }
  return {.content_type = "text/html; charset=utf-8", .headers = std::string(kPageHeaders), .body = *found};
}

}  // namespace halyard::tools::serve
