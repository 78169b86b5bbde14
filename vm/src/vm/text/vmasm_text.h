// The spelling of names, strings, numbers and features in .vmasm text, shared by the assembler and the
// disassembler. Printed items are read back as exactly the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace halyard::vm {

bool is_symbol_char(char c);  // letters, digits, '_', '$', '.'
int hex_digit(char c);        // -1 if it is not a hex digit
std::string hex_text(std::span<const uint8_t> bytes);

// "text", or e"te\"xt\x00" if it needs escapes.
std::string string_text(std::string_view bytes);
bool is_plain_string(std::string_view bytes);  // whether it needs no escapes
// @name, or '@' and a string.
std::string symbol_text(std::string_view name);
// Whether the type can be written in instructions.
bool is_plain_type(std::string_view name);

// The shortest number that reads back as these bits: 1.5, -inf, nan; otherwise bits(0x7FC00001).
std::string f32_text(uint32_t bits);
std::string f64_text(uint64_t bits);

// The names of requirement bits: "ext_f32, yield", "0x80000000" for unnamed bits, "none".
std::string features_text(uint32_t features);
uint32_t feature_bit(std::string_view name);  // 0: no such feature

}  // namespace halyard::vm
