// Creates arguments from bytes, and batches.
#include "job.h"

#include <algorithm>
#include <cstring>

#include "halyard/memory.h"

namespace halyard::tools::serve {

namespace {

template <typename T>
T load(const Bytes& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

halyard::Value number_of(const TensorSpec& spec, const Bytes& bytes) {
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

Result<halyard_view_info_t> info_of(const halyard::Value& value) {
  if (value.kind() != HALYARD_VALUE_OBJECT)
    return fail(HALYARD_FAILED_PRECONDITION, "the model has returned a null reference instead of a tensor");
  halyard_view_info_t info = {};
  info.struct_size = sizeof info;
  TOOL_TRY(check(halyard_view_info(value.raw().object, &info)));
  return info;
}

}  // namespace

uint64_t Job::rows() const {
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

Result<std::vector<halyard::Value>> arguments_of(const ModelSpec& model, halyard_device_t device,
                                                 std::vector<RequestInput>& inputs) {
  std::vector<halyard::Value> arguments;
  arguments.reserve(inputs.size() + 2);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = model.inputs[i];
    RequestInput& input = inputs[i];
    if (spec.is_number) {
      arguments.push_back(number_of(spec, input.data));
      continue;
    }
    halyard_object_t made = nullptr;
    const size_t size = input.data.size();
    std::byte* const bytes = input.data.release();
    const halyard_release_fn let_go = [](void* memory) { std::free(memory); };
    const Result<> done =
        check(halyard_view_import(device, spec.element_type, input.shape.data(), input.shape.size(), bytes,
                                  size, 0, let_go, bytes, nullptr, &made));
    if (!done) {
      std::free(bytes);
      return std::unexpected(done.error());
    }
    halyard_value_t value = {};
    value.kind = HALYARD_VALUE_OBJECT;
    value.object = made;
    arguments.emplace_back(halyard::adopt, value);
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
      const Bytes& bytes = job->inputs[i].data;
      if (bytes.size() > 0) std::memcpy(target, bytes.data(), bytes.size());
      target += bytes.size();
    }
  }
  return all;
}

Result<std::vector<std::vector<halyard::Value>>> split(const std::vector<halyard::Value>& results,
                                                       std::span<const std::shared_ptr<Job>> jobs) {
  uint64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows();
  std::vector<std::vector<halyard::Value>> parts(jobs.size());
  for (const halyard::Value& result : results) {
    const halyard_view_info_t info = TOOL_TRY(info_of(result));
    std::vector<int64_t> shape(info.shape, info.shape + info.rank);
    if (shape.empty() || static_cast<uint64_t>(shape.front()) != rows)
      return fail(HALYARD_FAILED_PRECONDITION, "a result of a batch has the shape {}; expected {} rows",
                  shape_text(shape), rows);
    uint64_t size = 0;  // of the rows, in bytes; the buffer may be larger
    TOOL_TRY(check(halyard_view_byte_count(result.raw().object, &size)));
    const uint64_t row_size = size / rows;
    uint64_t offset = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
      shape.front() = static_cast<int64_t>(jobs[i]->rows());
      halyard_value_t part = {};
      part.kind = HALYARD_VALUE_OBJECT;
      TOOL_TRY(check(halyard_view_part(result.raw().object, offset, info.element_type, shape.data(),
                                       shape.size(), &part.object)));
      parts[i].emplace_back(halyard::adopt, part);
      offset += row_size * jobs[i]->rows();
    }
  }
  return parts;
}

}  // namespace halyard::tools::serve
