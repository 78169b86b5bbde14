// Reads and rewrites instructions for cooperative matrices.
#include "cooperative_matrix.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "spirv_numbers.h"

namespace halyard::vulkan {

namespace {

using Operands = std::span<const uint32_t>;

constexpr std::string_view kExtension = "SPV_KHR_cooperative_matrix";
constexpr std::string_view kOlderExtension = "SPV_NV_cooperative_matrix";

struct Number {  // a numeric type
  bool is_float = false;
  uint32_t bits = 0;
  bool operator==(const Number&) const = default;
  std::string text() const { return fmt::format("{}{}", is_float ? 'f' : 'i', bits); }
};

struct Matrix {  // a matrix type
  Number component;
  uint32_t rows = 0, columns = 0;
};

// Signedness is a property of a product's operands, not of their types.
Number number_of(VkComponentTypeKHR type) {
  constexpr Number kNumbers[] = {{true, 16},  {true, 32}, {true, 64},  {false, 8},  {false, 16}, {false, 32},
                                 {false, 64}, {false, 8}, {false, 16}, {false, 32}, {false, 64}};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNumbers) ? kNumbers[index] : Number{};
}

struct MatrixReader {
  std::map<uint32_t, Number> numbers;      // by type
  std::map<uint32_t, uint32_t> constants;  // except specialization constants
  std::map<uint32_t, Matrix> matrices;     // by type; only those with a constant shape
  std::map<uint32_t, uint32_t> type_of;    // of values that have a matrix type

  const Matrix* find(uint32_t value) const {
    const auto type = type_of.find(value);
    const auto found = type == type_of.end() ? matrices.end() : matrices.find(type->second);
    return found == matrices.end() ? nullptr : &found->second;
  }

  void read(uint16_t op, Operands operands) {
    const size_t count = operands.size();
    if (op == kOpTypeInt && count >= 2) numbers[operands[0]] = {false, operands[1]};
    if (op == kOpTypeFloat && count >= 2) numbers[operands[0]] = {true, operands[1]};
    if (op == kOpConstant && count >= 3) constants[operands[1]] = operands[2];
    if (op == kOpTypeCooperativeMatrixKHR && count >= 6 && constants.contains(operands[3]) &&
        constants.contains(operands[4]))
      matrices[operands[0]] = {numbers[operands[1]], constants[operands[3]], constants[operands[4]]};
    // Any other operation whose result has a matrix type: the type and the result id come first.
    if (count >= 2 && matrices.contains(operands[0])) type_of[operands[1]] = operands[0];
  }
};

bool lists(const Features& features, const Matrix& a, const Matrix& b, const Matrix& c,
           const Matrix& result) {
  return std::ranges::any_of(features.matrix_shapes, [&](const VkCooperativeMatrixPropertiesKHR& shape) {
    return shape.scope == VK_SCOPE_SUBGROUP_KHR && shape.MSize == a.rows && shape.KSize == a.columns &&
           shape.KSize == b.rows && shape.NSize == b.columns && number_of(shape.AType) == a.component &&
           number_of(shape.BType) == b.component && number_of(shape.CType) == c.component &&
           number_of(shape.ResultType) == result.component;
  });
}

// A sequence of instructions.
class Writer {
 public:
  explicit Writer(Operands header) : words_(header.begin(), header.end()) {}
  void add(uint16_t op, std::initializer_list<uint32_t> operands, Operands rest = {}) {
    words_.push_back(static_cast<uint32_t>(1 + operands.size() + rest.size()) << 16 | op);
    words_.insert(words_.end(), operands);
    words_.insert(words_.end(), rest.begin(), rest.end());
  }
  void add(uint16_t op, Operands operands) { add(op, {}, operands); }
  uint32_t new_id() { return words_[kBound]++; }
  std::vector<uint32_t> take() { return std::move(words_); }

 private:
  static constexpr size_t kBound = 3;
  std::vector<uint32_t> words_;
};

struct Constant {
  uint32_t type, value;
};

// Rewrites a module. The older extension has a boolean for the layout, always needs the stride, and
// does not distinguish the three uses of a matrix. Operands that must be constant are replaced by other
// constants.
class OlderMatrices {
 public:
  explicit OlderMatrices(Operands words) : writer_(words.first(kSpirvHeaderWords)) {
    (void)for_each_instruction(words, [&](uint16_t op, Operands operands) -> Result<> {
      if (op == kOpTypeBool && operands.size() == 1) has_bool_ = true;
      return {};
    });
  }

  Result<> rewrite(uint16_t op, Operands operands) {
    const size_t count = operands.size();
    switch (op) {
      case kOpTypeInt:
        if (count == 3 && operands[1] == 32) integers_.insert(operands[0]);
        break;
      case kOpConstant:
        if (count == 3 && integers_.contains(operands[0]))
          constants_[operands[1]] = {operands[0], operands[2]};
        break;
      case kOpCapability:
        if (count == 1 && operands[0] == kCapabilityCooperativeMatrixKHR)
          return add(op, {kCapabilityCooperativeMatrixNV});
        break;
      case kOpExtension:
        if (text_at(operands) != kExtension) break;
        writer_.add(op, words_of(kOlderExtension));
        return {};
      case kOpTypeCooperativeMatrixKHR:
        HALYARD_KIT_TRY(check_form(op, count, 6, 6));
        HALYARD_KIT_TRY(check_constant("use", operands[5], kLastUse));
        return type(operands);
      case kOpCooperativeMatrixLoadKHR:
        HALYARD_KIT_TRY(check_form(op, count, 4, kAny));
        HALYARD_KIT_TRY(check_constant("layout", operands[3], kLastLayout));
        return add(kOpCooperativeMatrixLoadNV,
                   {operands[0], operands[1], operands[2], stride(operands, 3), true_}, rest(operands, 5));
      case kOpCooperativeMatrixStoreKHR:
        HALYARD_KIT_TRY(check_form(op, count, 3, kAny));
        HALYARD_KIT_TRY(check_constant("layout", operands[2], kLastLayout));
        return add(kOpCooperativeMatrixStoreNV, {operands[0], operands[1], stride(operands, 2), true_},
                   rest(operands, 4));
      case kOpCooperativeMatrixMulAddKHR:
        HALYARD_KIT_TRY(check_form(op, count, 5, 6));
        if (count == 6 && operands[5] > kAllOperandBits) return unjudged("operands", operands[5]);
        return add(kOpCooperativeMatrixMulAddNV, {}, operands.first(5));
      case kOpCooperativeMatrixLengthKHR:
        return add(kOpCooperativeMatrixLengthNV, {}, operands);
      case kOpTypeCooperativeMatrixNV:
      case kOpCooperativeMatrixLoadNV:
      case kOpCooperativeMatrixStoreNV:
      case kOpCooperativeMatrixMulAddNV:
      case kOpCooperativeMatrixLengthNV:
        return unjudged("an instruction of the older extension,", op);  // the module does not declare it
      default:
        break;
    }
    writer_.add(op, operands);
    if (op == kOpTypeBool && count == 1 && true_ == 0) add_true(operands[0]);
    return {};
  }

  std::vector<uint32_t> take() { return writer_.take(); }

 private:
  static constexpr size_t kAny = 0xFFFF;
  static constexpr uint32_t kLastUse = 2;            // accumulator
  static constexpr uint32_t kLastLayout = 1;         // by columns
  static constexpr uint32_t kAllOperandBits = 0x1F;  // four bits for signedness, one for saturation

  Result<> add(uint16_t op, std::initializer_list<uint32_t> operands, Operands more = {}) {
    writer_.add(op, operands, more);
    return {};
  }
  static Result<> unjudged(std::string_view what, uint32_t number) {
    return fail(HALYARD_INVALID_ARGUMENT,
                "the SPIR-V module is not valid for Vulkan: {} {} of cooperative matrices is not part of the "
                "KHR extension; compile it again, or open the device with spirv=off if it can be trusted",
                what, number);
  }
  static Result<> check_form(uint16_t op, size_t count, size_t least, size_t most) {
    return count >= least && count <= most ? Result<>() : unjudged("the form of instruction", op);
  }
  Result<> check_constant(std::string_view what, uint32_t id, uint32_t last) const {
    const auto found = constants_.find(id);
    return found != constants_.end() && found->second.value <= last ? Result<>() : unjudged(what, id);
  }
  static std::vector<uint32_t> words_of(std::string_view text) {
    std::vector<uint32_t> words(text.size() / sizeof(uint32_t) + 1, 0);
    std::memcpy(words.data(), text.data(), text.size());
    return words;
  }
  static uint32_t stride(Operands operands, size_t layout) {
    return operands[layout + 1 < operands.size() ? layout + 1 : layout];
  }
  static Operands rest(Operands operands, size_t from) {
    return operands.subspan(std::min(from, operands.size()));
  }
  void add_true(uint32_t bool_type) {
    true_ = writer_.new_id();
    writer_.add(kOpConstantTrue, {bool_type, true_});
  }

  // Types that differ only in their use would become duplicates, which are not allowed. A separate constant
  // makes each type unique.
  Result<> type(Operands operands) {
    if (!has_bool_ && true_ == 0) {
      const uint32_t bool_type = writer_.new_id();
      writer_.add(kOpTypeBool, {bool_type});
      add_true(bool_type);
    }
    uint32_t rows = operands[3];
    if (const auto found = constants_.find(rows); found != constants_.end()) {
      rows = writer_.new_id();
      writer_.add(kOpConstant, {found->second.type, rows, found->second.value});
    }
    return add(kOpTypeCooperativeMatrixNV, {operands[0], operands[1], operands[2], rows, operands[4]});
  }

  Writer writer_;
  std::set<uint32_t> integers_;  // 32-bit types
  std::map<uint32_t, Constant> constants_;
  bool has_bool_ = false;
  uint32_t true_ = 0;
};

}  // namespace

Result<> check_cooperative_matrices(Operands words, const Features& features, std::string_view device) {
  MatrixReader reader;
  return for_each_instruction(words, [&](uint16_t op, Operands operands) -> Result<> {
    reader.read(op, operands);
    if (op != kOpCooperativeMatrixMulAddKHR || operands.size() < 5) return {};
    const Matrix* const a = reader.find(operands[2]);
    const Matrix* const b = reader.find(operands[3]);
    const Matrix* const c = reader.find(operands[4]);
    const Matrix* const result = reader.find(operands[1]);
    if (!a || !b || !c || !result || lists(features, *a, *b, *c, *result)) return {};
    return fail(
        HALYARD_INCOMPATIBLE,
        "the executable multiplies cooperative matrices of {}x{}x{} ({} by {}, added to {}), which are "
        "not among the {} kinds of product that device '{}' lists; compile it for this device",
        a->rows, b->columns, a->columns, a->component.text(), b->component.text(), c->component.text(),
        features.matrix_shapes.size(), device);
  });
}

Result<std::vector<uint32_t>> with_older_matrices(Operands words) {
  constexpr uint32_t kMaxIds = 0x3FFFFF;  // the limit for any module; new ids are added
  if (words[3] > kMaxIds)
    return fail(HALYARD_INVALID_ARGUMENT, "the SPIR-V module has ids below {}, expected {} or less", words[3],
                kMaxIds);
  OlderMatrices older(words);
  HALYARD_KIT_TRY(for_each_instruction(
      words, [&](uint16_t op, Operands operands) { return older.rewrite(op, operands); }));
  return older.take();
}

}  // namespace halyard::vulkan
