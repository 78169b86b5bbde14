// Locations refer to each other by index, possibly in cycles, so depth and length are limited.
#include "vm/module/source_location.h"

#include <bytecode_module_generated.h>
#include <fmt/format.h>

#include <algorithm>

namespace halyard::vm {

namespace {

constexpr int kDeepest = 16;
constexpr size_t kMaxText = 4096;  // in bytes; longer texts are cut off
constexpr std::string_view kUnknown = "[unknown]";
constexpr std::string_view kCut = "...";

class Renderer {
 public:
  explicit Renderer(const schema::DebugDatabase& database) : database_(database) {}

  std::string take() { return std::move(text_); }

  void location(int64_t index, int depth) {
    const auto* table = database_.location_table();
    const auto* kinds = database_.location_table_type();
    if (text_.size() > kMaxText) {
      if (!text_.ends_with(kCut)) text_ += kCut;
      return;
    }
    if (depth > kDeepest || !table || !kinds || index < 0 || index >= int64_t{table->size()} ||
        index >= int64_t{kinds->size()}) {
      text_ += kUnknown;
      return;
    }
    const auto at = static_cast<flatbuffers::uoffset_t>(index);
    const void* found = table->Get(at);
    switch (kinds->GetEnum<schema::Location>(at)) {
      case schema::Location::FileLineColLocation:
        return file(*static_cast<const schema::FileLineColLocation*>(found));
      case schema::Location::CallSiteLocation:
        return call_site(*static_cast<const schema::CallSiteLocation*>(found), depth);
      case schema::Location::FusedLocation:
        return fused(*static_cast<const schema::FusedLocation*>(found), depth);
      case schema::Location::NameLocation:
        return name(*static_cast<const schema::NameLocation*>(found), depth);
      default:
        text_ += kUnknown;
    }
  }

 private:
  void string(const flatbuffers::String* text) {
    if (text) text_ += text->string_view().substr(0, kMaxText);
  }
  void file(const schema::FileLineColLocation& location) {
    string(location.filename());
    text_ += fmt::format(":{}:{}", location.line(), location.column());
  }
  void call_site(const schema::CallSiteLocation& site, int depth) {
    location(site.callee(), depth + 1);
    text_ += "\n      at ";
    location(site.caller(), depth + 1);
  }
  void fused(const schema::FusedLocation& fused, int depth) {
    if (fused.metadata()) {
      text_ += '<';
      string(fused.metadata());
      text_ += '>';
    }
    text_ += "[\n";
    const auto* children = fused.locations();
    for (flatbuffers::uoffset_t i = 0; children && i < children->size() && text_.size() <= kMaxText; ++i) {
      if (i > 0) text_ += ",\n";
      text_ += "    ";
      location(children->Get(i), depth + 1);
    }
    text_ += "\n  ]";
  }
  void name(const schema::NameLocation& named, int depth) {
    text_ += '"';
    string(named.name());
    text_ += '"';
    if (named.child_location() < 0) return;
    text_ += '(';
    location(named.child_location(), depth + 1);
    text_ += ')';
  }

  const schema::DebugDatabase& database_;
  std::string text_;
};

const schema::FunctionSourceMap* locations_of(const schema::DebugDatabase* database,
                                              const BytecodeModule& module, uint32_t function) {
  const uint32_t entry = module.debug_entry(function);
  return database && entry != BytecodeModule::kNoDebugEntry ? database->functions()->Get(entry) : nullptr;
}

}  // namespace

std::string source_location(const BytecodeModule& module, uint32_t function, uint32_t pc) {
  const auto* database = static_cast<const schema::DebugDatabase*>(module.debug_database());
  const auto* map = locations_of(database, module, function);
  if (!map || !map->locations()) return {};
  for (const schema::BytecodeLocation* each : *map->locations()) {
    if (static_cast<uint32_t>(each->bytecode_offset()) != pc) continue;
    Renderer renderer(*database);
    renderer.location(each->location(), 0);
    return renderer.take();
  }
  return {};
}

std::string source_of(const BytecodeModule& module, uint32_t function) {
  constexpr uint32_t kMost = 64;  // locations to look at
  const auto* database = static_cast<const schema::DebugDatabase*>(module.debug_database());
  const auto* map = locations_of(database, module, function);
  if (!map || !map->locations()) return {};
  for (uint32_t i = 0; i < std::min<uint32_t>(map->locations()->size(), kMost); ++i) {
    Renderer renderer(*database);
    renderer.location(map->locations()->Get(i)->location(), 0);
    const std::string text = renderer.take();
    for (std::string_view lines = text; !lines.empty();) {
      std::string_view line = lines.substr(0, lines.find('\n'));
      lines.remove_prefix(std::min(line.size() + 1, lines.size()));
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      if (line.starts_with("at ")) line.remove_prefix(3);
      if (line.ends_with(",")) line.remove_suffix(1);
      if (line.ends_with("[") || line == "]" || line.empty() || line == kUnknown || line == kCut) continue;
      return std::string(line);
    }
  }
  return {};
}

}  // namespace halyard::vm
