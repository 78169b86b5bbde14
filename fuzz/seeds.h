// The parts of the program that writes the seed corpora.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace halyard::fuzz {

void write_seed(const std::filesystem::path& path, const void* bytes, size_t size);
inline void write_seed(const std::filesystem::path& path, const std::vector<uint8_t>& file) {
  write_seed(path, file.data(), file.size());
}

void write_captures(const std::filesystem::path& folder);
void write_parameter_files(const std::filesystem::path& folder);
void write_inputs(const std::filesystem::path& folder);
void write_requests(const std::filesystem::path& folder);
void write_messages(const std::filesystem::path& folder);
void write_streams(const std::filesystem::path& folder);
void write_server_frames(const std::filesystem::path& folder);
void write_client_frames(const std::filesystem::path& folder);

}  // namespace halyard::fuzz
