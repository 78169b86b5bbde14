// Completions for bash and zsh. They offer names of flags, values listed by a declaration, files, and devices
// and functions, which vm-run lists when the user presses Tab: devices with the drivers of --driver,
// functions of the last module. No code of a native module runs for this.
#include <algorithm>

#include "common/help.h"

namespace halyard::tools {

namespace {

std::string identifier(std::string_view name) {
  std::string text = "_halyard_" + std::string(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

bool takes_value(const Flag& flag) { return flag.kind == FlagKind::value || flag.kind == FlagKind::list; }

std::vector<Flag> all_flags(const ToolDescription& tool) {
  std::vector<Flag> flags;
  for (const FlagGroup& group : all_groups(tool))
    for (const Flag* const flag : listed_flags(group)) flags.push_back(*flag);
  return flags;
}

// Users type the part before the file in "[SCOPE=]FILE" and "FORMAT=FILE": completion begins after the last
// '='.
// The names of functions in the output of vm-run --list_functions, without initializers and without the
// second form of asynchronous functions.
constexpr std::string_view kFunctionNames = R"(sed -n '/^__/d; s/^\([^ ($]*\)(.*/\1/p')";

constexpr std::string_view kBashFrame = R"(# bash completion of @TOOL@, made from the table of its --help.
@FUNCTION@() {
  # Bash splits words at '=' and ':'; the word is taken whole, and what readline has already is cut off again.
  local line=${COMP_LINE:0:COMP_POINT} word name value kind=none module=
  local -a candidates=() drivers=() words=()
  word=${line##*[[:space:]]}
  name=${word%%=*}
  [[ $name == --* ]] && name=--$(tr - _ <<<"${name#--}")
  value=${word#*=}
  if [[ $word == --*=* ]]; then
    word=$name=$value
    case $name in
@VALUES@    esac
  elif [[ $word == -* ]]; then
    candidates=(@NAMES@)
    word=$name
  else
    value=$word
@ARGUMENTS@  fi
  case $kind in
    files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "${value##*=}")
      return
      ;;
    devices|functions)
      read -ra words <<<"${COMP_LINE//[\"\']/}"
      for name in "${words[@]:1}"; do
        case $name in
          --driver=*) drivers+=("${name/=\~\//=$HOME/}") ;;
          --module=*|[^-]*) name=${name#--module=} name=${name/#\~\//$HOME/}; [[ -f $name ]] && module=$name ;;
        esac
      done
      name=${word%%=*}
      if [[ $kind == devices ]]; then
        mapfile -t candidates < <(vm-run "${drivers[@]}" --list_devices 2>/dev/null)
      elif [[ -n $module && $module != *.so ]]; then
        mapfile -t candidates < <(vm-run --module="$module" --list_functions 2>/dev/null | @FUNCTION_NAMES@)
      fi
      candidates=("${candidates[@]/#/$name=}")
      ;;
  esac
  COMPREPLY=()
  for name in "${candidates[@]}"; do
    [[ $name == "$word"* ]] && COMPREPLY+=("$name")
  done
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  if [[ $word == *[=:]* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[=:]}"}"}")
  fi
}
complete -o default -F @FUNCTION@ @TOOL@
)";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string_view kind_name(Completion completion) {
  switch (completion) {
    case Completion::files:
      return "files";
    case Completion::devices:
      return "devices";
    case Completion::functions:
      return "functions";
    default:
      return "none";
  }
}

// A shell statement that offers values of this form, each after `prefix`.
std::string bash_values(Completion completion, std::string_view value, const std::string& prefix) {
  if (completion != Completion::choices) return fmt::format("kind={}", kind_name(completion));
  std::string words;
  for (const std::string_view choice : words_of(value))
    words += fmt::format("{}{}{}", words.empty() ? "" : " ", prefix, choice);
  return fmt::format("candidates=({})", words);
}

// Escapes text for single quotes and for the brackets of _arguments.
std::string zsh_text(std::string_view text) {
  std::string safe;
  for (const char character : text) {
    if (character == '[' || character == ']' || character == ':' || character == '\\') safe += '\\';
    safe += character == '\n'   ? std::string(" ")
            : character == '\'' ? std::string("'\\''")
                                : std::string(1, character);
  }
  return safe;
}

std::string_view first_sentence(std::string_view text) {
  return text.substr(0, std::min(text.find(". "), text.find(".\n")));
}

// Functions for the actions of _arguments.
constexpr std::string_view kZshDevices = R"zsh(
_halyard_devices() {
  compadd -- ${(f)"$(vm-run ${(Q)${(M)words:#--driver=*}} --list_devices 2>/dev/null)"}
})zsh";
constexpr std::string_view kZshFunctions = R"zsh(
_halyard_functions() {
  local word module=
  for word in ${(Q)words[2,-1]}; do
    case $word in
      --module=*|[^-]*) word=${word#--module=} word=${word/#\~\//$HOME/}; [[ -f $word ]] && module=$word ;;
    esac
  done
  [[ -n $module && $module != *.so ]] || return 1
  compadd -- ${(f)"$(vm-run --module=$module --list_functions 2>/dev/null | @FUNCTION_NAMES@)"}
})zsh";

// "message:action" of _arguments.
std::string zsh_values(Completion completion, std::string_view value) {
  switch (completion) {
    case Completion::files:
      return zsh_text(value) + ":_files";
    case Completion::devices:
      return "device:_halyard_devices";
    case Completion::functions:
      return "function:_halyard_functions";
    case Completion::choices: {
      std::string words;
      for (const std::string_view choice : words_of(value))
        words += fmt::format("{}{}", words.empty() ? "" : " ", choice);
      return fmt::format("value:({})", words);
    }
    default:
      return zsh_text(value) + ": ";
  }
}

}  // namespace

std::string bash_completion(const ToolDescription& tool) {
  std::string names;
  std::string values;
  for (const Flag& flag : all_flags(tool)) {
    const std::string name = flag.text();
    if (flag.kind != FlagKind::toggle)
      values +=
          fmt::format("      {}) {} ;;\n", name, bash_values(completion_of(flag), flag.value, name + "="));
    names += fmt::format("{}{}{}", names.empty() ? "" : " ", name, takes_value(flag) ? "=" : "");
  }
  std::string text = replaced(std::string(kBashFrame), "@FUNCTION@", identifier(tool.name));
  text = replaced(std::move(text), "@TOOL@", tool.name);
  text = replaced(std::move(text), "@NAMES@", names);
  text = replaced(std::move(text), "@VALUES@", values);
  text = replaced(std::move(text), "@FUNCTION_NAMES@", kFunctionNames);
  return replaced(std::move(text), "@ARGUMENTS@",
                  fmt::format("    {}\n", bash_values(completion_of(tool.arguments), tool.arguments, "")));
}

std::string zsh_completion(const ToolDescription& tool) {
  const std::vector<Flag> flags = all_flags(tool);
  const auto offers = [&](Completion completion) {
    return std::ranges::any_of(flags, [&](const Flag& flag) { return completion_of(flag) == completion; });
  };
  std::string text = fmt::format("#compdef {}\n# Made from the table of its --help.", tool.name);
  if (offers(Completion::devices)) text += kZshDevices;
  if (offers(Completion::functions))
    text += replaced(std::string(kZshFunctions), "@FUNCTION_NAMES@", kFunctionNames);
  text += "\n_arguments";
  for (const Flag& flag : flags) {
    text += fmt::format(" \\\n  '{}--{}", flag.kind == FlagKind::list ? "*" : "", flag.name);
    const std::string about = zsh_text(first_sentence(flag.help));
    if (flag.kind == FlagKind::toggle) {
      text += fmt::format("[{}]'", about);
    } else if (takes_value(flag)) {
      text += fmt::format("=-[{}]:{}'", about, zsh_values(completion_of(flag), flag.value));
    } else {
      text += fmt::format("=-[{}]::{}'", about, zsh_values(completion_of(flag), flag.value));
    }
  }
  const bool first_is_a_word = completion_of(tool.arguments) == Completion::choices;
  if (first_is_a_word)
    text += fmt::format(" \\\n  '1:{}'", zsh_values(completion_of(tool.arguments), tool.arguments));
  if (!tool.arguments.empty()) text += " \\\n  '*:FILE:_files'";
  return text + "\n";
}

}  // namespace halyard::tools
