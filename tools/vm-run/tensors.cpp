// The names and element types of the files.
#include "tensors.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "common/files.h"
#include "common/npy.h"
#include "run_flags.h"

namespace halyard::tools {

namespace {

// A function's name without special characters of paths.
std::string file_name(std::string_view function) {
  std::string name(function.substr(0, 150));
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c) && c != '_' && c != '-' && c != '$'; }, '_');
  return name;
}

// Derives the element type from the function's name, because a device knows only bytes. Compilers append the
// element type to the names of functions.
std::string element_type(std::string_view function, uint64_t bytes) {
  static constexpr std::pair<std::string_view, unsigned> kTypes[] = {
      {"f32", 4}, {"f64", 8}, {"f16", 2}, {"i64", 8}, {"i32", 4}, {"i16", 2}, {"i8", 1}};
  for (const auto& [name, size] : kTypes)
    if (function.ends_with("_" + std::string(name)) && bytes % size == 0) return std::string(name);
  return "ui8";
}

}  // namespace

Result<> TensorFiles::begin(const Flags& flags, Program& program) {
  if (!flags.has(flag::trace_tensors)) return {};
  folder_ = flags[flag::trace_tensors_folder];
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error)
    return fail(code_of_errno(error.value()), "{}={}: cannot create the folder: {}; choose another",
                flag::trace_tensors_folder, folder_, error.message());
  program.tensor_pattern = flags[flag::trace_tensors];
  program.tensor = [this](const halyard_traced_tensor_t& tensor) -> halyard::Result<void> {
    try {
      const Result<> written = write(tensor);
      if (written) return {};
      return unexpected<Error>(Error(static_cast<StatusCode>(written.error().code), written.error().text));
    } catch (const std::exception& exception) {
      return unexpected<Error>(Error(StatusCode::RESOURCE_EXHAUSTED, exception.what()));
    }
  };
  return {};
}

Result<> TensorFiles::write(const halyard_traced_tensor_t& tensor) const {
  const std::string path =
      fmt::format("{}/{:05}_{}.binding{}.{}.npy", folder_, tensor.dispatch, file_name(view(tensor.function)),
                  tensor.binding, tensor.after ? "after" : "before");
  const std::string type = element_type(view(tensor.function), tensor.size);
  const uint64_t size = type.ends_with("64") ? 8 : type.ends_with("32") ? 4 : type.ends_with("16") ? 2 : 1;
  std::vector<uint8_t> bytes = TOOL_TRY(npy_header(type, {static_cast<int64_t>(tensor.size / size)}));
  bytes.insert(bytes.end(), tensor.data, tensor.data + tensor.size);
  return write_file(path, false, bytes);
}

}  // namespace halyard::tools
