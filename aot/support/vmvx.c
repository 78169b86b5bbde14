/* The microkernels that portable kernels import: element-wise functions, copies, and products of packed
 * matrices. Offsets, strides and sizes count elements. */
#include "parameters.c"

static float vm_exp(float x); /* by elementary.cpp */
static float vm_log(float x);

/*@@ vmvx_area */
/* The first element of a matrix within a buffer. The strides are not negative. */
static int vmvx_area(vm_state* s, vm_ref object, uint64_t offset, uint64_t stride0, uint64_t stride1,
                     uint64_t size0, uint64_t size1, uint32_t width, int writes, unsigned char** first) {
  int status = vm_check_buffer(s, object);
  if (status == 0 && writes) status = vm_check_writable(s, vm_buffer_of(object));
  if (status != 0 || size0 == 0 || size1 == 0) return status;
  if (size0 > UINT32_MAX || size1 > UINT32_MAX || stride0 >= UINT32_MAX || stride1 >= UINT32_MAX)
    return vm_fail(s, 3, "expected sizes and strides of at most 32 bits");
  const uint64_t last = (size0 - 1) * stride0;
  const uint64_t span = last + (size1 - 1) * stride1;
  if (span < last || span == UINT64_MAX) return vm_fail(s, 11, "the matrix is larger than the address space");
  status = vm_range(s, vm_buffer_of(object), offset, span + 1, width);
  if (status == 0) *first = vm_element(vm_span_of(object), offset, width);
  return status;
}

/*@@ VMVX_BINARY_PARAMETERS VMVX_BINARY_ARGUMENTS */
#define VMVX_BINARY_PARAMETERS                                                                \
  vm_state *s, vm_ref x, uint64_t x_offset, uint64_t x_stride0, uint64_t x_stride1, vm_ref y, \
      uint64_t y_offset, uint64_t y_stride0, uint64_t y_stride1, vm_ref out, uint64_t offset, \
      uint64_t stride0, uint64_t stride1, uint64_t size0, uint64_t size1
#define VMVX_BINARY_ARGUMENTS                                                                             \
  s, x, x_offset, x_stride0, x_stride1, y, y_offset, y_stride0, y_stride1, out, offset, stride0, stride1, \
      size0, size1

/*@@ vmvx_binary */
static inline int vmvx_binary(uint32_t (*function)(uint32_t, uint32_t), VMVX_BINARY_PARAMETERS) {
  unsigned char* from = NULL;
  unsigned char* other = NULL;
  unsigned char* to = NULL;
  int status = vmvx_area(s, x, x_offset, x_stride0, x_stride1, size0, size1, 4, 0, &from);
  if (status == 0) status = vmvx_area(s, y, y_offset, y_stride0, y_stride1, size0, size1, 4, 0, &other);
  if (status == 0) status = vmvx_area(s, out, offset, stride0, stride1, size0, size1, 4, 1, &to);
  if (status != 0) return status;
  const uint32_t before = (uint32_t)hal_flush_begin();
  for (uint64_t i = 0; i < size0; ++i)
    for (uint64_t j = 0; j < size1; ++j)
      vm_set_32(to + 4 * (i * stride0 + j * stride1),
                function(vm_get_32(from + 4 * (i * x_stride0 + j * x_stride1)),
                         vm_get_32(other + 4 * (i * y_stride0 + j * y_stride1))));
  hal_flush_end(before);
  return 0;
}

/*@@ VMVX_UNARY_PARAMETERS VMVX_UNARY_ARGUMENTS */
#define VMVX_UNARY_PARAMETERS                                                                   \
  vm_state *s, vm_ref x, uint64_t x_offset, uint64_t x_stride0, uint64_t x_stride1, vm_ref out, \
      uint64_t offset, uint64_t stride0, uint64_t stride1, uint64_t size0, uint64_t size1
#define VMVX_UNARY_ARGUMENTS s, x, x_offset, x_stride0, x_stride1, out, offset, stride0, stride1, size0, size1

/*@@ vmvx_unary */
static inline int vmvx_unary(uint32_t (*function)(uint32_t), VMVX_UNARY_PARAMETERS) {
  unsigned char* from = NULL;
  unsigned char* to = NULL;
  int status = vmvx_area(s, x, x_offset, x_stride0, x_stride1, size0, size1, 4, 0, &from);
  if (status == 0) status = vmvx_area(s, out, offset, stride0, stride1, size0, size1, 4, 1, &to);
  if (status != 0) return status;
  const uint32_t before = (uint32_t)hal_flush_begin();
  for (uint64_t i = 0; i < size0; ++i)
    for (uint64_t j = 0; j < size1; ++j)
      vm_set_32(to + 4 * (i * stride0 + j * stride1),
                function(vm_get_32(from + 4 * (i * x_stride0 + j * x_stride1))));
  hal_flush_end(before);
  return 0;
}

/*@@ vmvx_add_2d_f32 */
static inline uint32_t vmvx_of_add_2d_f32(uint32_t x, uint32_t y) {
  return vm_bits_f32(vm_f32(x) + vm_f32(y));
}
static int vmvx_add_2d_f32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_add_2d_f32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_sub_2d_f32 */
static inline uint32_t vmvx_of_sub_2d_f32(uint32_t x, uint32_t y) {
  return vm_bits_f32(vm_f32(x) - vm_f32(y));
}
static int vmvx_sub_2d_f32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_sub_2d_f32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_mul_2d_f32 */
static inline uint32_t vmvx_of_mul_2d_f32(uint32_t x, uint32_t y) {
  return vm_bits_f32(vm_f32(x) * vm_f32(y));
}
static int vmvx_mul_2d_f32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_mul_2d_f32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_div_2d_f32 */
static inline uint32_t vmvx_of_div_2d_f32(uint32_t x, uint32_t y) {
  return vm_bits_f32(vm_f32(x) / vm_f32(y));
}
static int vmvx_div_2d_f32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_div_2d_f32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_add_2d_i32 */
static inline uint32_t vmvx_of_add_2d_i32(uint32_t x, uint32_t y) { return x + y; }
static int vmvx_add_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_add_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_sub_2d_i32 */
static inline uint32_t vmvx_of_sub_2d_i32(uint32_t x, uint32_t y) { return x - y; }
static int vmvx_sub_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_sub_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_mul_2d_i32 */
static inline uint32_t vmvx_of_mul_2d_i32(uint32_t x, uint32_t y) { return x * y; }
static int vmvx_mul_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_mul_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_and_2d_i32 */
static inline uint32_t vmvx_of_and_2d_i32(uint32_t x, uint32_t y) { return x & y; }
static int vmvx_and_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_and_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_or_2d_i32 */
static inline uint32_t vmvx_of_or_2d_i32(uint32_t x, uint32_t y) { return x | y; }
static int vmvx_or_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_or_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_xor_2d_i32 */
static inline uint32_t vmvx_of_xor_2d_i32(uint32_t x, uint32_t y) { return x ^ y; }
static int vmvx_xor_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_xor_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_shl_2d_i32 */
static inline uint32_t vmvx_of_shl_2d_i32(uint32_t x, uint32_t y) { return x << (y & 31); }
static int vmvx_shl_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_shl_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_shrs_2d_i32 */
static inline uint32_t vmvx_of_shrs_2d_i32(uint32_t x, uint32_t y) {
  return (uint32_t)((int32_t)x >> (y & 31));
}
static int vmvx_shrs_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_shrs_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_shru_2d_i32 */
static inline uint32_t vmvx_of_shru_2d_i32(uint32_t x, uint32_t y) { return x >> (y & 31); }
static int vmvx_shru_2d_i32(VMVX_BINARY_PARAMETERS) {
  return vmvx_binary(vmvx_of_shru_2d_i32, VMVX_BINARY_ARGUMENTS);
}

/*@@ vmvx_abs_2d_f32 */
static inline uint32_t vmvx_of_abs_2d_f32(uint32_t x) { return x & 0x7FFFFFFFu; }
static int vmvx_abs_2d_f32(VMVX_UNARY_PARAMETERS) {
  return vmvx_unary(vmvx_of_abs_2d_f32, VMVX_UNARY_ARGUMENTS);
}

/*@@ vmvx_neg_2d_f32 */
static inline uint32_t vmvx_of_neg_2d_f32(uint32_t x) { return x ^ 0x80000000u; }
static int vmvx_neg_2d_f32(VMVX_UNARY_PARAMETERS) {
  return vmvx_unary(vmvx_of_neg_2d_f32, VMVX_UNARY_ARGUMENTS);
}

/*@@ vmvx_ceil_2d_f32 */
static inline uint32_t vmvx_of_ceil_2d_f32(uint32_t x) { return vm_bits_f32(ceilf(vm_f32(x))); }
static int vmvx_ceil_2d_f32(VMVX_UNARY_PARAMETERS) {
  return vmvx_unary(vmvx_of_ceil_2d_f32, VMVX_UNARY_ARGUMENTS);
}

/*@@ vmvx_floor_2d_f32 */
static inline uint32_t vmvx_of_floor_2d_f32(uint32_t x) { return vm_bits_f32(floorf(vm_f32(x))); }
static int vmvx_floor_2d_f32(VMVX_UNARY_PARAMETERS) {
  return vmvx_unary(vmvx_of_floor_2d_f32, VMVX_UNARY_ARGUMENTS);
}

/*@@ vmvx_exp_2d_f32 */
static inline uint32_t vmvx_of_exp_2d_f32(uint32_t x) { return vm_bits_f32(vm_exp(vm_f32(x))); }
static int vmvx_exp_2d_f32(VMVX_UNARY_PARAMETERS) {
  return vmvx_unary(vmvx_of_exp_2d_f32, VMVX_UNARY_ARGUMENTS);
}

/*@@ vmvx_log_2d_f32 */
static inline uint32_t vmvx_of_log_2d_f32(uint32_t x) { return vm_bits_f32(vm_log(vm_f32(x))); }
static int vmvx_log_2d_f32(VMVX_UNARY_PARAMETERS) {
  return vmvx_unary(vmvx_of_log_2d_f32, VMVX_UNARY_ARGUMENTS);
}

/*@@ vmvx_rsqrt_2d_f32 */
static inline uint32_t vmvx_of_rsqrt_2d_f32(uint32_t x) { return vm_bits_f32(1.0f / sqrtf(vm_f32(x))); }
static int vmvx_rsqrt_2d_f32(VMVX_UNARY_PARAMETERS) {
  return vmvx_unary(vmvx_of_rsqrt_2d_f32, VMVX_UNARY_ARGUMENTS);
}

/*@@ vmvx_ctlz_2d_i32 */
static inline uint32_t vmvx_of_ctlz_2d_i32(uint32_t x) { return vm_leading_zeros_32(x); }
static int vmvx_ctlz_2d_i32(VMVX_UNARY_PARAMETERS) {
  return vmvx_unary(vmvx_of_ctlz_2d_i32, VMVX_UNARY_ARGUMENTS);
}

/*@@ vmvx_copy */
static int vmvx_copy(uint32_t width, VMVX_UNARY_PARAMETERS) {
  unsigned char* from = NULL;
  unsigned char* to = NULL;
  int status = vmvx_area(s, x, x_offset, x_stride0, x_stride1, size0, size1, width, 0, &from);
  if (status == 0) status = vmvx_area(s, out, offset, stride0, stride1, size0, size1, width, 1, &to);
  if (status != 0) return status;
  for (uint64_t i = 0; i < size0; ++i)
    for (uint64_t j = 0; j < size1; ++j)
      memmove(to + width * (i * stride0 + j * stride1), from + width * (i * x_stride0 + j * x_stride1),
              width);
  return 0;
}

/*@@ vmvx_copy_2d_x8 */
static int vmvx_copy_2d_x8(VMVX_UNARY_PARAMETERS) { return vmvx_copy(1, VMVX_UNARY_ARGUMENTS); }

/*@@ vmvx_copy_2d_x16 */
static int vmvx_copy_2d_x16(VMVX_UNARY_PARAMETERS) { return vmvx_copy(2, VMVX_UNARY_ARGUMENTS); }

/*@@ vmvx_copy_2d_x32 */
static int vmvx_copy_2d_x32(VMVX_UNARY_PARAMETERS) { return vmvx_copy(4, VMVX_UNARY_ARGUMENTS); }

/*@@ vmvx_copy_2d_x64 */
static int vmvx_copy_2d_x64(VMVX_UNARY_PARAMETERS) { return vmvx_copy(8, VMVX_UNARY_ARGUMENTS); }

/*@@ vmvx_fill_2d_x32 */
static int vmvx_fill_2d_x32(vm_state* s, uint32_t value, vm_ref out, uint64_t offset, uint64_t stride,
                            uint64_t size0, uint64_t size1) {
  unsigned char* to = NULL;
  const int status = vmvx_area(s, out, offset, stride, 1, size0, size1, 4, 1, &to);
  if (status != 0) return status;
  for (uint64_t i = 0; i < size0; ++i)
    for (uint64_t j = 0; j < size1; ++j) vm_set_32(to + 4 * (i * stride + j), value);
  return 0;
}

/*@@ vmvx_mmt4d */
/* out[i][j][a][b] += lhs[i][k][a][c] * rhs[j][k][b][c], summed in the order of k and c. */
static int vmvx_mmt4d(vm_state* s, vm_ref lhs, uint64_t lhs_offset, uint64_t lhs_stride, vm_ref rhs,
                      uint64_t rhs_offset, uint64_t rhs_stride, vm_ref out, uint64_t offset, uint64_t stride,
                      uint64_t m, uint64_t n, uint64_t k, uint32_t m0, uint32_t n0, uint32_t k0,
                      uint32_t flags) {
  const uint32_t type = flags & 0xFF;
  unsigned char* x = NULL;
  unsigned char* y = NULL;
  unsigned char* to = NULL;
  if (type != 1 && type != 2) return vm_fail_with(s, 3, "mmt4d has no type $", type, 0, 0);
  const uint32_t width = type == 1 ? 4 : 1;
  m0 &= 0xFFFF;
  n0 &= 0xFFFF;
  k0 &= 0xFFFF;
  if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) return vm_fail(s, 3, "expected sizes below 2^31");
  int status = vmvx_area(s, lhs, lhs_offset, lhs_stride, 1, m, k * m0 * k0, width, 0, &x);
  if (status == 0) status = vmvx_area(s, rhs, rhs_offset, rhs_stride, 1, n, k * n0 * k0, width, 0, &y);
  if (status == 0) status = vmvx_area(s, out, offset, stride, 1, m, n * m0 * n0, 4, 1, &to);
  if (status != 0) return status;
  const uint32_t before = (uint32_t)hal_flush_begin();
  for (uint64_t i = 0; i < m; ++i)
    for (uint64_t j = 0; j < n; ++j)
      for (uint32_t a = 0; a < m0; ++a)
        for (uint32_t b = 0; b < n0; ++b) {
          unsigned char* const at = to + 4 * (i * stride + (j * m0 + a) * n0 + b);
          const uint32_t start = flags & 0x100 ? vm_get_32(at) : 0;
          float sum = vm_f32(start);
          uint32_t integer = start;
          for (uint64_t kk = 0; kk < k; ++kk)
            for (uint32_t c = 0; c < k0; ++c) {
              const unsigned char* const p = x + width * (i * lhs_stride + (kk * m0 + a) * k0 + c);
              const unsigned char* const q = y + width * (j * rhs_stride + (kk * n0 + b) * k0 + c);
              if (type == 1)
                sum += vm_f32(vm_get_32(p)) * vm_f32(vm_get_32(q));
              else
                integer += vm_sign_extend_8(*p) * vm_sign_extend_8(*q);
            }
          vm_set_32(at, type == 1 ? vm_bits_f32(sum) : integer);
        }
  hal_flush_end(before);
  return 0;
}

/*@@ vmvx_tile_width */
/* The bytes of an element of a packed matrix; 0 for a type that has none. */
static inline uint32_t vmvx_tile_width(uint32_t flags) {
  const uint32_t type = flags & 0xFF;
  return type == 1 || type == 3 ? 4 : type == 2 ? 1 : 0;
}

/*@@ vmvx_pack */
static int vmvx_pack(vm_state* s, vm_ref in, uint64_t in_offset, uint64_t in_stride0, uint64_t in_stride1,
                     vm_ref out, uint64_t offset, uint64_t stride0, uint64_t stride1, uint64_t in_size0,
                     uint64_t in_size1, uint64_t o0, uint64_t o1, uint64_t t0, uint64_t t1, uint64_t padding,
                     uint32_t flags) {
  const uint32_t width = vmvx_tile_width(flags);
  unsigned char* from = NULL;
  unsigned char* to = NULL;
  (void)stride1;
  if (width == 0) return vm_fail_with(s, 3, "pack has no type $", flags & 0xFF, 0, 0);
  if (t0 > 4096 || t1 > 4096 || t0 * t1 > 65536) return vm_fail(s, 3, "the tiles are too large");
  int status = vmvx_area(s, in, in_offset, in_stride0, in_stride1, in_size0, in_size1, width, 0, &from);
  if (status == 0)
    status = vmvx_area(s, out, offset, stride0, t0 * t1, o0, o1 * (t0 * t1 != 0), width, 1, &to);
  if (status == 0 && o0 != 0 && o1 != 0 && t0 * t1 != 0)
    status = vmvx_area(s, out, offset + t0 * t1 - 1, stride0, t0 * t1, o0, o1, width, 1, &to);
  if (status != 0 || o0 == 0 || o1 == 0 || t0 * t1 == 0) return status;
  to = vm_element(vm_span_of(out), offset, width);
  for (uint64_t i = 0; i < o0; ++i)
    for (uint64_t j = 0; j < o1; ++j)
      for (uint64_t p = 0; p < t0; ++p)
        for (uint64_t q = 0; q < t1; ++q) {
          const uint64_t tile_row = flags & 0x200 ? j : i;
          const uint64_t tile_column = flags & 0x200 ? i : j;
          const uint64_t row = flags & 0x100 ? tile_row * t1 + q : tile_row * t0 + p;
          const uint64_t column = flags & 0x100 ? tile_column * t0 + p : tile_column * t1 + q;
          unsigned char* const at = to + width * (i * stride0 + (j * t0 + p) * t1 + q);
          if (row < in_size0 && column < in_size1)
            memcpy(at, from + width * (row * in_stride0 + column * in_stride1), width);
          else
            memcpy(at, &padding, width);
        }
  return 0;
}

/*@@ vmvx_unpack */
static int vmvx_unpack(vm_state* s, vm_ref in, uint64_t in_offset, uint64_t in_stride0, uint64_t in_stride1,
                       vm_ref out, uint64_t offset, uint64_t stride0, uint64_t stride1, uint64_t i0,
                       uint64_t i1, uint64_t t0, uint64_t t1, uint64_t size0, uint64_t size1,
                       uint32_t flags) {
  const uint32_t width = vmvx_tile_width(flags);
  unsigned char* from = NULL;
  unsigned char* to = NULL;
  (void)in_stride1;
  if (width == 0) return vm_fail_with(s, 3, "unpack has no type $", flags & 0xFF, 0, 0);
  if (t0 > 4096 || t1 > 4096 || t0 * t1 > 65536) return vm_fail(s, 3, "the tiles are too large");
  int status = vmvx_area(s, out, offset, stride0, stride1, size0, size1, width, 1, &to);
  if (status == 0 && i0 != 0 && i1 != 0 && t0 * t1 != 0)
    status = vmvx_area(s, in, in_offset + t0 * t1 - 1, in_stride0, t0 * t1, i0, i1, width, 0, &from);
  if (status != 0 || i0 == 0 || i1 == 0 || t0 * t1 == 0 || size0 == 0 || size1 == 0) return status;
  from = vm_element(vm_span_of(in), in_offset, width);
  for (uint64_t i = 0; i < i0; ++i)
    for (uint64_t j = 0; j < i1; ++j)
      for (uint64_t p = 0; p < t0; ++p)
        for (uint64_t q = 0; q < t1; ++q) {
          const uint64_t tile_row = flags & 0x200 ? j : i;
          const uint64_t tile_column = flags & 0x200 ? i : j;
          const uint64_t row = flags & 0x100 ? tile_row * t1 + q : tile_row * t0 + p;
          const uint64_t column = flags & 0x100 ? tile_column * t0 + p : tile_column * t1 + q;
          if (row < size0 && column < size1)
            memcpy(to + width * (row * stride0 + column * stride1),
                   from + width * (i * in_stride0 + (j * t0 + p) * t1 + q), width);
        }
  return 0;
}

/*@@ vmvx_query_tile_sizes_2d */
/* Tiles of 8 x 8 x 1 for all operands; they divide 16, as hosts expect. */
static int vmvx_query_tile_sizes_2d(vm_state* s, uint64_t size0, uint64_t size1, uint32_t flags,
                                    uint64_t* tile0, uint64_t* tile1) {
  (void)size0;
  (void)size1;
  const uint32_t role = flags & 0xFF;
  if (role < 1 || role > 3) return vm_fail_with(s, 3, "there is no operand $", role, 0, 0);
  *tile0 = 8;
  *tile1 = role == 3 ? 8 : 1;
  return 0;
}
