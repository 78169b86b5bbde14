// The functions of the module `vmvx`, called like programs call them: the statuses of refused calls, empty
// shapes, tile sizes, and restoring the floating-point mode.
#include <cfenv>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <variant>
#include <vector>

#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vmvx/call_facts.h"
#include "vmvx/microkernels.h"
#include "vmvx_testing.h"

namespace halyard::local::vmvx {
namespace {

using vm::Buffer;
using Argument = std::variant<Object*, int32_t, int64_t>;

struct Matrix {
  int64_t offset = 0, stride0 = 4, stride1 = 1;
};

class VmvxModule : public VmvxKernels {
 public:
  VmvxModule() : module_(create_module(kernels())) {}

  // Calls the function with these register arguments; results are stored in `results_`.
  Status call(std::string_view name, const std::vector<Argument>& arguments) {
    const vm::NativeExport* function = nullptr;
    for (const vm::Export& exported : module_->exports())
      if (exported.name == name) function = &module_->native_export(exported.function);
    if (!function) return Status(Code::NOT_FOUND, "no such function");
    std::vector<uint32_t> values;
    std::vector<Object*> refs;
    std::vector<uint16_t> registers;
    for (const Argument& argument : arguments) {
      if (const auto* object = std::get_if<Object*>(&argument)) {
        registers.push_back(static_cast<uint16_t>(0x8000 | refs.size()));
        refs.push_back(*object);
      } else {
        values.resize((values.size() + 1) / 2 * 2);
        registers.push_back(static_cast<uint16_t>(values.size()));
        const int64_t value =
            argument.index() == 1 ? std::get<int32_t>(argument) : std::get<int64_t>(argument);
        values.push_back(static_cast<uint32_t>(value));
        values.push_back(static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32));
      }
    }
    const auto at = static_cast<uint16_t>(values.size());
    const uint16_t results[] = {at, static_cast<uint16_t>(at + 2)};
    values.resize(values.size() + 4);
    vm::NativeCall native = {.state = &state_,
                             .values = values.data(),
                             .refs = refs.data(),
                             .arguments = registers.data(),
                             .results = results};
    Status status = function->function(native);
    std::memcpy(results_, values.data() + at, sizeof results_);
    return status;
  }
  // A function with one input and one output.
  Status call_unary(std::string_view name, Object* in, Matrix a, Object* out, Matrix c, int64_t size0 = 4,
                    int64_t size1 = 4) {
    return call(name,
                {in, a.offset, a.stride0, a.stride1, out, c.offset, c.stride0, c.stride1, size0, size1});
  }
  // A buffer of zeros, valid until the end of the test.
  Buffer* buffer(size_t size, bool is_mutable = true) {
    bytes_.emplace_back(size);
    buffers_.push_back(Buffer::wrap({bytes_.back().data(), size}, is_mutable, {}));
    return buffers_.back().get();
  }

 protected:
  State state_{kernels(), nullptr};
  Ref<vm::NativeModule> module_;
  std::vector<std::vector<uint8_t>> bytes_;
  std::vector<Ref<Buffer>> buffers_;
  int64_t results_[2] = {};
};
VMVX_FOR_EVERY_INSTRUCTION_SET(VmvxModule);

#define EXPECT_STATUS(expected, status) EXPECT_EQ((status).code(), Code::expected)

constexpr int64_t k(int64_t value) { return value; }

TEST_P(VmvxModule, EveryFunctionIsThere) {
  const std::map<std::string_view, std::string_view> conventions = {
      {"fill.2d.x32", "0irIIII_v"},     {"mmt4d", "0rIIrIIrIIIIIiiii_v"},   {"pack", "0rIIIrIIIIIIIIIIi_v"},
      {"unpack", "0rIIIrIIIIIIIIIi_v"}, {"query_tile_sizes.2d", "0IIi_II"},
  };
  EXPECT_EQ(module_->exports().size(), 15 + 8 + 4 + 5u);
  EXPECT_EQ(module_->name(), "vmvx");
  for (const auto& [name, convention] : conventions)
    EXPECT_TRUE(has_function("vmvx." + std::string(name), convention)) << name;
  for (const char* name : {"add.2d.f32", "sub.2d.f32", "mul.2d.f32", "div.2d.f32", "add.2d.i32", "sub.2d.i32",
                           "mul.2d.i32", "divs.2d.i32", "divu.2d.i32", "and.2d.i32", "or.2d.i32",
                           "xor.2d.i32", "shl.2d.i32", "shrs.2d.i32", "shru.2d.i32"})
    EXPECT_TRUE(has_function(std::string("vmvx.") + name, "0rIIIrIIIrIIIII_v")) << name;
  for (const char* name :
       {"abs.2d.f32", "ceil.2d.f32", "exp.2d.f32", "floor.2d.f32", "log.2d.f32", "neg.2d.f32", "rsqrt.2d.f32",
        "ctlz.2d.i32", "copy.2d.x8", "copy.2d.x16", "copy.2d.x32", "copy.2d.x64"})
    EXPECT_TRUE(has_function(std::string("vmvx.") + name, "0rIIIrIIIII_v")) << name;
  EXPECT_TRUE(has_function("vmvx.mmt4d", "")) << "a convention that is not stated matches any";
  EXPECT_FALSE(has_function("vmvx.mmt4d", "0r_v"));
  EXPECT_FALSE(has_function("vmvx.nothing", ""));
  EXPECT_FALSE(has_function("hal.mmt4d", ""));
  EXPECT_FALSE(has_function("mmt4d", ""));
  EXPECT_FALSE(has_function("vmvxmmt4d", ""));
}

TEST_P(VmvxModule, OperandsAreChecked) {
  Buffer* const good = buffer(64);
  Buffer* const constant = buffer(64, false);
  const auto copy = [&](Object* in, Matrix a, Object* out, Matrix c, int64_t size0, int64_t size1) {
    return call_unary("copy.2d.x32", in, a, out, c, size0, size1);
  };
  EXPECT_STATUS(OK, copy(good, {}, good, {}, 4, 4));
  EXPECT_STATUS(OK, copy(constant, {}, good, {}, 4, 4));
  EXPECT_STATUS(INVALID_ARGUMENT, copy(nullptr, {}, good, {}, 4, 4));
  EXPECT_STATUS(INVALID_ARGUMENT, copy(good, {}, nullptr, {}, 4, 4));
  const Ref<vm::List> list = vm::List::create({vm::ValueType::none, &Buffer::kType});
  EXPECT_STATUS(INVALID_ARGUMENT, copy(list.get(), {}, good, {}, 4, 4));
  EXPECT_STATUS(PERMISSION_DENIED, copy(good, {}, constant, {}, 4, 4));
  // Sizes and strides.
  for (const int64_t bad : {int64_t{-1}, int64_t{1} << 32, INT64_MAX, INT64_MIN}) {
    EXPECT_STATUS(INVALID_ARGUMENT, copy(good, {}, good, {}, bad, 4));
    EXPECT_STATUS(INVALID_ARGUMENT, copy(good, {}, good, {}, 4, bad));
    EXPECT_STATUS(INVALID_ARGUMENT, copy(good, {}, good, {}, bad, 0)) << "also of an empty shape";
  }
  for (const int64_t bad : {int64_t{-1}, int64_t{-2}, int64_t{UINT32_MAX}, INT64_MIN}) {
    EXPECT_STATUS(INVALID_ARGUMENT, copy(good, {0, bad, 1}, good, {}, 4, 4));
    EXPECT_STATUS(INVALID_ARGUMENT, copy(good, {0, 4, bad}, good, {}, 4, 4));
    EXPECT_STATUS(INVALID_ARGUMENT, copy(good, {}, good, {0, bad, 1}, 4, 4));
    EXPECT_STATUS(INVALID_ARGUMENT, copy(good, {}, good, {0, 4, bad}, 4, 4));
  }
  // Ranges that end past the buffer.
  EXPECT_STATUS(OUT_OF_RANGE, copy(good, {1, 4, 1}, good, {}, 4, 4));
  EXPECT_STATUS(OUT_OF_RANGE, copy(good, {}, good, {1, 4, 1}, 4, 4));
  EXPECT_STATUS(OUT_OF_RANGE, copy(good, {0, 5, 1}, good, {}, 4, 4));
  EXPECT_STATUS(OUT_OF_RANGE, copy(good, {-1, 4, 1}, good, {}, 4, 4));
  EXPECT_STATUS(OUT_OF_RANGE, copy(good, {INT64_MAX, 4, 1}, good, {}, 4, 4));
  EXPECT_STATUS(OUT_OF_RANGE, copy(good, {INT64_MIN, 4, 1}, good, {}, 4, 4)) << "in bytes it would be 0";
  EXPECT_STATUS(OUT_OF_RANGE, copy(good, {0, UINT32_MAX - 1, 1}, good, {}, UINT32_MAX, 1));
  EXPECT_STATUS(OUT_OF_RANGE,
                copy(good, {0, UINT32_MAX - 1, UINT32_MAX - 1}, good, {}, UINT32_MAX, UINT32_MAX));
  EXPECT_STATUS(OK, copy(good, {0, 0, 0}, good, {}, 4, 4)) << "one element for all";
  EXPECT_STATUS(OK, copy(good, {12, UINT32_MAX - 1, 1}, good, {}, 1, 4)) << "a stride that is not used";
  // Empty shapes.
  EXPECT_STATUS(OK, copy(good, {}, good, {}, 0, 4));
  EXPECT_STATUS(OK, copy(good, {}, good, {}, 4, 0));
  EXPECT_STATUS(OK, copy(good, {}, good, {}, 0, 0));
  EXPECT_STATUS(OK, copy(good, {100, 4, 1}, good, {}, 0, 0));
  EXPECT_STATUS(PERMISSION_DENIED, copy(good, {}, constant, {}, 0, 0));
  // Elements of other sizes.
  EXPECT_STATUS(OK, call_unary("copy.2d.x8", good, {0, 8, 1}, good, {0, 8, 1}, 8, 8));
  EXPECT_STATUS(OUT_OF_RANGE, call_unary("copy.2d.x8", good, {1, 8, 1}, good, {0, 8, 1}, 8, 8));
  EXPECT_STATUS(OK, call_unary("copy.2d.x16", good, {0, 8, 1}, good, {0, 8, 1}, 4, 8));
  EXPECT_STATUS(OUT_OF_RANGE, call_unary("copy.2d.x16", good, {1, 8, 1}, good, {0, 8, 1}, 4, 8));
  EXPECT_STATUS(OUT_OF_RANGE, call_unary("copy.2d.x64", good, {0, 8, 1}, good, {0, 8, 1}, 4, 8));
}

TEST_P(VmvxModule, OperandsOfBinaryFunctionsAreChecked) {
  Buffer* const good = buffer(64);
  Buffer* const constant = buffer(64, false);
  const auto add = [&](std::string_view name, Object* lhs, Matrix a, Object* rhs, Matrix b, Object* out,
                       Matrix c) {
    return call(name, {lhs, a.offset, a.stride0, a.stride1, rhs, b.offset, b.stride0, b.stride1, out,
                       c.offset, c.stride0, c.stride1, k(4), k(4)});
  };
  for (const char* name : {"add.2d.f32", "mul.2d.i32"}) {
    EXPECT_STATUS(OK, add(name, good, {}, constant, {}, good, {}));
    EXPECT_STATUS(INVALID_ARGUMENT, add(name, nullptr, {}, good, {}, good, {}));
    EXPECT_STATUS(INVALID_ARGUMENT, add(name, good, {}, nullptr, {}, good, {}));
    EXPECT_STATUS(INVALID_ARGUMENT, add(name, good, {}, good, {}, nullptr, {}));
    EXPECT_STATUS(PERMISSION_DENIED, add(name, good, {}, good, {}, constant, {}));
    EXPECT_STATUS(OUT_OF_RANGE, add(name, good, {1, 4, 1}, good, {}, good, {}));
    EXPECT_STATUS(OUT_OF_RANGE, add(name, good, {}, good, {1, 4, 1}, good, {}));
    EXPECT_STATUS(OUT_OF_RANGE, add(name, good, {}, good, {}, good, {1, 4, 1}));
    EXPECT_STATUS(INVALID_ARGUMENT, add(name, good, {}, good, {0, -1, 1}, good, {}));
  }
  for (const char* name : {"divs.2d.i32", "divu.2d.i32"})
    EXPECT_STATUS(INVALID_ARGUMENT, add(name, good, {}, good, {}, good, {})) << "by zero";
  EXPECT_STATUS(OK, call_unary("exp.2d.f32", constant, {}, good, {}));
  EXPECT_EQ(load<float>(good->data() + 60), 1.0f);
  EXPECT_STATUS(PERMISSION_DENIED, call_unary("neg.2d.f32", good, {}, constant, {}));
}

TEST_P(VmvxModule, FillChecksItsRows) {
  Buffer* const good = buffer(64);
  EXPECT_STATUS(OK, call("fill.2d.x32", {int32_t{7}, good, k(1), k(5), k(2), k(3)}));
  const std::vector<uint32_t> expected = {0, 7, 7, 7, 0, 0, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(good->data(), expected.data(), 64), 0);
  EXPECT_STATUS(OUT_OF_RANGE, call("fill.2d.x32", {int32_t{7}, good, k(11), k(5), k(2), k(3)}));
  EXPECT_STATUS(PERMISSION_DENIED,
                call("fill.2d.x32", {int32_t{7}, buffer(64, false), k(0), k(5), k(2), k(3)}));
  EXPECT_STATUS(INVALID_ARGUMENT,
                call("fill.2d.x32", {int32_t{7}, static_cast<Object*>(nullptr), k(0), k(5), k(2), k(3)}));
  EXPECT_STATUS(INVALID_ARGUMENT, call("fill.2d.x32", {int32_t{7}, good, k(0), k(-1), k(2), k(3)}));
  EXPECT_STATUS(OK, call("fill.2d.x32", {int32_t{7}, good, k(99), k(5), k(0), k(3)}));
}

struct Product {
  int64_t lhs_offset = 0, lhs_stride = 4, rhs_offset = 0, rhs_stride = 4, out_offset = 0, out_stride = 8;
  int64_t m = 2, n = 2, k = 2;
  int32_t m0 = 2, n0 = 2, k0 = 1, flags = 0x201;
};

TEST_P(VmvxModule, ProductsAreChecked) {
  Buffer* const lhs = buffer(32);
  Buffer* const rhs = buffer(32);
  Buffer* const out = buffer(64);
  const auto multiply = [&](const Product& p) {
    return call("mmt4d", {lhs, p.lhs_offset, p.lhs_stride, rhs, p.rhs_offset, p.rhs_stride, out, p.out_offset,
                          p.out_stride, p.m, p.n, p.k, p.m0, p.n0, p.k0, p.flags});
  };
  EXPECT_STATUS(OK, multiply({}));
  EXPECT_STATUS(OK, multiply({.flags = 1})) << "the generic code is always allowed";
  EXPECT_STATUS(OK, multiply({.flags = static_cast<int32_t>(0xFFFFF801)})) << "unknown bits";
  for (int32_t type = 0; type < 256; ++type)
    if (type != 1 && type != 2) {
      EXPECT_STATUS(INVALID_ARGUMENT, multiply({.flags = 0x200 | type}));
    }
  EXPECT_STATUS(OUT_OF_RANGE, multiply({.lhs_offset = 1}));
  EXPECT_STATUS(OUT_OF_RANGE, multiply({.rhs_offset = 1}));
  EXPECT_STATUS(OUT_OF_RANGE, multiply({.out_offset = 1}));
  EXPECT_STATUS(OUT_OF_RANGE, multiply({.lhs_stride = 5}));
  EXPECT_STATUS(INVALID_ARGUMENT, multiply({.lhs_stride = -1}));
  EXPECT_STATUS(INVALID_ARGUMENT, multiply({.rhs_stride = -4}));
  EXPECT_STATUS(INVALID_ARGUMENT, multiply({.out_stride = int64_t{1} << 32}));
  for (const int64_t bad : {int64_t{-1}, int64_t{1} << 31, INT64_MIN}) {
    EXPECT_STATUS(INVALID_ARGUMENT, multiply({.m = bad}));
    EXPECT_STATUS(INVALID_ARGUMENT, multiply({.n = bad}));
    EXPECT_STATUS(INVALID_ARGUMENT, multiply({.k = bad}));
  }
  for (const int32_t bad : {-1, 65536}) {
    EXPECT_STATUS(INVALID_ARGUMENT, multiply({.m0 = bad}));
    EXPECT_STATUS(INVALID_ARGUMENT, multiply({.n0 = bad}));
    EXPECT_STATUS(INVALID_ARGUMENT, multiply({.k0 = bad}));
  }
  EXPECT_STATUS(
      OUT_OF_RANGE,
      multiply({.m = INT32_MAX, .n = INT32_MAX, .k = INT32_MAX, .m0 = 65535, .n0 = 65535, .k0 = 65535}));
  EXPECT_STATUS(OK, multiply({.lhs_offset = 99, .m = 0}));
  EXPECT_STATUS(OK, multiply({.n = 0}));
  // Empty sums.
  const std::vector<float> ones(16, 1);
  std::memcpy(out->data(), ones.data(), 64);
  const auto sums = [&] {
    std::vector<float> found(16);
    std::memcpy(found.data(), out->data(), 64);
    return found;
  };
  EXPECT_STATUS(OK, multiply({.lhs_stride = 0, .rhs_stride = 0, .k = 0, .flags = 0x301}));
  EXPECT_EQ(sums(), ones) << "accumulating";
  EXPECT_STATUS(OK, multiply({.k = INT32_MAX, .k0 = 0, .flags = 0x301}));
  EXPECT_EQ(sums(), ones);
  EXPECT_STATUS(OK, multiply({.lhs_stride = 0, .rhs_stride = 0, .k = 0}));
  EXPECT_EQ(sums(), std::vector<float>(16));
  EXPECT_STATUS(PERMISSION_DENIED, call("mmt4d", {lhs, k(0), k(4), rhs, k(0), k(4), buffer(64, false), k(0),
                                                  k(8), k(2), k(2), k(2), 2, 2, 1, 0x201}));
}

struct Tiles {
  int64_t in_offset = 0, in_stride0 = 3, in_stride1 = 1, out_offset = 0, out_stride0 = 8, out_stride1 = 4;
  int64_t in_size0 = 2, in_size1 = 3, out_size0 = 1, out_size1 = 2, out_size2 = 2, out_size3 = 2, padding = 0;
  int32_t flags = 3;
};

TEST_P(VmvxModule, PackAndUnpackAreChecked) {
  Buffer* const matrix = buffer(24);
  Buffer* const tiles = buffer(32);
  const auto pack = [&](const Tiles& t) {
    return call("pack", {matrix, t.in_offset, t.in_stride0, t.in_stride1, tiles, t.out_offset, t.out_stride0,
                         t.out_stride1, t.in_size0, t.in_size1, t.out_size0, t.out_size1, t.out_size2,
                         t.out_size3, t.padding, t.flags});
  };
  const auto unpack = [&](const Tiles& t) {
    return call("unpack", {tiles, t.out_offset, t.out_stride0, t.out_stride1, matrix, t.in_offset,
                           t.in_stride0, t.in_stride1, t.out_size0, t.out_size1, t.out_size2, t.out_size3,
                           t.in_size0, t.in_size1, t.flags});
  };
  const int32_t elements[] = {1, 2, 3, 4, 5, 6};
  std::memcpy(matrix->data(), elements, sizeof elements);
  const auto found = [&] {
    std::vector<int32_t> values(8);
    std::memcpy(values.data(), tiles->data(), 32);
    return values;
  };
  // The worked example of the specification.
  EXPECT_STATUS(OK, pack({}));
  EXPECT_EQ(found(), (std::vector<int32_t>{1, 2, 4, 5, 3, 0, 6, 0}));
  EXPECT_STATUS(OK, pack({.flags = 0x103}));
  EXPECT_EQ(found(), (std::vector<int32_t>{1, 4, 2, 5, 3, 6, 0, 0}));
  EXPECT_STATUS(OK, pack({.out_stride0 = 4, .out_size0 = 2, .out_size1 = 1, .padding = -1, .flags = 0x203}));
  EXPECT_EQ(found(), (std::vector<int32_t>{1, 2, 4, 5, 3, -1, 6, -1}));
  EXPECT_STATUS(OK, pack({.out_stride1 = 77})) << "tiles are dense, so this stride is not used";
  std::memset(matrix->data(), 0, 24);
  EXPECT_STATUS(OK, unpack({}));
  EXPECT_EQ(std::memcmp(matrix->data(), elements, sizeof elements), 0);

  for (int32_t type = 0; type < 256; ++type) {
    if (type == 1 || type == 3) continue;
    if (type != 2) {
      EXPECT_STATUS(INVALID_ARGUMENT, pack({.flags = type}));
    }
    EXPECT_STATUS(INVALID_ARGUMENT, unpack({.flags = type}));
  }
  for (const auto& run :
       {std::function<Status(const Tiles&)>(pack), std::function<Status(const Tiles&)>(unpack)}) {
    EXPECT_STATUS(OUT_OF_RANGE, run({.in_offset = 1}));
    EXPECT_STATUS(OUT_OF_RANGE, run({.out_offset = 1}));
    EXPECT_STATUS(OUT_OF_RANGE, run({.out_size0 = 2}));
    EXPECT_STATUS(INVALID_ARGUMENT, run({.in_stride0 = -1}));
    EXPECT_STATUS(INVALID_ARGUMENT, run({.out_stride0 = -1}));
    EXPECT_STATUS(INVALID_ARGUMENT, run({.out_stride1 = -1}));
    EXPECT_STATUS(INVALID_ARGUMENT, run({.in_size0 = -1}));
    EXPECT_STATUS(INVALID_ARGUMENT, run({.out_size0 = -1}));
    EXPECT_STATUS(INVALID_ARGUMENT, run({.out_size3 = int64_t{1} << 32}));
    EXPECT_STATUS(INVALID_ARGUMENT, run({.out_size1 = 1})) << "too few tiles";
    EXPECT_STATUS(INVALID_ARGUMENT, run({.out_size2 = 0})) << "tiles of size 0";
    EXPECT_STATUS(OUT_OF_RANGE,
                  run({.out_size1 = UINT32_MAX, .out_size2 = UINT32_MAX, .out_size3 = UINT32_MAX}));
    EXPECT_STATUS(OK, run({.in_size0 = 0, .out_size2 = 0})) << "no elements and empty tiles";
    EXPECT_STATUS(OK, run({.in_offset = 99, .in_size0 = 0}));
  }
  std::memset(tiles->data(), 1, 32);
  EXPECT_STATUS(OK, pack({.in_size0 = 0, .padding = 9}));
  EXPECT_EQ(found(), std::vector<int32_t>(8, 9));
  const int32_t before = elements[0];
  std::memcpy(matrix->data(), &before, 4);
  EXPECT_STATUS(OK, unpack({.in_size1 = 0}));
  EXPECT_EQ(load<int32_t>(matrix->data()), before);
}

TEST_P(VmvxModule, TileSizesAreConsistent) {
  for (int32_t operation = 1; operation <= 6; ++operation) {
    int64_t answers[3][2];
    for (int32_t role = 1; role <= 3; ++role) {
      EXPECT_STATUS(OK, call("query_tile_sizes.2d", {INT64_MIN, k(512), operation << 8 | role}));
      std::memcpy(answers[role - 1], results_, sizeof results_);
      for (const int64_t size : results_) EXPECT_TRUE(size > 0 && 16 % size == 0) << size;
    }
    EXPECT_EQ(answers[0][1], answers[1][1]) << "k0";
    EXPECT_EQ(answers[0][0], answers[2][0]) << "m0";
    EXPECT_EQ(answers[1][0], answers[2][1]) << "n0";
  }
  for (const int32_t flags : {0, 0x100, 0x104, 0x001, 0x701, 0xFF01, 0x1FF})
    EXPECT_STATUS(INVALID_ARGUMENT, call("query_tile_sizes.2d", {k(1), k(1), flags}));
}

TEST_P(VmvxModule, TheCallersModeIsRestored) {
  volatile float denormal = 1e-40f;
  Buffer* const in = buffer(64);
  Buffer* const out = buffer(64);
  for (int i = 0; i < 16; ++i) store(in->data() + i * 4, float{denormal});
  EXPECT_STATUS(OK, call("add.2d.f32",
                         {in, k(0), k(4), k(1), in, k(0), k(4), k(1), out, k(0), k(4), k(1), k(4), k(4)}));
  EXPECT_EQ(load<float>(out->data()), 0.0f);
  EXPECT_NE(denormal * 1.0f, 0.0f) << "denormals are kept again";
  EXPECT_STATUS(OUT_OF_RANGE, call_unary("exp.2d.f32", in, {9, 4, 1}, out, {}));
  EXPECT_NE(denormal * 1.0f, 0.0f) << "after a failure, too";
  std::fesetround(FE_UPWARD);
  EXPECT_STATUS(OK, call_unary("rsqrt.2d.f32", in, {}, out, {}));
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}

using Integers = std::vector<std::optional<int64_t>>;

// Offsets and strides of three matrices, M, N, K, M0, N0, K0, flags.
Integers product(std::initializer_list<std::optional<int64_t>> sizes, std::optional<int64_t> flags) {
  Integers integers(6, std::nullopt);  // have no influence
  integers.insert(integers.end(), sizes);
  integers.push_back(flags);
  return integers;
}

TEST(VmvxOperations, FollowFromSizes) {
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, 3, 5, 8, 8, 1}, 0x1)), 2u * 2 * 3 * 5 * 8 * 8);
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, 3, 5, 8, 8, 1}, 0x101)), 2u * 2 * 3 * 5 * 8 * 8)
      << "accumulates";
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, 3, 5, 8, 8, 4}, 0x2)), 0u) << "integers";
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, 0, 5, 8, 8, 1}, 0x1)), 0u);
  const Integers rows = {0, 4, 1, 0, 4, 1, 0, 4, 1, 6, 7};  // the sizes are last
  for (const char* name : {"vmvx.add.2d.f32", "vmvx.exp.2d.f32", "vmvx.rsqrt.2d.f32"})
    EXPECT_EQ(operations_of(name, rows), 42u) << name;
  for (const char* name : {"vmvx.abs.2d.f32", "vmvx.neg.2d.f32", "vmvx.ceil.2d.f32", "vmvx.floor.2d.f32",
                           "vmvx.add.2d.i32", "vmvx.copy.2d.x32", "vmvx.fill.2d.x32", "vmvx.pack"})
    EXPECT_EQ(operations_of(name, rows), 0u) << name << " adds and multiplies no floats";
}

TEST(VmvxOperations, AreUnknownForWhatIsNotKnownOrNotPossible) {
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, std::nullopt, 5, 8, 8, 1}, 0x1)), std::nullopt);
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, 3, 5, 8, 8, 1}, std::nullopt)), std::nullopt);
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, 3, 5, 8, 8, 1}, 0x7)), std::nullopt) << "no such type";
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, -3, 5, 8, 8, 1}, 0x1)), std::nullopt);
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, 3, 5, 8, 8}, 0x1)), std::nullopt) << "one is missing";
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({2, 3, 5, 8, 8, 1, 1}, 0x1)), std::nullopt) << "one more";
  EXPECT_EQ(operations_of("vmvx.mmt4d", Integers{1}), std::nullopt);
  constexpr int64_t kHuge = int64_t{1} << 32;
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({kHuge, kHuge, 1, 1, 1, 1}, 0x1)), std::nullopt);
  EXPECT_EQ(operations_of("vmvx.mmt4d", product({kHuge, kHuge / 2, 1, 1, 1, 1}, 0x1)), std::nullopt)
      << "two operations for each product";
  EXPECT_EQ(operations_of("vmvx.add.2d.f32", Integers{kHuge, kHuge}), std::nullopt);
  EXPECT_EQ(operations_of("vmvx.add.2d.f32", Integers{-1, 1}), std::nullopt);
  EXPECT_EQ(operations_of("vmvx.add.2d.f32", Integers{std::nullopt, 1}), std::nullopt);
  EXPECT_EQ(operations_of("vmvx.add.2d.f32", Integers{1}), std::nullopt);
  for (const char* name : {"vmvx.divide_by_three", "vmvx.", "vmvx", "other.add.2d.f32", "add.2d.f32", ""})
    EXPECT_EQ(operations_of(name, Integers{1, 1}), std::nullopt) << name;
}

TEST(VmvxInstructionSets, AreFoundByName) {
  const std::vector<std::string_view> names = instruction_sets();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "scalar");
  EXPECT_EQ(find_kernels("best"), find_kernels(names.front()));
  EXPECT_EQ(find_kernels("baseline"), find_kernels(names.size() > 1 ? names[names.size() - 2] : "scalar"));
  for (const std::string_view name : names) {
    ASSERT_NE(find_kernels(name), nullptr);
    EXPECT_EQ(find_kernels(name)->instructions, name);
  }
#if defined(__aarch64__)
  EXPECT_EQ(names, (std::vector<std::string_view>{"neon", "scalar"}));
#endif
  EXPECT_EQ(find_kernels("avx9000"), nullptr);
  EXPECT_EQ(find_kernels(""), nullptr);
}

// Every function with an output, over outputs with different bytes: the results are equal, and the bytes
// around them are kept.
TEST_P(VmvxModule, CallsWriteTheirBytes) {
  constexpr size_t kBytes = 4096;
  struct Case {
    std::string name;
    std::vector<int64_t> integers;  // in order
    uint64_t begin = 0, end = 0;    // both 0: not known
  };
  std::vector<Case> cases;
  for (const vm::Export& each : module_->exports()) {
    const std::string name = "vmvx." + std::string(each.name);
    if (each.convention == "0rIIIrIIIrIIIII_v") {
      cases.push_back({name, {0, 5, 1, 3, 5, 1, 2, 5, 1, 4, 5}, 8, 8 + 80});
      cases.push_back({name, {0, 5, 1, 3, 5, 1, 2, 4, 1, 4, 5}, 8, 8 + 4 * 17});  // rows overlap
      cases.push_back({name, {0, 5, 1, 3, 5, 1, 2, 6, 1, 4, 5}});
      cases.push_back({name, {0, 5, 1, 3, 5, 1, 2, 9, 1, 1, 5}, 8, 8 + 20});
      cases.push_back({name, {0, 5, 1, 3, 5, 1, 2, 5, 2, 4, 5}});
      cases.push_back({name, {0, 5, 1, 3, 5, 1, 2, 1, 7, 4, 1}, 8, 8 + 16});
      cases.push_back({name, {0, 5, 1, 3, 5, 1, 2, 5, 1, 0, 5}});
    } else if (each.convention == "0rIIIrIIIII_v") {
      const uint64_t bytes = each.name == "copy.2d.x8"    ? 1
                             : each.name == "copy.2d.x16" ? 2
                             : each.name == "copy.2d.x64" ? 8
                                                          : 4;
      cases.push_back({name, {1, 9, 1, 2, 7, 1, 3, 7}, 2 * bytes, 23 * bytes});
      cases.push_back({name, {1, 9, 1, 2, 8, 1, 3, 7}});
    }
  }
  cases.push_back({"vmvx.fill.2d.x32", {-1, 3, 6, 5, 6}, 12, 12 + 120});
  cases.push_back({"vmvx.fill.2d.x32", {-1, 3, 7, 5, 6}});
  // lhs, rhs, out: offset, stride; M, N, K, M0, N0, K0; flags.
  for (const int64_t n0 : {5, 8}) {
    const int64_t row = 3 * 2 * n0;
    const auto end = static_cast<uint64_t>(4 + 2 * row * 4);
    for (const int64_t k : {0, 1, 4}) {
      cases.push_back({"vmvx.mmt4d", {0, 32, 0, 64, 1, row, 2, 3, k, 2, n0, 4, 0x1}, 4, end});
      cases.push_back({"vmvx.mmt4d", {0, 32, 0, 64, 1, row, 2, 3, k, 2, n0, 4, 0x402}, 4, end});
    }
    cases.push_back({"vmvx.mmt4d", {0, 32, 0, 64, 1, row, 2, 3, 4, 2, n0, 0, 0x1}, 4, end});
    cases.push_back({"vmvx.mmt4d", {0, 32, 0, 64, 1, row, 2, 3, 4, 2, n0, 4, 0x101}});
    cases.push_back({"vmvx.mmt4d", {0, 32, 0, 64, 1, row + 1, 2, 3, 4, 2, n0, 4, 0x1}});
  }
  // in, out: offset, strides; sizes; tiles; the padding; flags.
  for (const int64_t type : {1, 2, 3})
    for (const int64_t transposed : {0, 0x100, 0x200, 0x300}) {
      const uint64_t bytes = type == 2 ? 1 : 4;
      const int64_t flags = type | transposed;
      cases.push_back(
          {"vmvx.pack", {0, 9, 1, 3, 36, 12, 7, 7, 3, 3, 4, 3, 5, flags}, 3 * bytes, 111 * bytes});
      cases.push_back({"vmvx.pack", {0, 9, 1, 3, 37, 12, 7, 7, 3, 3, 4, 3, 5, flags}});
      if (type == 2) continue;
      cases.push_back({"vmvx.unpack", {0, 36, 12, 3, 7, 1, 3, 3, 4, 3, 7, 7, flags}, 12, 12 + 49 * 4});
      cases.push_back({"vmvx.unpack", {0, 36, 12, 3, 8, 1, 3, 3, 4, 3, 7, 7, flags}});
    }
  for (const Case& each : cases) {
    const std::string shown = each.name + testing::PrintToString(each.integers);
    const Integers integers(each.integers.begin(), each.integers.end());
    const std::optional<vm::CallWrites> written = writes_of(each.name, integers);
    EXPECT_EQ(written.has_value(), each.end != 0) << shown;
    if (!written) continue;
    EXPECT_EQ(written->begin, each.begin) << shown;
    EXPECT_EQ(written->end, each.end) << shown;
    std::vector<std::vector<uint8_t>> outs;
    for (const uint8_t before : {0x5A, 0xC3}) {
      const std::string_view convention = *convention_of(each.name);
      const std::string_view parameters = convention.substr(1, convention.find('_') - 1);
      std::vector<Argument> arguments;
      std::vector<Buffer*> buffers;
      size_t at = 0;
      for (const char kind : parameters) {
        if (kind == 'r') {
          buffers.push_back(buffer(kBytes));
          std::ranges::fill(bytes_.back(), uint8_t{0x11});  // no divisor of 0
          arguments.emplace_back(static_cast<Object*>(buffers.back()));
        } else if (kind == 'I') {
          arguments.emplace_back(int64_t{each.integers[at++]});
        } else {
          arguments.emplace_back(static_cast<int32_t>(each.integers[at++]));
        }
      }
      EXPECT_EQ(written->ref + 1, buffers.size()) << "outputs are last";
      std::ranges::fill(bytes_.back(), before);
      const Status status = call(each.name.substr(5), arguments);
      EXPECT_TRUE(status.ok()) << shown << status.text();
      std::vector<uint8_t> out = bytes_.back();
      for (size_t i = 0; i < kBytes; ++i)
        if (i < each.begin || i >= each.end) {
          EXPECT_EQ(out[i], before) << shown << " at " << i;
        }
      outs.emplace_back(out.begin() + static_cast<ptrdiff_t>(each.begin),
                        out.begin() + static_cast<ptrdiff_t>(each.end));
    }
    EXPECT_EQ(outs[0], outs[1]) << shown;
  }
}

// Tiles that take longer than a piece may: by their steps of k, their rows, and their columns.
TEST_P(VmvxModule, LongTilesHaveTheResultsOfOnePiece) {
  struct Sizes {
    uint32_t m0, n0, k0;
    uint64_t k;
  };
  for (const auto& [m0, n0, k0, steps] :
       {Sizes{64, 64, 1, 5000}, Sizes{2, 4200, 2001, 1}, Sizes{2, 300, 60000, 1}, Sizes{4200, 4100, 3, 0}})
    for (const bool accumulate : {false, true}) {
      Buffer* const lhs = buffer(m0 * k0 * steps * 4);
      Buffer* const rhs = buffer(n0 * k0 * steps * 4);
      for (uint64_t i = 0; i < m0 * k0 * steps; ++i)
        store(lhs->data() + i * 4, static_cast<float>(i % 97) - 48.f);
      for (uint64_t i = 0; i < n0 * k0 * steps; ++i)
        store(rhs->data() + i * 4, static_cast<float>(i % 89) / 7.f);
      Buffer* const out = buffer(size_t{m0} * n0 * 4);
      for (size_t i = 0; i < size_t{m0} * n0; ++i) store(out->data() + i * 4, static_cast<float>(i % 5));
      std::vector<uint8_t> expected(out->data(), out->data() + out->length());
      kernels().mmt4d_for(Mmt4dType::f32f32f32, n0, k0)({.lhs = lhs->data(),
                                                         .rhs = rhs->data(),
                                                         .out = expected.data(),
                                                         .m = 1,
                                                         .n = 1,
                                                         .k = steps,
                                                         .m0 = m0,
                                                         .n0 = n0,
                                                         .k0 = k0,
                                                         .accumulate = accumulate,
                                                         .skip_rounding = false});
      EXPECT_STATUS(
          OK, call("mmt4d", {lhs, k(0), k(0), rhs, k(0), k(0), out, k(0), k(0), k(1), k(1),
                             static_cast<int64_t>(steps), static_cast<int32_t>(m0), static_cast<int32_t>(n0),
                             static_cast<int32_t>(k0), accumulate ? 0x101 : 0x1}));
      EXPECT_TRUE(std::ranges::equal(std::span(out->data(), out->length()), expected))
          << m0 << " x " << n0 << " x " << k0 << ", " << steps;
      buffers_.clear();
      bytes_.clear();
    }
}

uint32_t stop_word = 0;
int products = 0;

TEST_P(VmvxModule, LongTilesAreStopped) {
  Kernels counting = kernels();
  counting.mmt4d.fill(
      [](const Mmt4d&) { stop_word = ++products == 1 ? static_cast<uint32_t>(Code::ABORTED) : 0; });
  for (const auto& [m0, n0, k0, steps] :
       {std::array{64, 64, 1, 50000}, std::array{4000, 500, 100, 1}, std::array{1, 500, 60000, 1}}) {
    stop_word = 0;
    products = 0;
    std::destroy_at(&state_);
    std::construct_at(&state_, counting, &stop_word);
    Buffer* const lhs = buffer(static_cast<size_t>(m0) * k0 * steps * 4);
    Buffer* const rhs = buffer(static_cast<size_t>(n0) * k0 * steps * 4);
    Buffer* const out = buffer(static_cast<size_t>(m0) * n0 * 4);
    EXPECT_STATUS(ABORTED, call("mmt4d", {lhs, k(0), k(0), rhs, k(0), k(0), out, k(0), k(0), k(1), k(1),
                                          int64_t{steps}, m0, n0, k0, 0x1}));
    EXPECT_EQ(products, 1);
    buffers_.clear();
    bytes_.clear();
  }
}

TEST(VmvxWrites, AreUnknownForWhatIsNotKnownOrNotPossible) {
  const Integers add = {0, 5, 1, 3, 5, 1, 2, 5, 1, 4, 5};
  EXPECT_TRUE(writes_of("vmvx.add.2d.f32", add));
  for (const size_t unknown : {6, 7, 8, 9, 10}) {
    Integers integers = add;
    integers[unknown] = std::nullopt;
    EXPECT_FALSE(writes_of("vmvx.add.2d.f32", integers)) << unknown;
  }
  for (const int64_t value : {int64_t{-1}, int64_t{1} << 32, INT64_MIN, INT64_MAX})
    for (const size_t place : {6, 7, 9, 10}) {
      Integers integers = add;
      integers[place] = value;
      EXPECT_FALSE(writes_of("vmvx.add.2d.f32", integers)) << place << " is " << value;
    }
  EXPECT_FALSE(writes_of("vmvx.nothing", add));
  EXPECT_FALSE(writes_of("hal.add.2d.f32", add));
  EXPECT_FALSE(writes_of("vmvx.add.2d.f32", std::span(add).first(10)));
  EXPECT_FALSE(writes_of("vmvx.query_tile_sizes.2d", Integers{4, 4, 0x101}));
  EXPECT_FALSE(writes_of("vmvx.pack", Integers{0, 9, 1, 3, 36, 12, 7, 7, 3, 3, 4, 3, 5, 0x7}))
      << "no such type";
  EXPECT_FALSE(writes_of("vmvx.pack", Integers{0, 9, 1, 3, 36, 12, 7, 7, 3, 3, 4, 3, 5, std::nullopt}));
  EXPECT_FALSE(writes_of("vmvx.mmt4d", Integers{0, 32, 0, 64, 1, 48, 2, 3, 4, 2, 8, 4, std::nullopt}));
}

}  // namespace
}  // namespace halyard::local::vmvx
