#include "plan/node_text.h"

#include <fmt/core.h>

namespace halyard::aot {

namespace {

class Writer {
 public:
  Writer(const NodeTexts& texts, int depth) : texts_(texts), depth_(depth) {}

  void write(const Nodes& nodes) {
    for (const Node& node : nodes) write(node);
  }
  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view text) {
    text_.append(static_cast<size_t>(2 * depth_), ' ');
    text_ += text;
    text_ += '\n';
  }
  std::string read(ValueId id, ValueId as) const {
    const Value& target = texts_.values[as];
    return target.is_narrow ? texts_.values.low_text(id) : texts_.values.text(id, target.bank);
  }
  std::string placed(std::string_view text) const { return with_memories(text, texts_.memory); }
  void block(const Nodes& nodes) {
    ++depth_;
    write(nodes);
    --depth_;
  }

  void write(const Node& node) {
    const Values& values = texts_.values;
    switch (node.kind) {
      case Node::Kind::let:
        return line(fmt::format("const {} {} = {};", values.c_type(node.value), values[node.value].name,
                                placed(node.text)));
      case Node::Kind::variable:
        if (node.uses.empty())
          return line(fmt::format("{} {} = 0;", values.c_type(node.value), values[node.value].name));
        return line(fmt::format("{} {} = {};", values.c_type(node.value), values[node.value].name,
                                read(node.uses[0], node.value)));
      case Node::Kind::assign:
        return line(fmt::format("{} = {};", values[node.value].name, read(node.uses[0], node.value)));
      case Node::Kind::effect:
        return line(placed(node.text));
      case Node::Kind::check:
        return line(fmt::format("if ({}) return {};", placed(node.text), node.failure));
      case Node::Kind::fail:
        return line(fmt::format("return {};", node.failure));
      case Node::Kind::attempt:
        line("{");
        ++depth_;
        line(fmt::format("const int status = {};", placed(node.text)));
        line("if (status != 0) return status;");
        --depth_;
        return line("}");
      case Node::Kind::branch:
        if (node.body.empty()) {
          line(fmt::format("if (!({})) {{", node.text));
          block(node.other);
        } else {
          line(fmt::format("if ({}) {{", node.text));
          block(node.body);
        }
        if (!node.body.empty() && !node.other.empty()) {
          line("} else {");
          block(node.other);
        }
        return line("}");
      case Node::Kind::leave_loop:
        return line("break;");
      case Node::Kind::loop:
        if (node.counted) {
          const Value& counter = values[node.value];
          const bool is_narrow =
              counter.is_narrow && (values[node.bound].is_narrow || values.is_constant(node.bound));
          const std::string test =
              is_narrow || (counter.bank == vm::Bank::i32 && counter.range.low >= 0 &&
                            values[node.bound].range.low >= 0)
                  ? fmt::format("{} < {}", counter.name, values.low_text(node.bound))
                  : fmt::format("({0}){1} < ({0}){2}", counter.bank == vm::Bank::i32 ? "int32_t" : "int64_t",
                                values.text(node.value, counter.bank), values.text(node.bound, counter.bank));
          line(fmt::format(
              "for ({0} {1} = {2}; {3}; {4}) {{", values.c_type(node.value), counter.name,
              read(node.first, node.value), test,
              node.step == 1 ? "++" + counter.name : fmt::format("{} += {}u", counter.name, node.step)));
        } else {
          line("for (;;) {");
        }
        block(node.body);
        return line("}");
      case Node::Kind::dispatch:
      case Node::Kind::allocate: {
        const std::string all =
            node.kind == Node::Kind::dispatch ? texts_.dispatch(node) : texts_.allocation(node);
        for (size_t at = 0; at < all.size();) {
          const size_t end = all.find('\n', at);
          line(all.substr(at, end - at));
          at = end + 1;
        }
        return;
      }
    }
  }

  const NodeTexts& texts_;
  int depth_;
  std::string text_;
};

}  // namespace

std::string text_of(const Nodes& nodes, const NodeTexts& texts, int depth) {
  Writer writer(texts, depth);
  writer.write(nodes);
  return writer.take();
}

}  // namespace halyard::aot
