// The sample drivers (drivers/sample.h) for tests: their paths, folders of copies, and devices.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "hal/device/device.h"
#include "hal/driver/driver_library.h"
#include "hal_test.h"

namespace halyard::hal {

inline std::string sample_path(const std::string& name) {
  return std::string(HALYARD_TEST_DRIVERS) + "/halyard-driver-" + name + ".so";
}

// A folder for one test, removed at its end.
class TemporaryFolder {
 public:
  // Contains copies of these sample drivers.
  explicit TemporaryFolder(std::initializer_list<const char*> names = {}) {
    std::string pattern = (std::filesystem::temp_directory_path() / "halyard-XXXXXX").string();
    const char* const made = ::mkdtemp(pattern.data());
    path_ = made ? made : "";
    for (const char* name : names) add(name);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  const std::string& path() const { return path_; }
  std::string driver(const std::string& name) const { return path_ + "/halyard-driver-" + name + ".so"; }
  // Copies a sample driver, optionally with another file name; returns the path of the copy.
  std::string add(const std::string& name, const std::string& file_name = "") const {
    const std::string target = file_name.empty() ? driver(name) : path_ + "/" + file_name;
    std::filesystem::copy_file(sample_path(name), target);
    return target;
  }
  std::string write(const std::string& file_name, const std::vector<uint8_t>& bytes) const {
    const std::string target = path_ + "/" + file_name;
    std::ofstream(target, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    return target;
  }

 private:
  std::string path_;
};

inline std::vector<uint8_t> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A device of a new instance, or of a given one.
inline Ref<Device> sample_device(const std::string& path = "", Ref<DriverLibrary> library = nullptr) {
  if (!library) library = DriverLibrary::open(sample_path("sample")).value();
  return Device::open(std::move(library), "sample", path, {}).value();
}

// A counter of the sample driver's instance.
inline int64_t seen(const Device& device, std::string_view what) {
  const Device::Answer answer = device.query_i64("sample", what);
  EXPECT_TRUE(answer.known) << what;
  return answer.value;
}

}  // namespace halyard::hal
