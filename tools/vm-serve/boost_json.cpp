// Compiles the parts of Boost.JSON that are not templates, instead of linking its library.
#include <boost/json/src.hpp>
