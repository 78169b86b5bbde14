/* Signatures as data: what conventions and declarations say, and what happens where they disagree. */
#include "halyard/signature.h"

#include <stdlib.h>

#include "program.h"

/* A module with one function of this convention, which only returns zeros and nulls, and this declaration. */
static const char kText[] =
    "vm.module @m\n"
    "vm.export @f\n"
    "vm.attr @f \"iree.abi.declaration\" e\"sync func @f(%x: tensor<?x4xf32>, %n: i32, %flag: i1, %scale: "
    "f64, "
    "%any: tensor<*xbf16>, %z: tensor<2xcomplex<f64>, #iree_encoding.testing<[1, 2]>> {iree.abi.affinity = "
    "#hal.device.promise<@a, [0, 1]>, note = \\\"a, b) -> {\\\"}, %list: !util.list<?>, %bytes: "
    "!util.buffer, "
    "%view: !hal.buffer_view, %other: !custom.thing<(i32) -> i64>, %wide: index) -> (%y: tensor<f32>, "
    "i64)\"\n"
    "vm.func @f(%r0: !vm.buffer, %i0: i32, %i1: i32, %i2:3: f64, %r1: !vm.buffer, %r2: !vm.buffer, %r3: "
    "!vm.buffer, %r4: !vm.buffer, %r5: !vm.buffer, "
    "%r6: !vm.buffer, %i4:5: i64) -> (!vm.buffer, i64) {\n  vm.return %r0, %i4:5\n}\n"
    "vm.export @plain\n"
    "vm.func @plain(%i0: i32, %r0: !vm.buffer) -> (f32) {\n  %i1 = vm.const.f32.zero\n  vm.return %i1\n}\n"
    "vm.export @later\n"
    "vm.attr @later \"iree.abi.model\" \"coarse-fences\"\n"
    "vm.attr @later \"iree.abi.declaration\" \"async func @later(%input0: tensor<4xi8>) -> (%output0: "
    "tensor<4xui16>)\"\n"
    "vm.func @later(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.buffer) -> (!vm.buffer) {\n  vm.return "
    "%r0\n}\n"
    /* Declarations that contradict the convention. */
    "vm.export @counts\n"
    "vm.attr @counts \"iree.abi.declaration\" \"sync func @counts(%a: i32, %b: i32) -> (%c: i32)\"\n"
    "vm.func @counts(%i0: i32) -> (i32) {\n  vm.return %i0\n}\n"
    "vm.export @kinds\n"
    "vm.attr @kinds \"iree.abi.declaration\" \"sync func @kinds(%a: tensor<2xf32>, %b: i32, %c: i64, %d: "
    "f32) "
    "-> ()\"\n"
    "vm.func @kinds(%i0: i32, %r0: !vm.buffer, %i1: i32, %i2: i32) -> () {\n  vm.return\n}\n"
    "vm.export @odd\n"
    "vm.attr @odd \"iree.abi.declaration\" \"sync func @odd(%a: tensor<2x, %b: "
    "tensor<99999999999999999999xf32>) -> (\"\n"
    "vm.func @odd(%r0: !vm.buffer, %r1: !vm.buffer) -> () {\n  vm.return\n}\n";

static halyard_instance_t instance;
static halyard_module_t module;

static int text_is(halyard_text_t text, const char* expected) {
  return text.size == strlen(expected) && memcmp(text.data, expected, text.size) == 0;
}

static halyard_signature_t signature_of(const char* name) {
  halyard_module_info_t info = {.struct_size = sizeof info};
  OK(halyard_module_info(module, &info));
  for (uint32_t i = 0; i < info.function_count; ++i) {
    halyard_function_description_t function = {.struct_size = sizeof function};
    halyard_signature_t signature = NULL;
    OK(halyard_module_function(module, i, &function));
    if (text_is(function.name, name) && OK(halyard_module_signature(module, i, &signature))) return signature;
  }
  fprintf(stderr, "no function %s\n", name);
  exit(1);
}

typedef struct {
  uint32_t kind, value_kind, element_type, rank;
  int64_t shape[2];
  const char *name, *type;
} expected_t;

static void check(halyard_status_t read, const halyard_value_description_t* found, const char* function,
                  const expected_t* expected) {
  const int before = failures;
  if (!OK(read)) return;
  EXPECT(found->kind == expected->kind);
  EXPECT(found->value_kind == expected->value_kind);
  EXPECT(found->element_type == expected->element_type);
  EXPECT(found->rank == expected->rank);
  EXPECT(found->reserved == 0);
  if (found->rank == expected->rank && found->rank <= 2)
    for (uint32_t i = 0; i < found->rank; ++i) EXPECT(found->shape[i] == expected->shape[i]);
  EXPECT(text_is(found->name, expected->name));
  EXPECT(text_is(found->type, expected->type));
  if (failures != before)
    fprintf(stderr, "  of '%s', expected '%s', found '%.*s': '%.*s'\n", function, expected->name,
            (int)found->name.size, found->name.data, (int)found->type.size, found->type.data);
}

static void is_as(const char* name, const expected_t* arguments, size_t argument_count,
                  const expected_t* results, size_t result_count) {
  halyard_signature_t signature = signature_of(name);
  halyard_function_description_t function = {.struct_size = sizeof function};
  halyard_value_description_t value = {.struct_size = sizeof value};
  OK(halyard_signature_describe(signature, &function));
  EXPECT(text_is(function.name, name));
  EXPECT(function.argument_count == argument_count && function.result_count == result_count);
  for (size_t i = 0; i < argument_count; ++i)
    check(halyard_signature_argument(signature, i, &value), &value, name, &arguments[i]);
  for (size_t i = 0; i < result_count; ++i)
    check(halyard_signature_result(signature, i, &value), &value, name, &results[i]);
  FAILS(halyard_signature_argument(signature, argument_count, &value), HALYARD_OUT_OF_RANGE, name);
  FAILS(halyard_signature_result(signature, result_count, &value), HALYARD_OUT_OF_RANGE, name);
  halyard_release(signature);
}
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { OBJECT = HALYARD_VALUE_OBJECT };

static void declared(void) {
  const expected_t arguments[] = {
      {HALYARD_KIND_TENSOR,
       OBJECT,
       HALYARD_ELEMENT_F32,
       2,
       {HALYARD_DIMENSION_DYNAMIC, 4},
       "x",
       "tensor<?x4xf32>"},
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_I32, HALYARD_ELEMENT_I32, 0, {0}, "n", "i32"},
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_I32, HALYARD_ELEMENT_BOOL, 0, {0}, "flag", "i1"},
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_F64, HALYARD_ELEMENT_F64, 0, {0}, "scale", "f64"},
      {HALYARD_KIND_TENSOR, OBJECT, HALYARD_ELEMENT_BF16, HALYARD_RANK_UNKNOWN, {0}, "any", "tensor<*xbf16>"},
      {HALYARD_KIND_TENSOR,
       OBJECT,
       HALYARD_ELEMENT_CF128,
       1,
       {2},
       "z",
       "tensor<2xcomplex<f64>, #iree_encoding.testing<[1, 2]>>"},
      {HALYARD_KIND_LIST, OBJECT, 0, 0, {0}, "list", "!util.list<?>"},
      {HALYARD_KIND_BYTES, OBJECT, 0, 0, {0}, "bytes", "!util.buffer"},
      {HALYARD_KIND_TENSOR, OBJECT, 0, HALYARD_RANK_UNKNOWN, {0}, "view", "!hal.buffer_view"},
      {HALYARD_KIND_OBJECT, OBJECT, 0, 0, {0}, "other", "!custom.thing<(i32) -> i64>"},
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_I64, HALYARD_ELEMENT_I64, 0, {0}, "wide", "index"}};
  const expected_t results[] = {
      {HALYARD_KIND_TENSOR, OBJECT, HALYARD_ELEMENT_F32, 0, {0}, "y", "tensor<f32>"},
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_I64, HALYARD_ELEMENT_I64, 0, {0}, "", "i64"}};
  is_as("f", arguments, COUNT(arguments), results, COUNT(results));
}

static void undeclared(void) {
  const expected_t arguments[] = {
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_I32, HALYARD_ELEMENT_I32, 0, {0}, "", ""},
      {HALYARD_KIND_OBJECT, OBJECT, 0, 0, {0}, "", ""}};
  const expected_t results[] = {
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_F32, HALYARD_ELEMENT_F32, 0, {0}, "", ""}};
  is_as("plain", arguments, COUNT(arguments), results, COUNT(results));
}

static void asynchronous(void) {
  const expected_t arguments[] = {
      {HALYARD_KIND_TENSOR, OBJECT, HALYARD_ELEMENT_I8, 1, {4}, "input0", "tensor<4xi8>"},
      {HALYARD_KIND_FENCE, OBJECT, 0, 0, {0}, "", ""},
      {HALYARD_KIND_FENCE, OBJECT, 0, 0, {0}, "", ""}};
  const expected_t results[] = {
      {HALYARD_KIND_TENSOR, OBJECT, HALYARD_ELEMENT_UI16, 1, {4}, "output0", "tensor<4xui16>"}};
  is_as("later", arguments, COUNT(arguments), results, COUNT(results));
}

/* The convention is right: a declaration with other counts says nothing, one with other kinds only its text.
 */
static void contradicted(void) {
  const expected_t one[] = {{HALYARD_KIND_SCALAR, HALYARD_VALUE_I32, HALYARD_ELEMENT_I32, 0, {0}, "", ""}};
  is_as("counts", one, 1, one, 1);
  const expected_t arguments[] = {
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_I32, HALYARD_ELEMENT_I32, 0, {0}, "a", "tensor<2xf32>"},
      {HALYARD_KIND_OBJECT, OBJECT, 0, 0, {0}, "b", "i32"},
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_I32, HALYARD_ELEMENT_I32, 0, {0}, "c", "i64"},
      {HALYARD_KIND_SCALAR, HALYARD_VALUE_I32, HALYARD_ELEMENT_I32, 0, {0}, "d", "f32"}};
  is_as("kinds", arguments, COUNT(arguments), NULL, 0);
  const expected_t unknown[] = {{HALYARD_KIND_OBJECT, OBJECT, 0, 0, {0}, "", ""},
                                {HALYARD_KIND_OBJECT, OBJECT, 0, 0, {0}, "", ""}};
  is_as("odd", unknown, COUNT(unknown), NULL, 0);
}

/* The first argument of a function with this convention, model and declaration. The signature, which owns the
 * texts, is to be released. */
static halyard_signature_t argument_of(const char* arguments, const char* model, const char* declaration,
                                       halyard_value_description_t* value) {
  char text[1024];
  snprintf(text, sizeof text,
           "vm.module @m\nvm.export @f\nvm.attr @f \"iree.abi.model\" \"%s\"\n"
           "vm.attr @f \"iree.abi.declaration\" e\"%s\"\nvm.func @f(%s) -> () {\n  vm.return\n}\n",
           model, declaration, arguments);
  halyard_module_t made = load_text(instance, text);
  halyard_signature_t signature = NULL;
  *value = (halyard_value_description_t){.struct_size = sizeof *value};
  if (made && OK(halyard_module_signature(made, 0, &signature)) &&
      OK(halyard_signature_argument(signature, 0, value)))
    EXPECT(value->kind != HALYARD_KIND_FENCE);
  halyard_release(made);
  return signature;
}

/* Types that a declaration may have in any text; anyone may have written it. */
static void declared_types(void) {
  const struct {
    const char* type;
    uint32_t kind, element_type, rank;
  } objects[] = {
      {"tensor<f32>", HALYARD_KIND_TENSOR, HALYARD_ELEMENT_F32, 0},
      {"tensor<2x?xi7>", HALYARD_KIND_TENSOR, 0x10000007, 2},
      {"tensor<0xsi3>", HALYARD_KIND_TENSOR, 0x11000003, 1},
      {"tensor<9223372036854775807xui12>", HALYARD_KIND_TENSOR, 0x1200000C, 1},
      {"\ttensor<1xindex>\t ", HALYARD_KIND_TENSOR, 0, 1},
      {"tensor<1xi>", HALYARD_KIND_TENSOR, 0, 1},
      {"tensor<1xi8x>", HALYARD_KIND_TENSOR, 0, 1},
      {"tensor<1xu8>", HALYARD_KIND_TENSOR, 0, 1},
      {"tensor<*x!thing>", HALYARD_KIND_TENSOR, 0, HALYARD_RANK_UNKNOWN},
      {"tensor<>", HALYARD_KIND_TENSOR, 0, 0},
      /* No tensors. */
      {"tensor<9223372036854775808xf32>", HALYARD_KIND_OBJECT, 0, 0},
      {"tensor<92233720368547758070xf32>", HALYARD_KIND_OBJECT, 0, 0},
      {"tensor<2>", HALYARD_KIND_OBJECT, 0, 0},
      {"tensor<2 xf32>", HALYARD_KIND_OBJECT, 0, 0},
      {"tensor<?>", HALYARD_KIND_OBJECT, 0, 0},
      {"tensor", HALYARD_KIND_OBJECT, 0, 0},
      {"memref<2xf32>", HALYARD_KIND_OBJECT, 0, 0},
      {"", HALYARD_KIND_OBJECT, 0, 0},
  };
  halyard_value_description_t value;
  for (size_t i = 0; i < COUNT(objects); ++i) {
    char declaration[256];
    snprintf(declaration, sizeof declaration, "sync func @f(%%a: %s) -> ()", objects[i].type);
    halyard_signature_t signature = argument_of("%r0: !vm.buffer", "", declaration, &value);
    EXPECT(value.kind == objects[i].kind && value.element_type == objects[i].element_type &&
           value.rank == objects[i].rank && text_is(value.name, "a"));
    if (value.kind != objects[i].kind || value.element_type != objects[i].element_type ||
        value.rank != objects[i].rank)
      fprintf(stderr, "  '%s': kind %u, type %x, rank %u\n", objects[i].type, value.kind, value.element_type,
              value.rank);
    halyard_release(signature);
  }
  /* One dimension more than tensors have. */
  char many[512] = "sync func @f(%a: tensor<";
  for (int i = 0; i < 129; ++i) strcat(many, "1x");
  halyard_release(argument_of("%r0: !vm.buffer", "", strcat(many, "f32>)"), &value));
  EXPECT(value.kind == HALYARD_KIND_OBJECT);
  /* Integers narrower than the register. */
  halyard_release(argument_of("%i0: i32", "", "sync func @f(%a: ui8)", &value));
  EXPECT(value.element_type == HALYARD_ELEMENT_UI8 && value.value_kind == HALYARD_VALUE_I32);
}

static void broken_declarations(void) {
  static const char* const broken[] = {
      "",
      "sync func",
      "func @",
      "func @f",
      "func @f(",
      "func @f(%a: tensor<2xf32>",
      "func @f(%a: tensor<2xf32)",
      "func @f(%a: i32>)",
      "func @f(%a: \\\"i32)",
      "func @f(%a: i32]) -> ()",
      "func @f()",
      "func @f(%a: i32, %b: i32)",
      "func @f(%a: i32) -> i32",
      "func @f(%a: i32) -> (i32",
      "func @f(%a: i32) -> (i32, i32)",
  };
  halyard_value_description_t value;
  for (size_t i = 0; i < COUNT(broken); ++i) {
    halyard_signature_t signature = argument_of("%r0: !vm.buffer", "", broken[i], &value);
    EXPECT(value.kind == HALYARD_KIND_OBJECT && text_is(value.name, "") && text_is(value.type, ""));
    if (value.type.size != 0)
      fprintf(stderr, "  '%s': '%.*s'\n", broken[i], (int)value.type.size, value.type.data);
    halyard_release(signature);
  }
  /* Unusual, but whole. */
  static const char* const whole[] = {"func @f(%a)", "async func @f( %a : i32 ) -> ()",
                                      "func @f(%a: (i32) -> i32)",
                                      "func @f(%a: i32 {b = \\\"}\\\"}) attributes {}"};
  for (size_t i = 0; i < COUNT(whole); ++i) {
    halyard_signature_t signature = argument_of("%r0: !vm.buffer", "", whole[i], &value);
    EXPECT(text_is(value.name, "a"));
    halyard_release(signature);
  }
  /* A function that says that it is asynchronous, but has no room for two fences. */
  halyard_release(argument_of("%r0: !vm.buffer", "coarse-fences", "func @f(%a: tensor<f32>)", &value));
  EXPECT(value.kind == HALYARD_KIND_TENSOR);
}

/* Of a function in a context; the signature outlives the module's handles. */
static void of_functions(void) {
  halyard_context_t context = NULL;
  halyard_function_t function = NULL;
  halyard_signature_t signature = NULL;
  halyard_value_description_t value = {.struct_size = sizeof value};
  context = context_of(instance, module, NULL);
  OK(halyard_context_find(context, NULL, "f", &function));
  OK(halyard_function_signature(function, &signature));
  RELEASE(function, context, module);
  module = NULL;
  OK(halyard_signature_argument(signature, 0, &value));
  EXPECT(text_is(value.name, "x") && value.rank == 2 && value.shape[0] == -1 && value.shape[1] == 4);

  /* An older program's struct ends earlier. */
  struct {
    _Alignas(halyard_value_description_t) uint32_t struct_size;
    uint32_t kind, after;
  } older = {.struct_size = 8, .after = 42};
  OK(halyard_signature_argument(signature, 1, (halyard_value_description_t*)&older));
  EXPECT(older.kind == HALYARD_KIND_SCALAR && older.after == 42);
  value.struct_size = 0;
  FAILS(halyard_signature_argument(signature, 0, &value), HALYARD_INVALID_ARGUMENT, "struct_size");
  FAILS(halyard_signature_argument(signature, 0, NULL), HALYARD_INVALID_ARGUMENT, "");
  FAILS(halyard_signature_argument((halyard_signature_t)instance, 0, &value), HALYARD_INVALID_ARGUMENT,
        "expected a signature, found an instance");
  FAILS(halyard_function_signature(NULL, &signature), HALYARD_INVALID_ARGUMENT, "expected a function");
  halyard_release(signature);
}

/* The header's names of element types are what texts say. */
static void element_types(void) {
  const struct {
    uint32_t type;
    const char* text;
  } types[] = {{HALYARD_ELEMENT_BOOL, "i1"},
               {HALYARD_ELEMENT_OPAQUE8, "*8"},
               {HALYARD_ELEMENT_OPAQUE16, "*16"},
               {HALYARD_ELEMENT_OPAQUE32, "*32"},
               {HALYARD_ELEMENT_OPAQUE64, "*64"},
               {HALYARD_ELEMENT_I4, "i4"},
               {HALYARD_ELEMENT_I8, "i8"},
               {HALYARD_ELEMENT_I16, "i16"},
               {HALYARD_ELEMENT_I32, "i32"},
               {HALYARD_ELEMENT_I64, "i64"},
               {HALYARD_ELEMENT_SI4, "si4"},
               {HALYARD_ELEMENT_SI8, "si8"},
               {HALYARD_ELEMENT_SI16, "si16"},
               {HALYARD_ELEMENT_SI32, "si32"},
               {HALYARD_ELEMENT_SI64, "si64"},
               {HALYARD_ELEMENT_UI4, "ui4"},
               {HALYARD_ELEMENT_UI8, "ui8"},
               {HALYARD_ELEMENT_UI16, "ui16"},
               {HALYARD_ELEMENT_UI32, "ui32"},
               {HALYARD_ELEMENT_UI64, "ui64"},
               {HALYARD_ELEMENT_F16, "f16"},
               {HALYARD_ELEMENT_F32, "f32"},
               {HALYARD_ELEMENT_F64, "f64"},
               {HALYARD_ELEMENT_BF16, "bf16"},
               {HALYARD_ELEMENT_CF64, "cf64"},
               {HALYARD_ELEMENT_CF128, "cf128"},
               {HALYARD_ELEMENT_F8E5M2, "f8E5M2"},
               {HALYARD_ELEMENT_F8E4M3FN, "f8E4M3FN"},
               {HALYARD_ELEMENT_F8E5M2FNUZ, "f8E5M2FNUZ"},
               {HALYARD_ELEMENT_F8E4M3FNUZ, "f8E4M3FNUZ"},
               {HALYARD_ELEMENT_F8E8M0FNU, "f8E8M0FNU"}};
  for (size_t i = 0; i < COUNT(types); ++i) {
    char* text = halyard_element_type_text(types[i].type);
    EXPECT(strcmp(text, types[i].text) == 0);
    halyard_free(text);
  }
}

int main(void) {
  OK(halyard_instance_create(NULL, &instance));
  module = load_text(instance, kText);
  if (!module) return 1;
  halyard_signature_t past = NULL;
  FAILS(halyard_module_signature(module, 99, &past), HALYARD_OUT_OF_RANGE, "exports 6 functions");
  declared();
  undeclared();
  asynchronous();
  contradicted();
  declared_types();
  broken_declarations();
  element_types();
  of_functions();
  RELEASE(module, instance);
  return failures != 0;
}
