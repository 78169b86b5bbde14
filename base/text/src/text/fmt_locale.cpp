// The locale of <fmt/chrono.h>, apart from the rest of fmt: only programs that format times contain the
// locales of the C++ library.
#include <fmt/format.h>

#include <locale>

FMT_BEGIN_NAMESPACE
namespace detail {

template <>
std::locale locale_ref::get<std::locale>() const {
  return locale_ ? *static_cast<const std::locale*>(locale_) : std::locale();
}

}  // namespace detail
FMT_END_NAMESPACE
