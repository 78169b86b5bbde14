#include "emit/processors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/suggest.h"

namespace halyard::aot {

namespace {

struct KnownProcessor {
  std::string_view name;
  std::string_view format;
  std::string_view triple;
  std::string_view llvm_name;
  std::string_view llvm_features;
  // The features of the level of which devices tell (hal-semantics.md, hal.cpu). Processors that have these
  // have the others of the level, too.
  std::string_view features;
};

constexpr std::string_view kX86Format = "embedded-elf-x86_64";
constexpr std::string_view kX86Triple = "x86_64-unknown-linux-gnu";
constexpr std::array kKnown = {
    KnownProcessor{"x86-64-v2", kX86Format, kX86Triple, "x86-64-v2", "", "ssse3 sse4.1 sse4.2"},
    KnownProcessor{"x86-64-v3", kX86Format, kX86Triple, "x86-64-v3", "", "sse4.2 avx fma f16c avx2"},
    KnownProcessor{"x86-64-v4", kX86Format, kX86Triple, "x86-64-v4", "",
                   "avx2 fma f16c avx512f avx512cd avx512vl avx512dq avx512bw"},
    KnownProcessor{"arm64", "embedded-elf-arm_64", "aarch64-unknown-linux-gnu", "generic", "+neon", ""},
    KnownProcessor{"riscv64", "embedded-elf-riscv_64", "riscv64-unknown-linux-gnu", "generic-rv64",
                   "+m,+a,+f,+d,+c", ""},
};

// Features that a name may add; devices and LLVM name them alike.
constexpr std::string_view kX86Features =
    "sse4a fma4 xop avx512ifma avx512vbmi avx512vpopcntdq avx512vnni avx512vbmi2 avx512bitalg avx512bf16 "
    "avx512fp16";
constexpr std::string_view kArmFeatures = "lse fullfp16 fp16fml dotprod i8mm bf16 sve sve2";
constexpr std::string_view kRiscvFeatures = "v zvfhmin zvfh";

std::vector<std::string_view> words_of(std::string_view text, char separator = ' ') {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string_view features_of(const KnownProcessor& known) {
  return known.format == kX86Format ? kX86Features : known.name == "arm64" ? kArmFeatures : kRiscvFeatures;
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

}  // namespace

std::vector<std::string_view> known_processors() {
  std::vector<std::string_view> names;
  for (const KnownProcessor& known : kKnown) names.push_back(known.name);
  return names;
}

Result<std::vector<Processor>> read_processors(std::span<const std::string> names) {
  if (names.empty())
    return fail(Code::INVALID_ARGUMENT, "no processor is named; the known ones are {}",
                joined(known_processors()));
  std::vector<Processor> processors;
  for (const std::string& name : names) {
    const std::string_view base = std::string_view(name).substr(0, name.find('+'));
    const auto* const known = std::ranges::find(kKnown, base, &KnownProcessor::name);
    if (known == kKnown.end())
      return fail(Code::INVALID_ARGUMENT, "unknown processor '{}'{}; the known ones are {}", base,
                  did_you_mean(base, known_processors()), joined(known_processors()));
    if (std::ranges::find(processors, name, &Processor::name) != processors.end())
      return fail(Code::INVALID_ARGUMENT, "the processor '{}' is named twice", name);
    Processor& made = processors.emplace_back(Processor{.name = name,
                                                        .format = std::string(known->format),
                                                        .triple = std::string(known->triple),
                                                        .llvm_name = std::string(known->llvm_name),
                                                        .llvm_features = std::string(known->llvm_features)});
    for (const std::string_view each : words_of(known->features)) made.features.emplace_back(each);
    const std::vector<std::string_view> possible = words_of(features_of(*known));
    const std::vector<std::string_view> more =
        words_of(std::string_view(name).substr(std::min(base.size() + 1, name.size())), '+');
    if (name.ends_with('+'))
      return fail(Code::INVALID_ARGUMENT, "processor '{}': no feature after '+'; the features of {} are {}",
                  name, base, joined(possible));
    for (const std::string_view each : more) {
      if (std::ranges::find(possible, each) == possible.end())
        return fail(Code::INVALID_ARGUMENT,
                    "processor '{}': unknown feature '{}'{}; the features of {} are {}", name, each,
                    did_you_mean(each, possible), base, joined(possible));
      made.llvm_features += (made.llvm_features.empty() ? "+" : ",+") + std::string(each);
      made.features.emplace_back(each);
    }
    made.rank =
        static_cast<uint32_t>((known - kKnown.begin()) * 64 + static_cast<std::ptrdiff_t>(more.size()));
  }
  // By rank; those of one rank stay in the order of `names`.
  std::vector<Processor> sorted;
  for (Processor& each : processors)
    sorted.insert(std::ranges::upper_bound(sorted, each.rank, {}, &Processor::rank), std::move(each));
  return sorted;
}

}  // namespace halyard::aot
