// Sums of neighbouring elements,
//   for j: { x = 0; for k: x = f(x, a[k], b[k][j]); c[j] = g(x, j) }
// become a row of sums, whose inner loops C compilers vectorize:
//   for j: x[j] = 0
//   for k: for j: x[j] = f(x[j], a[k], b[k][j])
//   for j: c[j] = g(x[j], j)
// Each sum still gets its terms in the order of the loops k, of which there may be several inside each other.
// If the loop around computes such a row in each turn, from the same rows b, several are computed at a time,
// in strips of columns, so that processors have enough additions that do not wait for each other and
// compilers keep the sums in registers. The last rows, and the last strip of columns, overlap those before:
// they compute the same again.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <vector>

#include "aot/c_text.h"
#include "plan/kernel_loops.h"

namespace halyard::aot {

using vm::Bank;

namespace {

// Bytes of sums in a local array: of one row, and of a strip of each of several rows.
constexpr int64_t kRowBytes = 512;
constexpr int64_t kStripBytes = 128;
// What the macro VM_ROWS of the text may be: a divisor of this.
constexpr int64_t kMostRows = 4;

// The parts of a loop of sums.
struct RowLoop {
  const Node* loop = nullptr;
  Nodes before;               // addresses and loads
  Nodes cells;                // declarations of the sums
  std::vector<Node*> inner;   // loops, from the outer one to the innermost one
  Nodes after;                // loads and stores with the sums
  std::vector<Access> terms;  // what the inner loops load
  std::vector<Access> loads;  // of all parts
  std::vector<Access> stores;
  int64_t turns = 0;
  int64_t bytes = 0;  // of the sums of a turn
  // No load gives what the loop stores, so that a turn may be repeated.
  bool is_repeatable = true;
};

int64_t turns_of(const Node& loop, const Values& values) {
  return values[loop.bound].range.low - values[loop.first].range.low;
}

// A loop whose counter fits 32 bits, from 0 on.
bool has_small_turns(const Node& loop, const Values& values) {
  return has_fixed_turns(loop, values) && values[loop.first].range.low >= 0 &&
         values[loop.bound].range.low <= INT32_MAX;
}

bool names_any(const Node& node, const Nodes& cells) {
  const std::set<std::string_view> words = words_of(node.text);
  return std::ranges::any_of(cells, [&](const Node& each) { return words.contains(each.cell); });
}

// "float" of "float x6 = 0.0f;"; empty: the statement declares nothing.
std::string_view declared_type(const Node& node) {
  const size_t at = node.text.find(node.cell + " = ");
  return node.cell.empty() || at == std::string::npos || at == 0
             ? std::string_view()
             : std::string_view(node.text).substr(0, at - 1);
}

// Whether rows of the loads are visited in order, and every load is of the same element or the next one in
// the next turn.
bool has_rows(const std::vector<Access>& loads, ValueId counter, const Values& values) {
  bool found = false;
  for (const Access& load : loads) {
    if (load.width == 0 || load.writes || !values[load.index].affine.known) return false;
    const int64_t stride = stride_of(load, counter, values);
    if (stride != 0 && stride != 1) return false;
    found = found || stride == 1;
  }
  return found;
}

bool find_inner(RowLoop& row, Node& outer, const Values& values) {
  row.inner = loop_nest(outer, values);
  if (row.inner.empty()) return false;
  std::vector<Access> loads;
  for (const Node* const loop : row.inner) {
    for (const Node& node : loop->body) {
      if (loop != row.inner.back() && (node.kind == Node::Kind::loop || !names_any(node, row.cells)))
        continue;
      if (loop != row.inner.back()) return false;
      const bool adds = node.kind == Node::Kind::effect && node.accesses.empty() &&
                        std::ranges::find(row.cells, node.cell, &Node::cell) != row.cells.end();
      if (!adds && !is_pure_let(node)) return false;
      loads.insert(loads.end(), node.accesses.begin(), node.accesses.end());
    }
  }
  row.loads.insert(row.loads.end(), loads.begin(), loads.end());
  row.terms = std::move(loads);
  return has_rows(row.terms, row.loop->value, values);
}

bool find_row_loop(Node& loop, const Values& values, const OverlapOf& overlap, RowLoop& row) {
  if (!has_small_turns(loop, values)) return false;
  row.loop = &loop;
  row.turns = turns_of(loop, values);
  for (Node& node : loop.body) {
    if (node.kind == Node::Kind::loop) {
      if (!row.inner.empty() || row.cells.empty() || !find_inner(row, node, values)) return false;
      continue;
    }
    if (row.inner.empty() && !declared_type(node).empty()) {
      row.cells.push_back(node);
    } else if (is_pure_let(node) || (!row.inner.empty() && is_element_store(node))) {
      if (row.inner.empty() && names_any(node, row.cells)) return false;
      (row.inner.empty() ? row.before : row.after).push_back(node);
    } else {
      return false;
    }
    for (const Access& access : node.accesses) (access.writes ? row.stores : row.loads).push_back(access);
  }
  if (row.inner.empty() || row.stores.empty()) return false;
  for (const Node& cell : row.cells) {
    const std::string_view type = declared_type(cell);
    row.bytes += type == "double" || type == "uint64_t" ? 8 : 4;
  }
  for (size_t i = 0; i < row.stores.size(); ++i) {
    const Access& store = row.stores[i];
    if (store.width == 0) return false;
    for (size_t other = 0; other < i; ++other)
      if (!lie_apart(store, row.stores[other], values, overlap)) return false;
    for (const Access& load : row.loads) {
      if (lie_apart(load, store, values, overlap)) continue;
      // An element that only its own turn changes.
      if (!is_same_element(load, store, values) || !is_injective(store, {{loop.value, row.turns}}, values))
        return false;
      row.is_repeatable = false;
    }
  }
  return true;
}

// A loop of which several turns, each with a row of sums, are one.
struct Rows {
  const Node* loop = nullptr;
  Nodes before;           // addresses
  std::string rows;       // as C: how many at a time
  int64_t most_rows = 1;  // of the targets
  int64_t groups = 1;     // most
  std::string group_text;
  std::string first_text;  // of the first row of a group, after the first row of all
};

std::optional<Rows> find_rows(Node& loop, const RowLoop& row, const Values& values,
                              const std::string& group) {
  const int64_t turns = turns_of(loop, values);
  for (const Access& store : row.stores)
    if (!is_injective(store, {{loop.value, turns}, {row.loop->value, row.turns}}, values)) return {};
  // Rows that load rows of their own gain nothing: loads are what takes time then.
  for (const Access& load : row.terms)
    if (stride_of(load, row.loop->value, values) != 0 && stride_of(load, loop.value, values) != 0) return {};
  Rows rows = {.loop = &loop, .before = Nodes(loop.body.begin(), loop.body.end() - 1)};
  if (turns >= kMostRows && (turns % kMostRows == 0 || row.is_repeatable)) {
    rows.rows = "VM_ROWS";
    rows.most_rows = kMostRows;
    rows.groups = (turns + 1) / 2;
    if (turns % kMostRows == 0) {
      rows.group_text = fmt::format("({}u / VM_ROWS)", turns);
      rows.first_text = fmt::format("{} * VM_ROWS", group);
    } else {
      rows.group_text = fmt::format("(({}u + VM_ROWS - 1u) / VM_ROWS)", turns);
      rows.first_text =
          fmt::format("({0} * VM_ROWS < {1}u - VM_ROWS ? {0} * VM_ROWS : {1}u - VM_ROWS)", group, turns);
    }
    return rows;
  }
  for (const int64_t count : {4, 3, 2}) {
    if (turns % count != 0) continue;
    rows.rows = fmt::format("{}u", count);
    rows.most_rows = count;
    rows.groups = turns / count;
    rows.group_text = fmt::format("{}u", rows.groups);
    rows.first_text = fmt::format("{} * {}u", group, count);
    return rows;
  }
  return {};
}

class Writer {
 public:
  Writer(Values& values, const RowLoop& row, const std::optional<Rows>& rows)
      : values_(values), row_(row), rows_(rows) {}

  // Empty: no strips of the row fit.
  Nodes write() {
    const int64_t most = (rows_ ? kStripBytes : kRowBytes) / row_.bytes;
    columns_ = std::min(row_.turns, most);
    if (row_.turns % columns_ != 0 && !row_.is_repeatable) {
      while (row_.turns % columns_ != 0) --columns_;
      if (2 * columns_ < most) return {};
    }
    const ValueId column = row_.loop->value;
    strip_ =
        add_counter(fmt::format("{}_strip", values_[column].name), (row_.turns + columns_ - 1) / columns_);
    first_column_ = add_counter(fmt::format("{}_first", values_[column].name), row_.turns);
    column_ = add_counter(fmt::format("{}_column", values_[column].name), columns_);
    if (rows_) {
      const std::string& name = values_[rows_->loop->value].name;
      group_ = add_counter(fmt::format("{}_group", name), rows_->groups);
      first_row_ = add_counter(fmt::format("{}_first", name), turns_of(*rows_->loop, values_));
      line_ = add_counter(fmt::format("{}_row", name), rows_->most_rows);
    }
    element_ = rows_ ? fmt::format("[{}][{}]", values_[line_].name, values_[column_].name)
                     : fmt::format("[{}]", values_[column_].name);
    Nodes strip;
    Nodes cells = row_.before;
    for (const Node& cell : row_.cells) {
      strip.push_back(array_of(cell));
      Node first = cell;
      first.text.erase(0, declared_type(cell).size() + 1);
      cells.push_back(first);
    }
    append(strip, over_rows(over_columns(std::move(cells))));
    append(strip, sums());
    Nodes last = row_.before;
    last.insert(last.end(), row_.after.begin(), row_.after.end());
    append(strip, over_rows(over_columns(std::move(last))));
    return over_groups(over_strips(std::move(strip)));
  }

 private:
  static void append(Nodes& nodes, Nodes more) {
    nodes.insert(nodes.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }

  ValueId add_counter(std::string name, int64_t turns) {
    const ValueId id = values_.add(
        {.bank = Bank::i32, .range = {0, std::max<int64_t>(turns - 1, 0), 1}, .name = std::move(name)});
    values_.at(id).affine = {true, 0, {{id, 1}}};
    return id;
  }

  // A number that is a text in C.
  ValueId number(std::string text, int64_t most) {
    return values_.add({.bank = Bank::i32, .range = {1, most, 1}, .name = std::move(text)});
  }

  Node loop(ValueId counter, ValueId bound, Nodes body) {
    Node made = {.kind = Node::Kind::loop, .value = counter, .counted = true};
    made.first = values_.constant(Bank::i32, 0);
    made.bound = bound;
    made.uses = {made.first, made.bound};
    made.step = 1;
    made.body = std::move(body);
    return made;
  }

  Node let(ValueId value, std::string text, std::vector<ValueId> uses) {
    return {.kind = Node::Kind::let,
            .value = value,
            .text = std::move(text),
            .uses = std::move(uses),
            .removable = true};
  }

  // The counter of the loop that was, from the first turn of a group or strip on.
  Node counter_of(const Node& loop, ValueId first, ValueId part) {
    const auto begin = static_cast<uint64_t>(values_[loop.first].range.low);
    std::string text = fmt::format("{} + {}", values_[first].name, values_[part].name);
    if (begin != 0) text = fmt::format("{}u + {}", begin, text);
    return let(loop.value, std::move(text), {first, part});
  }

  Node array_of(const Node& cell) {
    const std::string_view type = declared_type(cell);
    Node node = {.kind = Node::Kind::effect};
    node.text = rows_ ? fmt::format("{} {}[{}][{}];", type, cell.cell, rows_->rows, columns_)
                      : fmt::format("{} {}[{}];", type, cell.cell, columns_);
    node.array_bytes = static_cast<uint64_t>((rows_ ? rows_->most_rows : 1) * columns_) *
                       (type == "double" || type == "uint64_t" ? 8u : 4u);
    return node;
  }

  // Compilers do not know that a sum of 32 bits does not wrap, so that neighbouring elements are neighbours.
  void use_wide_index(Node& node) const {
    if (node.accesses.size() != 1 || node.accesses[0].index == kNoValue) return;
    const ValueId index = node.accesses[0].index;
    const Affine& affine = values_[index].affine;
    if (!affine.known || affine.terms.empty() || affine.base < 0 || affine.base > INT32_MAX) return;
    std::string sum;
    for (const auto& [variable, factor] : affine.terms) {
      if (values_[variable].range.low < 0 || factor < 0 || factor > INT32_MAX) return;
      if (!sum.empty()) sum += " + ";
      sum += values_.size_text(variable);
      if (factor != 1) sum += fmt::format(" * {}u", factor);
    }
    if (affine.base != 0) sum += fmt::format(" + {}u", affine.base);
    const std::string text = values_.size_text(index);
    const size_t at = node.text.find(text);
    if (at == std::string::npos) return;
    // Not the beginning of a longer name.
    if (at + text.size() < node.text.size() &&
        std::isalnum(static_cast<unsigned char>(node.text[at + text.size()])) != 0)
      return;
    node.text.replace(at, text.size(), affine.terms.size() == 1 && affine.base == 0 ? sum : "(" + sum + ")");
    if (!words_of(node.text).contains(values_[index].name)) std::erase(node.uses, index);
    for (const auto& [variable, factor] : affine.terms) node.uses.push_back(variable);
  }

  Nodes over_columns(Nodes body) {
    for (Node& node : body) {
      use_wide_index(node);
      for (const Node& cell : row_.cells) {
        const std::string text = with_word(node.text, cell.cell, cell.cell + element_);
        if (text == node.text) continue;
        node.text = text;
        node.uses.push_back(column_);
        if (rows_) node.uses.push_back(line_);
      }
    }
    body.insert(body.begin(), counter_of(*row_.loop, first_column_, column_));
    remove_unused_lets(body, values_);
    return {loop(column_, values_.constant(Bank::i32, static_cast<uint64_t>(columns_)), std::move(body))};
  }

  Nodes over_rows(Nodes body) {
    if (!rows_) return body;
    Nodes all = rows_->before;
    all.insert(all.begin(), counter_of(*rows_->loop, first_row_, line_));
    append(all, std::move(body));
    remove_unused_lets(all, values_);
    return {loop(line_, number(rows_->rows, rows_->most_rows), std::move(all))};
  }

  Nodes sums() {
    Nodes body = row_.before;
    for (const Node* const loop : row_.inner)
      for (const Node& node : loop->body)
        if (node.kind != Node::Kind::loop) body.push_back(node);
    Nodes made = over_rows(over_columns(std::move(body)));
    for (auto loop = row_.inner.rbegin(); loop != row_.inner.rend(); ++loop) {
      Nodes outside;
      outside.push_back(loop_like(**loop, std::move(made)));
      made = std::move(outside);
    }
    return made;
  }

  Nodes over_strips(Nodes body) {
    const int64_t strips = (row_.turns + columns_ - 1) / columns_;
    const std::string& strip = values_[strip_].name;
    const bool overlaps = row_.turns % columns_ != 0;
    const int64_t last = row_.turns - columns_;
    body.insert(body.begin(),
                let(first_column_,
                    strips == 1 ? "0u"
                    : overlaps  ? fmt::format("{0} * {1}u < {2}u ? {0} * {1}u : {2}u", strip, columns_, last)
                                : fmt::format("{} * {}u", strip, columns_),
                    strips == 1 ? std::vector<ValueId>{} : std::vector{strip_}));
    if (strips == 1) return body;
    return {loop(strip_, values_.constant(Bank::i32, static_cast<uint64_t>(strips)), std::move(body))};
  }

  Nodes over_groups(Nodes body) {
    if (!rows_) return body;
    body.insert(body.begin(), let(first_row_, rows_->groups == 1 ? "0u" : rows_->first_text,
                                  rows_->groups == 1 ? std::vector<ValueId>{} : std::vector{group_}));
    if (rows_->groups == 1) return body;
    return {loop(group_, number(rows_->group_text, rows_->groups), std::move(body))};
  }

  Values& values_;
  const RowLoop& row_;
  const std::optional<Rows>& rows_;
  int64_t columns_ = 0;
  std::string element_;
  ValueId group_ = kNoValue, first_row_ = kNoValue, line_ = kNoValue;
  ValueId strip_ = kNoValue, first_column_ = kNoValue, column_ = kNoValue;
};

// The rows of sums in place of the loop; empty: it has another form.
Nodes rows_of(Node& loop, Values& values, const OverlapOf& overlap) {
  if (!has_small_turns(loop, values)) return {};
  RowLoop row;
  if (find_row_loop(loop, values, overlap, row)) return Writer(values, row, std::nullopt).write();
  const std::vector<Node*> nest = loop_nest(loop, values);
  row = {};
  if (nest.size() < 2 || turns_of(loop, values) < 2 || !find_row_loop(*nest[1], values, overlap, row))
    return {};
  const std::optional<Rows> rows = find_rows(loop, row, values, values[loop.value].name + "_group");
  return rows ? Writer(values, row, rows).write() : Nodes();
}

}  // namespace

bool interchange_loops(Nodes& nodes, Values& values, const OverlapOf& overlap) {
  bool changed = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Nodes made = rows_of(nodes[i], values, overlap);
    if (made.empty()) {
      changed |= interchange_loops(nodes[i].body, values, overlap);
      changed |= interchange_loops(nodes[i].other, values, overlap);
      continue;
    }
    const auto at = nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    nodes.insert(at, made.begin(), made.end());
    i += made.size() - 1;
    changed = true;
  }
  return changed;
}

}  // namespace halyard::aot
