// Texts of C: identifiers, string literals, and constants with the exact value.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace halyard::aot {

// The name with '_' in place of each character that C does not allow; "m_" before a digit or an empty name.
std::string identifier(std::string_view name);

// A string literal. No byte can end the literal or begin an escape or a trigraph.
std::string quoted(std::string_view text);

// A text that cannot end a comment.
std::string in_comment(std::string_view text);

// Directives that refuse targets and options with which results would differ; `floats`: of programs with
// floats.
std::string compiler_checks(bool floats);

// The code without the contents of its string literals.
std::string without_literals(std::string_view code);
// The identifiers and numbers in a text of C.
std::set<std::string_view> words_of(std::string_view code);
// The code with another text in place of each such identifier.
std::string with_word(std::string_view code, std::string_view word, std::string_view text);

std::string constant_i32(uint32_t bits);
std::string constant_i64(uint64_t bits);
// Infinities and NaNs are written by their bits.
std::string constant_f32(uint32_t bits);
std::string constant_f64(uint64_t bits);

}  // namespace halyard::aot
