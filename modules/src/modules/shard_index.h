// The index of a model that is split into several .safetensors files; maps tensors to files.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "modules/parameter_archive.h"

namespace halyard::modules {

// File names are relative to the folder of the index and are inside it.
struct ShardIndex {
  std::map<std::string, std::vector<std::string>> tensors;  // by file
  std::map<std::string, std::string, std::less<>> file_by_tensor;
};

// Whether the path names an index: model.safetensors.index.json, model.safetensors.index.fp16.json.
bool is_shard_index(std::string_view path);

// INVALID_ARGUMENT: not an index, or it refers to a file outside its folder or names a tensor twice.
Result<ShardIndex> read_shard_index(std::span<const uint8_t> bytes, std::string_view path);

// Checks that the file `shard` has every tensor that the index assigns to it, and none that the index assigns
// to another file. INVALID_ARGUMENT, with the tensor and the files.
Result<> check_shard(const ShardIndex& index, std::string_view path, const std::string& shard,
                     const ParameterEntries& entries);

}  // namespace halyard::modules
