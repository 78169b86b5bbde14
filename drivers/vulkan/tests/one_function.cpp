// Making executables.
#include "one_function.h"

#include <cstring>

#include "harness.h"

namespace halyard::vulkan_tests {

std::vector<uint32_t> kernel_words(const std::string& name) {
  const std::vector<uint8_t> bytes = kernel_file(name);
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), words.size() * 4);
  return words;
}

std::vector<uint8_t> one_function(const std::string& shader, uint32_t bindings, uint32_t push,
                                  const Change& change) {
  format::ExecutableT executable;
  executable.shader_modules.push_back(std::make_unique<format::ShaderModuleT>());
  executable.shader_modules[0]->code = kernel_words(shader + ".spv");
  executable.set_layouts.push_back(std::make_unique<format::SetLayoutT>());
  for (uint32_t i = 0; i < bindings; ++i) {
    auto binding = std::make_unique<format::BindingT>();
    binding->binding = i;
    binding->type = 7;
    binding->count = 1;
    binding->stages = 0x20;
    executable.set_layouts[0]->bindings.push_back(std::move(binding));
  }
  executable.pipeline_layouts.push_back(std::make_unique<format::PipelineLayoutT>());
  executable.pipeline_layouts[0]->sets = {0};
  if (push != 0) executable.pipeline_layouts[0]->push_constants.emplace_back(0x20, 0, push);
  executable.pipelines.push_back(std::make_unique<format::PipelineT>());
  executable.pipelines[0]->entry_point = shader;
  if (change) change(executable);
  flatbuffers::FlatBufferBuilder builder;
  format::FinishExecutableBuffer(builder, format::Executable::Pack(builder, &executable));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

}  // namespace halyard::vulkan_tests
