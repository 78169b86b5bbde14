// Names of external symbols in images: put_ref of the host, the types of buffers and lists, and the helper
// functions of opcodes. Other names are functions of the C library.
#pragma once

#include <cstddef>
#include <string>

namespace halyard::jit {

inline constexpr char kPutRef[] = "halyard_put_ref";
inline constexpr char kBufferType[] = "halyard_buffer_type";
inline constexpr char kListType[] = "halyard_list_type";
inline constexpr char kHelper[] = "halyard_op_";  // followed by the number of the opcode
inline std::string helper_name(size_t op) { return kHelper + std::to_string(op); }
// The start of the image itself.
inline constexpr char kImage[] = "halyard_image";

}  // namespace halyard::jit
