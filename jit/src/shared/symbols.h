// Names of what compiled code takes from outside, as they stand in an image: of the host, put_ref, the types
// of buffers and lists, and the function that does the work of an opcode. Other names are functions of the C
// library.
#pragma once

#include <cstddef>
#include <string>

namespace halyard::jit {

inline constexpr char kPutRef[] = "halyard_put_ref";
inline constexpr char kBufferType[] = "halyard_buffer_type";
inline constexpr char kListType[] = "halyard_list_type";
inline constexpr char kHelper[] = "halyard_op_";  // and the number of the opcode
inline std::string helper_name(size_t op) { return kHelper + std::to_string(op); }
// The image itself.
inline constexpr char kImage[] = "halyard_image";

}  // namespace halyard::jit
