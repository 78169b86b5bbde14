// The rows of a request, which batches and statistics count.
#include "job.h"

#include <gtest/gtest.h>

namespace halyard::tools::serve {
namespace {

RequestInput input_of(std::vector<int64_t> shape) {
  RequestInput input;
  input.byte_size = sizeof(float);
  for (const int64_t size : shape) input.byte_size *= static_cast<uint64_t>(size);
  input.shape = std::move(shape);
  return input;
}

uint64_t rows_of(std::vector<std::vector<int64_t>> shapes) {
  Job job;
  for (std::vector<int64_t>& shape : shapes) job.inputs.push_back(input_of(std::move(shape)));
  return job.rows();
}

TEST(Job, RowsAreTheFirstDimensionOfAllInputs) {
  EXPECT_EQ(rows_of({{3, 2}}), 3u);
  EXPECT_EQ(rows_of({{3, 2}, {3}}), 3u);
  EXPECT_EQ(rows_of({{3, 2}, {3, 0}}), 3u);
  EXPECT_EQ(rows_of({{3, 2}, {2, 2}}), 0u);
  EXPECT_EQ(rows_of({{3, 2}, {}}), 0u);
  EXPECT_EQ(rows_of({{0, 2}}), 0u);
  EXPECT_EQ(rows_of({}), 0u);
}

// The bytes of a request limit its rows. Without bytes the client may state any number of rows.
TEST(Job, InputsWithoutElementsHaveNoRows) {
  constexpr int64_t kLarge = int64_t{1} << 60;
  EXPECT_EQ(rows_of({{kLarge, 0}}), 0u);
  EXPECT_EQ(rows_of({{kLarge, 0}, {kLarge, 4, 0}}), 0u);
}

}  // namespace
}  // namespace halyard::tools::serve
