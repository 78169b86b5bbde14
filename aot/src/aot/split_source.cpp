// The file is read as a list of items of C at the top level, in the form that the writers and aot/support
// have: an item begins at the beginning of a line.
#include "aot/split_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "aot/c_text.h"

namespace halyard::aot {

namespace {

struct Item {
  enum class Kind : uint8_t {
    shared,     // directives and types: in the header
    copied,     // in each file that uses it
    single,     // one object for all files
    moved,      // a function of bytecode
    prototype,  // of a function of this file
    kept,       // in the first file alone
  } kind = Kind::kept;
  std::string text;
  std::set<std::string> names;  // that it defines
  std::set<std::string> uses;   // all words
};

// Splits a text into items. A group of conditional directives is one item.
std::vector<std::string> items_of(std::string_view text) {
  std::vector<std::string> items;
  std::string item;
  int braces = 0;
  int conditions = 0;
  bool in_comment = false;
  bool continues = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    item += line;
    const std::string_view bare = line.substr(0, line.find_last_not_of('\n') + 1);
    const bool is_directive = !in_comment && (continues || (braces == 0 && bare.starts_with('#')));
    if (is_directive) {
      if (bare.starts_with("#if")) ++conditions;
      if (bare.starts_with("#endif")) --conditions;
      continues = bare.ends_with('\\');
    } else {
      char quote = '\0';
      for (size_t i = 0; i < bare.size(); ++i) {
        const bool has_next = i + 1 < bare.size();
        if (in_comment) {
          if (bare[i] == '*' && has_next && bare[i + 1] == '/') in_comment = false, ++i;
        } else if (quote != '\0') {
          if (bare[i] == '\\')
            ++i;
          else if (bare[i] == quote)
            quote = '\0';
        } else if (bare[i] == '"' || bare[i] == '\'') {
          quote = bare[i];
        } else if (bare[i] == '/' && has_next && bare[i + 1] == '*') {
          in_comment = true, ++i;
        } else if (bare[i] == '{') {
          ++braces;
        } else if (bare[i] == '}') {
          --braces;
        }
      }
    }
    const bool ends = is_directive ? !continues : bare.ends_with(';') || bare.ends_with('}');
    if (ends && braces == 0 && conditions == 0 && !in_comment) {
      items.push_back(std::move(item));
      item.clear();
    }
  }
  if (!item.empty()) items.push_back(std::move(item));
  return items;
}

// Without comments and blank lines at the beginning.
std::string_view declaration_of(std::string_view item) {
  for (;;) {
    const size_t begin = item.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return {};
    item.remove_prefix(begin);
    if (!item.starts_with("/*")) return item;
    item.remove_prefix(std::min(item.find("*/") + 2, item.size()));
  }
}

class SourceSplitter {
 public:
  SourceSplitter(std::string_view name, std::string_view source) : name_(name), prefix_(identifier(name)) {
    for (std::string& text : items_of(source)) items_.push_back(read(std::move(text)));
    keep_what_is_tied();
  }

  void split(uint32_t count, std::vector<File>& files, File& first) {
    std::vector<std::vector<const Item*>> parts(count + 1);
    size_t bytes = 0;
    for (const Item& item : items_)
      if (item.kind == Item::Kind::moved) bytes += item.text.size();
    size_t done = 0;
    for (const Item& item : items_)
      if (item.kind == Item::Kind::moved) {
        parts[1 + done * count / std::max<size_t>(bytes, 1)].push_back(&item);
        done += item.text.size();
      }
    // The first file keeps its order.
    first.text = first_text();
    files.push_back({name_ + "_internal.h", header()});
    for (uint32_t i = 1; i <= count; ++i)
      files.push_back({fmt::format("{}_{}.c", name_, i), part_text(parts[i])});
  }

 private:
  Item read(std::string text) const {
    Item item;
    item.text = std::move(text);
    const std::string code = without_literals(item.text);
    for (const std::string_view word : words_of(code)) item.uses.emplace(word);
    // Enough for the head of a declaration; constants have megabytes.
    constexpr size_t kHead = 1000;
    const std::string declaration(declaration_of(item.text).substr(0, kHead));
    std::smatch found;
    static const std::regex function(R"(^(?:[A-Z][A-Z_]* )?static (inline )?[\w \*]*?(\w+)\()");
    static const std::regex object(R"(^static const (?:_Alignas\(64\) )?[\w \*]*?(\w+)(\[\d*\])? = )");
    static const std::regex table(R"(^static const struct \{[^}]*\} (\w+)\[\] = )");
    static const std::regex macro(R"((?:^|\n)#define (\w+))");
    static const std::regex public_function(R"(\n(?!static|typedef|struct|union|enum)\w[^\n]*\{\n)");
    static const std::regex bytecode(R"(^(k\d+_)?fn\d+)");
    static const std::regex in_group(R"(\nstatic [\w \*]*?(\w+)\()");
    const auto name = [&](size_t group) { item.names.insert(found[group]); };
    if (declaration.empty() || declaration.starts_with("typedef") || declaration.starts_with("extern") ||
        declaration.starts_with("struct") || declaration.starts_with("enum")) {
      item.kind = Item::Kind::shared;
    } else if (declaration.starts_with('#')) {
      item.kind = Item::Kind::shared;
      for (auto at = std::sregex_iterator(item.text.begin(), item.text.end(), in_group);
           at != std::sregex_iterator(); ++at) {
        item.kind = Item::Kind::copied;
        item.names.insert((*at)[1]);
      }
      if (std::regex_search(item.text, public_function)) item.kind = Item::Kind::kept;
      for (auto at = std::sregex_iterator(item.text.begin(), item.text.end(), macro);
           at != std::sregex_iterator(); ++at)
        item.names.insert((*at)[1]);
    } else if (std::regex_search(declaration, found, table)) {
      item.kind = Item::Kind::copied;
      name(1);
    } else if (std::regex_search(declaration, found, object)) {
      item.kind = found[2] == "[]" ? Item::Kind::copied : Item::Kind::single;
      name(1);
    } else if (!declaration.starts_with("static _Alignas") &&
               std::regex_search(declaration, found, function)) {
      name(2);
      const bool is_prototype = declaration.find('{') == std::string::npos;
      const bool is_bytecode = std::regex_search(*item.names.begin(), bytecode);
      if (is_bytecode && !found[1].matched)
        item.kind = is_prototype ? Item::Kind::prototype : Item::Kind::moved;
      else
        item.kind = Item::Kind::copied;
    } else if (declaration.starts_with("static")) {
      static const std::regex variable(R"(^static [^=;\[]*?(\w+)(\[[^\]]*\])* *[=;])");
      if (std::regex_search(declaration, found, variable)) name(1);
    }
    return item;
  }

  // The copied items that these words need, directly or not.
  std::set<const Item*> copies_for(std::set<std::string> words) const {
    std::set<const Item*> wanted;
    std::set<const Item*> of_header;  // not copied, but the items that they use are
    for (bool grows = true; grows;) {
      grows = false;
      for (const Item& item : items_) {
        if ((item.kind != Item::Kind::copied && item.kind != Item::Kind::shared) || wanted.contains(&item) ||
            of_header.contains(&item))
          continue;
        if (std::ranges::none_of(item.names, [&](const std::string& each) { return words.contains(each); }))
          continue;
        (item.kind == Item::Kind::copied ? wanted : of_header).insert(&item);
        words.insert(item.uses.begin(), item.uses.end());
        grows = true;
      }
    }
    return wanted;
  }

  // A function that needs an object of the first file alone, such as a variable, stays in that file.
  void keep_what_is_tied() {
    std::set<std::string> kept;
    for (const Item& item : items_)
      if (item.kind == Item::Kind::kept && item.text.find("static") != std::string::npos)
        kept.insert(item.names.begin(), item.names.end());
    if (kept.empty()) return;
    const auto is_tied = [&](const std::set<std::string>& words) {
      return std::ranges::any_of(words, [&](const std::string& each) { return kept.contains(each); });
    };
    for (Item& item : items_) {
      if (item.kind != Item::Kind::moved) continue;
      bool tied = is_tied(item.uses);
      for (const Item* copy : copies_for(item.uses)) tied = tied || is_tied(copy->uses);
      if (tied) item.kind = Item::Kind::kept;
    }
  }

  // The words of the functions that are in other files.
  std::set<std::string> words_elsewhere() const {
    std::set<std::string> words;
    for (const Item& item : items_) {
      if (item.kind != Item::Kind::moved) continue;
      words.insert(item.uses.begin(), item.uses.end());
      for (const Item* copy : copies_for(item.uses)) words.insert(copy->uses.begin(), copy->uses.end());
    }
    return words;
  }
  bool is_shared_object(const Item& item, const std::set<std::string>& elsewhere) const {
    return item.kind == Item::Kind::single && elsewhere.contains(*item.names.begin());
  }

  static std::string without_static(const std::string& text) {
    std::string changed = text;
    const size_t at = changed.find("static ", text.size() - declaration_of(text).size());
    return changed.erase(at, std::string_view("static ").size());
  }
  std::set<std::string> moved_names() const {
    std::set<std::string> names;
    for (const Item& item : items_)
      if (item.kind == Item::Kind::moved) names.insert(item.names.begin(), item.names.end());
    return names;
  }

  std::string header() const {
    const std::set<std::string> elsewhere = words_elsewhere();
    std::string text;
    for (const Item& item : items_)
      if (item.kind == Item::Kind::shared) text += item.text;
    text += "\n/* Names of this program that several of its files use. */\n";
    std::string declarations;
    for (const Item& item : items_) {
      const std::string name = item.names.empty() ? "" : *item.names.begin();
      const std::string declaration(declaration_of(item.text));
      if (item.kind == Item::Kind::moved) {
        declarations += without_static(declaration.substr(0, declaration.find(" {"))) + ";\n";
      } else if (is_shared_object(item, elsewhere)) {
        std::string head = without_static(declaration.substr(0, declaration.find(" = ")));
        if (const size_t at = head.find("_Alignas(64) "); at != std::string::npos)
          head.erase(at, std::string_view("_Alignas(64) ").size());
        declarations += "extern " + head + ";\n";
      } else {
        continue;
      }
      text += fmt::format("#define {0} {1}_{0}\n", name, prefix_);
    }
    const std::string guard = prefix_ + "_internal_h";
    return fmt::format(
               "/* What the C files of this program share; no other file includes it. */\n#ifndef "
               "{0}\n#define {0}\n",
               guard) +
           text + declarations + "\n#endif\n";
  }

  std::string begin() const { return fmt::format("#include \"{}_internal.h\"\n\n", name_); }

  std::string first_text() const {
    const std::set<std::string> elsewhere = words_elsewhere();
    const std::set<std::string> moved = moved_names();
    std::set<std::string> words;
    for (const Item& item : items_)
      if (item.kind == Item::Kind::kept || item.kind == Item::Kind::single)
        words.insert(item.uses.begin(), item.uses.end());
    const std::set<const Item*> copies = copies_for(words);
    for (const Item* copy : copies) words.insert(copy->uses.begin(), copy->uses.end());
    std::string text = begin();
    for (const Item& item : items_) {
      switch (item.kind) {
        case Item::Kind::kept:
          text += item.text;
          break;
        case Item::Kind::single:
          if (is_shared_object(item, elsewhere))
            text += without_static(item.text);
          else if (words.contains(*item.names.begin()))
            text += item.text;
          break;
        case Item::Kind::copied:
          if (copies.contains(&item)) text += item.text;
          break;
        case Item::Kind::prototype:
          if (!moved.contains(*item.names.begin())) text += item.text;
          break;
        case Item::Kind::shared:
        case Item::Kind::moved:
          break;
      }
    }
    return text;
  }

  std::string part_text(const std::vector<const Item*>& functions) const {
    std::string text = begin();
    std::set<std::string> words;
    for (const Item* function : functions) words.insert(function->uses.begin(), function->uses.end());
    const std::set<const Item*> copies = copies_for(words);
    for (const Item& item : items_)
      if (copies.contains(&item)) text += item.text;
    for (const Item* function : functions) text += "\n" + without_static(function->text);
    return text;
  }

  const std::string name_;
  const std::string prefix_;
  std::vector<Item> items_;
};

}  // namespace

void split_source(std::string_view name, uint32_t count, std::vector<File>& files) {
  if (count == 0) return;
  const std::string source = std::string(name) + ".c";
  const auto first = std::ranges::find(files, source, &File::name);
  if (first == files.end()) return;
  std::vector<File> more;
  SourceSplitter(name, first->text).split(count, more, *first);
  for (File& each : more) files.push_back(std::move(each));
}

}  // namespace halyard::aot
