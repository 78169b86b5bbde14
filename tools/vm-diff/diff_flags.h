// The flags of vm-diff.
#pragma once

#include "common/flags.h"

namespace halyard::tools::flag {

inline constexpr List side_a = {
    "a", "FLAGS",
    "Flags of the first run, separated by blanks; quotes and backslashes as in a shell. May be repeated. A "
    "flag "
    "that is given here replaces the same flag outside. For captures, 'recorded' is the recorded bytes.",
    "--a='--device=local-sync --jit=off'"};
inline constexpr List side_b = {"b", "FLAGS", "Flags of the second run, in the same form.",
                                "--b='--device=vulkan'"};
inline constexpr List atol = {
    "atol", "[TYPE=]X",
    "Accepts an absolute difference of at most X, for elements of TYPE or, without TYPE, of all floats. An "
    "element is accepted if |b-a| <= atol + rtol*|a|, or if the distance is at most --ulps. Without any "
    "tolerance all bits must be the same.",
    "--atol=1e-6 --atol=f16=1e-3"};
inline constexpr List rtol = {"rtol", "[TYPE=]X", "Accepts a difference of at most X times |a|.",
                              "--rtol=1e-5"};
inline constexpr List ulps = {
    "ulps", "[TYPE=]N", "Accepts elements with at most N-1 representable numbers of their type between them.",
    "--ulps=f32=4"};
inline constexpr List type = {
    "type", "[PATTERN=]TYPE",
    "The element type of tensors that are written by kernels whose names match PATTERN (wildcards: * and ?); "
    "without PATTERN, by all. Default: from the name of the kernel, else guessed from the values.",
    "--type='*softmax*=f16'"};
inline constexpr Number worst = {"worst", "N", "The number of worst elements to list (5).", "--worst=20", 5};
inline constexpr Text keep = {"keep", "FOLDER",
                              "Writes the tensors of both runs at each step beyond tolerance as .npy files: "
                              "00017_NAME.0.a.npy, .b.npy.",
                              "--keep=tensors"};
inline constexpr Size hold = {
    "hold", "SIZE",
    "The maximum bytes of tensors in memory at a time (256MB). If the steps that differ have more, the runs "
    "are repeated for the others. A single step may exceed the maximum.",
    "--hold=64MB"};
inline constexpr OptionalText json = {
    "json", "FILE", "Prints JSON (docs/vm-diff.md) instead of text; with FILE, writes it there in addition.",
    "--json"};

}  // namespace halyard::tools::flag
