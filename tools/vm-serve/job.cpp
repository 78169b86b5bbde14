// Creates arguments from bytes, and batches.
#include "job.h"

#include <algorithm>
#include <cstring>

namespace halyard::tools::serve {

namespace {

template <typename T>
T load(const AlignedBuffer& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

Value number_of(const TensorSpec& spec, const AlignedBuffer& bytes) {
  switch (spec.element_type) {
    case HALYARD_ELEMENT_I64:
      return load<int64_t>(bytes);
    case HALYARD_ELEMENT_F32:
      return load<float>(bytes);
    case HALYARD_ELEMENT_F64:
      return load<double>(bytes);
    default:
      return load<int32_t>(bytes);
  }
}

Result<Tensor> tensor_of(const Value& value) {
  if (value.kind() != HALYARD_VALUE_OBJECT)
    return fail(HALYARD_FAILED_PRECONDITION, "the model returned a null reference instead of a tensor");
  return check(value.as<Tensor>());
}

}  // namespace

uint64_t Job::rows() const {
  // Without elements, a request may state any number of rows.
  const auto has_elements = [](const RequestInput& input) { return input.byte_size > 0; };
  if (std::ranges::none_of(inputs, has_elements)) return 0;
  uint64_t rows = 0;
  for (const RequestInput& input : inputs) {
    if (input.shape.empty() || input.shape.front() <= 0) return 0;
    const auto own = static_cast<uint64_t>(input.shape.front());
    if (rows != 0 && own != rows) return 0;
    rows = own;
  }
  return rows;
}

bool Job::fits(const Job& other) const {
  return std::ranges::equal(inputs, other.inputs, [](const RequestInput& one, const RequestInput& two) {
    return std::equal(one.shape.begin() + 1, one.shape.end(), two.shape.begin() + 1, two.shape.end());
  });
}

Result<std::vector<Value>> arguments_of(const ModelSpec& model, const Device& device,
                                        std::vector<RequestInput>& inputs) {
  std::vector<Value> arguments;
  arguments.reserve(inputs.size() + 2);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = model.inputs[i];
    RequestInput& input = inputs[i];
    if (spec.is_number) {
      arguments.push_back(number_of(spec, input.data));
      continue;
    }
    const size_t size = input.data.size();
    std::byte* const bytes = input.data.release();
    arguments.push_back(
        TOOL_TRY(Tensor::import(device, static_cast<ElementType>(spec.element_type), input.shape, bytes, size,
                                std::shared_ptr<std::byte>(bytes, std::free))));
  }
  return arguments;
}

Result<std::vector<RequestInput>> joined(const ModelSpec& model, std::span<const std::shared_ptr<Job>> jobs) {
  std::vector<RequestInput> all(model.inputs.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].index = i;
    all[i].shape = jobs.front()->inputs[i].shape;
    all[i].shape.front() = 0;
    for (const auto& job : jobs) {
      all[i].shape.front() += job->inputs[i].shape.front();
      all[i].byte_size += job->inputs[i].data.size();
    }
    if (!all[i].data.resize(all[i].byte_size))
      return fail(HALYARD_RESOURCE_EXHAUSTED, "out of memory for a batch of {} bytes", all[i].byte_size);
    std::byte* target = all[i].data.data();
    for (const auto& job : jobs) {
      const AlignedBuffer& bytes = job->inputs[i].data;
      if (bytes.size() > 0) std::memcpy(target, bytes.data(), bytes.size());
      target += bytes.size();
    }
  }
  return all;
}

Result<std::vector<std::vector<Value>>> split(const std::vector<Value>& results,
                                              std::span<const std::shared_ptr<Job>> jobs) {
  uint64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows();
  std::vector<std::vector<Value>> parts(jobs.size());
  for (const Value& result : results) {
    const Tensor tensor = TOOL_TRY(tensor_of(result));
    const halyard_view_info_t info = TOOL_TRY(tensor.info());
    std::vector<int64_t> shape(info.shape, info.shape + info.rank);
    if (shape.empty() || static_cast<uint64_t>(shape.front()) != rows)
      return fail(HALYARD_FAILED_PRECONDITION, "a result of a batch has the shape {}; expected {} rows",
                  shape_text(shape), rows);
    const uint64_t row_size = TOOL_TRY(tensor.byte_count()) / rows;  // the buffer may be larger
    uint64_t offset = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
      shape.front() = static_cast<int64_t>(jobs[i]->rows());
      parts[i].push_back(TOOL_TRY(tensor.part(offset, static_cast<ElementType>(info.element_type), shape)));
      offset += row_size * jobs[i]->rows();
    }
  }
  return parts;
}

}  // namespace halyard::tools::serve
