// How names, strings, numbers and features are spelled in .vmasm text: the rules that reading and printing
// share. What is printed here is read back as exactly the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace halyard::vm {

bool is_symbol_char(char c);  // letters, digits, '_', '$', '.'
int hex_digit(char c);        // -1 where it is none
std::string hex_text(std::span<const uint8_t> bytes);

// "text", or e"te\"xt\x00" where plain strings cannot say it.
std::string string_text(std::string_view bytes);
bool is_plain_string(std::string_view bytes);  // needs no escapes
// @name, or the name as a string after the '@'.
std::string symbol_text(std::string_view name);
// Whether the entry of a type table can be written where instructions name types.
bool is_plain_type(std::string_view name);

// The shortest number that is read back as these bits: 1.5, -inf, nan, or bits(0x7FC00001) where there is
// none.
std::string f32_text(uint32_t bits);
std::string f64_text(uint64_t bits);

// Requirement bits: "ext_f32, yield", "0x80000000" for the unnamed ones, "none".
std::string features_text(uint32_t features);
uint32_t feature_bit(std::string_view name);  // 0 where there is none of that name

}  // namespace halyard::vm
